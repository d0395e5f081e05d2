"""Bounds and grids at their edges: what is accepted always fits integer and double arithmetic, and nothing that fits is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.catalog import UnitPath, parse
from lapwing.catalog.columns import IDENTIFIER, STEPS_DIGITS_MAX
from lapwing.errors import CatalogueError
from lapwing.kernel.domains import IntegerDomain, RealDomain

TABLE = """
format = 1
dataset = { id = "d", unit = "person" }
budget = { epsilon = 1 }
[tables.t]
source = "t.csv"
unit = "who"
rows_max = ROWS
columns.who = { type = "key" }
columns.x = COLUMN
"""


def domain(column: str, *, rows: int = 10**9) -> IntegerDomain | RealDomain | str:
    """The domain of the column, or the code it is refused with."""
    try:
        declared = parse(TABLE.replace("ROWS", str(rows)).replace("COLUMN", column)).table("t").column("x").domain
    except CatalogueError as error:
        return error.code
    assert isinstance(declared, IntegerDomain | RealDomain)
    return declared


def independent_fit(low: Fraction, high: Fraction, *, steps: int, rows: int) -> bool:
    """The rule, computed another way: round half up by integer arithmetic on numerator and denominator."""
    points = [(2 * end.numerator * steps + end.denominator) // (2 * end.denominator) for end in (low, high)]
    return all(-(2**52) < point < 2**52 and -(2**62) < point * rows < 2**62 for point in points)


@settings(max_examples=100, deadline=None)
@given(st.integers(-(10**18), 10**18), st.integers(0, 10**18), st.integers(0, 6), st.integers(0, 11))
def test_the_grid_chosen_is_the_finest_power_of_ten_that_fits(low: int, width: int, places: int, rows_exponent: int) -> None:
    rows = 10**rows_exponent
    ends = [Fraction(low, 10**places), Fraction(low + width, 10**places)]
    written = [f'"{end.numerator * 10**places // end.denominator}e-{places}"' for end in ends]
    outcome = domain(f"{{ type = 'real', min = {written[0]}, max = {written[1]} }}", rows=rows)
    fitting = [10**digits for digits in range(7) if independent_fit(*ends, steps=10**digits, rows=rows)]
    if not fitting:
        assert outcome == "catalogue-bad-bounds"
    else:
        assert outcome == RealDomain(ends[0], ends[1], True, max(fitting))


@pytest.mark.parametrize(
    ("column", "rows", "accepted"),
    [
        ("min = 0, max = 4611686018", 10**9, True),
        ("min = 0, max = 4611686019", 10**9, False),
        ("min = -4611686018, max = 0", 10**9, True),
        ("min = -4611686019, max = 0", 10**9, False),
        ("min = 0, max = 4503599627370495", 1, True),
        ("min = 0, max = 4503599627370496", 1, False),
        ("min = -4503599627370495, max = -4503599627370495", 1024, True),
        ("min = -4503599627370495, max = -4503599627370495", 1025, False),
        ("min = 7, max = 7", 10**9, True),
    ],
)
def test_integer_bounds_at_the_edge(column: str, rows: int, accepted: bool) -> None:
    outcome = domain(f"{{ type = 'integer', {column} }}", rows=rows)
    assert (outcome != "catalogue-bad-bounds") is accepted
    if accepted:
        assert isinstance(outcome, IntegerDomain)


@pytest.mark.parametrize(
    ("column", "rows", "outcome"),
    [
        ("min = 0, max = 1, steps = 8589934591", 2**29, 2**33 - 1),
        ("min = 0, max = 1, steps = 8589934592", 2**29, "catalogue-bad-bounds"),
        ("min = 0, max = 1, steps = 1_000_000_000_000", 1, 10**12),
        ("min = 0, max = 1, steps = 1_000_000_000_001", 1, "catalogue-bad-value"),
        ("min = 0, max = 1000, steps = 0", 1, "catalogue-bad-value"),
        ("min = 0, max = 1000, steps = 1", 1, 1),
        ("min = 0, max = 1000, steps = 3", 1, 3),
        ("min = 0, max = 4503599627370495", 1, 1),
        ("min = 0, max = 4503599627370496", 1, "catalogue-bad-bounds"),
        ("min = 0, max = 4503599627370495.4", 1, 1),
        ("min = 0, max = 4503599627370495.5", 1, "catalogue-bad-bounds"),
        ("min = 0, max = 0.000001", 1, 10**6),
    ],
)
def test_declared_grids_at_the_edge(column: str, rows: int, outcome: int | str) -> None:
    found = domain(f"{{ type = 'real', {column} }}", rows=rows)
    assert (found.steps if isinstance(found, RealDomain) else found) == outcome


def test_the_finest_grid_that_can_be_asked_for() -> None:
    finest = 10**STEPS_DIGITS_MAX
    assert domain(f"{{ type = 'real', min = 0, max = 1, steps = {finest} }}", rows=1) == RealDomain(Fraction(0), Fraction(1), True, finest)


@pytest.mark.parametrize("name", ["a", "a_b", "x9", "a" * 63])
def test_names_that_can_be_used(name: str) -> None:
    assert IDENTIFIER.fullmatch(name)
    table = parse(TABLE.replace("columns.x", f"columns.{name}").replace("ROWS", "10").replace("COLUMN", "{ type = 'boolean' }")).table("t")
    assert table.column(name).source_name == name


@pytest.mark.parametrize("name", ["A", "_a", "_lapwing_rank", "9a", "a-b", "a b", "a.b", "é", "a" * 64, "a\n", 'a"; DROP', ""])
def test_names_that_cannot(name: str) -> None:
    written = "".join(f"\\u{ord(char):04x}" for char in name)
    text = TABLE.replace("columns.x", f'columns."{written}"').replace("ROWS", "10").replace("COLUMN", "{ type = 'boolean' }")
    with pytest.raises(CatalogueError) as caught:
        parse(text)
    assert caught.value.code == "catalogue-bad-name"


def test_a_unit_may_be_a_text_as_it_stands_but_no_listed_one() -> None:
    text = TABLE.replace("ROWS", "10").replace("COLUMN", "{ type = 'boolean' }")
    unit = parse(text.replace('{ type = "key" }', "{ type = 'text' }")).table("t").unit
    assert isinstance(unit, UnitPath) and unit.end.column == "who"
    for column in ["{ type = 'text', values = ['a'] }", "{ type = 'integer', min = 0, max = 9 }", "{ type = 'boolean' }"]:
        with pytest.raises(CatalogueError) as caught:
            parse(text.replace('{ type = "key" }', column))
        assert caught.value.code == "catalogue-bad-unit"
