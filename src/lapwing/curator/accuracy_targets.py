"""Accuracy first: the least price at which every error bar is short enough, decided before it is charged.

How long an error bar will be follows from the plan for counts and sums. For averages and ratios it also depends on the count they are
divided by, and a target in per cent depends on the value itself: then values released before are used, taken at the unfavourable end of
their own error bars. Nothing here can see rows: its inputs are plans, which follow from public facts, and releases.

Chance is shared out so that the target holds with the confidence asked for. Of the remaining chance, alpha = 1 - confidence, the releases
that a price is solved from may mislead with a tenth (a fourth of that each, for at most four pilots), and the answer itself may miss with
the other nine tenths. A target that follows from the plan alone leaves all of it to the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lapwing.answers.assembly import assemble
from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.ir import KnownGroups
from lapwing.kernel.release import UNITS_COLUMN, ChosenQuantiles, NoisyColumn, NoisyTable, Released
from lapwing.planning.measures import Averaged, Counted, Recipe, Summed
from lapwing.planning.moments import Moments
from lapwing.planning.plan import Planned
from lapwing.spread import half_width
from lapwing.sql.text.privacy_terms import ErrorAsked, ShareAsked
from lapwing.statements import ROW, ComputedOutput, KeyOutput, LinearOutput, Noisy, Output, PostProcess, RatioOutput

PILOTS_MAX = 4
STEP = Fraction(1004, 1000)
"""Least factor between two losses that are tried, so that the price is above the least by less than this factor."""
JUMP_MAX = 1000
"""Largest factor between two losses that are tried."""
LOSS_START = Fraction(1, 10**12)
LOSS_END = Fraction(10**9)
"""Losses that are tried, from and to."""

ROWS_LOOKED_AT = 32
"""Rows that are looked at first, where an answer has more."""

PlanAt = Callable[[Fraction], Planned]
"""The plan of the statement at a loss."""


@dataclass(frozen=True, slots=True)
class Target:
    """The longer side of every error bar is at most an amount, or a share of the value's size, at the confidence."""

    asked: ErrorAsked | ShareAsked
    confidence: Fraction

    @property
    def sure(self) -> Fraction:
        """Confidence at which releases are believed when a price is solved from them."""
        return 1 - (1 - self.confidence) / (10 * PILOTS_MAX)

    @property
    def rest(self) -> Fraction:
        """Confidence that is then left for the answer."""
        return 1 - (1 - self.confidence) * 9 / 10

    def allowed(self, size: float) -> float:
        """The longest side for a value of this size."""
        return float(self.asked.half_width) if isinstance(self.asked, ErrorAsked) else float(self.asked.share) * size


@dataclass(frozen=True, slots=True)
class Bar:
    """An error bar around a value."""

    value: float
    lo: float
    hi: float

    @property
    def side(self) -> float:
        """Its longer side."""
        return max(self.value - self.lo, self.hi - self.value)

    @property
    def size_min(self) -> float:
        """The least size of a value inside it."""
        return max(self.lo, -self.hi, 0.0)


Bars = list[list[Bar | None]]
"""For each output with error bars, one for each row; None where there is no value."""


def aimed(post: PostProcess) -> tuple[int, ...]:
    """The outputs that have error bars, by number."""
    return tuple(i for i, output in enumerate(post.outputs) if not isinstance(output.derivation, KeyOutput | ComputedOutput))


def bars_of(planned: Planned, released: Released, post: PostProcess, *, confidence: Fraction, rows: Sequence[int] | None = None) -> Bars:
    """Error bars of a release, row by row of the noisy table, before any are left out or sorted; of all rows, or of those numbered."""
    outputs = tuple(replace(post.outputs[i], name=f"c{i}") for i in aimed(post))
    assembled = assemble(planned, released, replace(_unfiltered(post), outputs=outputs), confidence=confidence, withholding=False)
    bars: Bars = []
    for output in outputs:
        values, intervals = assembled.table.column(output.name).to_pylist(), assembled.intervals[output.name]
        pairs = list(zip(values, intervals, strict=True))
        shown = pairs if rows is None else [pairs[row] for row in rows]
        bars.append([None if value is None or bar is None else Bar(float(value), bar.lo, bar.hi) for value, bar in shown])
    return bars


def _unfiltered(post: PostProcess) -> PostProcess:
    """The same without what leaves out or sorts rows."""
    kept = replace(post, having=None, order_by=(), limit=None, offset=0)
    return kept if post.rows_of is None else replace(kept, where=None)


def rows_shown(planned: Planned, released: Released, post: PostProcess) -> list[int] | None:
    """The rows of the noisy table that an answer from this release shows, after HAVING, ORDER BY and LIMIT; None for all of them."""
    if post == _unfiltered(post) or post.rows_of is None or post.distinct:
        return None
    number = Output("row", f"q{post.rows_of}.{ROW}", KeyOutput(0))
    # Error bars are not looked at here, so neither is the confidence.
    numbered = assemble(planned, released, replace(post, outputs=(number,)), confidence=Fraction(1, 2))
    return sorted(int(row) for row in numbered.table.column("row").to_pylist())


def met_by(planned: Planned, released: Released, post: PostProcess, target: Target, *, confidence: Fraction) -> tuple[int, int]:
    """How many error bars that a release shows are short enough for the values they stand at, and how many there are."""
    rows = rows_shown(planned, released, post)
    bars = [bar for column in bars_of(planned, released, post, confidence=confidence, rows=rows) for bar in column]
    return sum(bar is not None and bar.side <= target.allowed(abs(bar.value)) for bar in bars), len(bars)


def is_direct(planned: Planned, post: PostProcess, target: Target) -> bool:
    """Whether the plan alone says how long all error bars are, and how long they may be."""
    derivations = [post.outputs[i].derivation for i in aimed(post)]
    plain = all(isinstance(d, LinearOutput) and isinstance(_recipe(planned, d.aggregate), Counted | Summed) for d in derivations)
    return plain and isinstance(target.asked, ErrorAsked)


def _recipe(planned: Planned, aggregate: Noisy) -> Recipe:
    return planned.parts[aggregate.query].recipes[aggregate.index]


def fits(planned: Planned, released: Released) -> bool:
    """Whether a release of the same words is one of the same plan, apart from its price."""
    queries = planned.certified.queries
    return len(queries) == len(released.tables) and all(
        table.keys == tuple(name for name, _ in query.query.keys)
        and {column.name for column in table.columns} - {UNITS_COLUMN} == {vector.vector.name for vector in query.vectors}
        and (not isinstance(query.query.groups, KnownGroups) or query.query.groups.groups == table.groups)
        for query, table in zip(queries, released.tables, strict=True)
    )


def least_loss(plan_at: PlanAt, post: PostProcess, target: Target, base: Released | None) -> Planned | None:
    """The plan with the least loss whose error bars will be short enough; None where no loss is enough, or ``base`` is too vague to say.

    The loss is raised from far too little. An error bar shrinks at most as 1 / loss (Laplace) or 1 / sqrt(loss) (Gaussian) while the bounds
    on a unit stay or are loosened, as they are when noise gets cheaper; so no loss is skipped that would have been enough. Where the
    planner changes to another kind of bounds, a longer bar may turn into a shorter one: the last step is halved to find that place.
    """
    first = _plan_or_none(plan_at, LOSS_END)
    if first is None:
        return None
    rows = None if base is None else rows_shown(first, base, post)
    lengths = _required(first, post, target, base, rows)
    if lengths is None:
        return None

    few = _hardest(first, post, target, base, lengths, rows)

    def excess(loss: Fraction) -> tuple[Planned | None, float]:
        """How many times too long the worst error bar is."""
        planned = _plan_or_none(plan_at, loss)
        if planned is None:
            return None, math.inf
        times = 0.0 if few is None else _excess(planned, post, target, few.base, few.lengths, None)
        return planned, times if times > 1 else _excess(planned, post, target, base, lengths, rows)

    if excess(LOSS_END)[1] > 1:
        return None
    power = 1 if first.facts.account is Account.PURE else 2
    low, loss = Fraction(0), LOSS_START
    while loss <= LOSS_END:
        planned, times = excess(loss)
        if planned is not None and times <= 1:
            return _halved(excess, low, loss, planned)
        low = loss
        factor = Fraction(min(max(times, 1.0), JUMP_MAX)) ** power
        loss = _whole(loss * max(STEP, factor))
    return None


@dataclass(frozen=True, slots=True)
class _Few:
    """Some rows of a release, with how long their error bars may be."""

    base: Released
    lengths: list[list[float]]


def _hardest(
    planned: Planned, post: PostProcess, target: Target, base: Released | None, lengths: list[list[float]], rows: Sequence[int] | None
) -> _Few | None:
    """The rows whose error bars are farthest from short enough, where there are many: most losses fail them, whatever the others are."""
    if base is None or _is_rearranged(planned) or is_direct(planned, post, target) or len(base.tables[0].groups) <= ROWS_LOOKED_AT:
        return None
    table = base.tables[0]
    listed = list(range(len(table.groups))) if rows is None else rows
    bars = bars_of(planned, base, post, confidence=target.rest, rows=rows)
    pairs = [list(zip(column, allowed, strict=True)) for column, allowed in zip(bars, lengths, strict=True)]
    worst = [max(math.inf if bar is None else bar.side / limit for bar, limit in row) for row in zip(*pairs, strict=True)]
    hardest = sorted(range(len(listed)), key=lambda i: -worst[i])[:ROWS_LOOKED_AT]
    columns = tuple(replace(column, values=tuple(column.values[listed[i]] for i in hardest)) for column in table.columns)
    fewer = replace(table, groups=tuple(table.groups[listed[i]] for i in hardest), columns=columns)
    return _Few(Released("", (fewer,)), [[allowed[i] for i in hardest] for allowed in lengths])


def _halved(excess: Callable[[Fraction], tuple[Planned | None, float]], low: Fraction, high: Fraction, best: Planned) -> Planned:
    while high > STEP * low and high > LOSS_START:
        middle = _whole(Fraction((low + high) / 2))
        if not low < middle < high:
            break
        planned, times = excess(middle)
        if planned is not None and times <= 1:
            high, best = middle, planned
        else:
            low = middle
    return best


def _whole(loss: Fraction) -> Fraction:
    """A loss in whole ledger units, rounded up."""
    return Fraction(math.ceil(loss * LOSS_UNITS), LOSS_UNITS)


def _plan_or_none(plan_at: PlanAt, loss: Fraction) -> Planned | None:
    """The plan at a loss; None where the loss is too small for any noise there is."""
    try:
        return plan_at(loss)
    except Refused as error:
        if error.code != "scale-invalid":
            raise
        return None


def _required(
    planned: Planned, post: PostProcess, target: Target, base: Released | None, rows: Sequence[int] | None
) -> list[list[float]] | None:
    """How long each error bar may be, from public facts and ``base``; None where some value could be 0, or there is no ``base`` to tell."""
    if is_direct(planned, post, target):
        return [[target.allowed(0.0)] for _ in aimed(post)]
    if base is None:
        return None
    required: list[list[float]] = []
    for i, column in zip(aimed(post), bars_of(planned, base, post, confidence=target.sure, rows=rows), strict=True):
        public = size_from_declarations(planned, post, i)
        sizes = [public if bar is None else max(bar.size_min, public) for bar in column]
        if isinstance(target.asked, ShareAsked) and not all(sizes):
            return None
        required.append([target.allowed(size) for size in sizes])
    return required


def size_from_declarations(planned: Planned, post: PostProcess, number: int) -> float:
    """The least size an output can have by its declared bounds alone: an average lies where its values do."""
    derivation = post.outputs[number].derivation
    if not isinstance(derivation, LinearOutput):
        return 0.0
    recipe = _recipe(planned, derivation.aggregate)
    if not isinstance(recipe, Averaged):
        return 0.0
    ends = sorted(derivation.scale * end + derivation.shift for end in (recipe.lower, recipe.upper))
    return max(float(ends[0]), float(-ends[1]), 0.0)


def _excess(
    planned: Planned, post: PostProcess, target: Target, base: Released | None, lengths: list[list[float]], rows: Sequence[int] | None
) -> float:
    """The largest ratio of an error bar's longer side to what is allowed, under this plan."""
    direct = is_direct(planned, post, target)
    confidence = target.confidence if direct else target.rest
    worst = 0.0
    for supposed in _supposed(planned, post, None if direct else base, sure=target.sure):
        bars = bars_of(planned, supposed, post, confidence=confidence, rows=None if direct else rows)
        for column, allowed in zip(bars, lengths, strict=True):
            if not column:
                return math.inf
            limits = allowed if len(allowed) == len(column) else allowed * len(column)
            for bar, limit in zip(column, limits, strict=True):
                worst = max(worst, math.inf if bar is None else bar.side / limit)
    return worst


def _supposed(planned: Planned, post: PostProcess, base: Released | None, *, sure: Fraction) -> Iterator[Released]:
    """What this plan may release: nothing but zeros where values do not matter, else what was released before, at unfavourable ends.

    What is divided by is taken at the lower end of its error bar; what is divided, at both ends and in the middle.
    """
    queries = planned.certified.queries
    if base is None:
        yield Released("", tuple(_zeros(query, whole=_is_rearranged(planned)) for query in queries))
        return
    above, below = divided(planned, post)
    for sign in (-1, 0, 1) if above else (0,):
        tables = []
        for number, (query, table) in enumerate(zip(queries, base.tables, strict=True)):
            laws = {vector.vector.name: vector for vector in query.vectors}
            columns = []
            for column in table.columns:
                place = (number, column.name)
                side = -1 if place in below else sign if place in above else 0
                moved = [value * column.step + side * half_width(column.law, confidence=sure) * column.step for value in column.values]
                new = laws.get(column.name)
                if new is not None:
                    values = tuple(round(value / new.step) for value in moved)
                    column = NoisyColumn(column.name, values, new.vector.law, new.step, new.rounding)
                columns.append(column)
            tables.append(replace(table, columns=tuple(columns)))
        yield Released("", tuple(tables))


def _is_rearranged(planned: Planned) -> bool:
    """Whether the rows of the noisy table may be others than the groups of one query: joined tables, sub-totals."""
    return len(planned.parts) > 1 or any(part.query.levels is not None for part in planned.parts)


def _zeros(query: CertifiedQuery, *, whole: bool) -> NoisyTable:
    """A table of zeros: one group is like another, unless subtotals are formed of them or they are joined."""
    groups = query.query.groups.groups if isinstance(query.query.groups, KnownGroups) else ((None,) * len(query.query.keys),)
    groups = groups if whole else groups[:1]
    zeros = (0,) * len(groups)
    columns = tuple(NoisyColumn(v.vector.name, zeros, v.vector.law, v.step, v.rounding) for v in query.vectors)
    chosen = tuple(ChosenQuantiles(q.quantiles.name, (zeros,) * len(q.quantiles.targets), q.step) for q in query.quantiles)
    return NoisyTable(tuple(name for name, _ in query.query.keys), groups, columns, None, query.shape.rows_max, chosen)


Place = tuple[int, str]
"""A vector: number of its query in the plan, and its name there."""


def divided(planned: Planned, post: PostProcess) -> tuple[set[Place], set[Place]]:
    """Vectors that stand above and below a division behind some error bar."""
    above: set[Place] = set()
    below: set[Place] = set()
    for i in aimed(post):
        derivation = post.outputs[i].derivation
        if isinstance(derivation, LinearOutput):
            recipe, number = _recipe(planned, derivation.aggregate), planned.parts[derivation.aggregate.query].number
            if isinstance(recipe, Averaged | Moments) and number is not None:
                below.add((number, recipe.count))
            if isinstance(recipe, Averaged) and number is not None:
                above.add((number, recipe.total))
        elif isinstance(derivation, RatioOutput):
            for places, aggregate in ((above, derivation.numerator), (below, derivation.denominator)):
                recipe, number = _recipe(planned, aggregate), planned.parts[aggregate.query].number
                if isinstance(recipe, Counted | Summed) and number is not None:
                    places.add((number, recipe.vector))
    return above - below, below


def is_telling(planned: Planned, post: PostProcess, target: Target, base: Released) -> bool:
    """Whether a release says well enough how large things are: no value and no divisor could be less than half of what it seems.

    Solving from a vaguer one would be sound too, but expensive: a pilot that costs more then saves more.
    """
    rows = rows_shown(planned, base, post)
    for number, name in divided(planned, post)[1]:
        column = base.tables[number].column(name)
        width = half_width(column.law, confidence=target.sure)
        values = column.values if rows is None or _is_rearranged(planned) else [column.values[row] for row in rows]
        if any(2 * (value - width) < value for value in values):
            return False
    for i, bars in zip(aimed(post), bars_of(planned, base, post, confidence=target.sure, rows=rows), strict=True):
        public = size_from_declarations(planned, post, i)
        if not bars:
            return False
        for bar in bars:
            size = 0.0 if bar is None else max(bar.size_min, public)
            if bar is None or (isinstance(target.asked, ShareAsked) and (size == 0 or 2 * size < abs(bar.value))):
                return False
    return True


# -- the next thing to do -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Before:
    """A release of the same statement on the same version, and the loss that was paid for it, in ledger units."""

    released: Released
    loss: int
    pilot: bool = False
    for_target: bool = False
    """It was bought for this target or a harder one."""


@dataclass(frozen=True, slots=True)
class Serve:
    """A release that is there already is accurate enough: free."""

    before: Before


@dataclass(frozen=True, slots=True)
class Pilot:
    """Nothing says yet how large the values are: buy this first. Its price is public, whatever the values are."""

    planned: Planned
    number: int


@dataclass(frozen=True, slots=True)
class Buy:
    """The plan of least price that reaches the target."""

    planned: Planned


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No price is known that reaches the target. ``best`` is the best release there is."""

    best: Before | None


Step = Serve | Pilot | Buy | Unreachable


def next_step(plan_at: PlanAt, post: PostProcess, target: Target, before: Sequence[Before], pilots: Sequence[Fraction]) -> Step:
    """What to do for a target, from public facts and what was released before; ``pilots`` are the losses of the pilots, in their order.

    The outcome depends on rows only through ``before``: two data sets with the same declarations and the same releases get the same.
    """
    reference = plan_at(pilots[0])
    known = sorted((item for item in before if fits(reference, item.released)), key=lambda item: -item.loss)
    direct = is_direct(reference, post, target)
    best = known[0] if known else None
    for item in known:
        if item is not best and not item.for_target:
            continue
        # What was bought for the target spends its own share of chance; others are believed only as much as pilots are.
        confidence = target.confidence if direct or item.for_target else target.sure
        good, all_bars = met_by(reference, item.released, post, target, confidence=confidence)
        if good == all_bars > 0:
            return Serve(item)
    if not direct and (best is None or not is_telling(reference, post, target, best.released)):
        bought = sum(item.pilot for item in known)
        for number, loss in enumerate(pilots, start=1):
            if number > bought and (best is None or loss * LOSS_UNITS > best.loss):
                return Pilot(plan_at(loss), number)
    solved = least_loss(plan_at, post, target, None if best is None else best.released)
    return Unreachable(best) if solved is None else Buy(solved)
