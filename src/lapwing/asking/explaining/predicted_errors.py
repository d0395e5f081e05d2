"""The predicted root mean square error of each output of a plan, from noise and clipping bias together."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lapwing.contribution.clipping_bound import SKEW_POWER
from lapwing.kernel.certify import CertifiedVector
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.spread import variance
from lapwing.statements import LinearOutput, Statement


def predicted_errors(statement: Statement, planned: PlannedStatement, *, units: int | None) -> dict[str, float]:
    """By output, for plain counts, sums and averages; for an ordinary group. ``units``: as declared."""
    return {
        name: error
        for number, part in enumerate(planned.parts)
        for name, error in errors_of_part(statement, number, part, planned, units=units).items()
    }


def errors_of_part(statement: Statement, number: int, part: Part, planned: PlannedStatement, *, units: int | None) -> dict[str, float]:
    """The same for the outputs of one query as ``part`` measures them: its groups, or totals of them that are measured separately."""
    errors = {}
    for output in statement.post.outputs:
        if isinstance(output.derivation, LinearOutput) and output.derivation.aggregate.query == number:
            aggregate, scale = output.derivation.aggregate, float(abs(output.derivation.scale))
            error = None if part.number is None else _error(part, part.recipes[aggregate.index], planned, units)
            if error is not None:
                errors[output.name] = scale * error
    return errors


def rows_in_group(part: Part, planned: PlannedStatement, units: int | None) -> float | None:
    """Rows of an ordinary group, by bought statistics or, where a unit has one row at most, by the declared number of units; None where
    neither is available, or the groups are not known beforehand."""
    rows = part.kept * units if part.rows is None and units is not None and planned.shape(part).rows_per_unit == 1 else part.rows
    return None if rows is None or not part.groups else (1 - part.lost) * rows / len(part.groups)


def average_noise(recipe: AverageMeasure, vectors: Mapping[str, CertifiedVector]) -> float:
    """The deviation of an average's noise, times its rows: the sum's, and the count's times the distance of the average from the
    middle of its range, over which it is assumed to be uniform."""
    return math.hypot(noise_of(vectors[recipe.total]), float(recipe.upper - recipe.lower) / math.sqrt(12) * noise_of(vectors[recipe.count]))


def _error(part: Part, recipe: Recipe, planned: PlannedStatement, units: int | None) -> float | None:
    vectors = {item.vector.name: item for item in planned.queries[part.number or 0].vectors}
    match recipe:
        case CountMeasure(vector=vector) | SumMeasure(vector=vector):
            return _of_vector(part, vectors[vector])
        case AverageMeasure(total, count):
            cut, rows = part.cuts.get(total), part.cuts.get(count)
            if cut is None or rows is None:
                in_group = rows_in_group(part, planned, units)
                return None if in_group is None or in_group < 1 else average_noise(recipe, vectors) / in_group
            mean = cut.choice.total * float(cut.unit) / max(rows.choice.total, 1.0)
            # Both are scaled down alike: the noise is divided by the remaining rows, and small groups have fewer of them.
            lost = max(rows.choice.lost, cut.choice.lost)
            in_group = max(rows.choice.total * (1 - lost) / rows.cells ** (1 + SKEW_POWER), 1.0)
            return float(math.hypot(noise_of(vectors[total]), mean * noise_of(vectors[count])) / in_group)
        case _:
            return None


def noise_of(vector: CertifiedVector) -> float:
    """The deviation of a vector's noise."""
    return math.sqrt(variance(vector.vector.law)) * float(vector.step)


def _of_vector(part: Part, vector: CertifiedVector) -> float | None:
    cut, scaling = part.cuts.get(vector.vector.name), part.scaled.get(vector.vector.name)
    if cut is not None and scaling is not None:
        return scaling.error * float(cut.unit)
    if cut is not None:
        # A unit that is counted in a group adds 1 there: none of them loses much more than the others.
        lost = cut.choice.bias if cut.of_units else cut.choice.loss
        left_out = part.left_out * cut.choice.total / cut.cells
        return math.hypot(noise_of(vector), (lost + left_out) * float(cut.unit))
    return math.hypot(noise_of(vector), part.choice.truncation) if vector.rounding == 0 and vector.step == 1 else None
