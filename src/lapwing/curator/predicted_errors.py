"""The root mean square error that a plan is predicted to have in each output, noise and what bounds cut off together."""

from __future__ import annotations

import math

from lapwing.kernel.certify import CertifiedVector
from lapwing.planning.measures import Averaged, Counted, Recipe, Summed
from lapwing.planning.norm_caps import SKEW_POWER
from lapwing.planning.planned import Part, Planned
from lapwing.spread import variance
from lapwing.statements import LinearOutput, Statement


def predicted_errors(statement: Statement, planned: Planned) -> dict[str, float]:
    """By output, for those that are a count, a sum or an average as it is; of an ordinary group."""
    return {
        name: error for number, part in enumerate(planned.parts) for name, error in errors_of_part(statement, number, part, planned).items()
    }


def errors_of_part(statement: Statement, number: int, part: Part, planned: Planned) -> dict[str, float]:
    """The same for the outputs of one query as ``part`` measures them: its groups, or totals of them that are measured apart."""
    errors = {}
    for output in statement.post.outputs:
        if isinstance(output.derivation, LinearOutput) and output.derivation.aggregate.query == number:
            aggregate, scale = output.derivation.aggregate, float(abs(output.derivation.scale))
            error = None if part.number is None else _error(part, part.recipes[aggregate.index], planned)
            if error is not None:
                errors[output.name] = scale * error
    return errors


def _error(part: Part, recipe: Recipe, planned: Planned) -> float | None:
    vectors = {item.vector.name: item for item in planned.certified.queries[part.number or 0].vectors}
    match recipe:
        case Counted(vector=vector) | Summed(vector=vector):
            return _of_vector(part, vectors[vector])
        case Averaged(total, count):
            cut, rows = part.cuts.get(total), part.cuts.get(count)
            if cut is None or rows is None:
                return None
            mean = cut.choice.total * float(cut.unit) / max(rows.choice.total, 1.0)
            # Both are scaled down alike: what that leaves of the rows is what noise is divided by, and small groups have less of it.
            lost = max(rows.choice.lost, cut.choice.lost)
            in_group = max(rows.choice.total * (1 - lost) / rows.cells ** (1 + SKEW_POWER), 1.0)
            return float(math.hypot(_noise(vectors[total]), mean * _noise(vectors[count])) / in_group)
        case _:
            return None


def _noise(vector: CertifiedVector) -> float:
    return math.sqrt(variance(vector.vector.law)) * float(vector.step)


def _of_vector(part: Part, vector: CertifiedVector) -> float | None:
    cut, scaling = part.cuts.get(vector.vector.name), part.scaled.get(vector.vector.name)
    if cut is not None and scaling is not None:
        return scaling.error * float(cut.unit)
    if cut is not None:
        # A unit that is counted in a group adds 1 there: none of them loses much more than the others.
        lost = cut.choice.bias if cut.of_units else cut.choice.loss
        left_out = part.left_out * cut.choice.total / cut.cells
        return math.hypot(_noise(vector), (lost + left_out) * float(cut.unit))
    return math.hypot(_noise(vector), part.choice.truncation) if vector.rounding == 0 and vector.step == 1 else None
