"""The power of the checks: for every test of a promise, the chance that it passes although the promise is broken, and how that follows.

A promise is broken when it is kept ten points less often than it says, or by what is stated beside it: a scale that is off by a tenth, a
threshold that is one too low. The limit of a test follows from the law and from the number of answers, never from what was once observed:
the most lenient limit that a broken promise reaches with a chance of at most ``MISS_MAX``. All chances are those of draws without a seed.

``python -m tests.support.power`` prints the listing, ``--markdown`` the page of the documentation. ``tests/support/promises.py`` lists.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from scipy import stats

MISS_MAX = 0.05
"""The highest chance with which a test may pass although its promise is broken."""
TEN_POINTS = 0.10


class Counted(StrEnum):
    """What is added up over independent answers."""

    WHOLE = "answers"
    """Each keeps the promise or does not: exact binomial chances, also where answers are of several kinds (Hoeffding 1956)."""
    SHARES = "shares"
    """Cells of one answer share its noise, so an answer counts by its share of cells, a number from 0 to 1: Chernoff's bounds."""


def divergence(share: float, chance: float) -> float:
    """Of two coins, in nats."""
    one = 0.0 if share == 0.0 else share * math.log(share / chance)
    other = 0.0 if share == 1.0 else (1.0 - share) * math.log((1.0 - share) / (1.0 - chance))
    return one + other


def chance_at_least(least: float, answers: int, expected: float, counted: Counted) -> float:
    """That a sum over the answers is at least ``least``, where each is ``expected`` on average: exact, or a bound from above."""
    if counted is Counted.WHOLE:
        return float(stats.binom.sf(math.ceil(least - 1e-9) - 1, answers, expected))
    share = least / answers
    return 1.0 if share <= expected else math.exp(-answers * divergence(min(share, 1.0), expected))


def chance_below(least: float, answers: int, expected: float, counted: Counted) -> float:
    """That a sum over the answers is below ``least``: exact, or a bound from above."""
    if counted is Counted.WHOLE:
        return float(stats.binom.cdf(math.ceil(least - 1e-9) - 1, answers, expected))
    share = least / answers
    return 1.0 if share >= expected else math.exp(-answers * divergence(max(share, 0.0), expected))


def least_sum(answers: int, broken: float, counted: Counted) -> float:
    """The smallest sum over the answers that a broken promise reaches with a chance of at most ``MISS_MAX``."""
    if counted is Counted.WHOLE:
        return float(stats.binom.isf(MISS_MAX, answers, broken)) + 1.0
    low, high = broken, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (low, middle) if chance_at_least(middle * answers, answers, broken, counted) <= MISS_MAX else (middle, high)
    return high * answers


@dataclass(frozen=True, slots=True)
class Limit:
    """How a test was judged: so many answers, and the least and the greatest share of them that pass."""

    answers: int
    least: float
    most: float = 1.0


@dataclass(frozen=True)
class Promise:
    """What one test asks, of one case of it where it has several, and how well it can tell."""

    test: str
    """A file under ``tests`` and a function."""
    what: str

    @property
    def size(self) -> str:
        raise NotImplementedError

    @property
    def promised(self) -> str:
        raise NotImplementedError

    @property
    def limit(self) -> str:
        raise NotImplementedError

    @property
    def was(self) -> str:
        """The size and the limit before limits were computed."""
        raise NotImplementedError

    @cached_property
    def miss(self) -> float:
        """The chance to pass although the promise is broken."""
        raise NotImplementedError

    @cached_property
    def miss_before(self) -> float:
        raise NotImplementedError

    @cached_property
    def false_alarm(self) -> float:
        """The chance to fail although the promise is kept."""
        raise NotImplementedError


def shown(number: float) -> str:
    """A limit or a share, in few digits."""
    return f"{number:.4g}"


@dataclass(frozen=True)
class Coverage(Promise):
    """A promise kept in a share of independent answers, at least."""

    kept: float
    answers: int
    before: Limit
    counted: Counted = Counted.WHOLE
    band: Limit | None = None
    """Where a narrower limit than the most lenient one was there already: it stays."""

    @property
    def broken(self) -> float:
        return self.kept - TEN_POINTS

    def least(self, answers: int) -> float:
        """What the answers must add up to, at least."""
        if self.band is not None:
            return self.band.least * answers
        return least_sum(answers, self.broken, self.counted)

    def require(self, kept: float, *, of: int, upper: bool = True) -> None:
        """Fails where the promise is kept too seldom, or where there are fewer answers than the listing counts on.

        Without ``upper`` it may be kept more often than a band says.
        """
        __tracebackhide__ = True
        assert of >= self.answers, f"{self.what}: {of} answers are fewer than the {self.answers} of the listing"
        least = self.least(of)
        assert kept >= least - 1e-9, f"{self.what}: kept in {kept:.1f} of {of} ({kept / of:.3f}), at least {least:.1f} are due"
        if self.band is not None and upper:
            assert kept <= self.band.most * of + 1e-9, f"{self.what}: kept in {kept / of:.3f}, at most {self.band.most} are due"

    @property
    def size(self) -> str:
        return f"{self.answers:,} {self.counted}"

    @property
    def promised(self) -> str:
        return f"{shown(self.kept)}, not {shown(self.broken)}"

    @property
    def limit(self) -> str:
        least = self.least(self.answers)
        most = "" if self.band is None or self.band.most >= 1.0 else f", <= {shown(self.band.most)}"
        return (f">= {least:.0f}" if self.counted is Counted.WHOLE and self.band is None else f">= {least / self.answers:.3f}") + most

    @property
    def was(self) -> str:
        return f"{self.before.answers:,}: >= {shown(self.before.least)}"

    @cached_property
    def miss(self) -> float:
        return chance_at_least(self.least(self.answers), self.answers, self.broken, self.counted)

    @cached_property
    def miss_before(self) -> float:
        return chance_at_least(self.before.least * self.before.answers, self.before.answers, self.broken, self.counted)

    @cached_property
    def false_alarm(self) -> float:
        chance = chance_below(self.least(self.answers), self.answers, self.kept, self.counted)
        if self.band is not None and self.band.most < 1.0:
            chance += chance_at_least(self.band.most * self.answers + 1e-6, self.answers, self.kept, self.counted)
        return min(chance, 1.0)


class Together:
    """Answers that speak for several promises at once: each promise is judged by itself, and each answer is asked for once."""

    def __init__(self, answered: Callable[[], Sequence[float]]) -> None:
        self._answered = answered
        self._found: list[Sequence[float]] = []

    def place(self, number: int) -> Callable[[], Sequence[float]]:
        """Answer by answer, what one of them has."""
        places = itertools.count()

        def answered() -> Sequence[float]:
            place = next(places)
            if place == len(self._found):
                self._found.append(self._answered())
            return [self._found[place][number]]

        return answered


def still_unsure(promised: float, *, most: int, of_round: int, bet: float) -> float:
    """The chance that a promise kept exactly as often as stated has not won the bet after so many answers: exact for whole answers."""
    won, lost = math.log1p(bet * (1.0 - promised + TEN_POINTS)), math.log1p(-bet * (promised - TEN_POINTS))
    chances, answers = np.ones(1), 0  # by number of answers that missed, of those that are still unsure
    while answers < most:
        chances = np.convolve(chances, stats.binom.pmf(np.arange(of_round + 1), of_round, 1.0 - promised))
        answers += of_round
        misses = np.arange(len(chances))
        chances[(answers - misses) * won + misses * lost >= -math.log(MISS_MAX)] = 0.0
    return float(chances.sum())


@dataclass(frozen=True)
class Watched(Promise):
    """A promise kept in a share of answers that take long: asked until it is clear, or until there were ``most`` rounds of answers.

    A bet against a broken promise that begins with 1 and is multiplied, for an answer of which a share x is kept, by 1 + bet (x - broken).
    If the promise is broken, the bet is expected to shrink, whatever the law of the shares, so it ever reaches 20 with a chance of at most
    1 / 20 (Ville's inequality). Statements of one round may keep the promise differently often: it is broken if their mean is.
    """

    kept: float
    most: int
    """Rounds."""
    before: Limit
    of_round: int = 1
    counted: Counted = Counted.WHOLE

    @property
    def broken(self) -> float:
        return self.kept - TEN_POINTS

    @property
    def bet(self) -> float:
        """What grows fastest if the promise is kept: of whole answers, the ratio of the two laws; of shares, which vary less, more."""
        return TEN_POINTS / (self.broken * (1.0 - self.broken)) if self.counted is Counted.WHOLE else 1.0

    def require(self, answered: Callable[[], Sequence[float]], *, rounds: int = 1, told: Callable[[], str] = str) -> None:
        """Asks rounds of answers until the promise is clear, and at least so many. Fails where it never is."""
        __tracebackhide__ = True
        won, shares, is_clear = 0.0, list[float](), False
        for number in range(1, max(self.most, rounds) + 1):
            found = answered()
            assert len(found) == self.of_round, f"{self.what}: a round has {self.of_round} answers"
            shares += found
            won += math.fsum(math.log1p(self.bet * (share - self.broken)) for share in found)
            is_clear = won >= -math.log(MISS_MAX)
            if is_clear and number >= rounds:
                break
        total, asked = math.fsum(shares), len(shares)
        assert is_clear, f"{self.what}: kept in {total:.1f} of {asked} ({total / asked:.3f}), {self.kept} are promised; {told()}"

    @property
    def size(self) -> str:
        return f"until clear, at most {self.most * self.of_round:,} {self.counted}"

    @property
    def promised(self) -> str:
        return f"{shown(self.kept)}, not {shown(self.broken)}"

    @property
    def limit(self) -> str:
        """As so many answers without a miss, and more for each miss."""
        won, lost = math.log1p(self.bet * (1.0 - self.broken)), -math.log1p(-self.bet * self.broken)
        return f"{math.ceil(-math.log(MISS_MAX) / won)} without a miss, {lost / won:.0f} more for each"

    @property
    def was(self) -> str:
        return f"{self.before.answers:,}: >= {shown(self.before.least)}"

    @cached_property
    def miss(self) -> float:
        return MISS_MAX

    @cached_property
    def miss_before(self) -> float:
        return chance_at_least(self.before.least * self.before.answers, self.before.answers, self.broken, self.counted)

    @cached_property
    def false_alarm(self) -> float:
        return still_unsure(self.kept, most=self.most * self.of_round, of_round=self.of_round, bet=self.bet)


Chances = Sequence[float]


def joined(kept: Chances, broken: Chances, least: float) -> list[tuple[float, float]]:
    """Cells of two laws; those with a chance below ``least`` share one."""
    common = [(a, b) for a, b in zip(kept, broken, strict=True) if a >= least]
    rare = [(a, b) for a, b in zip(kept, broken, strict=True) if a < least]
    return [*common, (math.fsum(a for a, _ in rare), math.fsum(b for _, b in rare))] if rare else common


def chi_squared_miss(kept: Chances, broken: Chances, *, runs: int, alarm: float, expected: float = 25.0) -> float:
    """The chance that chi-squared over cells expected so often does not tell the laws apart: from the noncentral law."""
    cells = [(a, b) for a, b in joined(kept, broken, expected / runs) if a > 0.0]
    beyond = runs * math.fsum((b - a) ** 2 / a for a, b in cells)
    return float(stats.ncx2.cdf(stats.chi2.isf(alarm, len(cells) - 1), len(cells) - 1, beyond))


@dataclass(frozen=True)
class Computed(Promise):
    """A promise whose chances its own rule gives: laws by chi-squared, differences of shares, key thresholds, audits."""

    number: int
    states: str
    """What is promised, and what counts as broken."""
    rule: str
    missed: Callable[[], float]
    """The greatest chance of a miss over the cases."""
    alarms: float
    missed_before: Callable[[], float] | None = None
    """Where the rule is not what it was."""
    was_rule: str = ""

    @property
    def size(self) -> str:
        return f"{self.number:,}"

    @property
    def promised(self) -> str:
        return self.states

    @property
    def limit(self) -> str:
        return self.rule

    @property
    def was(self) -> str:
        return self.was_rule or "the same"

    @cached_property
    def miss(self) -> float:
        return self.missed()

    @cached_property
    def miss_before(self) -> float:
        return self.miss if self.missed_before is None else self.missed_before()

    @cached_property
    def false_alarm(self) -> float:
        return self.alarms


def as_chance(chance: float) -> str:
    """In per cent, or that it is next to nothing."""
    return "< 0.01 %" if chance < 1e-4 else f"{100 * chance:.2g} %" if chance < 0.995 else "100 %"


HEAD = (
    "Test, under `tests/`",
    "Promise",
    "Promised, not",
    "Before: size and limit",
    "Missed before",
    "Size",
    "Limit",
    "Missed",
    "False alarm",
)


def row(promise: Promise) -> tuple[str, ...]:
    return (
        f"`{promise.test}`",
        promise.what,
        promise.promised,
        promise.was,
        as_chance(promise.miss_before),
        promise.size,
        promise.limit,
        as_chance(promise.miss),
        as_chance(promise.false_alarm),
    )


def table(promises: Mapping[str, Promise]) -> list[str]:
    """Of all promises, in Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", "|---|---|---|---|---:|---|---|---:|---:|"]
    return lines + [f"| {' | '.join(row(each))} |" for each in promises.values()]


def page(promises: Mapping[str, Promise], exceptions: Mapping[str, str]) -> str:
    """The page of the documentation."""
    lines = [
        "# Power of the checks",
        "",
        "<!-- Made by `python -m tests.support.power --markdown > docs/reference/power-of-the-checks.md`; a test compares them. -->",
        "",
        "For every test of a promise: the chance that it passes although the promise is broken (*missed*), and the chance that it fails",
        "although the promise is kept (*false alarm*). Broken means kept ten points less often than stated, or what the third column says.",
        f"No test may miss with more than {MISS_MAX:.0%}. All figures are computed for draws without a seed; where a test has several",
        "cases, for the worst of them. In the ordinary run draws repeat, so a false alarm can show only where seeds or the code change.",
        "",
        "- *answers* are independent, and each keeps the promise or does not: the chances are binomial. The limit is the smallest number",
        f"  that a broken promise reaches with at most {MISS_MAX:.0%}.",
        "- *shares* are of answers whose cells share their noise: an answer counts by the share of its cells that keep the promise,",
        "  as if it were one cell. Both chances are bounds (Chernoff); the true ones are lower. Of a narrow band around what is promised",
        "  the bound on false alarms says little: shares of many cells vary far less than it allows for.",
        "- *until clear*: answers are asked for until a bet against the broken promise has won twentyfold, which it does with at most",
        f"  {MISS_MAX:.0%} if the promise is broken (Ville's inequality). The limit says how many answers that takes.",
        "- Laws are compared by chi-squared; a miss follows from its noncentral law.",
        "",
        *table(promises),
        "",
        "## Tests that are not listed",
        "",
        "They compare shares too, but promise nothing that chance could hide. Each with the reason.",
        "",
        "| Test, under `tests/` | Reason |",
        "|---|---|",
        *(f"| `{test}` | {reason} |" for test, reason in exceptions.items()),
    ]
    return "\n".join(lines) + "\n"


def listing(promises: Mapping[str, Promise]) -> str:
    """For a terminal: names, sizes, and chances before and after."""
    lines = [f"{'missed before':>13}  {'missed':>9}  {'false alarm':>11}  test"]
    for each in promises.values():
        chances = as_chance(each.miss_before), as_chance(each.miss), as_chance(each.false_alarm)
        lines.append(f"{chances[0]:>13}  {chances[1]:>9}  {chances[2]:>11}  {each.test}: {each.size}, {each.limit} (was {each.was})")
    return "\n".join(lines)


def main() -> None:
    from tests.support.promises import EXCEPTIONS, PROMISES

    print(page(PROMISES, EXCEPTIONS) if "--markdown" in sys.argv[1:] else f"{listing(PROMISES)}\n", end="")


if __name__ == "__main__":
    main()
