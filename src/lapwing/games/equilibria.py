"""Games in which everybody chooses an action: best responses, regret, and approximate Nash equilibria in pure actions. Exact."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import TypeAlias, TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import require_exact

Action = TypeVar("Action", bound=Hashable)

Payoff: TypeAlias = Callable[[int, tuple[Action, ...]], Fraction]
"""The payoff of a profile of actions, one for each player, to a player (numbered from 0)."""


def regret(payoff: Payoff[Action], actions: Sequence[Sequence[Action]], profile: Sequence[Action]) -> Fraction:
    """The most that any single player would gain by another action while the others keep theirs."""
    chosen = tuple(profile)
    if len(chosen) != len(actions) or any(action not in own for action, own in zip(chosen, actions, strict=True)):
        raise LapwingError("game-invalid", "a profile must have one action for each player")
    if not chosen:
        raise LapwingError("game-invalid", "a game must have at least one player")
    gains = (
        _exactly(payoff(player, (*chosen[:player], action, *chosen[player + 1 :]))) - _exactly(payoff(player, chosen))
        for player, own in enumerate(actions)
        for action in own
    )
    return max(gains)


def _exactly(worth: Fraction) -> Fraction:
    """The payoff, if it is exact: with floats, a NaN would make any profile an equilibrium."""
    require_exact(worth)
    return Fraction(worth)


def is_equilibrium(
    payoff: Payoff[Action], actions: Sequence[Sequence[Action]], profile: Sequence[Action], *, slack: Fraction = Fraction(0)
) -> bool:
    """Whether no player gains more than ``slack`` by changing only their own action: an approximate Nash equilibrium."""
    require_exact(slack)
    return regret(payoff, actions, profile) <= slack


def pure_equilibria(
    payoff: Payoff[Action], actions: Sequence[Sequence[Action]], *, slack: Fraction = Fraction(0)
) -> Iterator[tuple[Action, ...]]:
    """All approximate Nash equilibria in pure actions, by enumerating all profiles."""
    return (profile for profile in product(*actions) if is_equilibrium(payoff, actions, profile, slack=slack))
