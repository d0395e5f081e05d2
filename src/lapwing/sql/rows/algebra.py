"""How an output is computed from aggregates, in the forms that error bars support: a * x + b, or a * x / y."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from lapwing.statements import ComputedOutput, Derivation, LinearOutput, RatioOutput


@dataclass(frozen=True, slots=True)
class Constant:
    """A number of the statement."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Divisor:
    """An aggregate that is NULL where it is 0: as a divisor it equals the aggregate, because a division by 0 is NULL anyway."""

    form: LinearOutput


Form: TypeAlias = Derivation | Constant | Divisor

COMPUTED = ComputedOutput()


def derivation(form: Form) -> Derivation:
    """The derivation that is reported for an output of this form."""
    return COMPUTED if isinstance(form, Constant | Divisor) else form


def add(left: Form, right: Form) -> Form:
    """left + right."""
    match left, right:
        case Constant(a), Constant(b):
            return Constant(a + b)
        case (LinearOutput(aggregate, scale, shift), Constant(value)) | (Constant(value), LinearOutput(aggregate, scale, shift)):
            return LinearOutput(aggregate, scale, shift + value)
        case _:
            return COMPUTED


def multiply(left: Form, right: Form) -> Form:
    """left * right."""
    match left, right:
        case Constant(a), Constant(b):
            return Constant(a * b)
        case (LinearOutput(aggregate, scale, shift), Constant(value)) | (Constant(value), LinearOutput(aggregate, scale, shift)):
            return LinearOutput(aggregate, scale * value, shift * value) if value else COMPUTED
        case (RatioOutput(top, bottom, scale), Constant(value)) | (Constant(value), RatioOutput(top, bottom, scale)):
            return RatioOutput(top, bottom, scale * value) if value else COMPUTED
        case _:
            return COMPUTED


def divide(left: Form, right: Form) -> Form:
    """left / right."""
    match left, right:
        case _, Constant(value) if value:
            return multiply(left, Constant(1 / value))
        case LinearOutput(shift=0), (LinearOutput(shift=0) as below) | Divisor(LinearOutput(shift=0) as below):
            return RatioOutput(left.aggregate, below.aggregate, left.scale / below.scale)
        case _:
            return COMPUTED
