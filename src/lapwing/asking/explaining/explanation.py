"""EXPLAIN PRIVACY as text: the bounds, the suppressed groups and the errors of a statement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, assert_never

from lapwing.answers.answer import CostView
from lapwing.answers.display.budget import share_of_cost
from lapwing.answers.display.notebook import pairs_html
from lapwing.answers.display.number_format import figure, percent, share_text, shortened
from lapwing.answers.notes.clipping import is_better_scaled, sample_text
from lapwing.answers.notes.quantiles import WithheldBelow, quantile_errors, withheld_quantiles
from lapwing.asking.explaining.block_lines import BlockQuote, block_lines, blocks_read
from lapwing.asking.explaining.predicted_errors import average_noise, errors_of_part, noise_of, predicted_errors, rows_in_group
from lapwing.asking.norm_histograms import PricedNorms, is_norms_of
from lapwing.catalog import Declaration
from lapwing.catalog.units import ROW
from lapwing.contribution.bounding import BoundingKind
from lapwing.curator.curator import Balance, Curator
from lapwing.kernel.accounting import LOSS_UNITS, Cost, admits
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, DistinctCount, KnownGroups, UnitCount
from lapwing.kernel.stability import shape_of
from lapwing.kernel.workload import scans_of
from lapwing.ledger.limits import declared_limit
from lapwing.ledger.protocol import Ledger, StoredAnswer
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.planning.variances import Moments
from lapwing.spread import half_width
from lapwing.statements import LinearOutput, Noisy, Statement

NAME_LENGTH_MAX = 60
"""Longest name of an aggregate in a line of its own."""
PART_LENGTH_MAX = 96
"""Longest text of a subquery in a line of its own."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a statement that was not charged. ``str`` gives the text."""

    lines: tuple[tuple[str, str], ...]
    cost: CostView
    values: dict[str, Any]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.lines)
        return "\n".join(f"{name.ljust(width)}  {text}" for name, text in self.lines)

    def _repr_html_(self) -> str:
        return pairs_html(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self.values


def explanation(
    statement: Statement,
    planned: PlannedStatement,
    curator: Curator,
    *,
    confidence: Fraction,
    analyst: str | None = None,
    norms: PricedNorms | None = None,
    quote: BlockQuote | None = None,
) -> Explanation:
    """The explanation of a planned statement, to this analyst; nothing was charged and no data was read.

    ``norms`` are the histograms that its bounds are chosen from; the price includes those that have still to be bought. An answer by block
    has a ``quote``.
    """
    certified, dataset = planned.measured, curator.declaration.dataset
    if certified is None:
        return free_explanation(curator)
    reads = [query.reads for query in certified.queries] if quote is None else quote.reads
    balance, unit, units = curator.balance_for(reads), dataset.unit, dataset.units
    protects = protected_line(curator, planned.facts)
    who = curator.analyst_default if analyst is None else analyst
    found = curator.ledger.find(certified.digest, analyst=who) if quote is None else None
    stored, norms = found is not None if quote is None else not quote.missing, PricedNorms() if norms is None else norms
    first = norms.cost() if found is None else _paid_with(curator.ledger, found, norms)
    price_of_all = certified.cost + first if quote is None else quote.cost
    cost = CostView.of(price_of_all, balance.budget, free=False)
    share = share_of_cost(balance.budget, price_of_all)
    lines = [protects, ("price", price_text(curator, balance, price_of_all, stored=stored))]
    read = blocks_read(curator, certified, price_of_all, stored=stored, quote=quote)
    lines += block_lines(read, unit, quote)
    if first.loss and not stored:
        part_of_price = percent(round(_part_of(first, price_of_all), 3))
        sample = sample_text(norms.one_in, unit)
        lines.append(("norms", f"{part_of_price} of it first buys how much each {unit} adds{sample}; bounds will fit that and may change"))
    if balance.budget.order is not None and balance.spent.pure is not None and price_of_all.pure is None and not stored:
        left, after = (1 - share_of_cost(balance.budget, spent) for spent in (balance.spent, balance.spent + price_of_all))
        lines.append(
            ("account", f"no pure epsilon: {share_text(left)} of the budget is left now, and {share_text(max(after, 0.0))} afterwards")
        )
    details = []
    several, unit = len(planned.parts) > 1, unit_counted(curator.declaration, planned)
    for number, part in enumerate(planned.parts):
        if several:
            lines.append((f"part {number + 1}", _text_of(statement, f"q{number}", PART_LENGTH_MAX) or f"of {len(planned.parts)}"))
        part_lines, detail = _explained(statement, number, part, planned, unit, units, confidence)
        lines += part_lines
        details.append(detail)
    leading = next(detail for detail in details if detail)
    values: dict[str, Any] = {
        "cost": {**cost.to_dict(), "loss": price_of_all.loss / LOSS_UNITS},
        "norms": norms.to_dict(norms.cost()) if norms.wanted else None,
        "share_of_budget": share,
        **payable(curator, balance, price_of_all),
        "predicted_error": predicted_errors(statement, planned, units=units),
        "stored": stored,
        **({} if read is None else {"blocks": read}),
        **leading,
        "parts": details,
        "digest": certified.digest,
    }
    lines += [("note", note) for note in statement.notes]
    return Explanation(tuple(lines), cost, values)


def unit_counted(declaration: Declaration, planned: PlannedStatement) -> str:
    """What an answer counts as one unit: within a block of time, where it is measured block by block."""
    unit, declared = declaration.dataset.unit, declaration.blocks
    return f"{unit}-{declared.every.value}" if planned.over_blocks and declared is not None else unit


def payable(curator: Curator, balance: Balance, price: Cost) -> dict[str, Any]:
    """Whether a price can be paid now, and otherwise the limit that it exceeds; for JSON."""
    limit = declared_limit(balance.budget, curator.declaration.limits.per_statement)
    short = "" if admits(balance.budget, spent=balance.spent, cost=price) else "more than is left of the budget"
    short = "more than one statement may cost" if limit.is_passed_by(price) else short
    return {"affordable": not short, "too_much": short}


def price_text(curator: Curator, balance: Balance, price: Cost, *, stored: bool) -> str:
    """A price as text; ``stored``: the answer was bought before."""
    if stored:
        return "free: the same statement was answered on this version"
    cost = CostView.of(price, balance.budget, free=False)
    amount = f"epsilon {cost.epsilon:.4g}" + ("" if cost.rho is None else f" (rho {float(cost.rho):.4g})")
    text = f"{amount}, {share_text(share_of_cost(balance.budget, price))} of the whole budget"
    too_much = payable(curator, balance, price)["too_much"]
    return f"{text}; {too_much.upper()}" if too_much else text


def _paid_with(ledger: Ledger, found: StoredAnswer, norms: PricedNorms) -> Cost:
    """The cost of the norms of a stored answer, paid by the request that bought it and part of the price shown before."""
    bought = {one: ledger.statement(answered.stored.charge_id) for one, answered in norms.found.items()}
    own = ledger.statement(found.charge_id) if bought else None
    return sum(
        (
            plan.cost
            for one, plan in zip(norms.wanted, norms.plans, strict=True)
            if own and one in bought and bought[one].analyst == own.analyst and is_norms_of(bought[one].request_id, own.request_id)
        ),
        Cost.zero(),
    )


def free_explanation(curator: Curator) -> Explanation:
    """The explanation of a statement that measures nothing."""
    nothing = CostView.of(Cost.zero(), curator.balance().budget, free=True)
    values: dict[str, Any] = {
        "cost": {**nothing.to_dict(), "loss": 0.0},
        "share_of_budget": 0.0,
        "affordable": True,
        "too_much": "",
        "parts": [],
    }
    return Explanation((protected_line(curator, curator.facts), ("price", "free: answered from declarations alone")), nothing, values)


def protected_line(curator: Curator, facts: Facts) -> tuple[str, str]:
    """The protected unit of the data set, as a line."""
    return "protects", f"{curator.declaration.protects}; {facts.neighbours.value} neighbours; version {facts.version}"


def _part_of(first: Cost, whole: Cost) -> float:
    """The norms' part of the whole price, in the loss by which the noise was chosen."""
    if first.pure is not None and whole.pure:
        return first.pure / whole.pure
    return first.loss / whole.loss


def _explained(
    statement: Statement, number: int, part: Part, planned: PlannedStatement, unit: str, units: int | None, confidence: Fraction
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Lines and values of one private query."""
    if part.number is None or planned.measured is None:
        return [("groups", f"{len(part.groups or ()):,} from declarations; nothing is measured")], {}
    query = planned.queries[part.number]
    lines = [("groups", _groups(part, query)), ("bounding", _bounding(part, query, unit, planned.facts))]
    if part.query.levels is not None:
        lines.insert(1, ("totals", _totals(part)))
    names = _names(statement, number, part)
    lines += _noise_lines(statement, number, part, query, confidence)
    for vector_name, scaling in part.scaled.items():
        total = next(item for item in planned.queries[scaling.number].vectors if item.vector.name == scaling.vector)
        reach = figure(float(half_width(total.vector.law, confidence=confidence) * total.step))
        lines.append(
            (
                "scaled",
                f"{names[vector_name]}: groups are multiplied to add up to a total, ±{reach} at {percent(float(confidence))}, by a model",
            )
        )
    for index, recipe in enumerate(part.recipes):
        if isinstance(recipe, AverageMeasure):
            error = _average_error(query, recipe, rows_in_group(part, planned, units), confidence)
            lines.append(("average", f"{_called(statement, number, index)}: {error}"))
    for name, how, ranks in quantile_errors(statement, number, part, planned, confidence=confidence):
        shown = shortened(name, NAME_LENGTH_MAX)
        lines.append(("selection", f"{shown}: {how}, within ±{figure(ranks)} ranks at {percent(float(confidence))}"))
    withheld = list(withheld_quantiles(statement, number, part, planned))
    lines += [("withheld", _withheld(item)) for item in withheld]
    for index, end in part.ends.items():
        lines.insert(2, ("clamping", f"{_called(statement, number, index)}: each {unit} adds at most {figure(float(end))}"))
    if lost := _lost(part, query, unit):
        lines.append(("predicted", lost))
    if part.quantiles is not None:
        lines += _separate_lines("quantiles", statement, number, part.quantiles, planned, unit, confidence)
    if is_better_scaled(part):
        lines.append(("closer", "WITH PRIVACY (scaled_groups = true) is predicted to be clearly closer, by a model"))
    totals = []
    for kept, apart in part.apart.items():
        total_lines, detail = _explained_total(statement, number, kept, apart, planned, unit, units, confidence)
        lines += total_lines
        totals.append(detail)
    return lines, {
        "groups": None if isinstance(query.query.groups, DiscoveredGroups) else query.query.groups.cells,
        "threshold": None if query.keys is None else query.keys.units,
        "bounding": part.choice.kind.value,
        "limit": part.choice.limit,
        "predicted_truncation": part.choice.truncation,
        "predicted_noise": part.choice.noise,
        "lost": part.lost,
        "withheld": [item.name for item in withheld if item.is_predicted],
        "caps": {name: cut.choice.cap * float(cut.unit) for name, cut in part.cuts.items()},
        "scaled": [names[name] for name in part.scaled],
        **({} if part.query.levels is None else {"totals_apart": totals}),
    }


def _withheld(item: WithheldBelow) -> str:
    """When a quantile is NULL although it is paid for."""
    where = "at any size" if math.isinf(item.needed) else f"below {figure(item.needed, digits=2)} rows"
    predicted = f"{figure(item.predicted, digits=2)} predicted" + (": LIKELY NULL" if item.is_predicted else "")
    return f"{shortened(item.name, NAME_LENGTH_MAX)}: NULL {where}, {predicted}"


def _totals(part: Part) -> str:
    """The origin of totals."""
    if not part.apart:
        return "added up from these groups, at no cost" + ("" if part.known else "; hidden groups are not in them")
    if set(part.query.levels or ()) - {tuple(range(len(part.query.keys)))} == set(part.apart):
        return "measured apart, for a part of the price: they need not equal the sum of the groups"
    return "some are measured apart (below) and need not equal the sum of the groups; others add these up"


def _explained_total(
    statement: Statement,
    number: int,
    kept: tuple[int, ...],
    total: Part,
    planned: PlannedStatement,
    unit: str,
    units: int | None,
    confidence: Fraction,
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Lines and values of a level of totals that is measured separately."""
    keys = [_text_of(statement, f"q{number}.k{key}", NAME_LENGTH_MAX) or f"key {key + 1}" for key in kept]
    label = f"totals by {', '.join(keys)}" if keys else "total"
    lines = _separate_lines(label, statement, number, total, planned, unit, confidence)
    caps = {name: cut.choice.cap * float(cut.unit) for name, cut in total.cuts.items()}
    errors = errors_of_part(statement, number, total, planned, units=units)
    return lines, {"keys": keys, "groups": len(total.groups or ()), "predicted_error": errors, "caps": caps, "lost": total.lost}


def _separate_lines(
    label: str, statement: Statement, number: int, part: Part, planned: PlannedStatement, unit: str, confidence: Fraction
) -> list[tuple[str, str]]:
    """Lines of what a query of its own measures: its bound, its noise, and what is predicted to be cut."""
    query = planned.queries[part.number or 0]
    lines = [("bounding", _bounding(part, query, unit, planned.facts)), *_noise_lines(statement, number, part, query, confidence)]
    if lost := _lost(part, query, unit):
        lines.append(("predicted", lost))
    return [(name, f"{label}: {text}") for name, text in lines]


def _noise_lines(statement: Statement, number: int, part: Part, query: CertifiedQuery, confidence: Fraction) -> list[tuple[str, str]]:
    """The noise of each vector."""
    lines, names = [], _names(statement, number, part)
    for vector in query.vectors:
        width = float(half_width(vector.vector.law, confidence=confidence) * vector.step)
        kind = type(vector.vector.law).__name__.removeprefix("Discrete").lower()
        label = names.get(vector.vector.name, vector.vector.name)
        lines.append(("noise", f"{label}: {kind}, ±{figure(width)} at {percent(float(confidence))}"))
    return lines


def _lost(part: Part, query: CertifiedQuery, unit: str) -> str:
    """The predicted share of rows that the bound leaves out; empty if there is none."""
    if part.cuts:
        cuts = {**part.cuts, **{name: scaling.cut for name, scaling in part.scaled.items()}}
        most = max(cuts.values(), key=lambda cut: cut.choice.lost)
        worst = most.choice
        sample = sample_text(max(cut.one_in for cut in cuts.values()), unit)
        above = f"about {figure(worst.above, digits=2)} {unit}s are above the bound{sample}"
        if most.fit.unsized:
            return f"{above}; how much of the answer that cuts off depends on how many {unit}s meet the conditions; error bars reach to it"
        return f"{above}, which cuts off {worst.lost:.1%} (at most {worst.lost_upper:.1%}); error bars reach to it"
    if part.choice.truncation < 0.5:
        return ""
    if all(isinstance(item.vector.measure, DistinctCount) for item in query.vectors) and not query.quantiles:
        return "values that few units have may be missed: not all rows are looked at"
    share = f" ({part.lost:.1%})" if 0.0005 <= part.lost < 1 else ""
    per_group = " per group" if query.query.keys else ""
    return f"about {figure(part.choice.truncation, digits=2)} rows{per_group}{share} lost to the bound, beside the noise"


def _average_error(query: CertifiedQuery, recipe: AverageMeasure, rows: float | None, confidence: Fraction) -> str:
    """The noise of an average for groups of the publicly predicted size, otherwise for round sizes."""
    vectors = {item.vector.name: item for item in query.vectors}
    total = vectors[recipe.total]
    width = float(half_width(total.vector.law, confidence=confidence) * total.step)
    if width:
        width *= average_noise(recipe, vectors) / noise_of(total)
    of_group, most = "a group of " if query.query.keys else "", float(recipe.upper - recipe.lower) / 2
    sure = percent(float(confidence))
    if rows is not None:
        if rows < 1 or width / rows > most:
            return "lost in the noise at this price"
        return f"about ±{figure(width / rows, digits=2)} at {sure} for {of_group}{figure(rows, digits=2)} rows"
    size = 10 ** max(math.ceil(math.log10(width / most)), 1) if most and width else 10  # the least round size with a usable error
    first, second = (figure(width / each, digits=2) for each in (size, 10 * size))
    return f"about ±{first} at {sure} for {of_group}{size:,} rows, ±{second} for {10 * size:,}"


def _text_of(statement: Statement, name: str, length: int) -> str:
    """The text that a named part of the statement stands for, on one line; empty where there is none."""
    span = dict(statement.spans).get(name)
    return "" if span is None else shortened(statement.text[span.start : span.end], length)


def _called(statement: Statement, number: int, index: int) -> str:
    """The name of an aggregate in the answer if it is an output, otherwise its text."""
    for output in statement.post.outputs:
        if output.derivation == LinearOutput(Noisy(number, index)):
            return shortened(output.name, NAME_LENGTH_MAX)
    return _text_of(statement, f"q{number}.a{index}", NAME_LENGTH_MAX) or f"aggregate {index + 1}"


def _names(statement: Statement, number: int, part: Part) -> dict[str, str]:
    """Readable names of vectors, after the first aggregate they serve."""
    names: dict[str, str] = {}
    for index, recipe in enumerate(part.recipes):
        name = _called(statement, number, index)
        for vector, what in _vectors(recipe):
            names.setdefault(vector, f"{what} for {name}" if what else name)
    if part.bars is not None:
        names |= {vector.name: "rows of quantiles" for vector in part.bars.vectors}
    return names


def _vectors(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    """The vectors of a recipe, each with its role."""
    match recipe:
        case CountMeasure(vector=vector) | SumMeasure(vector=vector):
            return ((vector, ""),)
        case AverageMeasure(total, count):
            return ((total, "sum"), (count, "count"))
        case Moments():
            return tuple(recipe.vectors.items())
        case QuantileMeasure():
            return ()
        case _:
            assert_never(recipe)


def _groups(part: Part, query: CertifiedQuery) -> str:
    if not query.query.keys:
        return "one, the whole table"
    if isinstance(query.query.groups, DiscoveredGroups) and query.keys is not None:
        found = f"discovered: one is shown when about {query.keys.units:,} units or more have it; others stay hidden"
        return found if part.too_many is None else f"{found} ({part.too_many})"
    assert isinstance(query.query.groups, KnownGroups)
    many = len(query.query.groups.groups)
    if part.query.groups is not None:
        return f"{many:,}, the parts of UNION ALL: no row is in two of them, so they are charged once"
    return f"{many:,} known from declarations; each is shown, empty ones with noise around 0"


def _only_units(query: CertifiedQuery) -> bool:
    return not query.quantiles and all(isinstance(item.vector.measure, UnitCount) for item in query.vectors)


def _bounding(part: Part, query: CertifiedQuery, unit: str, facts: Facts) -> str:
    choice, cut = part.choice, next(iter(part.cuts.values()), None)
    limit = choice.limit * (1.0 if cut is None else float(cut.unit))
    one_cell = isinstance(query.query.groups, KnownGroups) and len(query.query.groups.groups) == 1
    match choice.kind:
        case BoundingKind.RANKED if shape_of(part.query.source, facts).rows_per_unit == 1:
            return "none needed: every unit is one row" if unit == ROW else f"none needed: every {unit} has at most one row"
        case BoundingKind.RANKED if _only_units(query) and one_cell:
            return f"none needed: every {unit} counts once, however many rows it has"
        case BoundingKind.RANKED if _only_units(query) and isinstance(query.query.groups, KnownGroups):
            groups = min(len(query.query.groups.groups), query.shape.rows_per_unit)
            return f"every {unit} counts once in a group, in at most {groups:,} groups"
        case BoundingKind.RANKED:
            blocks = max(scan.blocks_per_unit for scan in scans_of(query.query.source))
            each = f"each {unit}" if blocks == 1 else f"each {unit} in each block"
            return f"ranked: at most {_rows(choice.limit // blocks)} of {each} count, chosen at random once, at preparation"
        case BoundingKind.CLIPPED if one_cell and cut is not None and cut.grain is None:
            return f"clipped: each {unit} adds at most {figure(limit)} to the sum; one with more is scaled down"
        case BoundingKind.CLIPPED if one_cell:
            return f"clipped: each {unit} counts like at most {_rows(limit)}; one with more is scaled down"
        case BoundingKind.CLIPPED:
            return f"clipped: what each {unit} adds to the groups is scaled down to length {figure(limit)}"
        case BoundingKind.GROUPED if one_cell:
            return f"grouped: each {unit} counts like at most {_rows(choice.limit)}"
        case BoundingKind.GROUPED:
            return f"grouped: each {unit} keeps a few groups, and counts like at most {_rows(choice.limit)}"
        case _:
            assert_never(choice.kind)


def _rows(number: float) -> str:
    return f"{figure(number, digits=3)} row{'' if number == 1 else 's'}"
