"""A number that cannot be is not shown: values and error bars are brought inside what is possible, and nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.answers.assembly import AssembledAnswer, assemble
from lapwing.answers.intervals import Interval
from lapwing.answers.post_processing import evaluate
from lapwing.answers.shown_values import PossibleOutputs, ShownAnswer, ValueBounds, shown
from lapwing.answers.value_bounds import Bounds
from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import GridSum
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released, release
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, PlannedStatement, Price
from lapwing.sql import bind
from lapwing.statements import Statement

CONFIDENCE = Fraction(95, 100)
ROWS_MAX = 1_000
UNITS = 300
COLUMNS: dict[str, Domain] = {
    "person": KeyDomain(False),
    "g": IntegerDomain(0, 3, False),
    "sex": TextDomain(("f", "m", "x"), False),
    "cost": RealDomain(Fraction(0), Fraction(500), False, 100),
    "gain": IntegerDomain(-10, 5, True),
    "note": TextDomain(None),
}


@dataclass(frozen=True)
class Asked:
    """A planned statement over one table."""

    statement: Statement
    planned: PlannedStatement
    units: int

    def shown(self, assembled: AssembledAnswer) -> ShownAnswer:
        """Its answer as it is shown."""
        possible = PossibleOutputs.of(self.statement, self.planned.facts, units=self.units, confidence=CONFIDENCE)
        return shown(assembled, self.statement, self.planned.facts, possible)

    def released(self, *values: float) -> Released:
        """A release in which every number of the group of that number is this value, in the unit of what is shown."""
        query = self.planned.certified.queries[0]
        groups = query.query.groups.groups  # type: ignore[union-attr]
        cells = [values[i % len(values)] for i in range(len(groups))]
        columns = tuple(
            NoisyColumn(v.vector.name, tuple(round(Fraction(cell) / v.step) for cell in cells), v.vector.law, v.step, v.rounding)
            for v in query.vectors
        )
        keys = tuple(name for name, _ in query.query.keys)
        return Released(self.planned.certified.digest, (NoisyTable(keys, groups, columns, None, query.shape.rows_max),))

    def answers(self, released: Released) -> tuple[AssembledAnswer, ShownAnswer]:
        """As released, and as shown."""
        assembled = assemble(self.planned, released, self.statement.post, confidence=CONFIDENCE)
        return assembled, self.shown(assembled)


def asked(
    sql: str,
    *,
    account: Account = Account.APPROXIMATE,
    neighbours: Neighbours = Neighbours.UNBOUNDED,
    typed: bool = True,
    rows_max: int = ROWS_MAX,
    loss: Fraction = Fraction(1, 10_000),
) -> Asked:
    """A statement over one table of persons, each with a row."""
    facts = Facts("shown", 1, neighbours, account, {"t": TableFacts(COLUMNS, 1, rows_max)}, {}, typed_numbers=typed)
    statement = bind(sql, facts, settings=Settings(), unit_columns={"t": "person"})
    delta = Fraction(1, 2**40) if account is Account.APPROXIMATE else Fraction(0)
    planned = plan_statement(
        statement.privates,
        facts,
        Price(loss, delta),
        contributions={},
        units=UNITS,
        limits=GroupLimits(100, 100),
        finder=GroupFinder(evaluate),
    )
    return Asked(statement, planned, UNITS)


def column(found: AssembledAnswer, name: str) -> list[Any]:
    """The values of a column."""
    return list(found.table.column(name).to_pylist())


@pytest.mark.parametrize("account", list(Account), ids=lambda account: account.value)
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=lambda neighbours: neighbours.value)
@pytest.mark.parametrize(
    ("aggregate", "lo", "hi", "hi_by_units"),
    [
        ("COUNT(*)", 0, ROWS_MAX, UNITS),
        ("COUNT(gain)", 0, ROWS_MAX, UNITS),
        ("COUNT(DISTINCT person)", 0, ROWS_MAX, UNITS),
        ("COUNT(DISTINCT sex)", 0, 3, 3),
        ("COUNT(DISTINCT sex) FILTER (WHERE sex <> 'x')", 0, 2, 2),
        ("COUNT(DISTINCT gain)", 0, 16, 16),
        ("COUNT(DISTINCT note)", 0, ROWS_MAX, UNITS),
        ("SUM(cost)", 0, 500 * ROWS_MAX, 500 * UNITS),
        ("SUM(gain)", -10 * ROWS_MAX, 5 * ROWS_MAX, 5 * UNITS),
        ("SUM(-cost)", -500 * ROWS_MAX, 0, 0),
        ("2 * COUNT(*) + 1", 1, 2 * ROWS_MAX + 1, 2 * UNITS + 1),
        ("-COUNT(DISTINCT sex)", -3, 0, 0),
    ],
)
def test_each_kind_is_shown_inside_what_it_can_be(
    aggregate: str, lo: int, hi: int, hi_by_units: int, account: Account, neighbours: Neighbours
) -> None:
    one = asked(f"SELECT {aggregate} AS x FROM t", account=account, neighbours=neighbours)
    is_bounded = neighbours is Neighbours.BOUNDED
    most = hi_by_units if is_bounded else hi
    least = lo * UNITS // ROWS_MAX if is_bounded and lo < -3 else lo
    for released, nearest_possible in ((-(10.0**7), least), (10.0**7, most)):
        towards = -released if aggregate.startswith("-") else released
        before, found = one.answers(one.released(towards))
        assert not least <= column(before, "x")[0] <= most
        assert column(found.assembled, "x") == [nearest_possible] and len(found.notes) == 1
        assert found.assembled.table.schema == before.table.schema
        (bar,) = found.assembled.intervals["x"]
        assert bar is not None and least <= bar.lo <= nearest_possible <= bar.hi <= most and bar.lo < bar.hi


def test_a_declared_number_of_units_is_an_estimate_unless_neighbours_are_bounded() -> None:
    one = asked("SELECT COUNT(DISTINCT person) AS n FROM t")
    before, found = one.answers(one.released(700))
    assert column(found.assembled, "n") == column(before, "n") == [700] and not found.notes


def test_conditions_leave_fewer_values_to_count() -> None:
    one = asked("SELECT COUNT(DISTINCT sex) AS n FROM t WHERE sex IN ('f', 'm')")
    assert column(one.answers(one.released(9))[1].assembled, "n") == [2]


def test_what_is_possible_is_not_moved_and_a_bar_is_cut() -> None:
    one = asked("SELECT COUNT(*) AS n FROM t")
    before, found = one.answers(one.released(20))
    (whole,), (cut,) = before.intervals["n"], found.assembled.intervals["n"]
    assert found.assembled.table == before.table and not found.notes
    assert whole is not None and cut is not None and whole.lo < 0 == cut.lo and cut.hi == min(whole.hi, ROWS_MAX)


def test_averages_are_inside_their_range_already() -> None:
    one = asked("SELECT AVG(cost) AS a, COUNT(*) AS n FROM t", loss=Fraction(1, 10))
    before, found = one.answers(one.released(900))
    assert column(found.assembled, "a") == column(before, "a") and found.assembled.intervals["a"] == before.intervals["a"]


def test_a_ratio_keeps_its_value_and_its_bar_holds_it() -> None:
    one = asked("SELECT COUNT(*) FILTER (WHERE sex = 'f') * 1.0 / COUNT(*) AS share FROM t", rows_max=10**7, loss=Fraction(1, 1_000))
    query = one.planned.certified.queries[0]
    for top in (40, -40):
        values = (top, 9_000)
        columns = tuple(NoisyColumn(v.vector.name, (values[i],), v.vector.law, v.step, v.rounding) for i, v in enumerate(query.vectors))
        released = Released(one.planned.certified.digest, (NoisyTable((), ((),), columns, None, query.shape.rows_max),))
        before, found = one.answers(released)
        (value,), (whole,), (bar,) = column(found.assembled, "share"), before.intervals["share"], found.assembled.intervals["share"]
        assert column(before, "share") == [value] and not found.notes and whole is not None and bar is not None
        assert whole.lo < bar.lo == min(value, 0) and bar.hi == whole.hi


def test_sub_totals_add_up_what_was_released() -> None:
    one = asked("SELECT g, COUNT(*) AS n, SUM(gain) AS s FROM t GROUP BY ROLLUP (g)")
    before, found = one.answers(one.released(-50, 40, -30, 20))
    released, moved = column(before, "n"), column(found.assembled, "n")
    assert sorted(released) == [-50, -30, -20, 20, 40] and sorted(moved) == [0, 0, 0, 20, 40]
    assert released[-1] == sum(released[:-1]) == -20 and moved[-1] == 0
    one = asked("SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)")
    before, found = one.answers(one.released(-50, 90, -30, 20))
    assert column(before, "n")[-1] == column(found.assembled, "n")[-1] == 30, "not the 110 that the groups shown add up to"


def test_orders_conditions_and_further_arithmetic_use_what_was_released() -> None:
    values = (-7, 5, -3, 9)
    one = asked("SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) < 0")
    assert column(one.answers(one.released(*values))[1].assembled, "g") == [0, 2]
    one = asked("SELECT g, COUNT(*) AS n, ROUND(COUNT(*)) AS r, RANK() OVER (ORDER BY COUNT(*)) AS k FROM t GROUP BY g ORDER BY ROUND(n)")
    before, found = one.answers(one.released(*values))
    assert column(found.assembled, "n") == [max(value, 0) for value in column(before, "n")]
    assert found.assembled.table.drop_columns(["n"]) == before.table.drop_columns(["n"])
    assert sorted(column(found.assembled, "r")) == sorted(values)
    one = asked("SELECT AVG(n) AS a, SUM(n) AS s, MIN(n) AS m FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) AS q")
    before, found = one.answers(one.released(*values))
    assert found.assembled == before and found.assembled.table.to_pylist() == [{"a": 1.0, "s": 4, "m": -7}]


def test_one_note_says_that_values_were_moved() -> None:
    one = asked("SELECT g, COUNT(*) AS n, SUM(cost) AS s FROM t GROUP BY g")
    (note,) = one.answers(one.released(-7, 5, -3, 9))[1].notes
    assert note.startswith("4 values of n, s lie outside what is possible and are shown at the nearest possible values")
    one = asked("SELECT COUNT(*) AS n FROM t")
    (note,) = one.answers(one.released(-7))[1].notes
    assert note.startswith("a value of n lies outside what is possible and is shown at the nearest possible value;")


def test_other_released_numbers_change_nothing_but_numbers() -> None:
    """Blind to what was released: columns, types, marks' places and which bars there are follow from the statement alone."""
    one = asked("SELECT g, COUNT(*) AS n, SUM(cost) AS s, COUNT(DISTINCT sex) AS d FROM t GROUP BY g")
    runs = [one.answers(one.released(*values))[1].assembled for values in ((-7, 5, -3, 9), (10**6,), (0, 1))]
    for found in runs:
        assert found.table.schema == runs[0].table.schema and column(found, "g") == column(runs[0], "g")
        assert {name: len(bars) for name, bars in found.intervals.items()} == {"n": 4, "s": 4, "d": 4}
        assert found.marks.keys() == runs[0].marks.keys()
    before, moved = one.answers(one.released(-7, 5, -3, 9))
    assert moved.assembled.marks == before.marks and moved.assembled.aggregated == before.aggregated


def test_versions_from_before_show_what_they_did() -> None:
    one = asked("SELECT COUNT(*) AS n, SUM(cost) AS s FROM t", typed=False)
    before, found = one.answers(one.released(-7))
    assert found == ShownAnswer(before) and column(before, "n") == [-7]
    none = asked("SELECT SUM(cost) AS s FROM t WHERE cost < 0", typed=False)
    assert column(assemble(none.planned, None, none.statement.post, confidence=CONFIDENCE), "s") == [0.0]


def test_a_sum_of_rows_that_cannot_be_is_null() -> None:
    sql = "SELECT SUM(cost) AS s, COALESCE(SUM(cost), -1) AS c, SUM(cost) IS NULL AS i, COUNT(*) AS n FROM t WHERE cost < 0"
    none = asked(sql)
    found = assemble(none.planned, None, none.statement.post, confidence=CONFIDENCE)
    assert found.table.to_pylist() == [{"s": None, "c": -1.0, "i": True, "n": 0}]
    assert found.intervals["s"] == [None] and found.intervals["n"] == [Interval(0.0, 0.0)]


@pytest.mark.parametrize("account", list(Account), ids=lambda account: account.value)
@pytest.mark.parametrize("count", [0, 3, 60, 249])
def test_bars_hold_the_truth_where_they_did(account: Account, count: int) -> None:
    """With the kernel's own noise, cell by cell: so coverage does not fall."""
    one = asked("SELECT g, COUNT(*) AS n, SUM(cost) AS s FROM t GROUP BY g", account=account, loss=Fraction(1, 20))
    certified = one.planned.certified
    held = [0, 0]
    for number in range(1, 41):
        truths = {"n": count, "s": 500 * count if number % 2 else 0}
        measured = [
            truths["s"] * v.vector.measure.steps if isinstance(v.vector.measure, GridSum) else count for v in certified.queries[0].vectors
        ]
        table = ExactTable(groups=[(i,) for i in range(4)], vectors=[[value] * 4 for value in measured], units=None)
        before, found = one.answers(
            release(certified, issue(number, certified.digest, certified.cost), Exact([table], certified=certified))
        )
        for name, truth in truths.items():
            cells = zip(before.intervals[name], found.assembled.intervals[name], column(found.assembled, name), strict=True)
            for whole, cut, value in cells:
                assert whole is not None and cut is not None and cut.lo <= value <= cut.hi and cut.lo >= 0
                held[0] += whole.lo <= truth <= whole.hi
                held[1] += cut.lo <= truth <= cut.hi
                assert cut.lo <= truth <= cut.hi or not whole.lo <= truth <= whole.hi
    assert held[1] >= held[0] >= 0.9 * 320


NUMBERS = st.integers(-1_000, 1_000)


@given(value=NUMBERS, below=st.integers(0, 500), above=st.integers(0, 500), ends=st.tuples(NUMBERS, NUMBERS), share=st.integers(0, 100))
def test_a_bar_that_is_moved_and_cut_holds_the_value_and_whatever_it_held(
    value: int, below: int, above: int, ends: tuple[int, int], share: int
) -> None:
    lo, hi = sorted(ends)
    truth = lo + (hi - lo) * share // 100
    possible = ValueBounds.of(Bounds(Fraction(lo), Fraction(hi)), pa.int64())
    bar = Interval(float(value - below), float(value + above))
    after = possible.nearest(value)
    found = possible.moved(value, after, bar)
    assert found is not None and lo <= found.lo <= after <= found.hi <= hi
    assert found.lo <= truth <= found.hi or not bar.lo <= truth <= bar.hi
    if after != value and lo + max(below, above) <= hi:
        inner = above if value < lo else below
        assert found.hi - found.lo == inner, "a bar is not the shorter for being further off"


def test_the_nearest_value_has_the_type_of_its_column() -> None:
    bounds = Bounds(Fraction(1, 3), Fraction(8, 3))
    whole, exact, real = (ValueBounds.of(bounds, kind) for kind in (pa.int64(), pa.decimal128(10, 2), pa.float64()))
    assert whole.nearest(0) == 1 and whole.nearest(9) == 2
    assert exact.nearest(Decimal("9.00")) == Decimal("2.66") and exact.nearest(Decimal("0.10")) == Decimal("0.34")
    assert real.nearest(0.0) == float(Fraction(1, 3)) and real.nearest(float("inf")) == float(Fraction(8, 3))
    assert ValueBounds.of(Bounds(None, Fraction(3, 10)), pa.float64()).nearest(0.1 * 3) == 0.1 * 3, "rounding is no move"
    assert whole.nearest(None) is None and whole.nearest("a") == "a" and whole.cut(None, None) is None


def test_a_table_that_holds_no_row_of_a_part_is_left_alone() -> None:
    one = asked("SELECT COUNT(*) AS n FROM t")
    before = assemble(one.planned, one.released(-7), one.statement.post, confidence=CONFIDENCE)
    blank = replace(before, intervals={})
    assert one.shown(blank) == ShownAnswer(blank)
