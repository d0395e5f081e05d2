"""Composition: what several private mechanisms reveal together, by every rule from the textbook's to the optimal one.

Each rule is sound for mechanisms that may be chosen adaptively, *with parameters fixed beforehand* (for parameters that adapt too see
:mod:`lapwing.theory.filters`). Results are exact, or rounded so that they never claim too much privacy. :func:`how_many` compares the rules
by the number of counts of a given epsilon that fit into one budget.

Sources: basic, Dwork et al. 2006; advanced, Dwork, Rothblum and Vadhan 2010; optimal, Kairouz, Oh and Viswanath 2015 and (for different
parameters) Murtagh and Vadhan 2016; concentrated, Bun and Steinke 2016; Rényi, Mironov 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from fractions import Fraction
from typing import assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import rho_for
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_lower, ln_upper, require_exact, sqrt_lower, sqrt_upper
from lapwing.theory import gaussian
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.loss import LossLaw, loss_law

COUNT_MAX = 100_000
"""Most mechanisms in one composition."""

ENUMERATED_MAX = 20
"""Most mechanisms with different parameters in one optimal composition: the sum has ``2**k`` terms (its exact value is #P-hard)."""

_GRID = 2**80
"""Irrational odds are rounded outwards to multiples of 1/_GRID before they are raised to powers, so that fractions stay short."""


def basic(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Epsilons add, deltas add; odds multiply. Exact. Also holds for adaptive parameters, if their sums are bounded."""
    odds, delta = Fraction(1), Fraction(0)
    for guarantee in guarantees:
        odds, delta = odds * guarantee.odds, delta + guarantee.delta
    return Guarantee(odds=odds, delta=delta)


def advanced_epsilon_upper(*, epsilon: Fraction, count: int, delta_slack: Fraction) -> Fraction:
    """At least ``epsilon sqrt(2 k ln(1/delta')) + k epsilon (exp(epsilon) - 1)``, the epsilon of k mechanisms of epsilon each.

    The composition is (this, ``k delta + delta_slack``)-private when each part is (epsilon, delta)-private.
    """
    _require(epsilon=epsilon, count=count, delta=delta_slack)
    return epsilon * (sqrt_upper(2 * count * ln_upper(1 / delta_slack)) + count * (exp_upper(epsilon) - 1))


def advanced_epsilon_lower(*, epsilon: Fraction, count: int, delta_slack: Fraction) -> Fraction:
    """At most the same value; it also decides that a number of mechanisms does *not* fit by this rule."""
    _require(epsilon=epsilon, count=count, delta=delta_slack)
    return epsilon * (sqrt_lower(2 * count * ln_lower(1 / delta_slack)) + count * (exp_lower(epsilon) - 1))


def worst_pair(guarantee: Guarantee) -> LossLaw:
    """The loss of the mechanism from which every mechanism with this guarantee can be made by post-processing.

    Randomised response that reveals the secret with probability delta: loss infinite with probability delta, else ``+epsilon`` or
    ``-epsilon`` with odds ``exp(epsilon) : 1`` (Kairouz, Oh and Viswanath 2015). So the composition of these is the worst composition.
    """
    if guarantee.delta >= 1:
        raise LapwingError("theory-argument", "delta must be below 1")
    kept, odds = 1 - guarantee.delta, guarantee.odds
    likely, unlikely = kept * odds / (1 + odds), kept / (1 + odds)
    first = {"certain": guarantee.delta, "likely": likely, "unlikely": unlikely}
    second = {"impossible": guarantee.delta, "likely": unlikely, "unlikely": likely}
    return loss_law(first, second)


def optimal_delta(guarantee: Guarantee, *, count: int, odds: Fraction) -> Fraction:
    """The least delta such that any k mechanisms with this guarantee are together (ln odds, delta)-private. Exact, and attained.

    With ``w = exp(epsilon)``, ``1 - (1 - delta)^k (1 - sum over i of C(k, i) max(0, w^i - odds w^(k-i)) / (1 + w)^k)``
    (Kairouz, Oh and Viswanath 2015, theorem 3.3). Grows with the guarantee and falls with ``odds``.
    """
    require_exact(odds)
    _require_count(count)
    if odds < 1 or guarantee.delta >= 1:
        raise LapwingError("theory-argument", "odds must be at least 1, and delta must be below 1")
    # In integers: w = n/d gives terms C(k, i) max(0, n^i d^(k-i) - odds n^(k-i) d^i) over (n + d)^k.
    n, d = guarantee.odds.numerator, guarantee.odds.denominator
    over, under = odds.numerator, odds.denominator
    n_powers, d_powers = _powers(n, count), _powers(d, count)
    total, choices = 0, 1
    for i in range(count, -1, -1):
        term = under * n_powers[i] * d_powers[count - i] - over * n_powers[count - i] * d_powers[i]
        if term <= 0:
            break  # terms fall with i
        total += choices * term
        choices = choices * i // (count - i + 1)
    finite = Fraction(total, under * (n + d) ** count)
    return 1 - (1 - guarantee.delta) ** count * (1 - finite)


def _powers(base: int, count: int) -> list[int]:
    powers = [1]
    for _ in range(count):
        powers.append(powers[-1] * base)
    return powers


def optimal_delta_of_different(guarantees: Sequence[Guarantee], *, odds: Fraction) -> Fraction:
    """The same for mechanisms with different guarantees, by enumeration of the ``2**k`` outcomes of the worst pairs. Exact, and attained.

    Murtagh and Vadhan 2016, theorem 1.5. Equal losses are merged at each step, so few distinct guarantees are cheap.
    """
    if len(guarantees) > ENUMERATED_MAX:
        raise LapwingError("number-too-large", f"optimal composition accepts at most {ENUMERATED_MAX} different guarantees")
    require_exact(odds)
    law = LossLaw(mass={Fraction(1): Fraction(1)}, infinite=Fraction(0))
    for guarantee in guarantees:
        law = law.compose(worst_pair(guarantee))
    return law.delta(odds=odds)


def optimal_odds(guarantee: Guarantee, *, count: int, delta: Fraction) -> Fraction:
    """Odds, above the least by at most one part in ``10**12``, at which k mechanisms with this guarantee are (ln odds, delta)-private.

    At most those of basic composition. Refuses a delta below that of the parts themselves.
    """
    require_exact(delta)
    _require_count(count)
    low, high = Fraction(1), guarantee.odds**count
    if optimal_delta(guarantee, count=count, odds=high) > delta:
        raise LapwingError("theory-argument", "no odds are large enough: delta is below 1 - (1 - delta of one part)^count")
    if optimal_delta(guarantee, count=count, odds=low) <= delta:
        return low
    while high - low > low / 10**12:
        middle = Fraction(round((low + high) / 2 * _GRID), _GRID)
        low, high = (low, middle) if optimal_delta(guarantee, count=count, odds=middle) <= delta else (middle, high)
    return high


def parallel(epsilons: Sequence[Fraction], *, parts_per_unit: int) -> Fraction:
    """Epsilon of mechanisms that each see one part of a partition, if a unit has rows in at most ``parts_per_unit`` parts: the sum of the
    largest.

    One row per unit and add/remove neighbours: ``parts_per_unit = 1``, the maximum (McSherry 2009). With replace neighbours the row may
    leave one part and enter another: 2. When the unit is a user whose rows lie in many parts the rule is no better than the sum; to read
    "parallel" as "maximum" there is the mistake that ``tests/theory/test_composition.py`` shows with two parts and one user in both.
    """
    require_exact(*epsilons)
    if type(parts_per_unit) is not int or parts_per_unit < 1 or any(epsilon < 0 for epsilon in epsilons):
        raise LapwingError("theory-argument", "a unit must be in at least one part, and epsilons must not be negative")
    return sum(sorted(epsilons, reverse=True)[:parts_per_unit], Fraction(0))


def pure_to_rho(epsilon: Fraction) -> Fraction:
    """Epsilon-differential privacy is ``epsilon^2/2``-zCDP (Bun and Steinke 2016, proposition 1.4). Exact; zCDP then adds."""
    require_exact(epsilon)
    return Fraction(epsilon) ** 2 / 2


def pure_to_renyi_upper(guarantee: Guarantee, *, order: int) -> Fraction:
    """At least the largest Rényi divergence of an integer order between laws with this pure guarantee; randomised response attains it."""
    if guarantee.delta or type(order) is not int or order < 2:
        raise LapwingError("theory-argument", "this bound needs delta = 0 and an integer order of at least 2")
    odds = guarantee.odds
    return ln_upper((odds**order + odds ** (1 - order)) / (1 + odds)) / (order - 1)


def renyi_to_epsilon_upper(*, order: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """At least the epsilon for which a Rényi divergence of this order gives (epsilon, delta): ``D + ln(1 - 1/a) - (ln delta + ln a) /
    (a-1)``.

    Canonne, Kamath and Steinke 2020; step 2 of ``docs/proofs/accounting.md``. At least 0.
    """
    require_exact(order, divergence, delta)
    if not (order > 1 and divergence >= 0 and 0 < delta < 1):
        raise LapwingError("theory-argument", "a conversion needs an order above 1, a divergence of at least 0 and 0 < delta < 1")
    return max(Fraction(0), divergence + ln_upper(1 - 1 / Fraction(order)) - (ln_lower(delta) + ln_lower(Fraction(order))) / (order - 1))


class Rule(Enum):
    """A way to add up counts, for :func:`how_many`."""

    BASIC = "basic"
    ADVANCED = "advanced"
    OPTIMAL = "optimal"
    CONCENTRATED = "concentrated"
    CONCENTRATED_GAUSSIAN = "concentrated, Gaussian noise of the same variance"
    GAUSSIAN = "Gaussian privacy, Gaussian noise of the same variance"


def how_many(rule: Rule, *, each_epsilon: Fraction, epsilon: Fraction, delta: Fraction) -> int:
    """The number of counts of ``each_epsilon`` that this rule admits into an (epsilon, delta) budget.

    The returned number fits and one more does not, both decided with directed rounding (``theory-argument`` if that is impossible); for the
    concentrated rules it is the number that the kernel's own conversion admits. The Gaussian rules give each count, of sensitivity 1,
    normal noise with the variance ``2 / each_epsilon^2`` of its Laplace noise.
    """
    _require(epsilon=each_epsilon, count=1, delta=delta)
    require_exact(epsilon)
    if epsilon <= 0:
        raise LapwingError("theory-argument", "the epsilon of a budget must be positive")
    match rule:
        case Rule.BASIC:
            return math.floor(epsilon / each_epsilon)
        case Rule.ADVANCED:
            return _largest(
                fits=lambda k: advanced_epsilon_upper(epsilon=each_epsilon, count=k, delta_slack=delta) <= epsilon,
                too_many=lambda k: advanced_epsilon_lower(epsilon=each_epsilon, count=k, delta_slack=delta) > epsilon,
            )
        case Rule.OPTIMAL:
            above = Guarantee(odds=_grid_up(exp_upper(each_epsilon)))
            below = Guarantee(odds=_grid_down(exp_lower(each_epsilon)))
            target_low, target_high = _grid_down(exp_lower(epsilon)), _grid_up(exp_upper(epsilon))
            return _largest(
                fits=lambda k: optimal_delta(above, count=k, odds=target_low) <= delta,
                too_many=lambda k: optimal_delta(below, count=k, odds=target_high) > delta,
            )
        case Rule.CONCENTRATED:
            return _by_rho(pure_to_rho(each_epsilon), epsilon=epsilon, delta=delta)
        case Rule.CONCENTRATED_GAUSSIAN:
            return _by_rho(Fraction(each_epsilon) ** 2 / 4, epsilon=epsilon, delta=delta)
        case Rule.GAUSSIAN:
            square = Fraction(each_epsilon) ** 2 / 2
            return _largest(
                fits=lambda k: gaussian.delta_upper(mu_squared=k * square, epsilon=epsilon) <= delta,
                too_many=lambda k: gaussian.delta_lower(mu_squared=k * square, epsilon=epsilon) > delta,
            )
        case never:
            assert_never(never)


def _by_rho(rho_each: Fraction, *, epsilon: Fraction, delta: Fraction) -> int:
    """The number of charges of this rho that the kernel's conversion admits (the whole delta converts; none is set aside for keys)."""
    return math.floor(rho_for(epsilon=epsilon, delta=delta) / rho_each)


def _largest(*, fits: Callable[[int], bool], too_many: Callable[[int], bool]) -> int:
    """The count that fits while one more is too many; both are monotone."""
    low, high = 0, 1
    while fits(high):
        low, high = high, high * 2
        if high > COUNT_MAX:
            raise LapwingError("number-too-large", f"more than {COUNT_MAX} mechanisms fit")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if not too_many(high):
        raise LapwingError("theory-argument", "the budget is too close to the limit between two counts for the bounds to decide")
    return low


def _grid_up(x: Fraction) -> Fraction:
    return Fraction(math.ceil(x * _GRID), _GRID)


def _grid_down(x: Fraction) -> Fraction:
    return Fraction(math.floor(x * _GRID), _GRID)


def _require_count(count: int) -> None:
    if type(count) is not int or not 1 <= count <= COUNT_MAX:
        raise LapwingError("theory-argument", f"a composition must have 1 to {COUNT_MAX} mechanisms")


def _require(*, epsilon: Fraction, count: int, delta: Fraction) -> None:
    require_exact(epsilon, delta)
    _require_count(count)
    if not (epsilon > 0 and 0 < delta < 1):
        raise LapwingError("theory-argument", "epsilon must be positive, and delta must be above 0 and below 1")
