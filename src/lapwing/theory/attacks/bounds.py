"""What any attacker can gain under differential privacy: the chance of one right guess, and of many.

In this setting, each person has a secret, drawn uniformly and independently, and the answers have a
:class:`~lapwing.theory.guarantees.Guarantee` for a change of one person's secret. The attacker may know all other secrets, use any
procedure and take any amount of time. For tests of one person's presence see :func:`lapwing.theory.meaning.power_max`.

*One guess.* Let ``s(v)`` be the probability of the right guess when the secret is ``v``, one of ``k`` values. For every other value ``w``,
``s(v) <= odds P[guess v | w] + delta``. Adding up over all pairs gives ``(k - 1) S <= odds (k - S) + k (k - 1) delta`` for the sum ``S``
of all ``s(v)``, so the chance of success ``S / k`` is at most ``(odds + (k - 1) delta) / (odds + k - 1)``.

*Many guesses* (Steinke, Nasr and Jagielski 2023). With delta = 0: reveal the secrets one by one, after the answers and the guesses. Given
the answers and the secrets before it, each value of the next one has at most ``odds`` times the probability of each other value, so the
guess about it is right with probability at most ``odds / (odds + k - 1)``, whatever came before. The number of right guesses is therefore
stochastically at most binomial with that probability, although the guesses may depend on each other. With delta > 0 and two values, they
show that at most ``2 * people * delta`` is added to the tail.
"""

from __future__ import annotations

import math
from fractions import Fraction

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ceil_div, require_exact
from lapwing.theory.guarantees import Guarantee

_TAIL_BITS = 512
"""Terms of a binomial tail are integers over ``2**_TAIL_BITS``."""

_PROBABILITY_BITS = 64
"""The chance of one right guess is rounded up to this many bits before it is raised to powers."""


def success_max(guarantee: Guarantee, *, choices: int = 2) -> Fraction:
    """The best chance of guessing one person's secret, of ``choices`` equally likely values. Exact.

    Pre: the answers have the guarantee for a change of that secret. Attained by randomised response over the values that, with
    probability delta, reports the truth. For two values this is ``(1 + advantage) / 2`` (Kairouz, Oh and Viswanath 2015).
    """
    if choices < 2:
        raise LapwingError("attack-input", "a secret must have at least two possible values")
    others = choices - 1
    return min(Fraction(1), (guarantee.odds + others * guarantee.delta) / (guarantee.odds + others))


def chance_max(guarantee: Guarantee, *, correct: int, people: int, choices: int = 2) -> Fraction:
    """At least the probability that an attacker guesses ``correct`` or more of the independent secrets of ``people`` persons.

    Pre: the answers have the guarantee for a change of any one secret. Refuses (``attack-input``) more than two values together with a
    positive delta, for which no proof is given here.
    """
    if not 0 <= correct <= people or people < 1:
        raise LapwingError("attack-input", "people must be at least 1, and correct must be from 0 to people")
    if guarantee.delta and choices > 2:
        raise LapwingError("attack-input", "with delta above 0, the bound on many guesses covers only secrets of two values")
    single = success_max(Guarantee(odds=guarantee.odds), choices=choices)
    return min(Fraction(1), _binomial_tail_upper(correct, people, single) + 2 * people * guarantee.delta)


def alarm_at(guarantee: Guarantee, *, people: int, false_alarm: Fraction, choices: int = 2) -> int:
    """The least number of right guesses that shows, with an error probability of ``false_alarm``, that the claim is false.

    ``people + 1`` if even the maximum of right guesses would not show it.
    """
    require_exact(false_alarm)
    if not 0 < false_alarm < 1:
        raise LapwingError("attack-input", "the probability of a false alarm must be between 0 and 1")
    # The chance decreases with the number of right guesses, so bisect. At 0 it is 1, which is never below the limit.
    low, high = 0, people + 1
    while high - low > 1:
        middle = (low + high) // 2
        rare = chance_max(guarantee, correct=middle, people=people, choices=choices) <= false_alarm
        low, high = (low, middle) if rare else (middle, high)
    return high


def _binomial_tail_upper(at_least: int, trials: int, probability: Fraction) -> Fraction:
    """At least ``P[Binomial(trials, probability) >= at_least]``: the sum of its terms, each rounded up."""
    one = 1 << _PROBABILITY_BITS
    success = min(one, math.ceil(probability * one))
    failure = one - success
    if at_least == 0 or failure == 0:
        return Fraction(1)
    first = math.comb(trials, at_least) * success**at_least * failure ** (trials - at_least)
    term = ceil_div(first << _TAIL_BITS, 1 << (_PROBABILITY_BITS * trials))
    total = term
    for k in range(at_least, trials):
        term = ceil_div(term * (trials - k) * success, (k + 1) * failure)
        total += term
    return min(Fraction(1), Fraction(total, 1 << _TAIL_BITS))
