"""Reconstruction: too many accurate counts of overlapping sets reveal every person's bit.

Each question counts the people of a set, chosen by a public attribute, who have a secret bit. Linear programming finds bits that fit all
answers best (Dinur and Nissim 2003; decoding by least absolute error: Dwork, McSherry and Talwar 2007). With ``n`` people it works on a few
times ``n`` questions as long as the error of the answers stays well below the square root of ``n``, whatever the source of the error. So no
tool can answer everything accurately; the budget of a data set decides how much it answers.

Needs SciPy (the extra ``theory``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import LapwingError


@dataclass(frozen=True, slots=True)
class SubsetQuestion:
    """The set of people whose public attribute ``x`` has ``(multiplier * x + offset) % modulus < below``."""

    multiplier: int
    offset: int
    modulus: int
    below: int

    def contains(self, attribute: int) -> bool:
        """Whether a person with this attribute belongs to the set; attributes are not negative."""
        return (self.multiplier * attribute + self.offset) % self.modulus < self.below

    def condition(self, column: str) -> str:
        """The set as an SQL condition on the column that holds the attribute."""
        return f"({column} * {self.multiplier} + {self.offset}) % {self.modulus} < {self.below}"


def subset_questions(*, modulus: int, count: int) -> tuple[SubsetQuestion, ...]:
    """Questions that each contain about half of all people; any two overlap about as much as two random sets.

    Pre: ``modulus`` is a prime above every attribute, so that a question is a rotated and stretched half of the residues, and ``count`` is
    at most ``modulus * (modulus - 1)``. The choice is fixed and public: the attack is deterministic.
    """
    if modulus < 3 or any(modulus % divisor == 0 for divisor in range(2, math.isqrt(modulus) + 1)):
        raise LapwingError("attack-input", "the modulus must be a prime of at least 3")
    if not 1 <= count <= modulus * (modulus - 1):
        raise LapwingError("attack-input", "the number of questions must be between 1 and modulus * (modulus - 1)")
    stretches = modulus - 1
    return tuple(
        # Each pass through all multipliers uses another offset, so no question occurs twice.
        SubsetQuestion(
            multiplier=1 + j % stretches, offset=(j % stretches) ** 2 % modulus + j // stretches, modulus=modulus, below=modulus // 2
        )
        for j in range(count)
    )


def reconstruct(questions: Sequence[SubsetQuestion], answers: Sequence[float], *, attributes: Sequence[int]) -> tuple[bool, ...]:
    """Every person's bit: the bits nearest to a solution of least total absolute error.

    ``answers[j]`` is a count, exact or not, of the people of ``questions[j]`` with the bit; ``attributes[i]`` is the public attribute of
    person ``i``. Minimises the sum of all ``|answer - sum of x over the set|`` over ``x`` in ``[0, 1]^n`` and rounds each ``x`` at 1/2.
    """
    if not questions or len(questions) != len(answers) or not attributes:
        raise LapwingError("attack-input", "each question needs one answer, and there must be at least one person")
    from numpy import array, concatenate, ones, zeros
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack, vstack

    people, asked = len(attributes), len(questions)
    member = csr_array(array([[float(question.contains(x)) for x in attributes] for question in questions]))
    error = eye_array(asked)
    answered = array([float(answer) for answer in answers])
    # member x - error <= answer and answer <= member x + error; the program minimises the sum of the errors.
    solved = linprog(
        concatenate([zeros(people), ones(asked)]),
        A_ub=vstack([hstack([member, -error]), hstack([-member, -error])]),
        b_ub=concatenate([answered, -answered]),
        bounds=[(0, 1)] * people + [(0, None)] * asked,
        method="highs",
    )
    if solved.status != 0:
        raise LapwingError("attack-unsolved", "the solver did not solve the linear program of the attack")
    return tuple(bool(bit > 0.5) for bit in solved.x[:people])


def agreements(guessed: Sequence[bool], truth: Sequence[bool]) -> int:
    """How many bits were guessed right."""
    if len(guessed) != len(truth):
        raise LapwingError("attack-input", "each bit needs one guess")
    return sum(a == b for a, b in zip(guessed, truth, strict=True))
