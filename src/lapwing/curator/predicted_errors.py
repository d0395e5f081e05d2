"""The root mean square error that a plan is predicted to have in each output, noise and what bounds cut off together."""

from __future__ import annotations

import math

from lapwing.kernel.certify import CertifiedVector
from lapwing.planning.measures import Averaged, Counted, Recipe, Summed
from lapwing.planning.plan import Part, Planned
from lapwing.spread import variance
from lapwing.statements import LinearOutput, Statement


def predicted_errors(statement: Statement, planned: Planned) -> dict[str, float]:
    """By output, for those that are a count, a sum or an average as it is; of an ordinary group."""
    errors = {}
    for output in statement.post.outputs:
        if isinstance(output.derivation, LinearOutput):
            aggregate, scale = output.derivation.aggregate, float(abs(output.derivation.scale))
            part = planned.parts[aggregate.query]
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
            mean = cut.fit.total() * float(cut.unit) / max(rows.fit.total(), 1.0)
            in_group = max(rows.fit.total() * rows.cells**0.25 / rows.cells, 1.0)  # between units in one group each and in all of them
            return float(math.hypot(_noise(vectors[total]), mean * _noise(vectors[count])) / in_group)
        case _:
            return None


def _noise(vector: CertifiedVector) -> float:
    return math.sqrt(variance(vector.vector.law)) * float(vector.step)


def _of_vector(part: Part, vector: CertifiedVector) -> float | None:
    cut = part.cuts.get(vector.vector.name)
    if cut is not None:
        return math.hypot(_noise(vector), cut.choice.bias * float(cut.unit))
    return math.hypot(_noise(vector), part.choice.truncation) if vector.rounding == 0 and vector.step == 1 else None
