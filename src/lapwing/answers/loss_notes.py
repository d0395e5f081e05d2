"""What an answer says about its bounds: how much they cut off where that was measured, what is predicted where it was not."""

from __future__ import annotations

from lapwing.answers.number_format import figure
from lapwing.planning.bounding import BoundingKind
from lapwing.planning.measures import Counted
from lapwing.planning.plan import Part, Planned

SMALLEST_SHARE = 0.001
"""Shares below this are said to be less than it."""


def loss_notes(planned: Planned, *, unit: str) -> tuple[str, ...]:
    """One note for each query that is bounded, the same ones once."""
    notes = [_of_part(part, planned, unit) for part in planned.parts if part.number is not None]
    return tuple(dict.fromkeys(note for note in notes if note))


def _of_part(part: Part, planned: Planned, unit: str) -> str:
    if part.cuts:
        # Averages have caps of their own, far lower: what those cut off, a sum and a count lose alike.
        totals = {name: cut for name, cut in part.cuts.items() if name not in part.together} or part.cuts
        cutting = [cut.choice for cut in totals.values() if cut.choice.cap < cut.fit.largest]
        if not cutting:
            return ""
        worst = max(cutting, key=lambda choice: choice.lost)
        units = figure(max(cut.fit.units() for cut in part.cuts.values()), digits=2)
        above = f"about {figure(worst.above, digits=2)} of {units} {unit}s were above the bound"
        note = f"{above}: about {_share(worst.lost)} is missing, at most {_share(worst.lost_upper)}, and the error bars reach to it"
        beside = part.lost > max(cut.choice.lost for cut in part.cuts.values())
        return note + (f"; joined rows beyond a limit, about {_share(part.lost)}, are left out besides" if beside else "")
    if not is_cutting(part, planned):
        return ""
    if _counts_values(part):
        return "not all rows are looked at: values that few have may be missing, and the error bars do not reach to them"
    return (
        f"rows beyond the bound on one {unit} are left out: about {_share(part.lost)} is predicted missing, "
        "and the error bars do not reach to it"
    )


def is_cutting(part: Part, planned: Planned) -> bool:
    """Whether the bound of a part leaves out anything that its relation allows."""
    if part.number is None or planned.measured is None:
        return False
    query = planned.measured.queries[part.number]
    rows = planned.shape(part).rows_per_unit
    if part.choice.kind is BoundingKind.RANKED:
        return query.shape.rows_per_unit < rows
    return part.choice.limit < rows


def _counts_values(part: Part) -> bool:
    """Whether nothing but distinct values is counted: rows that are not looked at are then no loss by themselves."""
    return all(isinstance(recipe, Counted) and recipe.most is not None for recipe in part.recipes)


def _share(share: float) -> str:
    return f"less than {SMALLEST_SHARE:.1%}" if share < SMALLEST_SHARE else f"{min(share, 1.0):.1%}"
