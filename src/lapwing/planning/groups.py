"""Known groups: all values the keys can take, from public facts. What cannot be listed is discovered under a threshold instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from lapwing.kernel.calendar import DAY_MICROSECONDS, truncate_days
from lapwing.kernel.date_functions import TRUNCATIONS
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, TimestampDomain, grid_integer
from lapwing.kernel.expressions import Call, Column, Expression, Literal, Value, columns_of
from lapwing.kernel.stability import domain_of

Evaluate: TypeAlias = Callable[[Expression, Mapping[str, Domain], Mapping[str, tuple[Value, ...]]], tuple[Value, ...]]
"""Distinct values of an expression over all combinations of the listed values of its columns; engines give one."""

LISTED_MAX = 20_000
"""Most values one key may have to be listed."""
ENUMERATED_MAX = 200_000
"""Most combinations of column values an expression is evaluated on to find its values."""


def known_groups(
    keys: tuple[tuple[str, Expression], ...], columns: Mapping[str, Domain], *, cells_max: int, evaluate: Evaluate
) -> tuple[tuple[Value, ...], ...] | None:
    """Every group there can be, in a fixed order, or None when they cannot be listed or are too many."""
    lists: list[tuple[Value, ...]] = []
    cells = 1
    for _, key in keys:
        values = _values(key, columns, evaluate)
        if values is None:
            return None
        lists.append(values)
        cells *= len(values)
        if cells > cells_max:
            return None
    return tuple(product(*lists))


def _values(key: Expression, columns: Mapping[str, Domain], evaluate: Evaluate) -> tuple[Value, ...] | None:
    domain = domain_of(key, columns)
    if isinstance(key, Call) and key.function in TRUNCATIONS:
        return _truncated(domain, TRUNCATIONS[key.function])
    direct = listed(domain)
    if direct is not None and (isinstance(key, Column | Literal) or len(direct) <= 64 or isinstance(domain, TextDomain)):
        return direct
    used = sorted(columns_of(key))
    sources = {name: listed(columns[name], grid=True) for name in used}
    total = 1
    for values in sources.values():
        total *= ENUMERATED_MAX + 1 if values is None else len(values)
    if total > ENUMERATED_MAX:
        return direct
    outcomes = evaluate(key, columns, {name: values for name, values in sources.items() if values is not None})
    return outcomes if len(outcomes) <= LISTED_MAX else None


def _truncated(domain: Domain, unit: str) -> tuple[Value, ...] | None:
    match domain:
        case DateDomain(lo, hi, nullable):
            scale = 1
        case TimestampDomain(lo, hi, nullable):
            scale = DAY_MICROSECONDS
        case _:
            return None
    if (hi - lo) // scale > ENUMERATED_MAX:
        return None
    starts = dict.fromkeys(truncate_days(day, unit) * scale for day in range(lo // scale, hi // scale + 1))
    return (*starts, *((None,) if nullable else ())) if len(starts) <= LISTED_MAX else None


def listed(domain: Domain, *, grid: bool = False) -> tuple[Value, ...] | None:
    """Every value of a domain, NULL last, or None when there are too many. Reals are listed only as columns to evaluate on."""
    null: tuple[Value, ...] = (None,) if domain.nullable else ()
    limit = ENUMERATED_MAX if grid else LISTED_MAX
    match domain:
        case BooleanDomain():
            return (False, True, *null)
        case TextDomain(values) if values is not None:
            return (*values, *null)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) if hi - lo < limit:
            return (*range(lo, hi + 1), *null)
        case RealDomain(lo, hi, steps=int(steps)) if grid and (hi - lo) * steps < limit:
            first, last = grid_integer(lo, steps), grid_integer(hi, steps)  # an end between two grid points is stored as the nearest
            return (*(Fraction(k, steps) for k in range(first, last + 1)), *null)
        case _:
            return None
