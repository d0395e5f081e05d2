"""Numbers made of rational powers of e, compared exactly.

The exponential mechanism weighs an outcome with ``exp(r)`` for a rational ``r``, which is irrational. Its laws, and every expected utility,
are quotients of sums ``c_1 exp(r_1) + ... + c_k exp(r_k)`` with rational ``c`` and ``r``. Two of them can be compared with certainty:

- With distinct exponents and non-zero coefficients such a sum is never 0 (Lindemann and Weierstrass). So a sum is 0 if and only if no term
  remains after terms of equal exponent have been added, which rational arithmetic decides.
- If it is not 0, rational bounds of ``exp`` (:mod:`lapwing.kernel.numbers`) show its sign as soon as they are close enough, and they can
  be made arbitrarily close.

Floats decide nothing here. A rational number is a sum with the single exponent 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_lower, exp_upper, require_exact

Enclosure: TypeAlias = tuple[int, int]
"""Two integers, in units of ``2**-bits``, between which a number lies."""

BITS = 160
"""Bits after the point in the first enclosure of a number; more are used if these do not decide."""

EXPONENT_MAX = 2**10
"""Largest absolute value of an exponent of e."""

_DIGITS_PER_BIT = Fraction(30103, 100000)


@lru_cache(maxsize=2**16)
def exp_enclosure(exponent: Fraction, bits: int) -> Enclosure:
    """``exp(exponent)`` between two integers, in units of ``2**-bits``."""
    if exponent == 0:
        return 1 << bits, 1 << bits
    digits = math.ceil(bits * _DIGITS_PER_BIT) + math.ceil(abs(exponent)) + 10
    low, high = exp_lower(exponent, digits=digits), exp_upper(exponent, digits=digits)
    return math.floor(low * (1 << bits)), math.ceil(high * (1 << bits))


class SumOfExponentials:
    """``c_1 exp(r_1) + ... + c_k exp(r_k)``: rational coefficients, distinct rational exponents. Immutable."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Mapping[Fraction, Fraction]) -> None:
        require_exact(*terms, *terms.values())
        if any(abs(exponent) > EXPONENT_MAX for exponent in terms):
            raise LapwingError("game-invalid", f"the absolute value of an exponent of e must be at most {EXPONENT_MAX}")
        self._terms = {Fraction(exponent): Fraction(coefficient) for exponent, coefficient in terms.items() if coefficient}

    @classmethod
    def _of(cls, terms: dict[Fraction, Fraction]) -> SumOfExponentials:
        """A sum of terms that are known to be valid; drops zero coefficients."""
        made = cls.__new__(cls)
        made._terms = {exponent: coefficient for exponent, coefficient in terms.items() if coefficient}
        return made

    @property
    def terms(self) -> Mapping[Fraction, Fraction]:
        """Exponent to coefficient, none of them 0."""
        return dict(self._terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SumOfExponentials) and self._terms == other._terms

    def __hash__(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __add__(self, other: SumOfExponentials) -> SumOfExponentials:
        return total((self, other))

    def __sub__(self, other: SumOfExponentials) -> SumOfExponentials:
        return total((self, other.times(Fraction(-1))))

    def __mul__(self, other: SumOfExponentials) -> SumOfExponentials:
        terms: dict[Fraction, Fraction] = {}
        for exponent, coefficient in self._terms.items():
            for further, factor in other._terms.items():
                at = exponent + further
                terms[at] = terms.get(at, _ZERO) + coefficient * factor
        return SumOfExponentials._of(terms)

    def times(self, factor: Fraction) -> SumOfExponentials:
        """The sum multiplied by a rational number."""
        return SumOfExponentials._of({exponent: coefficient * factor for exponent, coefficient in self._terms.items()})

    def enclosure(self, bits: int = BITS) -> Enclosure:
        """Two integers, in units of ``2**-bits``, between which the number lies."""
        low = high = 0
        for exponent, coefficient in self._terms.items():
            least, most = exp_enclosure(exponent, bits)
            over, under = coefficient.numerator, coefficient.denominator
            if over < 0:
                least, most = most, least
            low += least * over // under
            high -= -most * over // under
        return low, high

    def sign(self) -> int:
        """-1, 0 or 1. Always terminates: a sum is 0 if and only if it has no terms."""
        if not self._terms:
            return 0
        if all(coefficient > 0 for coefficient in self._terms.values()):
            return 1
        for bits in _finer():
            low, high = self.enclosure(bits)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
        raise AssertionError("bounds are refined without end")  # pragma: no cover

    def __repr__(self) -> str:
        written = " + ".join(
            f"{coefficient}" if exponent == 0 else f"{coefficient} exp({exponent})" for exponent, coefficient in sorted(self._terms.items())
        )
        return written or "0"


_ZERO = Fraction(0)


def _finer() -> Iterator[int]:
    bits = BITS
    while True:
        yield bits
        bits *= 2


def rational(amount: Fraction | int) -> SumOfExponentials:
    """A rational number as a sum."""
    return SumOfExponentials({_ZERO: Fraction(amount)})


@lru_cache(maxsize=2**14)
def power_of_e(exponent: Fraction | int) -> SumOfExponentials:
    """``exp(exponent)``."""
    return SumOfExponentials({Fraction(exponent): Fraction(1)})


def total(summands: Iterable[SumOfExponentials]) -> SumOfExponentials:
    """The sum of the summands."""
    terms: dict[Fraction, Fraction] = {}
    for summand in summands:
        for exponent, coefficient in summand._terms.items():
            terms[exponent] = terms.get(exponent, _ZERO) + coefficient
    return SumOfExponentials._of(terms)


def weighted(amounts: Iterable[Fraction], weights: Iterable[SumOfExponentials]) -> SumOfExponentials:
    """The sum of ``amount * weight``."""
    terms: dict[Fraction, Fraction] = {}
    for amount, weight in zip(amounts, weights, strict=True):
        if amount:
            for exponent, coefficient in weight._terms.items():
                terms[exponent] = terms.get(exponent, _ZERO) + amount * coefficient
    return SumOfExponentials._of(terms)


ONE = rational(1)


@dataclass(frozen=True, slots=True, eq=False)
class ExactNumber:
    """A quotient of two sums of exponentials, with a positive denominator. Comparisons are exact, and so are sums and products."""

    numerator: SumOfExponentials
    denominator: SumOfExponentials = ONE

    def __post_init__(self) -> None:
        if self.denominator.sign() <= 0:
            raise LapwingError("game-invalid", "the denominator of a number must be positive")

    @classmethod
    def of(cls, amount: ExactNumber | SumOfExponentials | Fraction | int) -> ExactNumber:
        """Convert a sum or a rational number; an exact number is returned as it is."""
        if isinstance(amount, ExactNumber):
            return amount
        return cls(amount if isinstance(amount, SumOfExponentials) else rational(amount))

    def __add__(self, other: ExactNumber | Fraction | int) -> ExactNumber:
        second = ExactNumber.of(other)
        if self.denominator == second.denominator:
            return ExactNumber(self.numerator + second.numerator, self.denominator)
        return ExactNumber(self.numerator * second.denominator + second.numerator * self.denominator, self.denominator * second.denominator)

    def __neg__(self) -> ExactNumber:
        return ExactNumber(self.numerator.times(Fraction(-1)), self.denominator)

    def __sub__(self, other: ExactNumber | Fraction | int) -> ExactNumber:
        return self + -ExactNumber.of(other)

    def __mul__(self, other: ExactNumber | Fraction | int) -> ExactNumber:
        second = ExactNumber.of(other)
        return ExactNumber(self.numerator * second.numerator, self.denominator * second.denominator)

    def __truediv__(self, other: ExactNumber | Fraction | int) -> ExactNumber:
        second = ExactNumber.of(other)
        sign = second.numerator.sign()
        if sign == 0:
            raise LapwingError("game-invalid", "a number cannot be divided by 0")
        flip = Fraction(sign)
        return ExactNumber((self.numerator * second.denominator).times(flip), (self.denominator * second.numerator).times(flip))

    def enclosure(self, bits: int = BITS) -> Enclosure:
        """Two integers, in units of ``2**-bits``, between which the number lies."""
        inner = bits
        while True:
            below, above = self.denominator.enclosure(inner)
            if below > 0:
                break
            inner *= 2
        return divided(self.numerator.enclosure(inner), (below, above), bits)

    def compare(self, other: ExactNumber | SumOfExponentials | Fraction | int) -> int:
        """-1, 0 or 1: less than the other, equal, greater."""
        second = ExactNumber.of(other)
        (low, high), (least, most) = self.enclosure(), second.enclosure()
        if high < least or low > most:
            return -1 if high < least else 1
        return (self.numerator * second.denominator - second.numerator * self.denominator).sign()

    def is_written_as(self, other: ExactNumber) -> bool:
        """Whether numerators and denominators are identical. Numbers with different representations may still be equal."""
        return self.numerator == other.numerator and self.denominator == other.denominator

    def sign(self) -> int:
        """-1, 0 or 1."""
        return self.numerator.sign()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactNumber | SumOfExponentials | Fraction | int):
            return NotImplemented
        return self.compare(other) == 0

    def __hash__(self) -> int:
        raise TypeError("equal numbers can have different representations, so a number cannot be hashed")

    def __lt__(self, other: ExactNumber | Fraction | int) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: ExactNumber | Fraction | int) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: ExactNumber | Fraction | int) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: ExactNumber | Fraction | int) -> bool:
        return self.compare(other) >= 0

    @property
    def fraction(self) -> Fraction | None:
        """The number as a fraction if numerator and denominator are rational; else None."""
        over, under = self.numerator.terms, self.denominator.terms
        if set(over) <= {_ZERO} and set(under) == {_ZERO}:
            return over.get(_ZERO, _ZERO) / under[_ZERO]
        return None

    def bounds(self, bits: int = BITS) -> tuple[Fraction, Fraction]:
        """Two fractions between which the number lies."""
        low, high = self.enclosure(bits)
        return Fraction(low, 1 << bits), Fraction(high, 1 << bits)

    def __float__(self) -> float:
        """For plots; no decision uses it."""
        exact = self.fraction
        return float(self.bounds()[0] if exact is None else exact)

    def __str__(self) -> str:
        exact = self.fraction
        if exact is not None and len(str(exact)) <= 24:
            return str(exact)
        return f"{float(self):.6g}..."


def divided(over: Enclosure, under: Enclosure, bits: int) -> Enclosure:
    """Bounds on a quotient, in units of ``2**-bits``, from bounds in a common unit. Pre: the denominator's lower bound is positive."""
    (low, high), (below, above) = over, under
    least = (low << bits) // (above if low >= 0 else below)
    most = -((-high << bits) // (below if high >= 0 else above))
    return least, most
