"""Any number of quantiles of one column for one charge: select the middle one, split the rows there, and go on in both parts.

Each row lies in one part per level, so m quantiles cost ``1 + log2(m)`` selections, not m. A selection is the exponential mechanism; the
badness of a candidate is the distance of the mass up to it (:mod:`lapwing.kernel.rank_line`) from the mass of the quantile.
Groups are parts like others: a unit's rows, however they are spread over groups and parts, cost no more than if they were all in one.

Proof: ``docs/proofs/quantiles.md``. Sources: Smith 2011 for one quantile; Kaplan, Schnapp and Stemmer 2022 for the recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, assert_never

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.event import Event
from lapwing.kernel.laws import require_scale
from lapwing.kernel.neighbours import Neighbours

RANGE_DIVISOR = 8
"""rho is ``epsilon^2 / 8`` where the privacy loss lies in an interval of length epsilon (the exponential mechanism)."""

DENOMINATOR_MAX = 2**20
"""Largest denominator of a quantile."""

TARGETS_MAX = 64
"""Most quantiles of one tree."""

RANK_MAX = 2**62
"""Largest rank of an extreme."""


@dataclass(frozen=True, slots=True)
class AtShare:
    """The quantile at this share of the rows, interpolated as SQL does: ``share * (N - 1)`` rows above the least."""

    share: Fraction


@dataclass(frozen=True, slots=True)
class FromLeast:
    """The row with this rank from below, 1 being the least row; but no further up than the median."""

    rank: int


@dataclass(frozen=True, slots=True)
class FromGreatest:
    """The row with this rank from above, 1 being the greatest row; but no further down than the median."""

    rank: int


Target: TypeAlias = AtShare | FromLeast | FromGreatest


@dataclass(frozen=True, slots=True)
class Leaf:
    """Targets that are selected separately on the same rows: one, or the two extremes."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A share of the current rows that is selected first and then splits them. ``target`` is its number."""

    target: int
    share: Fraction
    left: Node | None
    right: Node | None


Node: TypeAlias = Leaf | Branch


def tree_of(targets: tuple[Target, ...]) -> Node:
    """The order in which targets are selected. Pre: increasing. Shares inside are of the rows of the part, not of all."""
    node = _node(tuple(range(len(targets))), targets, Fraction(0), Fraction(1))
    if node is None:
        raise Refused("quantile-invalid", "a set of quantiles needs at least one")
    return node


def _node(numbers: tuple[int, ...], targets: tuple[Target, ...], start: Fraction, end: Fraction) -> Node | None:
    """The tree of these targets among the rows from share ``start`` to share ``end``. Extremes never split rows."""
    if not numbers:
        return None
    middle = (len(numbers) - 1) / 2
    shares = [(place, target.share) for place, number in enumerate(numbers) if isinstance(target := targets[number], AtShare)]
    if not shares:
        return Leaf(numbers)
    place, share = min(shares, key=lambda item: abs(item[0] - middle))
    left = _node(numbers[:place], targets, start, share)
    right = _node(numbers[place + 1 :], targets, share, end)
    return Branch(numbers[place], (share - start) / (end - start), left, right)


def levels_of(node: Node | None) -> int:
    """The most selections that one row takes part in."""
    match node:
        case None:
            return 0
        case Leaf(targets):
            return len(targets)
        case Branch(_, _, left, right):
            return 1 + max(levels_of(left), levels_of(right))
        case never:
            assert_never(never)


def reach(target: Target, share: Fraction | None = None) -> Fraction:
    """At most how far an additional mass of 1 moves the badness of a candidate; ``share`` is the target's in its part."""
    match target:
        case AtShare(whole):
            own = whole if share is None else share
            return max(own, 1 - own)
        case FromLeast() | FromGreatest():
            return Fraction(1)
        case never:
            assert_never(never)


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """All these quantiles of the integers from ``lower`` to ``upper``, in each of any number of groups.

    A candidate whose badness is b has probability proportional to ``exp(-b / (scale * reach))``: so the scale is in rows, and the same for
    all selections. (Values on a pure account are selected by permute-and-flip at that scale.)

    Pre: a unit has at most ``rows_per_unit`` rows in all groups together. Post: all choices together are epsilon-private and rho-zCDP, with
    the epsilon and rho of :meth:`event`, for these neighbours.
    """

    lower: int
    upper: int
    targets: tuple[Target, ...]
    rows_per_unit: int
    neighbours: Neighbours
    scale: Fraction
    alone: bool = False
    """There is one group and one target: then replacing a unit costs less."""

    def __post_init__(self) -> None:
        require_scale(self.scale)
        require_targets(self.targets)
        if self.lower > self.upper:
            raise Refused("quantile-invalid", "the lower bound of a quantile is above its upper bound")
        if self.alone and len(self.targets) != 1:
            raise LapwingError("sensitivity-invalid", "one target alone is one target")

    @property
    def levels(self) -> int:
        """The most selections that one row takes part in."""
        return levels_of(tree_of(self.targets))

    def event(self) -> Event:
        """What one run costs."""
        epsilon = self._movement() / self.scale
        return Event(epsilon=self.levels * epsilon, rho=self.levels * epsilon**2 / RANGE_DIVISOR)

    def _movement(self) -> Fraction:
        return movement(self.targets, rows_per_unit=self.rows_per_unit, neighbours=self.neighbours, alone=self.alone)


def movement(targets: tuple[Target, ...], *, rows_per_unit: int, neighbours: Neighbours, alone: bool) -> Fraction:
    """Epsilon of one level times the scale: how far two candidates' badnesses can move apart relative to their reach, over all parts."""
    if type(rows_per_unit) is not int or rows_per_unit < 1:
        raise LapwingError("sensitivity-invalid", "the number of rows per unit is a positive integer")
    match neighbours:
        case Neighbours.UNBOUNDED:
            return Fraction(2 * rows_per_unit)
        case Neighbours.BOUNDED if alone:
            return 2 * rows_per_unit / reach(targets[0])
        case Neighbours.BOUNDED:
            return Fraction(4 * rows_per_unit)
        case never:
            assert_never(never)


def require_targets(targets: tuple[Target, ...]) -> None:
    """Stop (code ``quantile-invalid``) what is not an increasing list of targets: the low extreme, shares, the high extreme."""
    places = [_place(target) for target in targets]
    if not 1 <= len(targets) <= TARGETS_MAX or places != sorted(set(places)):
        raise Refused("quantile-invalid", f"quantiles come in increasing order, each once, from 1 to {TARGETS_MAX} of them")


def _place(target: Target) -> Fraction:
    match target:
        case AtShare(share):
            if type(share) is not Fraction or not 0 < share < 1 or share.denominator > DENOMINATOR_MAX:
                raise Refused("quantile-invalid", "a quantile is a fraction above 0 and below 1 with a denominator up to 2^20")
            return share
        case FromLeast(rank) | FromGreatest(rank):
            if type(rank) is not int or not 1 <= rank <= RANK_MAX:
                raise Refused("quantile-invalid", "the rank of an extreme is an integer from 1 to 2^62")
            return Fraction(0) if isinstance(target, FromLeast) else Fraction(1)
        case never:
            assert_never(never)
