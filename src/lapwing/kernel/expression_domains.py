"""Domains of expressions: which values an expression over columns of known domains can take, or that it is refused.

Proof: docs/proofs/intervals.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar, assert_never

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.domains import (
    REAL_LIMIT,
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    kind_of,
    nearest_double,
    union,
    with_null,
)
from lapwing.kernel.expressions import Call, Case, Column, Expression, Literal, is_null
from lapwing.kernel.functions import result_domain


def domain_of(expression: Expression, columns: Mapping[str, Domain]) -> Domain:
    """Domain of an expression over a relation with these columns, or refuse."""
    return Domains(columns).of(expression)


class Domains:
    """Domains of expressions over a relation with these columns. Each part is computed once, even if several expressions share it."""

    def __init__(self, columns: Mapping[str, Domain]) -> None:
        self._columns = columns
        self._found: dict[int, tuple[Expression, Domain]] = {}  # a reference is kept, so that no other object gets the same id

    def of(self, expression: Expression) -> Domain:
        """Domain of an expression, or refuse."""
        found = self._found.get(id(expression))
        if found is None:
            found = self._found[id(expression)] = expression, self._domain(expression)
        return found[1]

    def _domain(self, expression: Expression) -> Domain:
        match expression:
            case Column(name):
                if name not in self._columns:
                    raise Refused("unknown-column", f"there is no column {name!r} here")
                return self._columns[name]
            case Literal():
                return _literal_domain(expression)
            case Call(function, arguments):
                return result_domain(function, tuple(map(self.of, arguments)), arguments)
            case Case(branches, otherwise):
                if not branches:
                    raise Refused("wrong-arguments", "CASE needs at least one WHEN")
                for condition, _ in branches:
                    require_boolean(self.of(condition), "a CASE condition")
                return self._one_of((*(value for _, value in branches), otherwise))
            case _:
                assert_never(expression)

    def _one_of(self, values: tuple[Expression, ...]) -> Domain:
        """The least domain that holds all of these. The constant NULL adds NULL to the other values of its type, and nothing else."""
        result: Domain | None = None
        for domain in (self.of(value) for value in values if not is_null(value)):
            result = domain if result is None else union(result, domain)
        for domain in (self.of(value) for value in values if is_null(value)):
            alike = result is not None and kind_of(result) is kind_of(domain)
            result = domain if result is None else with_null(result, nullable=True) if alike else union(result, domain)
        assert result is not None
        return result


def _literal_domain(literal: Literal) -> Domain:
    value, null = literal.value, literal.value is None
    match literal.kind, value:
        case Kind.BOOLEAN, (bool() | None):
            return BooleanDomain(null)
        case Kind.TEXT, (str() | None):
            if value is not None:
                _require_valid_text(value)
            return TextDomain(() if value is None else (value,), null)
        case Kind.REAL, (int() | Fraction() | None) if not isinstance(value, bool):
            number = Fraction(value or 0)
            if abs(number) > REAL_LIMIT:
                raise Refused("range-too-wide", "a real constant is too large")
            return RealDomain(nearest_double(number), nearest_double(number), null)
        case Kind.INTEGER, (int() | None) if not isinstance(value, bool):
            return result_bounds_checked(IntegerDomain(value or 0, value or 0, null))
        case Kind.DATE, (int() | None) if not isinstance(value, bool):
            return _within_calendar(DateDomain(value or 0, value or 0, null), day_length=1)
        case Kind.TIMESTAMP, (int() | None) if not isinstance(value, bool):
            return _within_calendar(TimestampDomain(value or 0, value or 0, null), day_length=calendar.DAY_MICROSECONDS)
        case Kind.KEY, None:
            return KeyDomain()  # no other constant is an identifier; beside a text constant, CASE has its type
        case _:
            raise Refused("type-mismatch", f"a constant does not fit the type {literal.kind.value}")


def _require_valid_text(value: str) -> None:
    """Refuse what cannot be sent to any engine: it would fail after the charge."""
    if "\x00" in value:
        raise Refused("text-invalid", "text may not contain the character with code 0")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise Refused("text-invalid", "text may not contain half of a surrogate pair")


_Dated = TypeVar("_Dated", DateDomain, TimestampDomain)


def _within_calendar(domain: _Dated, *, day_length: int) -> _Dated:
    """Refuse date constants outside the years 1 to 9999, which engines and Python share."""
    if not calendar.DAYS_MIN <= domain.lo // day_length <= calendar.DAYS_MAX:
        raise Refused("range-too-wide", "a date constant lies outside the years 1 to 9999")
    return domain


def result_bounds_checked(domain: IntegerDomain) -> IntegerDomain:
    """Refuse integer constants that do not fit 62 bits."""
    if max(abs(domain.lo), abs(domain.hi)) >= 2**62:
        raise Refused("range-too-wide", "an integer constant exceeds 62 bits")
    return domain


def require_boolean(domain: Domain, what: str) -> None:
    """Refuse what is not a condition."""
    if not isinstance(domain, BooleanDomain):
        raise Refused("type-mismatch", f"{what} must be true or false, not a {kind_of(domain).value}")
