"""The notes on an answer: clipping, suppression and uncertainty. From released values and public facts only."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lapwing.answers.assembly import AssembledAnswer
from lapwing.answers.display.number_format import figure
from lapwing.answers.notes.clamping import clamping_hint
from lapwing.answers.notes.clipping import loss_notes
from lapwing.kernel.release import Released
from lapwing.planning.planned import PlannedStatement
from lapwing.statements import PostProcess


def notes_of(
    planned: PlannedStatement, released: Released, assembled: AssembledAnswer, post: PostProcess, *, unit: str, confidence: Fraction
) -> tuple[str, ...]:
    """The notes on this answer; from released values and public facts only."""
    notes = impossible_notes(planned)
    thresholds = sorted({table.threshold for table in released.tables if table.threshold is not None})
    notes += [f"{why}: groups are discovered" for why in dict.fromkeys(str(part.too_many) for part in planned.parts if part.too_many)]
    if thresholds:
        notes.append(f"groups with fewer than about {thresholds[-1]:,} units may be hidden")
    if any(part.query.levels is not None and not part.known for part in planned.parts):
        notes.append("totals add up the groups that are shown, not those that stay hidden")
    if any(part.apart for part in planned.parts):
        notes.append("totals are measured apart from the groups, which is more accurate: they need not equal the sum of the groups")
    notes += loss_notes(planned, released, unit=unit)
    ends = sorted({end for part in planned.parts_and_totals for end in part.ends.values()})
    if ends:
        notes.append(f"values of one {unit} above {' or '.join(figure(float(end)) for end in ends)} count as that much")
    noise, groups = assembled.aggregated
    if noise:
        notes.append(f"{noise:,} of the {groups:,} groups that this is computed from are noise only: leave out the smallest, or use fewer")
    wide = [name for name, intervals in assembled.intervals.items() if _mostly_wide(assembled, name, intervals)]
    if wide:
        clamped = clamping_hint(wide, post, planned, released, confidence=confidence)
        said = f"the error bars of {', '.join(wide)} are wider than most of the values"
        notes.append(f"{said}: ask with a larger epsilon or fewer groups{clamped}")
    return tuple(notes)


def declared_notes(planned: PlannedStatement, post: PostProcess) -> list[str]:
    """The note that groups are declared ones, with or without rows, if something is computed over them."""
    if not post.aggregates or not any(part.number is None and part.groups and part.query.keys for part in planned.parts):
        return []
    return ["declared groups count here whether they have rows or not: HAVING COUNT(*) > 0 leaves out empty ones, which is measured"]


def impossible_notes(planned: PlannedStatement) -> list[str]:
    """The note on conditions that cannot be met."""
    if not any(part.impossible for part in planned.parts):
        return []
    known = "counts are exactly 0, sums are NULL" if planned.facts.typed_numbers else "counts and sums are exactly 0"
    return [f"no row can meet these conditions, by what is declared: {known}, and nothing was measured for them"]


def _mostly_wide(assembled: AssembledAnswer, name: str, intervals: list[Any]) -> bool:
    values = assembled.table.column(name).to_pylist()
    wide = [i is not None and v is not None and (i.hi - i.lo) / 2 > abs(float(v)) for v, i in zip(values, intervals, strict=True)]
    return bool(wide) and sum(wide) * 2 > len(wide)
