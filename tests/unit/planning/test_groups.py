"""Known groups: exactly the values a key can take, from public facts, in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.kernel import calendar
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    grid_integer,
)
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, Value, call
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import Scan
from lapwing.kernel.neighbours import Neighbours
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.group_enumeration.listing import LISTED_MAX, enumerated, listed

JANUARY = 19_723  # 2024-01-01, a Monday
COLUMNS: Mapping[str, Domain] = {
    "small": IntegerDomain(-2, 3, nullable=False),
    "wide": IntegerDomain(0, 10**9),
    "flag": BooleanDomain(),
    "word": TextDomain(("b", "a"), nullable=False),
    "free": TextDomain(None),
    "day": DateDomain(JANUARY, JANUARY + 40),
    "moment": TimestampDomain(JANUARY * calendar.DAY_MICROSECONDS, (JANUARY + 10) * calendar.DAY_MICROSECONDS, nullable=False),
    "cost": RealDomain(Fraction(0), Fraction(2), steps=4, nullable=False),
}


FACTS = Facts("s", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": TableFacts(COLUMNS, 5, 10**6)}, {})


def groups(*keys: Expression, cells_max: int = 10_000) -> tuple[tuple[Value, ...], ...] | None:
    named = tuple((f"k{i}", key) for i, key in enumerate(keys))
    return GroupFinder(evaluate).find(Scan("t", 1), named, FACTS, cells_max=cells_max).groups


def integer(value: int) -> Literal:
    return Literal(value, Kind.INTEGER)


def test_columns_are_listed_with_null_last_where_it_can_occur() -> None:
    assert groups(Column("small")) == tuple((value,) for value in range(-2, 4))
    assert groups(Column("flag")) == ((False,), (True,), (None,))
    assert groups(Column("word")) == (("b",), ("a",)), "in the order of the declaration"
    assert groups(Column("day")) == (*((JANUARY + i,) for i in range(41)), (None,))


def test_several_keys_are_all_combinations() -> None:
    assert groups(Column("word"), Column("flag")) == tuple((word, flag) for word in ("b", "a") for flag in (False, True, None))


def test_what_cannot_be_listed_is_none() -> None:
    assert groups(Column("free")) is None
    assert groups(Column("moment")) is None
    assert groups(Column("wide")) is None
    assert groups(Column("word"), Column("free")) is None


def test_the_limit_on_cells_is_met_at_its_edge() -> None:
    assert groups(Column("small"), Column("flag"), cells_max=18) is not None
    assert groups(Column("small"), Column("flag"), cells_max=17) is None
    assert listed(IntegerDomain(1, LISTED_MAX, nullable=False)) is not None
    assert listed(IntegerDomain(0, LISTED_MAX, nullable=False)) is None


def test_truncated_dates_are_the_starts_of_their_parts() -> None:
    months = groups(call(Function.TRUNCATE_MONTH, Column("day")))
    assert months == ((JANUARY,), (JANUARY + 31,), (None,))
    weeks = groups(call(Function.TRUNCATE_WEEK, Column("moment")))
    assert weeks == ((JANUARY * calendar.DAY_MICROSECONDS,), ((JANUARY + 7) * calendar.DAY_MICROSECONDS,))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (call(Function.MODULO, Column("wide"), integer(3)), {0, 1, 2, None}),
        (call(Function.MULTIPLY, Column("small"), integer(100)), {-200, -100, 0, 100, 200, 300}),
        (call(Function.MONTH, Column("day")), {1, 2, None}),
        (call(Function.FLOOR, Column("cost")), {0, 1, 2}),
        (Column("cost"), {Fraction(k, 4) for k in range(9)}),
        (call(Function.MULTIPLY, Column("cost"), Literal(Fraction(2), Kind.REAL)), {Fraction(k, 2) for k in range(9)}),
        (Case(((Column("flag"), Literal("yes", Kind.TEXT)),), Literal("no", Kind.TEXT)), {"yes", "no"}),
    ],
)
def test_expressions_have_every_value_they_can_take(key: Expression, expected: set[Value]) -> None:
    found = groups(key)
    assert found is not None
    assert {value for (value,) in found} == expected
    assert len(found) == len(set(found))


@pytest.mark.parametrize("ends", [("0", "0.9"), ("-0.6", "0.4"), ("0.26", "1.13"), ("-1.5", "1.5")])
@pytest.mark.parametrize("steps", [1, 4, 10])
def test_an_end_between_two_grid_points_is_listed_as_it_is_stored(ends: tuple[str, str], steps: int) -> None:
    """Preparation stores 0.9 on a grid of whole numbers as 1; a group that was left out would lose its rows."""
    lo, hi = (Fraction(end) for end in ends)
    found = enumerated(RealDomain(lo, hi, nullable=False, steps=steps), ())
    assert found is not None
    assert (found.values[0], found.values[-1]) == (grid_integer(lo, steps), grid_integer(hi, steps))
    assert len(found) == grid_integer(hi, steps) - grid_integer(lo, steps) + 1
