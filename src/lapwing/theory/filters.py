"""Filters and odometers: composition when even the parameters are chosen adaptively.

A *filter* receives each charge before the mechanism runs and decides whether it may run; the admitted interaction has the promised
privacy. An *odometer* promises nothing beforehand and reports at any time how much was spent. Both must hold against an analyst
whose next charge, and whose decision to stop, depend on the answers so far (Rogers, Roth, Ullman and Vadhan 2016).

Sums of epsilon and sums of rho are filters: their proofs go step by step, given the past. A bound for *fixed* sequences is not a filter
just because it holds for every sequence that may occur: :func:`optimal_is_not_a_filter` is an exact counter-example, and
:func:`crossing_probability` shows why advanced composition is not an odometer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from lapwing.errors import BudgetRefused, LapwingError
from lapwing.kernel.accounting import LOSS_UNITS, Account, Budget, Cost, admits, budget_for
from lapwing.kernel.event import Event
from lapwing.kernel.numbers import ln_upper, require_exact, sqrt_upper
from lapwing.theory.composition import optimal_delta_of_different
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.loss import NOTHING, LossLaw


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """The ledger's filter, over the kernel's own integer units: sums of epsilon (delta = 0), of rho and delta, or the union of both.

    Guarantee: whatever sequence of events is admitted, each fixed before its mechanism runs, the whole is (epsilon, delta)-differentially
    private for the epsilon and delta given to :meth:`of`. Proofs: ``docs/proofs/accounting.md`` (Whitehouse et al. 2023; Feldman and Zrnic
    2021) and ``docs/proofs/union-of-filters.md``.
    """

    budget: Budget
    spent: Cost

    @staticmethod
    def of(
        *, epsilon: Fraction, delta: Fraction = Fraction(0), delta_keys_share: Fraction = Fraction(1, 2), order: int | None = None
    ) -> LedgerFilter:
        """A filter with nothing spent."""
        share = delta_keys_share if delta else Fraction(0)
        budget = budget_for(epsilon=epsilon, delta=delta, delta_keys_share=share, order=order)
        return LedgerFilter(budget=budget, spent=Cost.zero())

    def admits(self, event: Event) -> bool:
        """Whether the event may run. Depends on charges only, never on answers."""
        return admits(self.budget, spent=self.spent, cost=self._cost(event))

    def charged(self, event: Event) -> LedgerFilter:
        """The filter after the event; refuses (``budget-exceeded``) what is not admitted."""
        if not self.admits(event):
            raise BudgetRefused("budget-exceeded", "the filter does not admit this event")
        return replace(self, spent=self.spent + self._cost(event))

    def _cost(self, event: Event) -> Cost:
        return event.cost(self.budget.account, order=self.budget.order)

    def epsilon_odometer(self) -> Fraction | None:
        """The exact epsilon spent so far, valid at any time: on a pure account the sum bounds the loss of every transcript.

        None on an approximate account, where the rho spent so far cannot simply be converted: see :class:`ConcentratedOdometer`.
        """
        return Fraction(self.spent.loss, LOSS_UNITS) if self.budget.account is Account.PURE else None


@dataclass(frozen=True, slots=True)
class AdvancedFilter:
    """Advanced composition as a filter: admit while ``sqrt(2 L S) + S/2 <= epsilon``, with ``S`` the sum of squares of epsilons, ``L =
    ln(1/delta_slack)``.

    Guarantee: (epsilon, delta_slack + delta_parts)-differential privacy for charges (epsilon_i, delta_i) chosen adaptively (Whitehouse,
    Ramdas, Rogers and Wu 2023). It is the sum of ``rho = epsilon_i^2 / 2`` with the older conversion ``rho + 2 sqrt(rho L)``; so the
    condition is ``S/2`` at most ``(sqrt(L + epsilon) - sqrt(L))^2``, and never admits more than the ledger's conversion.
    """

    epsilon: Fraction
    delta_slack: Fraction
    delta_parts: Fraction = Fraction(0)
    squares_spent: Fraction = Fraction(0)
    delta_spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        require_exact(self.epsilon, self.delta_slack, self.delta_parts, self.squares_spent, self.delta_spent)
        if not (self.epsilon > 0 and 0 < self.delta_slack < 1 and 0 <= self.delta_parts < 1):
            raise LapwingError("theory-argument", "a filter needs a positive epsilon, a positive delta_slack, and deltas between 0 and 1")

    def rho_limit(self) -> Fraction:
        """At most the largest rho this filter admits: ``(epsilon / (sqrt(L + epsilon) + sqrt(L)))^2``."""
        log = ln_upper(1 / Fraction(self.delta_slack))
        return (self.epsilon / (sqrt_upper(log + self.epsilon) + sqrt_upper(log))) ** 2

    def admits(self, *, epsilon: Fraction, delta: Fraction = Fraction(0)) -> bool:
        """Whether a mechanism with these parameters may run."""
        require_exact(epsilon, delta)
        if epsilon < 0 or delta < 0:
            raise LapwingError("theory-argument", "a charge must not be negative")
        return (self.squares_spent + epsilon**2) / 2 <= self.rho_limit() and self.delta_spent + delta <= self.delta_parts

    def charged(self, *, epsilon: Fraction, delta: Fraction = Fraction(0)) -> AdvancedFilter:
        """The filter after the charge; refuses (``budget-exceeded``) what is not admitted."""
        if not self.admits(epsilon=epsilon, delta=delta):
            raise BudgetRefused("budget-exceeded", "the filter does not admit this event")
        return replace(self, squares_spent=self.squares_spent + epsilon**2, delta_spent=self.delta_spent + delta)


@dataclass(frozen=True, slots=True)
class ConcentratedOdometer:
    """An odometer for sums of rho: at every moment at once, with probability at least ``1 - delta``, the loss so far is at most the
    reading.

    ``levels`` are increasing amounts of rho, fixed beforehand. For one level r and any order a, ``exp((a-1) L_n - a(a-1) rho_n)`` is a
    supermartingale under the true law, so by Ville's inequality the loss stays below ``a r + ln(1/d) / (a-1)`` as long as at most r is
    spent, except with probability d; at the best order that is ``r + 2 sqrt(r ln(1/d))``. Each level gets an equal part of delta, and the
    reading is that of the lowest level not yet exceeded. The cost of an unknown end is the number of levels inside the logarithm (and the
    rounding up to a level).
    """

    levels: tuple[Fraction, ...]
    delta: Fraction

    def __post_init__(self) -> None:
        require_exact(self.delta, *self.levels)
        if not self.levels or self.levels[0] <= 0 or list(self.levels) != sorted(set(self.levels)) or not 0 < self.delta < 1:
            raise LapwingError("theory-argument", "levels must be positive and increasing, and delta must be above 0 and below 1")

    def reading(self, rho_spent: Fraction) -> Fraction | None:
        """At least the bound on the loss after this much rho, however it was spent; None beyond the last level."""
        require_exact(rho_spent)
        log = ln_upper(len(self.levels) / Fraction(self.delta))
        for level in self.levels:
            if rho_spent <= level:
                return level + 2 * sqrt_upper(level * log)
        return None


@dataclass(frozen=True, slots=True)
class Response:
    """A strategy of an adaptive analyst: one randomised response with these odds, and the next step after each answer (None: stop)."""

    odds: Fraction
    if_likely: Response | None = None
    """After the answer that the first world makes likelier."""
    if_unlikely: Response | None = None


def strategy_loss(strategy: Response | None) -> LossLaw:
    """The privacy loss of the whole transcript, first world against second. Exact."""
    if strategy is None:
        return NOTHING
    mass: dict[Fraction, Fraction] = {}
    branches = ((strategy.odds, strategy.if_likely), (1 / strategy.odds, strategy.if_unlikely))
    for step, after in branches:
        chance = step / (1 + step)
        for at, share in strategy_loss(after).mass.items():
            mass[step * at] = mass.get(step * at, Fraction(0)) + chance * share
    return LossLaw(mass=MappingProxyType(mass), infinite=Fraction(0))


def strategy_paths(strategy: Response | None) -> list[tuple[Guarantee, ...]]:
    """The sequences of guarantees that may be charged, one for each path of the strategy."""
    if strategy is None:
        return [()]
    rests = strategy_paths(strategy.if_likely) + strategy_paths(strategy.if_unlikely)
    return sorted({(Guarantee(strategy.odds), *rest) for rest in rests}, key=lambda path: [part.odds for part in path])


@dataclass(frozen=True, slots=True)
class NotAFilter:
    """A strategy, the optimal bound for fixed sequences on its paths, and its true delta."""

    strategy: Response
    odds: Fraction
    delta_claimed: Fraction
    """The maximum over the paths, which a filter based on the fixed-sequence bound would have promised."""
    delta_true: Fraction


def optimal_is_not_a_filter() -> NotAFilter:
    """Admitting charges while the *optimal* bound for the sequence so far stays at most delta does not give delta. Exact counter-example.

    The first answer has odds 3/2. After the likely answer, ln 3 is near, and one answer of odds 4 is best; otherwise ln 3 is far, and
    answers of odds 2 and 3 are. Each sequence alone has a delta of at most 1/4 at odds 3; the choice after the first answer gives
    29/100. No rule that is tight for every fixed sequence can be a filter (Rogers et al. 2016 say so in general).
    """
    strategy = Response(
        odds=Fraction(3, 2),
        if_likely=Response(odds=Fraction(4)),
        if_unlikely=Response(odds=Fraction(2), if_likely=Response(odds=Fraction(3)), if_unlikely=Response(odds=Fraction(3))),
    )
    odds = Fraction(3)
    claimed = max(optimal_delta_of_different(path, odds=odds) for path in strategy_paths(strategy))
    return NotAFilter(strategy=strategy, odds=odds, delta_claimed=claimed, delta_true=strategy_loss(strategy).delta(odds=odds))


def crossing_probability(*, odds: Fraction, steps_allowed: Sequence[int]) -> Fraction:
    """The probability that the loss of randomised responses is, after *some* step n, above ``steps_allowed[n-1]`` times ``ln odds``. Exact.

    If each limit is correct for its own n (exceeded with probability at most delta), this is the chance that an analyst who stops at the
    right moment has more loss than the bound for that moment. It may exceed delta: a bound for fixed lengths is not an odometer.
    """
    require_exact(odds)
    if odds < 1:
        raise LapwingError("theory-argument", "odds must be at least 1")
    # Integers over (n + d)^step, so that no fraction is reduced at each step.
    up, down = Fraction(odds).numerator, Fraction(odds).denominator
    position = {0: 1}
    crossed = 0
    for allowed in steps_allowed:
        moved: dict[int, int] = {}
        crossed *= up + down
        for at, share in position.items():
            for step, weight in ((1, up), (-1, down)):
                if at + step > allowed:
                    crossed += share * weight
                else:
                    moved[at + step] = moved.get(at + step, 0) + share * weight
        position = moved
    return Fraction(crossed, (up + down) ** len(steps_allowed))
