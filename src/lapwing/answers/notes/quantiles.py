"""The notes on quantiles: the rank that represents an extreme, the rank error of an answer, and the groups in which it is withheld."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from lapwing.answers.display.number_format import figure
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, Target
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.planning.quantile_bars import rows_to_be_shown
from lapwing.planning.quantile_errors import rank_errors
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.statements import Statement


def quantile_errors(
    statement: Statement, number: int, part: Part, planned: PlannedStatement, *, confidence: Fraction
) -> Iterator[tuple[str, str, int]]:
    """For every quantile of a private query: its own text, the answered target, and its error in ranks."""
    query = _measured(part, planned)
    sets = {item.quantiles.name: item.mechanism for item in query.quantiles}
    errors = {name: rank_errors(tree, confidence=confidence, rows_max=query.shape.rows_max) for name, tree in sets.items()}
    for index, recipe in enumerate(part.recipes):
        if isinstance(recipe, QuantileMeasure):
            target = sets[recipe.quantiles].targets[recipe.target]
            yield _name(statement, number, index), answered_as(target), errors[recipe.quantiles][recipe.target]


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
        for name, how, ranks in quantile_errors(statement, number, part, planned, confidence=confidence):
            whose = " of each group" if part.query.keys else ""
            notes.append(f"{name} is answered as {how}{whose}, within {ranks:,} ranks at {float(confidence):.0%}")
        notes += [
            f"{item.name} is withheld (NULL) {item.where}"
            for item in withheld_quantiles(statement, number, part, planned)
            if item.is_predicted or part.query.keys
        ]
    return tuple(dict.fromkeys(notes))


@dataclass(frozen=True, slots=True)
class WithheldBelow:
    """From how many rows a quantile is shown, and how many are predicted."""

    name: str
    needed: float
    predicted: float

    @property
    def is_predicted(self) -> bool:
        """Whether it is predicted to be withheld."""
        return self.predicted < self.needed

    @property
    def where(self) -> str:
        """The groups in which it is withheld."""
        if math.isinf(self.needed):
            return "at this price, whatever the number of rows"
        return f"below about {figure(self.needed, digits=2)} rows within the bound"


def withheld_quantiles(statement: Statement, number: int, part: Part, planned: PlannedStatement) -> Iterator[WithheldBelow]:
    """For every quantile that may be withheld: the number of rows, of those within the bound, from which it is shown."""
    bars, query = part.of_quantiles.bars, _measured(part, planned)
    if bars is None:
        return
    for index, recipe in enumerate(part.recipes):
        if isinstance(recipe, QuantileMeasure):
            needed = rows_to_be_shown(bars, query, recipe.quantiles, recipe.target)
            yield WithheldBelow(_name(statement, number, index), needed, bars.rows)


def _measured(part: Part, planned: PlannedStatement) -> CertifiedQuery:
    """The query that measures the quantiles of a part."""
    return planned.queries[part.of_quantiles.number or 0]


def _name(statement: Statement, number: int, index: int) -> str:
    """The aggregate's own text."""
    span = dict(statement.spans).get(f"q{number}.a{index}")
    return f"aggregate {index + 1}" if span is None else " ".join(statement.text[span.start : span.end].split())


def _ordinal(rank: int) -> str:
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank:,}{ending}"
