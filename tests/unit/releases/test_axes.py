"""Bins of columns: every declared value is in one bin, NULL in the last."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from lapwing.errors import Refused
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
)
from lapwing.kernel.expressions import Column
from lapwing.releases.marginals.axes import Axis, axis_of


def test_declared_values_have_a_bin_each_and_null_is_the_last() -> None:
    assert axis_of("a", BooleanDomain()).cells() == (False, True, None)
    assert axis_of("a", TextDomain(("x", "y"), False)).cells() == ("x", "y")
    assert axis_of("a", IntegerDomain(-1, 2)).cells() == (-1, 0, 1, 2, None)
    days = axis_of("a", DateDomain(10, 12, False))
    assert (days.cells(), days.size, days.key()) == ((10, 11, 12), 3, Column("a"))


@pytest.mark.parametrize("domain", [TextDomain(None), KeyDomain(), TextDomain(())])
def test_columns_whose_values_nobody_declared_are_refused(domain: Domain) -> None:
    with pytest.raises(Refused) as refusal:
        axis_of("a", domain)
    assert refusal.value.code == "axis-unknown"


@pytest.mark.parametrize("domain", [IntegerDomain(0, 10_000), RealDomain(Fraction(0), Fraction(1), False, 100), TimestampDomain(0, 10**9)])
def test_long_ranges_need_bins(domain: Domain) -> None:
    with pytest.raises(Refused) as refusal:
        axis_of("a", domain)
    assert refusal.value.code == "axis-needs-bins"


@pytest.mark.parametrize(
    "domain",
    [
        IntegerDomain(3, 40),
        IntegerDomain(-7, 0, False),
        DateDomain(100, 465),
        TimestampDomain(0, 10**12),
        RealDomain(Fraction(1, 2), Fraction(99, 10), False, 10),
        RealDomain(Fraction(0), Fraction(500), True, 100),
    ],
)
@pytest.mark.parametrize("bins", [1, 3, 8])
def test_spans_hold_every_value_once(domain: Domain, bins: int) -> None:
    axis = axis_of("a", domain, bins=bins)
    spans = axis.spans()
    step = Fraction(1, (domain.steps if isinstance(domain, RealDomain) else 1) or 1)
    assert len(spans) == bins and axis.size == bins + domain.nullable
    assert all(low <= high for low, high in spans)
    assert all(after[0] - before[1] == step for before, after in pairwise(spans)), "no value between two spans, none in both"
    widths = [high - low for low, high in spans]
    assert max(widths) - min(widths) <= step


def test_edges_may_be_said() -> None:
    axis = axis_of("a", IntegerDomain(0, 100), bins=[Fraction(18), Fraction(65), Fraction(100)])
    assert [(int(low), int(high)) for low, high in axis.spans()] == [(0, 17), (18, 64), (65, 99), (100, 100)]
    assert axis.cells() == (0, 1, 2, 3, None)


@pytest.mark.parametrize(
    ("domain", "bins"),
    [
        (IntegerDomain(0, 100), 0),
        (IntegerDomain(0, 100), 102),
        (IntegerDomain(0, 100_000), 1_001),
        (IntegerDomain(0, 100), []),
        (IntegerDomain(0, 100), [Fraction(0), Fraction(50)]),
        (IntegerDomain(0, 100), [Fraction(50), Fraction(50)]),
        (IntegerDomain(0, 100), [Fraction(101)]),
        (IntegerDomain(0, 100), [Fraction(1, 2)]),
        (TextDomain(("a",)), 1),
        (BooleanDomain(), 2),
    ],
)
def test_bins_that_cannot_be_are_refused(domain: Domain, bins: int | list[Fraction]) -> None:
    with pytest.raises(Refused) as refusal:
        axis_of("a", domain, bins=bins)
    assert refusal.value.code == "axis-bins"


def test_the_keys_of_spans_are_compared_on_the_columns_own_grid() -> None:
    axis = Axis("a", IntegerDomain(0, 9, False), None, (Fraction(0), Fraction(10)))
    assert axis.cells() == (0,) and axis.size == 1
