"""The possible values of a relation's rows: independent variables for columns of tables, and conditions on all of them.

A relation is read down to its tables. The values of its rows are then functions of columns of protected tables, which can have any value
of their domain, and of rows of public tables, which are known. Every value that rows can have is among those that meet the conditions;
``causes`` gives the reasons why there may be more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, product
from typing import TypeAlias, assert_never

from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, KeyDomain, Kind, RealDomain, TextDomain, kind_of
from lapwing.kernel.expressions import Case, Column, Expression, Function, Literal, Value, call
from lapwing.kernel.facts import Facts
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
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.kernel.window_columns import WindowKind
from lapwing.statements import conjuncts, substituted

PublicRows: TypeAlias = Callable[[str], Mapping[str, Sequence[Value]] | None]
"""The frozen rows of a public table, by column; None where there are too many."""

ALTERNATIVES_MAX = 32
"""Most combinations of branches of unions that are examined one by one."""
KEYS_NAMED_MAX = 1_000
"""Most keys of a public table that are listed to find where a LEFT JOIN has no match."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a public table: the variables, and in the same order their values in each row."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class PossibleRows:
    """One origin of the rows of a relation."""

    columns: Mapping[str, Expression]
    """Each column of the relation as an expression over the variables."""
    variables: Mapping[str, Domain] = field(default_factory=dict)
    listed: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    """Variables with listed values."""
    tables: tuple[TableRows, ...] = ()
    conditions: tuple[Expression, ...] = ()
    causes: frozenset[str] = frozenset()

    def beside(self, other: PossibleRows, columns: Mapping[str, Expression], conditions: Sequence[Expression]) -> PossibleRows:
        """Both, with these columns and further conditions."""
        return PossibleRows(
            columns,
            {**self.variables, **other.variables},
            {**self.listed, **other.listed},
            (*self.tables, *other.tables),
            (*self.conditions, *conditions),
            self.causes | other.causes,
        )


ValuesOf: TypeAlias = Callable[[PossibleRows, Expression], tuple[Value, ...] | None]
"""The values that an expression over the columns can have; None where they cannot be listed."""


@dataclass(frozen=True, slots=True)
class RelationReader:
    """Reads relations and gives every variable a unique name."""

    facts: Facts
    public: PublicRows
    values_of: ValuesOf
    _numbers: count[int] = field(default_factory=count)

    def read(self, relation: Relation) -> tuple[PossibleRows, ...]:
        """All origins of the relation's rows; if they are too many, a single one with the columns' domains only."""
        alternatives = self._read(relation)
        return alternatives if len(alternatives) <= ALTERNATIVES_MAX else (self._unrelated(relation, "unions of many branches"),)

    def _variable(self, domain: Domain) -> tuple[str, Domain]:
        return f"v{next(self._numbers)}", domain

    def _unrelated(self, relation: Relation, cause: str) -> PossibleRows:
        named = {name: self._variable(domain) for name, domain in shape_of(relation, self.facts).columns.items()}
        columns = {name: Column(variable) for name, (variable, _) in named.items()}
        return PossibleRows(columns, dict(named.values()), causes=frozenset((cause,)))

    def _read(self, relation: Relation) -> tuple[PossibleRows, ...]:
        match relation:
            case Scan():
                return (replace(self._unrelated(relation, ""), causes=frozenset()),)
            case Filter(source, predicate):
                return tuple(
                    replace(rows, conditions=(*rows.conditions, *conjuncts(substituted(predicate, rows.columns))))
                    for rows in self.read(source)
                )
            case Project(source, columns):
                return tuple(
                    replace(rows, columns={name: substituted(value, rows.columns) for name, value in columns}) for rows in self.read(source)
                )
            case PublicJoin(source):
                return tuple(self._publicly_joined(relation, rows) for rows in self.read(source))
            case UnitJoin(left, right):
                pairs = product(self.read(left), self.read(right))
                return tuple(self._joined(relation, one, other) for one, other in pairs)
            case SemiJoin(source, negated=True):
                return self.read(source)
            case SemiJoin(source, other, on):
                return tuple(
                    one.beside(two, one.columns, (*two.conditions, *_equal(on, one, two), *_where(relation, one, two)))
                    for one, two in product(self.read(source), self.read(other))
                )
            case Union(sources):
                return self._united(relation, sources)
            case PerUnit(source, _, keys):
                read = self.read(source)
                made = self._per_unit(relation, read)
                if not keys:
                    return (made,)
                # A key is a value of some row of the unit; the other columns come from that row and others.
                return tuple(
                    each.beside(made, {**{name: substituted(value, each.columns) for name, value in keys}, **made.columns}, made.conditions)
                    for each in read
                )
            case UnitWindow():
                return self._windowed(relation)
            case _:
                assert_never(relation)

    def _united(self, relation: Union, sources: tuple[Relation, ...]) -> tuple[PossibleRows, ...]:
        whole = shape_of(relation, self.facts).columns
        for source in sources:
            if any(_steps(domain) != _steps(whole[name]) for name, domain in shape_of(source, self.facts).columns.items()):
                return (self._unrelated(relation, "a union of unlike numbers"),)
        return tuple(rows for source in sources for rows in self.read(source))

    def _publicly_joined(self, join: PublicJoin, rows: PossibleRows) -> PossibleRows:
        public = self.facts.public_table(join.table)
        known = self.public(join.table)
        named = {name: self._variable(domain) for name, domain in public.columns.items()}
        variables = dict(named.values())
        tables: tuple[TableRows, ...] = ()
        if known is not None:
            tables = (TableRows(tuple(variables), tuple(zip(*(known[name] for name in named), strict=True))),)
        right = PossibleRows({name: Column(variable) for name, (variable, _) in named.items()}, variables, tables=tables)
        on, key = substituted(join.on, rows.columns), right.columns[public.key]
        if join.kind is JoinKind.INNER:
            added = {name: right.columns[column] for name, column in join.columns}
            joined = rows.beside(right, {**rows.columns, **added}, (call(Function.EQUAL, on, key),))
            return joined if known is None else _with_one_key(joined, on, key)
        joined, found = self._perhaps(rows, right, join.columns, (call(Function.EQUAL, on, key),))
        return joined if known is None else _only_where_not_found(joined, found, on, known[public.key], public.columns[public.key])

    def _perhaps(
        self, left: PossibleRows, right: PossibleRows, columns: tuple[tuple[str, str], ...], on: Sequence[Expression]
    ) -> tuple[PossibleRows, Expression]:
        """The left side with its match or with NULL, and the variable that distinguishes the two."""
        found, domain = self._variable(BooleanDomain(nullable=False))
        domains = {**right.variables}
        added = {
            name: Case(((Column(found), right.columns[column]),), Literal(None, kind_of(domain_of(right.columns[column], domains))))
            for name, column in columns
        }
        missing = call(Function.NOT, Column(found))
        conditions = [call(Function.OR, missing, condition) for condition in (*right.conditions, *on)]
        both = left.beside(right, {**left.columns, **added}, conditions)
        return replace(both, variables={**both.variables, found: domain}), Column(found)

    def _joined(self, join: UnitJoin, left: PossibleRows, right: PossibleRows) -> PossibleRows:
        on = (*_equal(join.on, left, right), *_where(join, left, right))
        if join.kind is JoinKind.LEFT:
            return self._perhaps(left, right, join.columns, on)[0]
        added = {name: right.columns[column] for name, column in join.columns}
        return left.beside(right, {**left.columns, **added}, (*right.conditions, *on))

    def _per_unit(self, relation: PerUnit, sources: tuple[PossibleRows, ...]) -> PossibleRows:
        """One row of a unit: the possible values of each aggregate, independently."""
        shape = shape_of(relation, self.facts)
        columns: dict[str, Expression] = {}
        variables: dict[str, Domain] = {}
        listed: dict[str, tuple[Value, ...]] = {}
        for name, aggregate in relation.columns:
            domain = shape.columns[name]
            if aggregate.value is None and isinstance(domain, IntegerDomain):
                domain = replace(domain, lo=1)
            variable, _ = self._variable(domain)
            columns[name], variables[variable] = Column(variable), domain
            if aggregate.value is not None and aggregate.kind in (UnitAggregateKind.MIN, UnitAggregateKind.MAX):
                values = [self.values_of(rows, substituted(aggregate.value, rows.columns)) for rows in sources]
                if all(each is not None for each in values):
                    listed[variable] = tuple(dict.fromkeys(value for each in values for value in each or ()))
        apart = bool(columns) and len(columns) + len(relation.keys) > 1
        causes = frozenset({"columns made per unit, each taken by itself"}) if apart else frozenset[str]()
        # A column without possible values means that there is no such row. A condition states this for this row, not for one joined to it.
        never = () in listed.values()
        return PossibleRows(
            columns,
            variables,
            {variable: values for variable, values in listed.items() if values},
            conditions=(Literal(False, Kind.BOOLEAN),) if never else (),
            causes=causes.union(*(rows.causes for rows in sources)),
        )

    def _windowed(self, relation: UnitWindow) -> tuple[PossibleRows, ...]:
        """The same rows with further columns: the possible values of each independently, from any row of the unit."""
        sources, shape = self.read(relation.source), shape_of(relation, self.facts)
        columns: dict[str, Expression] = {}
        variables: dict[str, Domain] = {}
        listed: dict[str, tuple[Value, ...]] = {}
        for name, window in relation.columns:
            variable, domain = self._variable(shape.columns[name])
            columns[name], variables[variable] = Column(variable), domain
            if window.value is not None and window.kind in _OF_ANOTHER_ROW:
                values = [self.values_of(rows, substituted(window.value, rows.columns)) for rows in sources]
                if all(each is not None for each in values):
                    nothing: tuple[Value, ...] = (None,) if domain.nullable else ()
                    listed[variable] = tuple(dict.fromkeys((*(value for each in values for value in each or ()), *nothing)))
        return tuple(
            replace(
                rows,
                columns={**rows.columns, **columns},
                variables={**rows.variables, **variables},
                listed={**rows.listed, **{variable: values for variable, values in listed.items() if values}},
                causes=rows.causes | {"columns of windows, each taken by itself"},
            )
            for rows in sources
        )


_OF_ANOTHER_ROW = frozenset({WindowKind.LAG, WindowKind.LEAD, WindowKind.FIRST, WindowKind.LAST, WindowKind.MIN, WindowKind.MAX})


def _equal(on: Sequence[tuple[str, str]], left: PossibleRows, right: PossibleRows) -> tuple[Expression, ...]:
    return tuple(call(Function.EQUAL, left.columns[a], right.columns[b]) for a, b in on)


def _where(join: UnitJoin | SemiJoin, left: PossibleRows, right: PossibleRows) -> tuple[Expression, ...]:
    """The condition on pairs of rows."""
    if join.where is None:
        return ()
    columns = {**left.columns, **{name: right.columns[column] for name, column in join.columns}}
    return tuple(conjuncts(substituted(join.where, columns)))


def _steps(domain: Domain) -> int | None:
    return domain.steps if isinstance(domain, RealDomain) else None


def _only_where_not_found(joined: PossibleRows, found: Expression, on: Expression, keys: Sequence[Value], domain: Domain) -> PossibleRows:
    """A LEFT JOIN to a public table has no match only if the key is not among its keys."""
    present = [Literal(value, kind_of(domain)) for value in keys if value is not None]
    if not 0 < len(present) <= KEYS_NAMED_MAX or isinstance(domain, RealDomain | KeyDomain):
        return replace(joined, causes=joined.causes | {"a LEFT JOIN whose keys cannot be compared one by one"})
    condition = call(Function.OR, found, call(Function.IS_NULL, on), call(Function.NOT, call(Function.IN, on, *present)))
    return replace(joined, conditions=(*joined.conditions, condition))


def _with_one_key(joined: PossibleRows, on: Expression, key: Expression) -> PossibleRows:
    """Replace a column that is joined directly to the key of a public table with the key, within the column's own domain."""
    if not isinstance(on, Column) or on.name in joined.listed or any(on.name in table.variables for table in joined.tables):
        return joined
    domain, names = joined.variables[on.name], {name: Column(name) for name in joined.variables}
    within: tuple[Expression, ...]
    match domain:
        case IntegerDomain(lo, hi) | DateDomain(lo, hi):
            kind = kind_of(domain)
            within = (call(Function.GREATER_EQUAL, key, Literal(lo, kind)), call(Function.LESS_EQUAL, key, Literal(hi, kind)))
        case TextDomain(tuple() as values) if 0 < len(values) <= KEYS_NAMED_MAX:
            within = (call(Function.IN, key, *(Literal(value, kind_of(domain)) for value in values)),)
        case _:
            return joined
    replaced: dict[str, Expression] = {**names, on.name: key}
    return PossibleRows(
        {name: substituted(value, replaced) for name, value in joined.columns.items()},
        {name: known for name, known in joined.variables.items() if name != on.name},
        joined.listed,
        joined.tables,
        (*(substituted(condition, replaced) for condition in joined.conditions[:-1]), *within),
        joined.causes,
    )
