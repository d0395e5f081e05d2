"""The notes on quantiles: the rank that represents an extreme, and the rank error of an answer.

No interval of values is given. The rank error is a public fact, but which values lie that many ranks away is not, and was not bought.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import assert_never

from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, Target
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.planning.quantile_errors import rank_errors
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.statements import Statement


def quantile_errors(
    statement: Statement, number: int, part: Part, query: CertifiedQuery, *, confidence: Fraction
) -> Iterator[tuple[str, str, int]]:
    """For every quantile of a private query: its own text, the answered target, and its error in ranks."""
    sets = {item.quantiles.name: item.mechanism for item in query.quantiles}
    errors = {name: rank_errors(tree, confidence=confidence, rows_max=query.shape.rows_max) for name, tree in sets.items()}
    spans = dict(statement.spans)
    for index, recipe in enumerate(part.recipes):
        if isinstance(recipe, QuantileMeasure):
            span, target = spans.get(f"q{number}.a{index}"), sets[recipe.quantiles].targets[recipe.target]
            name = f"aggregate {index + 1}" if span is None else " ".join(statement.text[span.start : span.end].split())
            yield name, answered_as(target), errors[recipe.quantiles][recipe.target]


def answered_as(target: Target) -> str:
    """The target as text."""
    match target:
        case AtShare(share):
            return f"the {float(100 * share):g} % quantile"
        case FromLeast(rank):
            return f"the {_ordinal(rank)} smallest value"
        case FromGreatest(rank):
            return f"the {_ordinal(rank)} largest value"
        case _:
            assert_never(target)


def quantile_notes(statement: Statement, planned: PlannedStatement, *, confidence: Fraction) -> tuple[str, ...]:
    """One note for each quantile of an answer."""
    notes = []
    for number, part in enumerate(planned.parts):
        if part.number is None or planned.measured is None:
            continue
        query = planned.measured.queries[part.number]
        for name, how, ranks in quantile_errors(statement, number, part, query, confidence=confidence):
            whose = " of each group" if part.query.keys else ""
            notes.append(f"{name} is answered as {how}{whose}, within {ranks:,} ranks at {float(confidence):.0%}")
    return tuple(dict.fromkeys(notes))


def _ordinal(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"
