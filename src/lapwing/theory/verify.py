"""Decides differential privacy, exactly, for mechanisms whose laws are known.

Over a finite set of pairs of neighbours the definition is a finite question: is ``P[S] <= exp(epsilon) Q[S] + delta`` for every set ``S``
of outputs, for both orders of every pair? The worst ``S`` for given odds is ``{s : P[s] > odds Q[s]}``, and the excess over it is the
hockey-stick divergence, so one sum per ordered pair decides. ``exp(epsilon)`` is a ``Fraction`` throughout and is called the *odds*; no
logarithm is ever compared, only shown.

"Verified" is a statement about the given pairs. It is a proof for these databases; other databases need a separate argument.

Proof: ``docs/proofs/exact-verification.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeAlias, TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ln_lower, ln_upper, require_exact
from lapwing.theory.finite import FiniteMechanism

Database = TypeVar("Database", bound=Hashable)
Output = TypeVar("Output", bound=Hashable)

Pair: TypeAlias = tuple[Database, Database]

OUTPUTS_SHOWN = 6
"""A report lists at most this many outputs of a witness set."""

PROBABILITY_CHARACTERS = 24
"""A report writes a probability as a fraction up to this length."""


def epsilon_at_most(odds: Fraction, *, digits: int = 6) -> str:
    """``ln(odds)`` rounded up to ``digits`` decimals: the number shown is never below the real one."""
    return _decimals(math.ceil(ln_upper(odds) * 10**digits), digits)


def epsilon_at_least(odds: Fraction, *, digits: int = 6) -> str:
    """``ln(odds)`` rounded down to ``digits`` decimals: the number shown is never above the real one."""
    return _decimals(math.floor(ln_lower(odds) * 10**digits), digits)


def _decimals(scaled: int, digits: int) -> str:
    if digits < 1:
        raise LapwingError("number-invalid", "digits must be at least 1")
    whole, part = divmod(abs(scaled), 10**digits)
    return f"{'-' if scaled < 0 else ''}{whole}.{part:0{digits}d}"


def _probability(amount: Fraction) -> str:
    """For reports: the fraction if it is short, else its first digits. No decision uses it."""
    exact = str(amount)
    return exact if len(exact) <= PROBABILITY_CHARACTERS else f"about {float(amount):.6g}"


@dataclass(frozen=True, slots=True)
class Claim:
    """ "It is (epsilon, delta)-differentially private", with ``odds = exp(epsilon)``. Both exact (code ``claim-invalid``)."""

    odds: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        require_exact(self.odds, self.delta)
        if self.odds < 1 or not 0 <= self.delta <= 1:
            raise LapwingError("claim-invalid", "a claim must have odds of at least 1, and a delta between 0 and 1")

    def __str__(self) -> str:
        return f"exp(epsilon) = {self.odds} (epsilon <= {epsilon_at_most(self.odds)}), delta = {self.delta}"


def hockey_stick(p: Mapping[Output, Fraction], q: Mapping[Output, Fraction], odds: Fraction) -> Fraction:
    """The largest ``P[S] - odds * Q[S]`` over all sets ``S`` of outputs: the least delta for these odds, in this direction."""
    require_exact(odds)
    zero = Fraction(0)
    return sum((max(zero, mass - odds * q.get(output, zero)) for output, mass in p.items()), zero)


def least_odds(p: Mapping[Output, Fraction], q: Mapping[Output, Fraction], *, delta: Fraction = Fraction(0)) -> Fraction | None:
    """The least odds >= 1 with ``hockey_stick(p, q, odds) <= delta``; None if no finite odds are enough.

    The hockey stick falls in the odds and is linear between the ratios ``P[s] / Q[s]``, so the crossing is the root of one linear piece.
    """
    require_exact(delta)
    if not 0 <= delta <= 1:
        raise LapwingError("claim-invalid", "a delta must be between 0 and 1")
    ratios = sorted(((mass / q[output], mass, q[output]) for output, mass in p.items() if q.get(output)), reverse=True)
    # The set of outputs with a ratio above the odds, from infinite ratios (impossible under q) downwards.
    p_mass = sum((mass for output, mass in p.items() if not q.get(output)), Fraction(0))
    q_mass = Fraction(0)
    if p_mass > delta:
        return None
    for ratio, p_next, q_next in ratios:
        if q_mass and p_mass - ratio * q_mass > delta:
            break
        # At odds = ratio the outputs so far are within delta, so the odds can fall to this ratio, or below it with this output included.
        p_mass, q_mass = p_mass + p_next, q_mass + q_next
    return max(Fraction(1), (p_mass - delta) / q_mass) if q_mass else Fraction(1)


def _laws(mechanism: FiniteMechanism[Database, Output]) -> Callable[[Database], dict[Output, Fraction]]:
    """The mechanism's laws, each computed once, because a database occurs in many pairs."""
    known: dict[Database, dict[Output, Fraction]] = {}

    def law(database: Database) -> dict[Output, Fraction]:
        if database not in known:
            known[database] = mechanism.law(database)
        return known[database]

    return law


def _ordered(pairs: Iterable[Pair[Database]]) -> Iterator[Pair[Database]]:
    """Both orders of each pair. Refuses (``pairs-missing``) if there is none."""
    empty = True
    for x, y in pairs:
        empty = False
        yield x, y
        yield y, x
    if empty:
        raise LapwingError("pairs-missing", "verification needs at least one pair of neighbours")


def tight_odds(
    mechanism: FiniteMechanism[Database, Output], pairs: Iterable[Pair[Database]], *, delta: Fraction = Fraction(0)
) -> Fraction | None:
    """The least ``exp(epsilon)`` for which the mechanism is (epsilon, delta)-private over these pairs, exactly; None if there is none."""
    law, largest = _laws(mechanism), Fraction(1)
    for x, y in _ordered(pairs):
        odds = least_odds(law(x), law(y), delta=delta)
        if odds is None:
            return None
        largest = max(largest, odds)
    return largest


def tight_delta(mechanism: FiniteMechanism[Database, Output], pairs: Iterable[Pair[Database]], *, odds: Fraction) -> Fraction:
    """The least delta for which the mechanism is (ln odds, delta)-private over these pairs, exactly."""
    law = _laws(mechanism)
    return max(hockey_stick(law(x), law(y), odds) for x, y in _ordered(pairs))


@dataclass(frozen=True, slots=True)
class Verified:
    """The claim holds for every set of outputs and both orders of every pair given."""

    name: str
    claim: Claim
    pairs: int
    odds_needed: Fraction
    """The least odds that are enough at the claimed delta; the claim is tight when they are the claimed ones."""

    def __str__(self) -> str:
        tight = "tight" if self.odds_needed == self.claim.odds else f"exp(epsilon) = {self.odds_needed} would be enough"
        return f"{self.name}: verified {self.claim} over {self.pairs} pairs of neighbours ({tight})"


@dataclass(frozen=True, slots=True)
class Rejected(Generic[Database, Output]):
    """A counter-example: on database ``x`` the output falls into ``outputs`` more often than the claim allows, given ``y``."""

    name: str
    claim: Claim
    x: Database
    y: Database
    outputs: tuple[Output, ...]
    probability_x: Fraction
    probability_y: Fraction

    @property
    def shortfall(self) -> Fraction:
        """By how much the inequality fails: ``P[S] - odds * Q[S] - delta``, which is positive."""
        return self.probability_x - self.claim.odds * self.probability_y - self.claim.delta

    def __str__(self) -> str:
        more = len(self.outputs) - OUTPUTS_SHOWN
        shown = ", ".join(repr(output) for output in self.outputs[:OUTPUTS_SHOWN]) + (f" and {more} more" if more > 0 else "")
        if self.probability_y:
            # rounded down: the pair shows at least this much
            times = _decimals(math.floor(self.probability_x / self.probability_y * 100), 2)
            against = f"with probability {_probability(self.probability_y)} on {self.y}: at least {times} times as often"
        else:
            against = f"never on {self.y}"
        return (
            f"{self.name}: rejected {self.claim}. The output is in {{{shown}}} with probability {_probability(self.probability_x)} "
            f"on {self.x}, {against}. The claim falls short by {_probability(self.shortfall)}"
        )


def verify(
    mechanism: FiniteMechanism[Database, Output], claim: Claim, pairs: Iterable[Pair[Database]]
) -> Verified | Rejected[Database, Output]:
    """Decide the claim over these pairs, in both orders; a rejection carries the worst pair and set of outputs."""
    law, count = _laws(mechanism), 0
    needed, worst = Fraction(1), None
    largest = claim.delta
    for x, y in _ordered(pairs):
        count += 1
        p, q = law(x), law(y)
        excess = hockey_stick(p, q, claim.odds)
        if excess > largest:
            largest, worst = excess, (x, y)
        if worst is None:
            odds = least_odds(p, q, delta=claim.delta)
            assert odds is not None, "the hockey stick at the claimed odds is within delta, so finite odds are enough"
            needed = max(needed, odds)
    if worst is None:
        return Verified(name=mechanism.name, claim=claim, pairs=count // 2, odds_needed=needed)
    p, q = law(worst[0]), law(worst[1])
    zero = Fraction(0)
    outputs = tuple(output for output, mass in p.items() if mass > claim.odds * q.get(output, zero))
    return Rejected(
        name=mechanism.name,
        claim=claim,
        x=worst[0],
        y=worst[1],
        outputs=outputs,
        probability_x=sum((p[output] for output in outputs), zero),
        probability_y=sum((q.get(output, zero) for output in outputs), zero),
    )
