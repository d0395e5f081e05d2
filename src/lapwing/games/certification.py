"""Computes what lies can gain, over all reports of all people, by exact enumeration.

For each multiset of the others' reports, each truth and each lie there are two laws and two expected utilities. :func:`certify` enumerates
all of them and keeps the worst. It first compares integer bounds, far finer than any printed figure, and compares exactly where these do
not decide (:mod:`lapwing.games.exponentials`). So the result is the worst case, and not merely close to it. The number of cases grows like
``n`` to the number of types, so this is for small games. The result is proved for the given game, and for no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from operator import mul
from typing import Generic, TypeVar

from lapwing.errors import LapwingError, Refused
from lapwing.games.exponentials import BITS, Enclosure, ExactNumber, divided
from lapwing.games.mechanism import ReportMechanism, require_types
from lapwing.games.report import GameReport
from lapwing.games.witnesses import Deviation, LawWitness, LossWitness, WeightedOutcomes
from lapwing.kernel.numbers import require_exact

Type = TypeVar("Type", bound=Hashable)
Outcome = TypeVar("Outcome", bound=Hashable)
Case = TypeVar("Case")

REMEMBERED_MAX = 2**12
"""Most lists of utilities that are cached as integers."""

CASES_MAX = 2**23
"""Most pairs of a truth and a lie that are enumerated; about ten minutes."""


@dataclass(frozen=True, slots=True)
class _Law(Generic[Outcome]):
    """The law of a profile, with bounds on its weights and on their sum."""

    exact: WeightedOutcomes[Outcome]
    low: tuple[int, ...]
    high: tuple[int, ...]
    whole: Enclosure

    def expected(self, amounts: _Amounts) -> Enclosure:
        """Bounds on the expectation of the amounts."""
        low, high = sum(map(mul, amounts.integers, self.low)), sum(map(mul, amounts.integers, self.high))
        if amounts.least < 0:  # a negative amount is smallest with the largest weight
            for amount, least, most in zip(amounts.integers, self.low, self.high, strict=True):
                if amount < 0:
                    low += amount * (most - least)
                    high -= amount * (most - least)
        return divided((low, high), (self.whole[0] * amounts.unit, self.whole[1] * amounts.unit), BITS)


@dataclass(frozen=True, slots=True)
class _Amounts:
    """An amount for each outcome: exactly, and as integers in units of ``1 / unit``."""

    exact: tuple[Fraction, ...]
    integers: tuple[int, ...]
    least: int
    unit: int


class _Worst(Generic[Case]):
    """The largest of many numbers with known bounds; overlapping ones are compared exactly, and the first of equal ones stays."""

    def __init__(self, exactly: Callable[[Case], ExactNumber | None], parts: Callable[[Case], tuple[ExactNumber, ...]]) -> None:
        self._exactly = exactly
        self._parts = parts
        self._bounds: Enclosure | None = None
        self.case: Case | None = None

    def offer(self, bounds: Enclosure | None, case: Callable[[], Case]) -> None:
        """Offer another number; None stands for infinity."""
        if self.case is None:
            self._bounds, self.case = bounds, case()
        elif self._bounds is None:
            return
        elif bounds is None or bounds[0] > self._bounds[1]:
            self._bounds, self.case = bounds, case()
        elif bounds[1] >= self._bounds[0]:
            found = case()
            # Most ties are mirror images: the same sums in another order. Then the products need not be computed.
            if all(one.is_written_as(other) for one, other in zip(self._parts(found), self._parts(self.case), strict=True)):
                return
            here, there = self._exactly(found), self._exactly(self.case)
            assert here is not None and there is not None, "numbers with bounds are finite"
            if here > there:
                self._bounds, self.case = bounds, found


class _Tables(Generic[Type, Outcome]):
    """Laws and utilities of a mechanism, each requested once. Types are numbered."""

    def __init__(self, mechanism: ReportMechanism[Type, Outcome], types: tuple[Type, ...]) -> None:
        self.mechanism = mechanism
        self.types = types
        self.outcomes = tuple(mechanism.outcomes)
        if not self.outcomes or len(set(self.outcomes)) != len(self.outcomes):  # people see the outcome, not its place in a list
            raise LapwingError("game-invalid", "a mechanism must have at least one outcome, and list each once")
        self._laws: dict[tuple[int, ...], _Law[Outcome]] = {}
        self._scaled: dict[int, tuple[Sequence[Fraction], _Amounts]] = {}

    def named(self, indices: Sequence[int]) -> tuple[Type, ...]:
        return tuple(self.types[index] for index in indices)

    def law(self, reports: Sequence[int]) -> _Law[Outcome]:
        key = tuple(sorted(reports))
        found = self._laws.get(key)
        if found is None:
            named = self.named(key)
            weights = tuple(self.mechanism.weights(named))
            # This does not prove that the order never matters, but it usually detects a mechanism in which it does.
            turned = named[1:] + named[:1]
            if turned != named and tuple(self.mechanism.weights(turned)) != weights:
                raise LapwingError("game-invalid", "the weights of a mechanism may depend on the reports only, not on who reports what")
            if len(weights) != len(self.outcomes) or any(weight.sign() < 0 for weight in weights):
                raise LapwingError("game-invalid", "a mechanism must give one weight for each outcome, and none may be negative")
            low, high = zip(*(weight.enclosure() for weight in weights), strict=True)
            whole = (sum(low), sum(high))
            if whole[0] <= 0:
                raise LapwingError("game-invalid", "the weights of a mechanism must have a sum of at least 2^-160")
            found = self._laws[key] = _Law(WeightedOutcomes(self.outcomes, weights), low, high, whole)
        return found

    def amounts(self, amounts: Sequence[Fraction]) -> _Amounts:
        """One amount for each outcome, as integers. If a mechanism returns the same tuple again, the result comes from the cache."""
        known = self._scaled.get(id(amounts))
        if known is not None:
            return known[1]
        if len(amounts) != len(self.outcomes):
            raise LapwingError("game-invalid", "a mechanism must give one amount for each outcome")
        require_exact(*amounts)
        exact = tuple(Fraction(amount) for amount in amounts)
        unit = math.lcm(*(amount.denominator for amount in exact))
        integers = tuple(int(amount * unit) for amount in exact)
        made = _Amounts(exact, integers, min(integers), unit)
        if type(amounts) is tuple:  # a list could change
            if len(self._scaled) >= REMEMBERED_MAX:
                self._scaled.clear()
            # The tuple is kept with the result, so that its id is not reused.
            self._scaled[id(amounts)] = amounts, made
        return made


def _cases(types: int, n: int, liars: int) -> int:
    return math.comb(types + n - liars - 1, n - liars) * math.comb(types + liars - 1, liars) * int(types**liars)


def certify(mechanism: ReportMechanism[Type, Outcome], types: Sequence[Type], n: int, *, liars: int = 1) -> GameReport[Type, Outcome]:
    """The worst cases of a mechanism, over all reports of ``n`` people of these types. Exact.

    ``liars``: how many lie together; the gain is that of one of them against honesty. Refuses a game that would take hours
    (``game-too-large``) and one that is not valid (``game-invalid``).
    """
    listed = require_types(types, n)
    if type(liars) is not int or not 1 <= liars <= n:
        raise LapwingError("game-invalid", "the number of liars must be at least 1 and at most the number of people")
    if _cases(len(listed), n, liars) > CASES_MAX:
        raise Refused("game-too-large", "the game has too many profiles to enumerate", hint="use fewer people, types or liars")
    tables = _Tables(mechanism, listed)
    gain, ratio = _lies(tables, n, liars)
    return GameReport(
        name=mechanism.name,
        types=listed,
        outcomes=tables.outcomes,
        n=n,
        liars=liars,
        profiles=math.comb(len(listed) + n - 1, n),
        best_lie=gain,
        worst_ratio=ratio,
        worst_law=_laws(tables, n, liars),
        worst_loss=_loss(tables, n),
    )


def _deviations(types: int, n: int, liars: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    for others in combinations_with_replacement(range(types), n - liars):
        for truth in combinations_with_replacement(range(types), liars):
            for lie in product(range(types), repeat=liars):
                yield others, truth, lie


def _lies(tables: _Tables[Type, Outcome], n: int, liars: int) -> tuple[Deviation[Type, Outcome], Deviation[Type, Outcome] | None]:
    """The deviations of largest gain and of largest ratio; None for the latter if some utility is negative."""
    gain: _Worst[Deviation[Type, Outcome]] = _Worst(lambda found: found.gain, _expectations)
    ratio: _Worst[Deviation[Type, Outcome]] = _Worst(lambda found: found.ratio, _expectations)
    mechanism = tables.mechanism
    negative = False
    told: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    amounts: list[_Amounts] = []
    values: list[Enclosure] = []
    for others, truth, lie in _deviations(len(tables.types), n, liars):
        law_honest, law_lying = tables.law(others + truth), tables.law(others + lie)
        if told != (others, truth):  # lies vary fastest, so honesty is evaluated once for all of them
            told = others, truth
            rest = [tables.named(others + truth[:member] + truth[member + 1 :]) for member in range(liars)]
            amounts = [tables.amounts(mechanism.honest(tables.types[truth[member]], kept)) for member, kept in enumerate(rest)]
            values = [law_honest.expected(amount) for amount in amounts]
        for member in range(liars):
            moved = tables.named(others + lie[:member] + lie[member + 1 :])
            lying = tables.amounts(mechanism.lying(tables.types[truth[member]], tables.types[lie[member]], moved))
            honest, value, other = amounts[member], values[member], law_lying.expected(lying)
            if lie == truth and honest.exact == lying.exact:
                continue
            negative = negative or honest.least < 0 or lying.least < 0

            def deviation(
                others: tuple[int, ...] = others,
                truth: tuple[int, ...] = truth,
                lie: tuple[int, ...] = lie,
                member: int = member,
                laws: tuple[_Law[Outcome], _Law[Outcome]] = (law_honest, law_lying),
                utilities: tuple[_Amounts, _Amounts] = (honest, lying),
            ) -> Deviation[Type, Outcome]:
                return Deviation(
                    others=tables.named(others),
                    liars=tables.named(truth),
                    reports=tables.named(lie),
                    member=member,
                    law_honest=laws[0].exact,
                    law_lying=laws[1].exact,
                    honest=utilities[0].exact,
                    lying=utilities[1].exact,
                )

            gain.offer((other[0] - value[1], other[1] - value[0]), deviation)
            if not negative:
                ratio.offer(_quotient(other, value, deviation), deviation)
    assert gain.case is not None, "two types make at least one lie"
    return gain.case, None if negative else ratio.case


def _expectations(found: Deviation[Type, Outcome]) -> tuple[ExactNumber, ExactNumber]:
    return found.expected_honest, found.expected_lying


def _quotient(
    over: Enclosure, under: Enclosure, case: Callable[[], Deviation[Type, Outcome] | LawWitness[Type, Outcome]]
) -> Enclosure | None:
    """Bounds on a quotient of non-negative numbers; None is infinity, and 0/0 counts as 1."""
    if under[0] > 0:
        return divided(over, under, BITS)
    if over == under == (0, 0):  # equal bounds are the number itself
        return 1 << BITS, 1 << BITS
    ratio = case().ratio
    return None if ratio is None else ratio.enclosure()


def _laws(tables: _Tables[Type, Outcome], n: int, liars: int) -> LawWitness[Type, Outcome]:
    """The outcome whose chance changes by the largest factor when ``liars`` reports are replaced."""
    worst: _Worst[LawWitness[Type, Outcome]] = _Worst(
        lambda found: found.ratio, lambda found: (found.law_first.chance(found.outcome), found.law_second.chance(found.outcome))
    )
    reports = list(combinations_with_replacement(range(len(tables.types)), liars))
    for others in combinations_with_replacement(range(len(tables.types)), n - liars):
        laws = [(report, tables.law(others + report)) for report in reports]
        chances = [
            (report, law, [divided(bounds, law.whole, BITS) for bounds in zip(law.low, law.high, strict=True)]) for report, law in laws
        ]
        for place, outcome in enumerate(tables.outcomes):
            most = max(found[2][place][0] for found in chances)
            least = min(found[2][place][1] for found in chances)
            for first, law_first, upper in chances:
                for second, law_second, lower in chances:
                    # The largest and the smallest chance of this outcome are among these.
                    if first == second or upper[place][1] < most or lower[place][0] > least:
                        continue

                    def witness(
                        others: tuple[int, ...] = others,
                        pair: tuple[tuple[int, ...], tuple[int, ...]] = (first, second),
                        outcome: Outcome = outcome,
                        laws: tuple[_Law[Outcome], _Law[Outcome]] = (law_first, law_second),
                    ) -> LawWitness[Type, Outcome]:
                        return LawWitness(
                            others=tables.named(others),
                            first=tables.named(pair[0]),
                            second=tables.named(pair[1]),
                            outcome=outcome,
                            law_first=laws[0].exact,
                            law_second=laws[1].exact,
                        )

                    impossible = not law_second.exact.weights[place].sign()
                    if impossible and not law_first.exact.weights[place].sign():
                        continue
                    worst.offer(None if impossible else _quotient(upper[place], lower[place], witness), witness)
    assert worst.case is not None, "the weights have a positive sum, so some outcome is possible"
    return worst.case


def _loss(tables: _Tables[Type, Outcome], n: int) -> LossWitness[Type, Outcome]:
    """The profile of true reports with the largest expected loss."""
    worst: _Worst[LossWitness[Type, Outcome]] = _Worst(lambda found: found.loss, lambda found: (found.loss,))
    for reports in combinations_with_replacement(range(len(tables.types)), n):
        law, objective = tables.law(reports), tables.amounts(tables.mechanism.objective(tables.named(reports)))
        low, high = law.expected(objective)
        most = max(objective.integers) << BITS
        best = most // objective.unit, -(-most // objective.unit)

        def witness(
            reports: tuple[int, ...] = reports, law: _Law[Outcome] = law, objective: _Amounts = objective
        ) -> LossWitness[Type, Outcome]:
            return LossWitness(reports=tables.named(reports), law=law.exact, objective=objective.exact)

        worst.offer((best[0] - high, best[1] - low), witness)
    assert worst.case is not None, "there is at least one profile"
    return worst.case
