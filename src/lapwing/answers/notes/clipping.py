"""The notes on bounds: the clipping bias where it was measured, a prediction where it was not."""

from __future__ import annotations

from dataclasses import replace

from lapwing.answers.display.number_format import figure
from lapwing.contribution.bounding import BoundingKind
from lapwing.contribution.clipping_bound import CapChoice, lost_beside
from lapwing.contribution.histograms import ClippingBound
from lapwing.kernel.release import NoisyTable, Released
from lapwing.planning.measures import CountMeasure
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.planning.ratio_estimator import would_help

SMALLEST_SHARE = 0.001
"""Shares below this are reported as "less than"."""


def loss_notes(planned: PlannedStatement, released: Released, *, unit: str) -> tuple[str, ...]:
    """One note for each query that is bounded, the same ones once."""
    notes = [_of_part(part, planned, released, unit) for part in planned.parts if part.number is not None]
    notes += [_of_part(part.quantiles, planned, released, unit) for part in planned.parts if part.quantiles is not None]
    totals = [_of_part(total, planned, released, unit) for part in planned.parts for total in part.apart.values()]
    notes += [f"of totals, {note}" for note in totals if note]
    notes += [_of_scaling(part, unit) for part in planned.parts]
    if planned.scaling_asked and not any(part.scaled for part in planned.parts):
        notes.append("the groups are not scaled: no bound that cuts anything off was chosen from norms")
    return tuple(dict.fromkeys(note for note in notes if note))


def _of_part(part: Part, planned: PlannedStatement, released: Released, unit: str) -> str:
    if part.cuts:
        # Averages have their own, far lower caps, which clip sum and count alike.
        # A centred sum adds up to about nothing: its share that is missing says nothing, that of its count does.
        cuts = {name: cut for name, cut in part.cuts.items() if name not in part.centred}
        totals = {name: cut for name, cut in cuts.items() if name not in part.together} or cuts
        # Scaled groups lack only what their total lacks: the model restores the loss from their own low cap.
        totals |= {name: scaling.cut for name, scaling in part.scaled.items()}
        cutting = [
            _beside_the_value(cut, released.tables[part.number or 0], name)
            for name, cut in totals.items()
            if cut.choice.cap < cut.fit.largest
        ]
        if not cutting:
            return ""
        worst = max(cutting, key=lambda choice: choice.lost)
        units = figure(max(worst.above, *(cut.fit.units() for cut in part.cuts.values())), digits=2)
        one_in = max(cut.one_in for cut in part.cuts.values())
        above = f"about {figure(worst.above, digits=2)} of {units} {unit}s were above the bound" + sample_text(one_in, unit)
        note = f"{above}: about {_share(worst.lost)} is missing, at most {_share(worst.lost_upper)}, and the error bars reach to it"
        joined = (
            f"; joined rows beyond a limit, about {_share(part.left_out)} by prediction, are left out besides, and the bars reach to that"
        )
        return note + (joined if part.left_out else "")
    if not is_cutting(part, planned):
        return ""
    if _counts_values(part):
        return "not all rows are looked at: values that few have may be missing, and the error bars do not reach to them"
    if part.bars is not None and all(isinstance(recipe, QuantileMeasure) for recipe in part.recipes):
        limit = planned.queries[part.number or 0].shape.rows_per_unit
        rows = "one row" if limit == 1 else f"at most {limit} rows"
        return f"quantiles are of {rows} of each {unit}, about {_share(1 - part.lost)} of all rows: error bars allow for those left out"
    left_out = f"rows beyond the bound on one {unit} are left out: about {_share(part.lost)} is predicted missing"
    note = f"{left_out}, and the error bars do not reach to it"
    if part.bars is None:
        return note
    return f"{note}; ask for quantiles in a statement of their own, and the bars of the other columns do"


def _beside_the_value(cut: ClippingBound, table: NoisyTable, name: str) -> CapChoice:
    """The predictions, as shares of the released value if there is just one, which gives the size."""
    choice = cut.choice
    if cut.cells > 1 or cut.signed or len(table.groups) != 1:
        return choice
    column = table.column(name)
    kept = max(float(column.values[0] * column.step / cut.unit), choice.noise)
    lost, most = lost_beside(cut.fit, choice, kept)
    return replace(choice, lost=lost, lost_upper=most)


def sample_text(one_in: int, unit: str) -> str:
    """The remark that a figure comes from a sample of units; empty if it comes from all of them."""
    return "" if one_in == 1 else f", by a sample of one {unit} in {one_in}"


def _of_scaling(part: Part, unit: str) -> str:
    """The notes on groups that are scaled by a model, or would be clearly closer if they were."""
    if part.scaled:
        lost = max(part.cuts[name].choice.lost for name in part.scaled)
        return (
            f"groups are scaled by a model: measured at a low bound, which cuts off about {_share(lost)}, and multiplied to add up to a "
            f"total measured at its own; {unit}s above the low bound are taken to spread over the groups like the others"
        )
    if is_better_scaled(part):
        return "WITH PRIVACY (scaled_groups = true) is predicted to be clearly closer: it scales the groups to a total, by a model"
    return ""


def is_better_scaled(part: Part) -> bool:
    """Whether groups that are not scaled would be clearly closer if they were."""
    if part.scaled or not part.known or part.query.levels is not None:
        return False
    return any(would_help(cut) for name, cut in part.cuts.items() if name not in part.together)


def is_cutting(part: Part, planned: PlannedStatement) -> bool:
    """Whether the bound of a part leaves out anything that its relation allows."""
    if part.number is None or planned.measured is None:
        return False
    query = planned.queries[part.number]
    rows = planned.shape(part).rows_per_unit
    if part.choice.kind is BoundingKind.RANKED:
        return query.shape.rows_per_unit < rows
    return part.choice.limit < rows


def _counts_values(part: Part) -> bool:
    """Whether only distinct values are counted: rows that are not read are then not a loss by themselves."""
    return all(isinstance(recipe, CountMeasure) and recipe.most is not None for recipe in part.recipes)


def _share(share: float) -> str:
    return f"less than {SMALLEST_SHARE:.1%}" if share < SMALLEST_SHARE else f"{min(share, 1.0):.1%}"
