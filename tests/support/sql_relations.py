"""Random statements about several tables: joins along the unit and declared keys, subqueries, WITH, one row per unit, UNION ALL, nesting.

For tests only, hence seeded. Everything is derived from the facts, so one generator serves every test data set. Expressions, keys and
aggregates come from ``SqlQueries``; here are the rows they are about, and what is done with answers afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    union,
    with_null,
)
from lapwing.kernel.facts import Facts
from tests.support.sql_pieces import Generated, Piece, Source
from tests.support.sql_queries import SqlQueries
from tests.support.sql_windows import Windows

Origin = tuple[str, str]
DISTINCT_ON = 0.3
"""Share of rows with windows of which one row of each unit is picked."""
COMMAS = 0.3
"""Share of FROMs whose items stand with commas between them, and their joins in WHERE."""
ON_MORE = 0.3
"""Share of joins with a condition besides the key."""
CHOSEN = 0.25
"""Share of aggregates over the rows of one unit that choose a row, or count distinct values."""
VALUES_OF_UNITS = 0.4
"""Share of subqueries with a column that is an aggregate over the unit's rows elsewhere."""
PAIRS = 0.5
"""Share of further conditions, of joins and of EXISTS, that are about a row of each side."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of FROM, with what may be said about it."""

    sql: str
    name: str
    columns: Mapping[str, Domain]
    unit: str | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict)
    table: str | None = None
    """The protected table, if it is one."""
    certain: bool = True
    """Not the right side of a LEFT JOIN."""

    def named(self) -> dict[str, Domain]:
        """Columns as expressions write them, without identifiers."""
        plain = {column: domain for column, domain in self.columns.items() if not isinstance(domain, KeyDomain)}
        found: dict[str, Domain] = {f"{self.name}.{column}": domain for column, domain in plain.items()}
        return found if self.certain else {name: with_null(domain, True) for name, domain in found.items()}


@dataclass(frozen=True, slots=True)
class SomeRows:
    """FROM and WHERE of a SELECT over rows."""

    items: tuple[Item, ...]
    sql: str
    conditions: tuple[str, ...]

    def columns(self) -> dict[str, Domain]:
        return {name: domain for item in self.items for name, domain in item.named().items()}

    @property
    def unit(self) -> str | None:
        """A column that holds the unit in every row."""
        return next((f"{item.name}.{item.unit}" for item in self.items if item.unit and item.certain), None)


class RelationalQueries:
    """A source of random statements about several tables of one data set."""

    def __init__(
        self,
        facts: Facts,
        unit_columns: Mapping[str, str],
        references: Mapping[Origin, Origin],
        *,
        seed: int,
        comparable: bool = False,
        bare_unit: str | None = None,
    ) -> None:
        """``comparable`` and ``bare_unit`` as for ``SqlQueries``."""
        self._facts, self._units, self._references = facts, unit_columns, references
        self._rng = random.Random(seed)
        self._comparable, self._bare_unit = comparable, bare_unit
        self._queries = SqlQueries(
            facts, unit_columns, seed=seed + 1, comparable=comparable, bare_unit=bare_unit, statistics=not comparable
        )
        self._names = 0
        self._with: list[str] = []

    def statement(self) -> Generated:
        """A statement; about one in four does something with several answers."""
        self._names, self._with = 0, []
        if self._rng.random() < 0.75:
            return self._queries.about(self._source())
        return self._rng.choice([self._of_answer, self._ratio, self._joined_answers, self._union_of_answers])()

    def _source(self) -> Source:
        rows = self._rows(2, joins=self._rng.choice((0, 1, 1, 2)))
        first = rows.items[0]
        bare_unit = f"{first.name}.{self._bare_unit}" if self._bare_unit and first.table else None
        return Source(first.table or first.name, rows.sql, rows.columns(), rows.unit, bare_unit, rows.conditions, self._prefix())

    def _prefix(self) -> str:
        return f"WITH {', '.join(self._with)} " if self._with else ""

    def _name(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    # -- rows -------------------------------------------------------------------------------------------------------------------------

    def _rows(self, depth: int, *, joins: int) -> SomeRows:
        """Some items joined, with conditions that have subqueries."""
        first = self._item(depth)
        items, sql = [first], first.sql
        commas = self._rng.random() < COMMAS
        linked: list[str] = []
        for _ in range(joins):
            joined = self._join(items, depth, kinds=("JOIN",) if commas else ("JOIN", "LEFT JOIN"))
            if joined is not None:
                kind, brought, condition, item = joined
                items.append(item)
                sql += f", {brought}" if commas else f" {kind} {brought} ON {condition}"
                linked += [condition] if commas else []
        rows = SomeRows(tuple(items), sql, ())
        count = self._rng.choice((0, 0, 1, 1, 2)) if depth > 0 else 0
        conditions = tuple(made for _ in range(count) if (made := self._subquery(rows, depth - 1)) is not None)
        return SomeRows(rows.items, sql, (*linked, *conditions))

    def _item(self, depth: int) -> Item:
        if depth == 0 or self._rng.random() < 0.6:
            return self._table(self._rng.choice(sorted(self._facts.tables)))
        return self._rng.choice([self._derived, self._per_unit, self._union, self._windowed])(depth - 1)

    def _table(self, table: str) -> Item:
        name = self._name("t")
        columns = self._facts.table(table).columns
        origins = {column: (table, column) for column, domain in columns.items() if isinstance(domain, KeyDomain)}
        return Item(f"{table} AS {name}", name, columns, self._units.get(table), origins, table)

    def _placed(self, select: str) -> tuple[str, str]:
        """A subquery in brackets or in WITH: what stands in FROM, and its name."""
        name = self._name("s")
        if self._rng.random() < 0.4:
            self._with.append(f"{name} AS ({select})")
            return name, name
        return f"({select}) AS {name}", name

    def _where(self, rows: SomeRows) -> str:
        kept = [self._queries.condition(rows.columns(), 1)] if self._rng.random() < 0.5 else []
        return f" WHERE {' AND '.join([*kept, *rows.conditions])}" if kept or rows.conditions else ""

    def _derived(self, depth: int) -> Item:
        """Some columns of some rows."""
        rows = self._rows(depth, joins=self._rng.choice((0, 0, 1)))
        columns = rows.columns()
        chosen = self._rng.sample(sorted(columns), min(len(columns), self._rng.randint(2, 4)))
        listed = {f"c{i}": (name, columns[name]) for i, name in enumerate(chosen)}
        found = self._value_of_unit(rows) if self._rng.random() < VALUES_OF_UNITS else None
        lateral = ""
        if found is not None:
            value, domain = found
            if self._rng.random() < 0.4:
                name = self._name("l")
                lateral, value = f", LATERAL ({value[1:-1]}) AS {name}", f"{name}.v"
            listed["v"] = (value, domain)
        select = [f"{name} AS {alias}" for alias, (name, _) in listed.items()]
        if rows.unit is not None:
            select.append(f"{rows.unit} AS u")
        sql, name = self._placed(f"SELECT {', '.join(select)} FROM {rows.sql}{lateral}{self._where(rows)}")
        return Item(sql, name, {alias: domain for alias, (_, domain) in listed.items()}, "u" if rows.unit else None)

    def _value_of_unit(self, rows: SomeRows) -> tuple[str, Domain] | None:
        """A subquery that is an aggregate over rows of the unit elsewhere."""
        left = self._rng.choice([item for item in rows.items if item.certain])
        right = self._table(self._rng.choice(sorted(self._facts.tables)))
        links = self._links(left, right)
        if not links:
            return None
        columns = right.named()
        name = self._rng.choice(sorted(columns))
        made = self._feature(name, columns[name], "") or ("COUNT(*)", IntegerDomain(0, 9, nullable=False))
        kept = f" AND {self._queries.condition(columns, 1)}" if self._rng.random() < 0.3 else ""
        link = self._rng.choice(links).format(left=left.name, right=right.name)
        return f"(SELECT {made[0]} AS v FROM {right.sql} WHERE {link}{kept})", with_null(made[1], True)

    def _per_unit(self, depth: int) -> Item:
        """One row per unit."""
        before = len(self._with)
        rows = self._rows(depth, joins=self._rng.choice((0, 0, 1)))
        if rows.unit is None:
            del self._with[before:]
            return self._table(self._rng.choice(sorted(self._facts.tables)))
        columns = rows.columns()
        made: dict[str, tuple[str, Domain]] = {"n": ("COUNT(*)", IntegerDomain(0, 9, nullable=False))}
        for number, name in enumerate(self._rng.sample(sorted(columns), min(3, len(columns)))):
            kept = f" FILTER (WHERE {self._queries.condition(columns, 1)})" if self._rng.random() < 0.3 else ""
            feature = self._feature(name, columns[name], kept, columns)
            if feature is not None:
                made[f"f{number}"] = feature
        having = f" HAVING COUNT(*) {self._rng.choice(('> 1', '<= 2', '<> 3'))}" if self._rng.random() < 0.3 else ""
        listed = ", ".join([f"{rows.unit} AS u", *(f"{sql} AS {alias}" for alias, (sql, _) in made.items())])
        group = self._rng.choice((rows.unit, "u", "1"))
        sql, name = self._placed(f"SELECT {listed} FROM {rows.sql}{self._where(rows)} GROUP BY {group}{having}")
        return Item(sql, name, {alias: domain for alias, (_, domain) in made.items()}, "u")

    def _windowed(self, depth: int) -> Item:
        """Rows with columns from other rows of their unit, and perhaps only some of them by their number."""
        before = len(self._with)
        rows = self._rows(depth, joins=self._rng.choice((0, 0, 0, 1)))
        if rows.unit is None:
            del self._with[before:]
            return self._table(self._rng.choice(sorted(self._facts.tables)))
        columns = rows.columns()
        windows = Windows(self._rng, columns, rows.unit, comparable=self._comparable)
        chosen = self._rng.sample(sorted(columns), min(len(columns), 2))
        made = {f"c{i}": (name, columns[name]) for i, name in enumerate(chosen)}
        made |= {f"w{i}": windows.column() for i in range(self._rng.choice((1, 1, 2)))}
        listed = ", ".join([f"{sql} AS {alias}" for alias, (sql, _) in made.items()] + [f"{rows.unit} AS u"])
        distinct, order = windows.distinct_on() if self._rng.random() < DISTINCT_ON and "w1" not in made else ("", "")
        sql, name = self._placed(f"SELECT {distinct}{listed} FROM {rows.sql}{self._where(rows)}{order}")
        return Item(sql, name, {alias: domain for alias, (_, domain) in made.items()}, "u")

    def _feature(self, name: str, domain: Domain, kept: str, others: Mapping[str, Domain] | None = None) -> tuple[str, Domain] | None:
        """An aggregate over the rows of one unit."""
        if self._rng.random() < CHOSEN:
            if self._rng.random() < 0.5:
                return f"COUNT(DISTINCT {name}){kept}", IntegerDomain(0, 3, nullable=False)
            # Which of several rows with the least value is chosen is ours to say, and the bare engine chooses another.
            by = name if self._comparable else self._rng.choice(sorted(others or {name}))
            return f"{self._rng.choice(('ARG_MIN', 'ARG_MAX', 'MIN_BY'))}({name}, {by}){kept}", with_null(domain, True)
        pick: Callable[..., str] = lambda *words: self._rng.choice(words)  # noqa: E731 - it is one word shorter everywhere below
        match domain:
            case BooleanDomain():
                return f"{pick('BOOL_OR', 'BOOL_AND')}({name}){kept}", BooleanDomain()
            case IntegerDomain(lo, hi):
                word = pick("SUM", "MIN", "MAX", "COUNT", "AVG")
                if word == "AVG":
                    return f"AVG({name}){kept}", RealDomain(Fraction(lo), Fraction(hi))
                return f"{word}({name}){kept}", IntegerDomain(min(lo, 0), max(hi, 3))
            case RealDomain(lo, hi, steps=int(steps)):
                # Sums of doubles that are no binary fractions may fall on the other side of a comparison than exact ones.
                words = ("MIN", "MAX") if self._comparable and steps & (steps - 1) else ("SUM", "MIN", "MAX")
                return f"{pick(*words)}({name}){kept}", RealDomain(lo, hi, True, steps)
            case DateDomain() | TimestampDomain() | TextDomain(tuple()):
                return f"{pick('MIN', 'MAX')}({name}){kept}", with_null(domain, True)
            case _:
                return None

    def _union(self, depth: int) -> Item:
        """Rows of two sources, one under the other: columns of like domains."""
        before = len(self._with)
        parts = [self._rows(depth, joins=self._rng.choice((0, 0, 1))) for _ in range(2)]
        first, second = (part.columns().items() for part in parts)
        pairs = [(a, b, union(domain, other)) for a, domain in first for b, other in second if _alike(domain, other)]
        if not pairs:
            del self._with[before:]
            return self._table(self._rng.choice(sorted(self._facts.tables)))
        chosen = self._rng.sample(pairs, min(3, len(pairs)))
        with_unit = all(part.unit is not None for part in parts)
        selects = []
        for side, part in enumerate(parts):
            listed = [f"{pair[side]} AS c{i}" for i, pair in enumerate(chosen)] + ([f"{part.unit} AS u"] if with_unit else [])
            selects.append(f"SELECT {', '.join(listed)} FROM {part.sql}{self._where(part)}")
        sql, name = self._placed(" UNION ALL ".join(selects))
        return Item(sql, name, {f"c{i}": with_null(domain, True) for i, (_, _, domain) in enumerate(chosen)}, "u" if with_unit else None)

    # -- joins and subqueries ---------------------------------------------------------------------------------------------------------

    def _join(self, items: list[Item], depth: int, *, kinds: tuple[str, ...]) -> tuple[str, str, str, Item] | None:
        """One more item, joined to one of those there: the kind of join, what stands in FROM, and the condition."""
        left = self._rng.choice([item for item in items if item.certain])
        if left.table is not None and self._rng.random() < 0.25:
            return self._public_join(left, kinds)
        before = len(self._with)
        right = self._item(max(depth - 1, 0))
        links = self._links(left, right)
        if not links:
            del self._with[before:]  # what is named in WITH must be used
            return None
        link = self._rng.choice(links)
        kind = self._rng.choice(kinds)
        condition = link.format(left=left.name, right=right.name)
        if self._rng.random() < ON_MORE:
            about = {**left.named(), **right.named()} if self._rng.random() < PAIRS else right.named()
            condition += f" AND {self._queries.condition(about, 1)}"
        made = Item(right.sql, right.name, right.columns, right.unit, right.origins, right.table, certain=kind == "JOIN")
        return kind, right.sql, condition, made

    def _links(self, left: Item, right: Item) -> list[str]:
        """Equalities that keep both within one unit."""
        found = []
        if left.unit and right.unit:
            found.append(f"{{left}}.{left.unit} = {{right}}.{right.unit}")
        for a, origin in left.origins.items():
            for b, other in right.origins.items():
                if self._references.get(origin) == other or self._references.get(other) == origin:
                    found.append(f"{{right}}.{b} = {{left}}.{a}")
        return found

    def _public_join(self, left: Item, kinds: tuple[str, ...]) -> tuple[str, str, str, Item] | None:
        assert left.table is not None
        choices = [pair for public in self._facts.public_tables for pair in self._queries.joinable(left.table, public)]
        if not choices:
            return None
        column, table = self._rng.choice(choices)
        known, name = self._facts.public_table(table), self._name("p")
        kind = self._rng.choice(kinds)
        item = Item(table, name, {c: d for c, d in known.columns.items() if c != known.key}, certain=kind == "JOIN")
        return kind, f"{table} {name}", f"{name}.{known.key} = {left.name}.{column}", item

    def _subquery(self, rows: SomeRows, depth: int) -> str | None:
        """IN or EXISTS, on the unit, along a key, or on the key of a public table."""
        left = self._rng.choice([item for item in rows.items if item.certain])
        if left.table is not None and self._rng.random() < 0.3:
            return self._in_public(left)
        before = len(self._with)
        inner = self._rows(max(depth, 0), joins=self._rng.choice((0, 0, 1)))
        right = self._rng.choice([item for item in inner.items if item.certain])
        links = self._links(left, right)
        if not links:
            del self._with[before:]
            return None
        link = self._rng.choice(links).format(left=left.name, right=right.name)
        kept = [self._queries.condition(inner.columns(), 1)] if self._rng.random() < 0.6 else []
        negated = self._rng.choice(("", "", "NOT "))
        if self._rng.random() < 0.5:
            if self._rng.random() < PAIRS:
                kept = [self._queries.condition({**rows.columns(), **inner.columns()}, 1)]
            where = " AND ".join([link, *kept, *inner.conditions])
            return f"{negated}EXISTS (SELECT 1 FROM {inner.sql} WHERE {where})"
        sides = dict(side.split(".") for side in link.split(" = "))
        where = f" WHERE {' AND '.join([*kept, *inner.conditions])}" if kept or inner.conditions else ""
        return f"{left.name}.{sides[left.name]} {negated}IN (SELECT {right.name}.{sides[right.name]} FROM {inner.sql}{where})"

    def _in_public(self, left: Item) -> str | None:
        assert left.table is not None
        choices = [pair for public in self._facts.public_tables for pair in self._queries.joinable(left.table, public)]
        if not choices:
            return None
        column, table = self._rng.choice(choices)
        known = self._facts.public_table(table)
        where = f" WHERE {self._queries.condition(known.columns, 1)}" if self._rng.random() < 0.7 else ""
        # NULL is not in an empty list, says SQL; whether a list is empty is not looked at.
        differs = self._comparable and (left.columns[column].nullable or known.columns[known.key].nullable)
        return f"{left.name}.{column} {'' if differs else self._rng.choice(('', 'NOT '))}IN (SELECT {known.key} FROM {table}{where})"

    # -- answers ----------------------------------------------------------------------------------------------------------------------

    def _count(self, *, key: bool) -> str:
        """A SELECT that counts rows or units, perhaps by one small key."""
        rows = self._rows(1, joins=self._rng.choice((0, 1)))
        columns = rows.columns()
        counted = self._rng.choice((f"COUNT(DISTINCT {rows.unit})" if rows.unit else "COUNT(*)", "COUNT(*)"))
        if not key:
            return f"SELECT {counted} AS n FROM {rows.sql}{self._where(rows)}"
        small = [name for name, domain in columns.items() if isinstance(domain, BooleanDomain)]
        chosen = self._rng.choice(small or [f"({self._queries.condition(columns, 0)})"])
        group = self._rng.choice(("g", "1", chosen))
        return f"SELECT {chosen} AS g, {counted} AS n FROM {rows.sql}{self._where(rows)} GROUP BY {group}"

    def _made(self, text: str, reference: str, *, keys: int, outputs: int, existing: str | None = None) -> Generated:
        prefix = self._prefix()
        pieces = tuple(Piece(f"a{i}", f"a{i}", True, True) for i in range(outputs))
        return Generated(
            text=prefix + text,
            unlimited=prefix + text,
            reference=prefix + reference,
            existing=None if existing is None else prefix + existing,
            keys=keys,
            outputs=pieces,
            table="",
            discovered=False,
            limit=None,
            offset=0,
        )

    def _of_answer(self) -> Generated:
        """Aggregates of an answer; empty groups count 0 and change neither, if there is any group at all."""
        inner = self._count(key=True)
        text = f"SELECT MAX(m.n) AS a0, SUM(m.n) AS a1 FROM ({inner}) AS m"
        return self._made(text, f"SELECT COALESCE(MAX(m.n), 0) AS a0, COALESCE(SUM(m.n), 0) AS a1 FROM ({inner}) AS m", keys=0, outputs=2)

    def _ratio(self) -> Generated:
        """Two answers as values."""
        one, other = self._count(key=False), self._count(key=False)
        text = f"SELECT ({one}) - ({other}) AS a0, ({one}) + 1 AS a1"
        return self._made(text, text, keys=0, outputs=2)

    def _joined_answers(self) -> Generated:
        """Two answers joined on their keys."""
        one, other = self._count(key=True), self._count(key=True)
        source = f"FROM ({one}) AS a JOIN ({other}) AS b ON a.g = b.g"
        text = f"SELECT a.g AS g0, a.n AS a0, a.n - b.n AS a1 {source}"
        return self._made(text, text, keys=1, outputs=2, existing=f"SELECT a.g AS g0 {source}")

    def _union_of_answers(self) -> Generated:
        """Two answers, one under the other."""
        one, other = self._count(key=False), self._count(key=False)
        text = f"{one} UNION ALL {other}"
        return self._made(text, text, keys=0, outputs=1)


def _alike(a: Domain, b: Domain) -> bool:
    """Whether two columns can stand under one another: of one kind and, for reals, on one grid."""
    if isinstance(a, RealDomain) and isinstance(b, RealDomain):
        return a.steps is not None and a.steps == b.steps
    return type(a) is type(b)
