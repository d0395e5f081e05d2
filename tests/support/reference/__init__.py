"""The reference: preparation and scalar expressions a second time, in plain Python, to compare an engine with.

``sanitise`` says what preparation must store, ``prepared_rows`` does so for a whole table, ``evaluate`` (or ``evaluator``, for many rows)
gives the value of an expression on a row, ``grid_sum`` the exact sum of a measure. Nothing here is used at run time.
"""

from __future__ import annotations

from tests.support.reference.evaluation import (
    Evaluator,
    Row,
    Stored,
    bounded_integer,
    evaluate,
    evaluator,
    grid_contribution,
    grid_sum,
    in_domain,
)
from tests.support.reference.sanitising import Raw, RawDay, RawMoment, prepared_rows, sanitise, unit_of

__all__ = [
    "Evaluator",
    "Raw",
    "RawDay",
    "RawMoment",
    "Row",
    "Stored",
    "bounded_integer",
    "evaluate",
    "evaluator",
    "grid_contribution",
    "grid_sum",
    "in_domain",
    "prepared_rows",
    "sanitise",
    "unit_of",
]
