"""Differencing: two counts whose questions differ in one person reveal that person's answer.

The attacker asks for the number of people with a property, then for the number of people *other than the target* with it. Neither question
singles anybody out, and refusing such pairs does not help: there are too many ways to ask, and a refusal is itself an answer. Noise helps,
if it is charged: the two answers together are (epsilon_1 + epsilon_2)-differentially private, and
:func:`lapwing.theory.attacks.bounds.success_max` bounds what remains to gain.
"""

from __future__ import annotations

from fractions import Fraction

Answer = int | float | Fraction


def guess_by_difference(with_target: Answer, without_target: Answer) -> bool:
    """Whether the target has the property, from the count of everybody and the count of everybody else.

    Exact counts differ by 1 or 0, and the guess is right. For symmetric noise that decreases on both sides, the guess with the nearer
    count is more likely, so this is the best use of the difference.
    """
    return 2 * (with_target - without_target) > 1
