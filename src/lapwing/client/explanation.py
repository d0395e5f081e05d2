"""EXPLAIN PRIVACY in words, and the notes on an answer: what was bounded, what may be hidden, what is uncertain."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapwing.client.answer import CostView
from lapwing.client.assembly import Assembled
from lapwing.client.quantile_notes import quantile_errors
from lapwing.curator import Curator
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.ir import DiscoveredGroups, KnownGroups
from lapwing.kernel.laws import half_width
from lapwing.kernel.release import Released
from lapwing.planning.plan import Part, Planned
from lapwing.statements import Statement

TRUNCATION_NOTED = 0.01
"""A predicted loss of rows above this share of the count is worth a note."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What asking would do. ``str`` gives the text."""

    lines: tuple[tuple[str, str], ...]
    cost: CostView
    values: dict[str, Any]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        return "\n".join(f"{name.ljust(width)}  {text}" for name, text in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self.values


def explanation(statement: Statement, planned: Planned, curator: Curator, *, confidence: Fraction) -> Explanation:
    """The explanation of a planned statement; nothing was charged and no data was read."""
    balance, unit = curator.balance(), curator.declaration.dataset.unit
    facts = planned.facts
    protects = ("protects", f"one {unit}; {facts.neighbours.value} neighbours; version {facts.version}")
    certified = planned.measured
    if certified is None:
        nothing = CostView.of(Cost.zero(), balance.budget, free=True)
        values: dict[str, Any] = {"cost": {**nothing.to_dict(), "loss": 0.0}, "share_of_budget": 0.0, "affordable": True, "parts": []}
        return Explanation((protects, ("price", "free: answered from declarations alone")), nothing, values)
    cost = CostView.of(certified.cost, balance.budget, free=False)
    stored = curator.ledger.find(certified.digest) is not None
    share = certified.cost.loss / balance.budget.loss_total
    affordable = certified.cost.loss <= balance.remaining.loss and certified.cost.delta <= balance.remaining.delta
    amount = f"epsilon {cost.epsilon:.4g}" + ("" if cost.rho is None else f" (rho {float(cost.rho):.4g})")
    price = "free: the same statement was answered on this version" if stored else f"{amount}, {share:.2%} of the whole budget"
    lines = [protects, ("price", price + ("" if stored or affordable else "; MORE THAN IS LEFT"))]
    details = []
    several = sum(part.number is not None for part in planned.parts) > 1
    for number, part in enumerate(planned.parts):
        if several:
            lines.append(("part", f"{number + 1} of {len(planned.parts)}"))
        found, detail = _explained(statement, number, part, planned, unit, confidence)
        lines += found
        details.append(detail)
    first = next(detail for detail in details if detail)
    values = {
        "cost": {**cost.to_dict(), "loss": certified.cost.loss / LOSS_UNITS},
        "share_of_budget": share,
        "affordable": affordable,
        "stored": stored,
        **first,
        "parts": details,
        "digest": certified.digest,
    }
    return Explanation(tuple(lines), cost, values)


def _explained(
    statement: Statement, number: int, part: Part, planned: Planned, unit: str, confidence: Fraction
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Lines and values of one private query."""
    if part.number is None or planned.measured is None:
        return [("groups", f"{len(part.groups or ()):,} from declarations; nothing is measured")], {}
    query = planned.certified.queries[part.number]
    lines = [("groups", _groups(query)), ("bounding", _bounding(part, query, unit))]
    names = _names(statement, number, part)
    for vector in query.vectors:
        width = float(half_width(vector.vector.law, confidence=confidence) * vector.step)
        kind = type(vector.vector.law).__name__.removeprefix("Discrete").lower()
        label = names.get(vector.vector.name, vector.vector.name)
        lines.append(("noise", f"{label}: {kind}, ±{width:,.4g} at {float(confidence):.0%}"))
    for name, how, ranks in quantile_errors(statement, number, part, query, confidence=confidence):
        lines.append(("selection", f"{name}: {how}, within ±{ranks:,} ranks at {float(confidence):.0%}"))
    if part.choice.truncation > 0:
        lines.append(("predicted", f"about {part.choice.truncation:,.3g} rows per group lost to the bound, beside the noise"))
    return lines, {
        "groups": len(query.query.groups.groups) if isinstance(query.query.groups, KnownGroups) else None,
        "threshold": None if query.keys is None else query.keys.threshold,
        "bounding": part.choice.kind,
        "limit": part.choice.limit,
        "predicted_truncation": part.choice.truncation,
        "predicted_noise": part.choice.noise,
    }


def _names(statement: Statement, number: int, part: Part) -> dict[str, str]:
    """Readable names of vectors: what the aggregate they serve is called in the answer, where it is one plainly."""
    names: dict[str, str] = {}
    for output in statement.post.outputs:
        aggregate = getattr(output.derivation, "aggregate", None)
        if aggregate is None or aggregate.query != number:
            continue
        recipe = part.recipes[aggregate.index]
        for name in ("vector", "total", "count"):
            vector = getattr(recipe, name, None)
            if vector is not None:
                names.setdefault(vector, output.name if name == "vector" else f"{name} of {output.name}")
    return names


def _groups(query: CertifiedQuery) -> str:
    if not query.query.keys:
        return "one, the whole table"
    if isinstance(query.query.groups, DiscoveredGroups) and query.keys is not None:
        return f"discovered: a group is shown when about {query.keys.threshold} units or more have it; others stay hidden"
    assert isinstance(query.query.groups, KnownGroups)
    return f"{len(query.query.groups.groups):,} known from declarations; each is shown, empty ones with noise around 0"


def _bounding(part: Part, query: CertifiedQuery, unit: str) -> str:
    choice = part.choice
    match choice.kind:
        case "ranked" if query.shape.rows_per_unit == 1:
            return f"none needed: every {unit} has at most one row"
        case "ranked":
            return f"ranked: at most {int(choice.limit):,} rows of each {unit} count, chosen at random once, at preparation"
        case "clipped":
            return f"clipped: after the filter, the counts of each {unit} over all groups are scaled to length {choice.limit:,.3g}"
        case _:
            return f"grouped: after the filter, each {unit} counts with at most {choice.limit:,.3g} rows"


def notes_of(planned: Planned, released: Released, assembled: Assembled, *, unit: str) -> tuple[str, ...]:
    """What an analyst should know about this answer; from released values and public facts only."""
    notes = []
    thresholds = sorted({table.threshold for table in released.tables if table.threshold is not None})
    if thresholds:
        notes.append(f"groups with fewer than about {thresholds[-1]} units may be hidden")
    truncation = max(part.choice.truncation for part in planned.parts)
    if truncation > TRUNCATION_NOTED * max(_typical(assembled), 1.0):
        notes.append(f"rows beyond the bound on one {unit} are left out: about {truncation:,.3g} per group are expected missing")
    wide = [name for name, found in assembled.intervals.items() if _mostly_wide(assembled, name, found)]
    if wide:
        notes.append(f"the error bars of {', '.join(wide)} are wider than most of the values: ask with a larger epsilon or fewer groups")
    return tuple(notes)


def _typical(assembled: Assembled) -> float:
    """Median size of the first column with error bars."""
    for name in assembled.intervals:
        values = sorted(abs(float(value)) for value in assembled.table.column(name).to_pylist() if value is not None)
        if values:
            return values[len(values) // 2]
    return 0.0


def _mostly_wide(assembled: Assembled, name: str, found: list[Any]) -> bool:
    values = assembled.table.column(name).to_pylist()
    wide = [i is not None and v is not None and (i.hi - i.lo) / 2 > abs(float(v)) for v, i in zip(values, found, strict=True)]
    return bool(wide) and sum(wide) * 2 > len(wide)
