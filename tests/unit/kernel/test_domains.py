"""Domains: ends on the grid, ends as doubles, unions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from lapwing.errors import Refused
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
    bounds,
    double_bounds,
    grid_integer,
    is_numeric,
    kind_of,
    nearest_double,
    union,
    with_null,
)

ONE_OF_EACH: dict[Kind, Domain] = {
    Kind.BOOLEAN: BooleanDomain(),
    Kind.INTEGER: IntegerDomain(0, 5),
    Kind.REAL: RealDomain(Fraction(0), Fraction(5), steps=10),
    Kind.TEXT: TextDomain(("a",)),
    Kind.DATE: DateDomain(0, 5),
    Kind.TIMESTAMP: TimestampDomain(0, 5),
    Kind.KEY: KeyDomain(),
}


def test_every_kind_has_its_domain() -> None:
    assert set(ONE_OF_EACH) == set(Kind)
    assert {kind: kind_of(domain) for kind, domain in ONE_OF_EACH.items()} == {kind: kind for kind in Kind}
    assert {kind for kind, domain in ONE_OF_EACH.items() if is_numeric(domain)} == {Kind.INTEGER, Kind.REAL}


@pytest.mark.parametrize("domain", ONE_OF_EACH.values(), ids=[kind.value for kind in ONE_OF_EACH])
def test_null_can_be_added_and_taken_away(domain: Domain) -> None:
    assert domain.nullable
    assert not with_null(domain, False).nullable
    assert with_null(with_null(domain, False), True) == domain


@pytest.mark.parametrize(
    ("value", "steps", "expected"),
    [
        (Fraction(1, 2), 1, 1),
        (Fraction(-1, 2), 1, 0),
        (Fraction(-3, 2), 1, -1),
        (Fraction(1234, 100), 100, 1234),
        (Fraction(1, 3), 3, 1),
        (Fraction(-1, 3), 2, -1),
        (Fraction(49, 100), 1, 0),
        (Fraction(10**30), 7, 7 * 10**30),
    ],
)
def test_grid_points_round_halves_up(value: Fraction, steps: int, expected: int) -> None:
    assert grid_integer(value, steps) == expected


def test_grid_points_are_monotone_and_stay_where_they_are() -> None:
    choose = random.Random(5)
    for _ in range(500):
        steps = choose.randint(1, 1000)
        low, high = sorted(Fraction(choose.randint(-(10**6), 10**6), choose.randint(1, 999)) for _ in range(2))
        assert grid_integer(low, steps) <= grid_integer(high, steps)
        point = grid_integer(low, steps)
        assert grid_integer(Fraction(point, steps), steps) == point


def test_the_ends_of_a_grid_are_grid_points() -> None:
    assert bounds(RealDomain(Fraction(0), Fraction(9, 10), steps=1)) == (Fraction(0), Fraction(1))
    assert bounds(RealDomain(Fraction(-1, 3), Fraction(1, 3), steps=10)) == (Fraction(-3, 10), Fraction(3, 10))
    assert bounds(RealDomain(Fraction(-1, 3), Fraction(1, 3))) == (Fraction(-1, 3), Fraction(1, 3))
    assert bounds(IntegerDomain(-2, 3)) == (Fraction(-2), Fraction(3))


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.INTEGER, Kind.REAL)])
def test_only_numbers_have_bounds(kind: Kind) -> None:
    with pytest.raises(Refused) as caught:
        bounds(ONE_OF_EACH[kind])
    assert caught.value.code == "type-mismatch"


def test_the_nearest_double_is_within_half_a_unit_in_the_last_place_and_monotone() -> None:
    choose = random.Random(6)
    values = sorted(Fraction(choose.randint(-(10**40), 10**40), choose.randint(1, 10**40)) for _ in range(400))
    rounded = [nearest_double(value) for value in values]
    assert rounded == sorted(rounded)
    for value, near in zip(values, rounded, strict=True):
        double = float(near)
        assert Fraction(double) == near
        neighbours = (math.nextafter(double, -math.inf), math.nextafter(double, math.inf))
        assert all(abs(value - near) <= abs(value - Fraction(other)) for other in neighbours)
    assert nearest_double(REAL_LIMIT) == REAL_LIMIT
    assert nearest_double(Fraction(1, 10**400)) == 0


@pytest.mark.parametrize(
    ("domain", "lo", "hi"),
    [
        (IntegerDomain(-(2**60) - 1, 2**60 + 1), -(2.0**60), 2.0**60),
        (RealDomain(Fraction(1, 10), Fraction(9, 10), steps=100), 0.1, 0.9),
        (RealDomain(Fraction(1, 3), Fraction(1, 2), steps=3), 1 / 3, 2 / 3),
        (RealDomain(Fraction(0), Fraction(2**61 + 1, 3), steps=3), 0.0, float(2**61 + 1) / 3),
        (RealDomain(Fraction(0.1), Fraction(0.2)), 0.1, 0.2),
    ],
)
def test_ends_as_doubles_are_what_an_engine_reads(domain: Domain, lo: float, hi: float) -> None:
    assert double_bounds(domain) == (Fraction(lo), Fraction(hi))


def test_a_union_holds_both_sides() -> None:
    assert union(IntegerDomain(0, 5, nullable=False), IntegerDomain(3, 9)) == IntegerDomain(0, 9)
    assert union(TextDomain(("a", "b")), TextDomain(("b", "c"), nullable=False)) == TextDomain(("a", "b", "c"))
    assert union(TextDomain(("a",)), TextDomain(None)) == TextDomain(None)
    assert union(DateDomain(0, 1, nullable=False), DateDomain(5, 6, nullable=False)) == DateDomain(0, 6, nullable=False)
    assert union(TimestampDomain(0, 1), TimestampDomain(-5, 0)) == TimestampDomain(-5, 1)
    assert union(BooleanDomain(nullable=False), BooleanDomain()) == BooleanDomain()
    assert union(KeyDomain(text=True), KeyDomain(text=True)) == KeyDomain(text=True)


def test_a_union_of_numbers_keeps_a_common_grid_and_else_reads_doubles() -> None:
    cents = RealDomain(Fraction(0), Fraction(1), steps=100)
    assert union(cents, RealDomain(Fraction(-1), Fraction(0), steps=100)) == RealDomain(Fraction(-1), Fraction(1), steps=100)
    assert union(cents, RealDomain(Fraction(0), Fraction(7, 10), steps=10)) == RealDomain(Fraction(0), Fraction(1))
    wide = union(cents, IntegerDomain(0, 2**60 + 1))
    assert wide == RealDomain(Fraction(0), Fraction(2**60))
    off_grid = RealDomain(Fraction(1, 3), Fraction(9, 10), steps=1)
    assert union(off_grid, off_grid) == RealDomain(Fraction(0), Fraction(1), steps=1)


@pytest.mark.parametrize("left", Kind)
@pytest.mark.parametrize("right", Kind)
def test_kinds_do_not_mix_except_numbers(left: Kind, right: Kind) -> None:
    if left is right or {left, right} == {Kind.INTEGER, Kind.REAL}:
        assert kind_of(union(ONE_OF_EACH[left], ONE_OF_EACH[right])) in (left, right)
        return
    with pytest.raises(Refused) as caught:
        union(ONE_OF_EACH[left], ONE_OF_EACH[right])
    assert caught.value.code == "type-mismatch"


def test_identifiers_of_text_and_of_integers_do_not_mix() -> None:
    with pytest.raises(Refused):
        union(KeyDomain(text=True), KeyDomain(text=False))
