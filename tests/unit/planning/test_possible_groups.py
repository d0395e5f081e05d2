"""The groups that a statement can have, against every row that the declared domains allow, taken one by one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.kernel.accounting import Account
from lapwing.kernel.calendar import DAY_MICROSECONDS
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, Kind, TextDomain, TimestampDomain, kind_of
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, Value, call, not_null
from lapwing.kernel.facts import Facts, PublicFacts, TableFacts
from lapwing.kernel.ir import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitJoin,
)
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.stability import shape_of
from lapwing.planning.group_enumeration.groups import GroupFinder, PossibleGroups
from lapwing.planning.group_enumeration.listing import listed
from tests.support.reference import evaluator
from tests.support.sizes import size

JANUARY = 19_723  # 2024-01-01
HOUR = 3_600_000_000
VISITS: Mapping[str, Domain] = {
    "day": DateDomain(JANUARY + 25, JANUARY + 36),
    "kind": TextDomain(("b", "a", "c"), nullable=False),
    "size": IntegerDomain(-1, 4, nullable=False),
    "flag": BooleanDomain(),
    "clinic": IntegerDomain(1, 4),
}
CALLS: Mapping[str, Domain] = {
    "at": TimestampDomain(JANUARY * DAY_MICROSECONDS + 22 * HOUR, JANUARY * DAY_MICROSECONDS + 27 * HOUR, nullable=False),
    "topic": TextDomain(("a", "z")),
}
CLINICS: Mapping[str, Domain] = {
    "id": IntegerDomain(0, 10, nullable=False),
    "city": TextDomain(("X", "Y", "Z"), nullable=False),
    "beds": IntegerDomain(0, 9),
}
CLINIC_ROWS: Mapping[str, Sequence[Value]] = {"id": (1, 2, 3, 9), "city": ("X", "X", "Y", "Z"), "beds": (5, None, 7, 1)}
FACTS = Facts(
    "s",
    1,
    Neighbours.UNBOUNDED,
    Account.APPROXIMATE,
    {"visits": TableFacts(VISITS, 5, 10**6), "calls": TableFacts(CALLS, 5, 10**6)},
    {"clinics": PublicFacts(CLINICS, "id")},
)
Row = dict[str, Any]


def find(source: Relation, *keys: Expression) -> PossibleGroups:
    named = tuple((f"k{i}", key) for i, key in enumerate(keys))
    return GroupFinder(evaluate, lambda _: CLINIC_ROWS).find(source, named, FACTS, cells_max=100_000)


def in_periods(moment: Expression, seconds: Fraction) -> Expression:
    """The number of the period of this many seconds since 1970, as tools cut time."""
    epoch = call(Function.DIVIDE, call(Function.MICROSECONDS, moment), Literal(1_000_000, Kind.INTEGER))
    return call(Function.FLOOR, call(Function.DIVIDE, epoch, Literal(seconds, Kind.REAL)))


def expected(source: Relation, *keys: Expression) -> set[tuple[Any, ...]]:
    columns = shape_of(source, FACTS).columns
    ready = [evaluator(key, columns).value for key in keys]
    return {tuple(value(row) for value in ready) for row in every_row(source)}


def every_row(relation: Relation) -> list[Row]:
    """Every row there can be; moments are taken at minutes and beside whole hours."""
    match relation:
        case Scan(table):
            columns = FACTS.table(table).columns
            return [dict(zip(columns, values, strict=True)) for values in product(*(_values(domain) for domain in columns.values()))]
        case Filter(source, predicate):
            met = evaluator(predicate, shape_of(source, FACTS).columns).value
            return [row for row in every_row(source) if met(row) is True]
        case Project(source, named):
            columns = shape_of(source, FACTS).columns
            ready = {name: evaluator(value, columns).value for name, value in named}
            rows = [{name: value(row) for name, value in ready.items()} for row in every_row(source)]
            return [dict(row) for row in dict.fromkeys(tuple(row.items()) for row in rows)]
        case PublicJoin(source, _, on, added, kind):
            joined, key_of = [], evaluator(on, shape_of(source, FACTS).columns).value
            for row in every_row(source):
                key = key_of(row)
                found = [i for i, value in enumerate(CLINIC_ROWS["id"]) if value == key]
                if found or kind is JoinKind.LEFT:
                    joined.append({**row, **{name: CLINIC_ROWS[column][found[0]] if found else None for name, column in added}})
            return joined
        case UnitJoin(left, right, on, added, kind):
            joined, others = [], every_row(right)
            for row in every_row(left):
                for other in others:
                    if all(row[a] == other[b] and row[a] is not None for a, b in on):
                        joined.append({**row, **{name: other[column] for name, column in added}})
                if kind is JoinKind.LEFT:
                    joined.append({**row, **{name: None for name, _ in added}})
            return joined
        case SemiJoin(source, other, on, negated):
            assert not negated
            others = every_row(other)
            return [row for row in every_row(source) if any(all(row[a] == two[b] for a, b in on) for two in others)]
        case Union(sources):
            return [row for source in sources for row in every_row(source)]
        case PerUnit(source, aggregates, keys):
            made = [(name, aggregate.value) for name, aggregate in aggregates if aggregate.value is not None]
            assert len(made) == len(aggregates) == 1 or not aggregates, "columns of several rows are not independent of one another"
            values = [(name, evaluator(value, shape_of(source, FACTS).columns).value) for name, value in (*made, *keys)]
            return [{name: value_of(row) for name, value_of in values} for row in every_row(source)]
        case _:
            raise AssertionError(relation)


def _values(domain: Domain) -> Sequence[Value]:
    if isinstance(domain, TimestampDomain):
        marks = {domain.hi, *range(domain.lo, domain.hi + 1, HOUR // 4)}
        return sorted({mark + shift for mark in marks for shift in (-1, 0, 1) if domain.lo <= mark + shift <= domain.hi})
    values = listed(domain)
    assert values is not None
    return values


def literal(value: Value, domain: Domain) -> Literal:
    return Literal(value, kind_of(domain))


class Made:
    """Random conditions, keys and relations."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def column(self, columns: Mapping[str, Domain]) -> str:
        return self.random.choice(sorted(columns))

    def value(self, domain: Domain) -> Literal:
        return literal(self.random.choice([value for value in _values(domain) if value is not None]), domain)

    def condition(self, columns: Mapping[str, Domain], depth: int = 2) -> Expression:
        made, name = self.random, self.column(columns)
        column, domain = Column(name), columns[name]
        if depth and made.random() < 0.3:
            parts = [self.condition(columns, depth - 1) for _ in range(2)]
            return call(made.choice((Function.AND, Function.OR)), *parts)
        if made.random() < 0.15:
            return call(Function.IS_NULL, column) if made.random() < 0.5 else not_null(column)
        if isinstance(domain, BooleanDomain):
            return column if made.random() < 0.5 else call(Function.NOT, column)
        if isinstance(domain, DateDomain | TimestampDomain) and made.random() < 0.4:
            return call(
                made.choice((Function.EQUAL, Function.LESS)), call(Function.MONTH, column), Literal(made.randint(1, 3), Kind.INTEGER)
            )
        if made.random() < 0.2:
            return call(Function.IN, column, *(self.value(domain) for _ in range(2)))
        if isinstance(domain, TextDomain):
            return call(made.choice((Function.EQUAL, Function.NOT_EQUAL)), column, self.value(domain))
        function = made.choice(
            (Function.LESS, Function.LESS_EQUAL, Function.GREATER, Function.GREATER_EQUAL, Function.EQUAL, Function.NOT_EQUAL)
        )
        sides: list[Expression] = [column, self.value(domain)]
        if isinstance(domain, IntegerDomain) and made.random() < 0.3:
            sides[0] = call(Function.MODULO, column, Literal(3, Kind.INTEGER))
        if made.random() < 0.3:
            sides.reverse()
        return call(function, *sides)

    def key(self, columns: Mapping[str, Domain]) -> Expression:
        made, name = self.random, self.column(columns)
        column, domain = Column(name), columns[name]
        match domain:
            case DateDomain():
                return (
                    call(made.choice((Function.TRUNCATE_MONTH, Function.DAY_OF_WEEK, Function.MONTH)), column)
                    if made.random() < 0.7
                    else column
                )
            case TimestampDomain() if made.random() < 0.3:
                return in_periods(column, made.choice((Fraction(5_400), Fraction(7_200), Fraction(25_200), Fraction(86_400))))
            case TimestampDomain():
                return call(
                    made.choice((Function.TRUNCATE_HOUR, Function.HOUR, Function.TRUNCATE_DAY, Function.DAY_NUMBER, Function.DAY)), column
                )
            case IntegerDomain() if made.random() < 0.6:
                return call(made.choice((Function.MULTIPLY, Function.MODULO)), column, Literal(2, Kind.INTEGER))
            case TextDomain() if made.random() < 0.5:
                return Case(((self.condition(columns, 1), Literal("yes", Kind.TEXT)),), Literal("no", Kind.TEXT))
            case _:
                return column

    def filtered(self, source: Relation) -> Relation:
        for _ in range(self.random.randint(0, 3)):
            source = Filter(source, self.condition(shape_of(source, FACTS).columns))
        return source

    def relation(self) -> Relation:
        made = self.random
        visits, calls = self.filtered(Scan("visits", 3)), self.filtered(Scan("calls", 3))
        match made.randrange(10):
            case 0:
                return self.filtered(self.projected(visits))
            case 1 | 2:
                kind = made.choice((JoinKind.INNER, JoinKind.LEFT))
                return self.filtered(
                    PublicJoin(visits, "clinics", Column("clinic"), (("c_id", "id"), ("city", "city"), ("beds", "beds")), kind)
                )
            case 3:
                return self.filtered(Union((visits, self.filtered(Scan("visits", 2)))))
            case 4:
                kind = made.choice((JoinKind.INNER, JoinKind.LEFT))
                narrow = Project(visits, (("kind", Column("kind")), ("size", Column("size"))))
                on = (("kind", "topic"),) if made.random() < 0.7 else ()
                return self.filtered(UnitJoin(narrow, calls, on, (("at", "at"), ("topic", "topic")), kind))
            case 5:
                value = call(Function.TRUNCATE_MONTH, Column("day"))
                kind_made = made.choice((UnitAggregateKind.MIN, UnitAggregateKind.MAX))
                return self.filtered(PerUnit(visits, (("first", UnitAggregate(kind_made, value)),)))
            case 6:
                return self.filtered(SemiJoin(visits, calls, (("kind", "topic"),)))
            case 7:
                return calls
            case 8:
                columns = shape_of(visits, FACTS).columns
                keys = (("first", self.key(columns)), ("second", self.key(columns)), ("size", Column("size")))
                return self.filtered(PerUnit(visits, (), keys))
            case _:
                return visits

    def projected(self, source: Relation) -> Relation:
        columns = shape_of(source, FACTS).columns
        named = [("first", self.key(columns)), ("second", self.key(columns)), ("size", Column("size"))]
        return Project(source, tuple(named))


@pytest.mark.parametrize("seed", range(size("statements whose groups are compared")))
def test_groups_are_those_of_every_row_that_can_be(seed: int) -> None:
    made = Made(seed)
    source = made.relation()
    columns = shape_of(source, FACTS).columns
    keys = [made.key(columns) for _ in range(made.random.randint(0, 2))]
    found, wanted = find(source, *keys), expected(source, *keys)
    assert found.groups is not None and len(found.groups) == len(set(found.groups))
    assert (set(found.groups), found.causes) == (wanted, frozenset())


@pytest.mark.parametrize("seed", range(60))
def test_groups_of_rows_within_units_may_be_more_beside_aggregates_never_fewer(seed: int) -> None:
    made = Made(seed)
    visits = made.filtered(Scan("visits", 3))
    columns = shape_of(visits, FACTS).columns
    latest = ("latest", UnitAggregate(UnitAggregateKind.MAX, Column("day")))
    source = made.filtered(PerUnit(visits, (latest,), (("first", made.key(columns)), ("size", Column("size")))))
    keys = [made.key(shape_of(source, FACTS).columns) for _ in range(2)]
    found, wanted = find(source, *keys), expected(source, *keys)
    assert found.groups is not None and set(found.groups) >= wanted
    assert found.causes == {"columns made per unit, each taken by itself"} or set(found.groups) == wanted


@pytest.mark.parametrize("kind", JoinKind)
def test_an_empty_side_of_a_left_join_leaves_the_groups_of_the_other(kind: JoinKind) -> None:
    never = Filter(Scan("visits", 3), call(Function.AND, *(call(Function.EQUAL, Column("kind"), Literal(k, Kind.TEXT)) for k in "ab")))
    latest = PerUnit(never, (("latest", UnitAggregate(UnitAggregateKind.MAX, Column("day"))),))
    joined = UnitJoin(Scan("calls", 3), latest, (), (("latest", "latest"),), kind)
    assert find(joined, Column("topic")).groups == ((("a",), ("z",), (None,)) if kind is JoinKind.LEFT else ())
    assert find(joined, Column("latest")).groups == (((None,),) if kind is JoinKind.LEFT else ())
