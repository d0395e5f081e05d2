"""Values as text for hashing: the same bytes on every engine, so that ranks and choices of groups are the same too."""

from __future__ import annotations

from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.render.dialect import Dialect


def encoded(sql: str, domain: Domain, dialect: Dialect) -> str:
    """SQL of a value as text, never NULL: whole numbers in decimal, text with its length in bytes in front, so that no two lists of values
    joined with commas are the same text. Dates are days, timestamps microseconds, reals the integers of their grid.
    """
    match domain:
        case TextDomain() | KeyDomain(text=True):
            return f"COALESCE(CAST({dialect.byte_length(sql)} AS {dialect.text}) || ':' || {sql}, 'n')"
        case BooleanDomain():
            return f"(CASE WHEN {sql} THEN 't' WHEN NOT {sql} THEN 'f' ELSE 'n' END)"
        case DateDomain():
            return f"COALESCE(CAST({dialect.days(sql)} AS {dialect.text}), 'n')"
        case TimestampDomain():
            return f"COALESCE(CAST({dialect.microseconds(sql)} AS {dialect.text}), 'n')"
        case RealDomain(steps=None):
            raise Refused("groups-by-real", "a unit's groups cannot be chosen by a computed real number")
        case IntegerDomain() | RealDomain() | KeyDomain():
            return f"COALESCE(CAST({sql} AS {dialect.text}), 'n')"
        case _:
            assert_never(domain)
