"""What differential privacy lets any attacker gain: the chance of one right guess, and of many.

The setting is a secret per person that is drawn uniformly and independently, and answers that are (epsilon, delta)-differentially private
for a change of one person's secret. The attacker may know all other secrets, use any procedure and have any amount of time. All results are
fractions, rounded up.

*One guess.* Let ``s(v)`` be the probability of the right guess when the secret is ``v``, one of ``k`` values. For every other value ``w``,
``s(v) <= e^epsilon P[guess v | w] + delta``. Adding up over all pairs gives ``(k - 1) S <= e^epsilon (k - S) + k (k - 1) delta`` for the
sum ``S`` of all ``s(v)``, so the chance of success ``S / k`` is at most ``(e^epsilon + (k - 1) delta) / (e^epsilon + k - 1)``.

*Many guesses* (Steinke, Nasr and Jagielski 2023). With delta = 0: reveal the secrets one by one, after the answers and the guesses. Given
the answers and the secrets before it, each value of the next one has at most ``e^epsilon`` times the probability of each other value, so
the guess about it is right with probability at most ``p = e^epsilon / (e^epsilon + k - 1)``, whatever came before. The number of right
guesses is therefore stochastically at most binomial with that probability, although the guesses may depend on each other. With delta > 0
and two values, they show that at most ``2 * people * delta`` is added to the tail.
"""

from __future__ import annotations

import math
from fractions import Fraction

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ceil_div, exp_lower, exp_upper, require_exact

_TAIL_BITS = 512
"""Terms of a binomial tail are integers over ``2**_TAIL_BITS``."""

_PROBABILITY_BITS = 64
"""The chance of one right guess is rounded up to this many bits before it is raised to powers."""


def _require_guarantee(epsilon: Fraction, delta: Fraction) -> None:
    require_exact(epsilon, delta)
    if epsilon < 0 or not 0 <= delta <= 1:
        raise LapwingError("attack-input", "epsilon is at least 0, and delta lies between 0 and 1")


def success_upper(*, epsilon: Fraction, delta: Fraction = Fraction(0), choices: int = 2) -> Fraction:
    """The best chance of guessing one person's secret, of ``choices`` equally likely values; at least the real value and at most 1.

    Pre: the answers are (epsilon, delta)-differentially private for a change of that secret. Source: Wasserman and Zhou 2010 for two
    values; the proof is in the module's text.
    """
    _require_guarantee(epsilon, delta)
    if choices < 2:
        raise LapwingError("attack-input", "a secret has at least two possible values")
    odds = exp_upper(epsilon)  # the bound increases with the odds while delta is at most 1, so rounding up is on the safe side
    return min(Fraction(1), (odds + (choices - 1) * delta) / (odds + choices - 1))


def advantage_upper(*, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """The largest difference between true and false positive rate of any test between two neighbours: ``2 success - 1``, rounded up.

    That is ``(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)`` (Kairouz, Oh and Viswanath 2015).
    """
    return 2 * success_upper(epsilon=epsilon, delta=delta) - 1


def true_positive_rate_upper(false_positive_rate: Fraction, *, epsilon: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
    """The largest true positive rate of a test between two neighbours that has this false positive rate; rounded up.

    Both ``TPR <= e^epsilon FPR + delta`` and the same for the opposite guess, ``1 - FPR <= e^epsilon (1 - TPR) + delta``, hold
    (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015).
    """
    _require_guarantee(epsilon, delta)
    require_exact(false_positive_rate)
    if not 0 <= false_positive_rate <= 1:
        raise LapwingError("attack-input", "a rate lies between 0 and 1")
    forwards = exp_upper(epsilon) * false_positive_rate + delta
    backwards = 1 - exp_lower(-epsilon) * max(Fraction(0), 1 - false_positive_rate - delta)
    return min(Fraction(1), forwards, backwards)


def chance_upper(*, correct: int, people: int, epsilon: Fraction, delta: Fraction = Fraction(0), choices: int = 2) -> Fraction:
    """At least the probability that an attacker guesses ``correct`` or more of the independent secrets of ``people``.

    Pre: the answers are (epsilon, delta)-differentially private for a change of any one secret. Refuses (``attack-input``) more than two
    values together with a positive delta, for which no proof is given here.
    """
    if not 0 <= correct <= people or people < 1:
        raise LapwingError("attack-input", "right guesses are counted among at least one person")
    if delta and choices > 2:
        raise LapwingError("attack-input", "with delta above 0 the bound on many guesses is for secrets of two values")
    single = success_upper(epsilon=epsilon, choices=choices)
    return min(Fraction(1), _binomial_tail_upper(correct, people, single) + 2 * people * delta)


def alarm_at(*, people: int, false_alarm: Fraction, epsilon: Fraction, delta: Fraction = Fraction(0), choices: int = 2) -> int:
    """The least number of right guesses that shows, but for a chance of ``false_alarm``, that the answers are not as private as claimed.

    ``people + 1`` when not even all guesses being right would show it.
    """
    require_exact(false_alarm)
    if not 0 < false_alarm < 1:
        raise LapwingError("attack-input", "the chance of a false alarm lies between 0 and 1")
    # The chance decreases with the number of right guesses: bisect. At 0 it is 1, so never enough.
    low, high = 0, people + 1
    while high - low > 1:
        middle = (low + high) // 2
        rare = chance_upper(correct=middle, people=people, epsilon=epsilon, delta=delta, choices=choices) <= false_alarm
        low, high = (low, middle) if rare else (middle, high)
    return high


def _binomial_tail_upper(at_least: int, trials: int, probability: Fraction) -> Fraction:
    """At least ``P[Binomial(trials, probability) >= at_least]``: the terms one after the other, each rounded up."""
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
