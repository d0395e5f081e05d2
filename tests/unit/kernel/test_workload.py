"""What one unit's rows may cost: rows, bytes and work of a plan, derived from the plan and public facts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import Domain, IntegerDomain, KeyDomain, Kind, TextDomain, bytes_max
from lapwing.kernel.exact import ExactTable
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call, part_count
from lapwing.kernel.facts import Facts, TableFacts, UnitLimits
from lapwing.kernel.ir import (
    Cap,
    Clipped,
    DiscoveredGroups,
    DistinctCount,
    Filter,
    GridSum,
    Grouped,
    JoinKind,
    KnownGroups,
    PerUnit,
    Plan,
    Project,
    Query,
    Ranked,
    Relation,
    RowCount,
    Scan,
    SemiJoin,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitCount,
    UnitJoin,
    UnitNorms,
    UnitWindow,
    Vector,
)
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.release import dense_vectors
from lapwing.kernel.stability import shape_of
from lapwing.kernel.unit_norms import source_shape
from lapwing.kernel.window_columns import OrderKey, WindowColumn, WindowKind
from lapwing.kernel.workload import unit_work

LAW = DiscreteGaussian(Fraction(1))
COLUMNS: dict[str, Domain] = {"n": IntegerDomain(0, 10), "note": TextDomain(None), "city": TextDomain(("a", "bcd"))}
FACTS = Facts(
    "work", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": TableFacts(COLUMNS, 1_000, 10**6), "one": TableFacts(COLUMNS, 1, 10**6)}, {}
)
ONE, TEN, ALL = Scan("one", 1), Scan("t", 10), Scan("t", 1_000)
POSITIVE = call(Function.GREATER, Column("n"), Literal(0, Kind.INTEGER))


def joined(left: Relation, right: Relation, kind: JoinKind = JoinKind.INNER) -> UnitJoin:
    return UnitJoin(left, right, (), (), kind)


def planned(source: Relation, *vectors: Vector, keys: tuple[tuple[str, Expression], ...] = (), **changed: Any) -> Plan:
    known = KnownGroups(tuple((i,) * len(keys) for i in range(1)))
    query = Query(source, keys, known, Ranked(), vectors or (Vector("v", RowCount(), LAW),))
    return Plan((replace(query, **changed),))


def code(plan: Plan, facts: Facts = FACTS) -> str:
    with pytest.raises(Refused) as refused:
        certify(plan, facts)
    return refused.value.code


@pytest.mark.parametrize(
    ("relation", "widest", "work"),
    [
        (TEN, 10, 10),
        (Filter(TEN, POSITIVE), 10, 10 + 10 * 3),
        (Project(TEN, (("x", Column("n")),)), 10, 10 + 10 * 2),
        (joined(TEN, TEN), 100, 20 + 20 + 100),
        (joined(TEN, ONE), 10, 11 + 11 + 10),
        (joined(ONE, TEN, JoinKind.LEFT), 10, 11 + 11 + 10),
        (SemiJoin(ONE, joined(TEN, TEN)), 100, 1 + 140 + 1 + 100),
        (SemiJoin(TEN, TEN, where=POSITIVE), 10, 20 + 20 + 10 * 10 * 3),
        (UnitJoin(TEN, TEN, (), (), JoinKind.LEFT, POSITIVE), 100, 20 + 20 + 100 + 100 * 3),
        (Union((TEN, TEN, ONE)), 21, 21 + 21),
        (PerUnit(joined(TEN, TEN), (("c", UnitAggregate(UnitAggregateKind.COUNT, None)),)), 100, 140 + 100 * 2),
    ],
)
def test_rows_and_work_of_every_step_count(relation: Relation, widest: int, work: int) -> None:
    shape = shape_of(relation, FACTS)
    assert (shape.widest, shape.work) == (widest, work)


def test_a_plan_is_accepted_up_to_the_limit_on_rows_and_not_beyond() -> None:
    exactly = joined(Scan("t", 1_000), Scan("t", 100))
    assert isinstance(certify(planned(exactly), FACTS), Certified)
    assert code(planned(joined(Scan("t", 1_000), Scan("t", 101)))) == "unit-rows"


@pytest.mark.parametrize(
    "hidden",
    [
        SemiJoin(ONE, joined(ALL, ALL)),
        SemiJoin(ONE, joined(ALL, ALL), negated=True),
        PerUnit(joined(ALL, ALL), (("c", UnitAggregate(UnitAggregateKind.COUNT, None)),)),
        joined(ONE, PerUnit(joined(ALL, ALL), ())),
        Union((ONE, PerUnit(joined(ALL, ALL), ()))),
    ],
)
def test_rows_that_are_in_no_answer_count_too(hidden: Relation) -> None:
    narrowed = hidden if not isinstance(hidden, Union) else Union((Project(ONE, ()), hidden.sources[1]))
    assert code(planned(narrowed, Vector("v", UnitCount(), LAW))) == "unit-rows"


def test_one_unit_counted_once_does_not_excuse_its_rows() -> None:
    copies = Union(tuple([ONE] * 56))
    bomb: Relation = copies
    for _ in range(6):
        bomb = joined(bomb, copies)
    assert code(planned(bomb, Vector("v", UnitCount(), LAW))) == "unit-rows"


def test_the_work_of_all_queries_and_passes_adds_up() -> None:
    facts = replace(FACTS, limits=UnitLimits(work=1_000))
    plain = planned(Scan("t", 100), Vector("v", RowCount(POSITIVE), LAW))
    (query,) = plain.queries
    once = unit_work(query, source_shape(query.source, FACTS))
    assert once == 100 + 100 * (1 + 1 + 3)
    assert isinstance(certify(plain, facts), Certified)
    assert code(Plan((query, query)), facts) == "unit-work"
    clipped = replace(query, bounding=Clipped(0), vectors=(Vector("v", RowCount(POSITIVE), LAW, Cap(10)),))
    assert unit_work(clipped, source_shape(query.source, FACTS)) == 3 * once
    assert unit_work(replace(clipped, bounding=Grouped(1)), source_shape(query.source, FACTS)) == 3 * once


def test_texts_that_are_kept_count_by_their_longest() -> None:
    assert [bytes_max(domain) for domain in (*COLUMNS.values(), KeyDomain(), KeyDomain(text=True))] == [8, 1_024, 3, 8, 1_024]
    facts = replace(FACTS, limits=UnitLimits(size=1_000 * 2_048))
    grouped = DiscoveredGroups(LAW, Fraction(1, 10**9), 100)
    assert isinstance(certify(planned(ALL, keys=(("k", Column("note")),), groups=grouped), facts), Certified)
    assert code(planned(ALL, keys=(("k", Column("note")), ("l", Column("city"))), groups=grouped), facts) == "unit-size"
    assert code(planned(ALL, Vector("v", DistinctCount(Column("note")), LAW), keys=(("k", Column("city")),)), facts) == "unit-size"


def test_what_windows_and_groups_within_units_hold_counts() -> None:
    """All columns of the rows that a window sorts, and its own; the keys of groups."""
    columns = sum(bytes_max(domain) for domain in COLUMNS.values())
    windowed = UnitWindow(ALL, (("w", WindowColumn(WindowKind.ROW_NUMBER, None, order=(OrderKey(Column("n")),))),))
    for relation, held in ((windowed, 1_000 * (2 * 1_024 + columns)), (PerUnit(ALL, (), (("k", Column("note")),)), 1_000 * 2 * 1_024)):
        within = held + 1_000 * 1_024
        assert isinstance(certify(planned(relation), replace(FACTS, limits=UnitLimits(size=within))), Certified)
        assert code(planned(relation), replace(FACTS, limits=UnitLimits(size=within - 1))) == "unit-size"


def test_what_several_queries_keep_adds_up() -> None:
    facts = replace(FACTS, limits=UnitLimits(size=1_000 * 1_024))
    (query,) = planned(ALL).queries
    assert isinstance(certify(Plan((query,)), facts), Certified)
    assert code(Plan((query, query)), facts) == "unit-size"


def test_an_expression_counts_written_out() -> None:
    assert part_count(POSITIVE) == 3
    assert part_count(call(Function.AND, POSITIVE, POSITIVE)) == 7


# -- what a plan may not get past the gate with -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("A", "a"), ("Straße", "STRASSE"), ("x", "\N{FULLWIDTH LATIN SMALL LETTER X}"), ("k", "\N{KELVIN SIGN}")]
)
def test_names_that_an_engine_may_take_for_one_are_refused(names: tuple[str, str]) -> None:
    source = Project(ONE, tuple((name, Column("n")) for name in names))
    assert code(planned(source)) == "column-name"


def test_tables_with_such_names_are_refused_too() -> None:
    facts = replace(FACTS, tables={"one": TableFacts({"A": IntegerDomain(0, 10), "a": IntegerDomain(0, 1)}, 1, 10)})
    assert code(planned(ONE), facts) == "column-name"


def test_a_name_longer_than_postgresql_keeps_is_refused() -> None:
    assert isinstance(certify(planned(Project(ONE, (("n" * 63, Column("n")),))), FACTS), Certified)
    assert code(planned(Project(ONE, (("n" * 64, Column("n")),)))) == "column-name"


@pytest.mark.parametrize(
    "plan",
    [
        planned(Scan("t", True)),
        planned(Scan("t", 1.5)),  # type: ignore[arg-type]
        planned(ONE, bounding=Grouped(True), vectors=(Vector("v", RowCount(), LAW, Cap(1)),)),
        planned(ONE, bounding=Clipped(0), vectors=(Vector("v", RowCount(), LAW, Cap(True)),)),
        planned(ONE, Vector("v", GridSum(Column("n"), Fraction(0), Fraction(10), True), LAW)),
        planned(ONE, Vector("v", GridSum(Column("n"), Fraction(0), 10, 1), LAW)),  # type: ignore[arg-type]
        planned(SemiJoin(ONE, ONE, negated=1)),  # type: ignore[arg-type]
    ],
)
def test_numbers_of_a_plan_have_the_type_their_field_says(plan: Plan) -> None:
    assert code(plan) == "plan-type"


def test_a_group_that_an_engine_returns_twice_is_refused() -> None:
    table = ExactTable(groups=[(1,), (1,)], vectors=[[3, 4]], units=None)
    with pytest.raises(LapwingError) as refused:
        dense_vectors(KnownGroups(((1,), (2,))), table)
    assert refused.value.code == "engine-result"
    assert dense_vectors(KnownGroups(((1,), (2,))), ExactTable(groups=[(2,)], vectors=[[3]], units=None)) == [[0, 3]]


def test_norms_cost_what_their_rows_and_edges_cost() -> None:
    keys, edges = (("k", Column("note")),), (1, 4, 9)
    norms = UnitNorms(Scan("t", 100), keys, RowCount(POSITIVE), edges, "size")
    (query,) = planned(Scan("t", 1), Vector("v", RowCount(), LAW)).queries
    counted = replace(query, source=norms, keys=(("size", Column("size")),), groups=KnownGroups(((0,), (1,))))
    shape = source_shape(norms, FACTS)
    assert shape.work == 100 + 100 * (4 + 1 + 3) + len(edges)
    assert (shape.rows_per_unit, shape.widest, shape.rows_max) == (1, 100, shape_of(norms.source, FACTS).rows_max)
    assert unit_work(counted, shape) == shape.work + 1 + 1 + 1
    within = 100 * (1_024 + 1_024) + 1_024 + 8
    assert isinstance(certify(Plan((counted,)), replace(FACTS, limits=UnitLimits(size=within))), Certified)
    assert code(Plan((counted,)), replace(FACTS, limits=UnitLimits(size=within - 1))) == "unit-size"
