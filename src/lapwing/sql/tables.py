"""Reads FROM and its joins into a scope. What can stand in FROM is a small match; more kinds of item are added there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, KeyDomain, RealDomain, kind_of, with_null
from lapwing.kernel.expressions import Call, Case, Column, Expression, Literal
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import JoinKind, Scan
from lapwing.sql.operators import chain
from lapwing.sql.reader import Reader, Session
from lapwing.sql.scalars import Handler, Scalars, Typed, identifier, unsupported
from lapwing.sql.scope import Item, PendingJoin, Scope


@dataclass(frozen=True, slots=True)
class Named:
    """A table of the catalogue as FROM names it."""

    table: str
    name: str
    node: exp.Expr


@dataclass(slots=True)
class Tables:
    """Reads the tables of one statement."""

    session: Session
    facts: Facts
    unit_columns: Mapping[str, str]
    handlers: Mapping[type[exp.Expr], Handler]

    def read(self, first: exp.Expr | None, joins: tuple[exp.Expr, ...], whole: exp.Expr) -> tuple[Scalars, list[Typed]]:
        """The scope of FROM, and the conditions of its inner joins that are no keys."""
        if first is None:
            raise self.session.refuse("from-missing", "a statement must say FROM which table", node=whole)
        limit = self.session.settings.joins_max
        if len(joins) > limit:
            raise self.session.refuse("too-many-joins", f"a statement may have at most {limit} joins", node=joins[limit])
        with self.session.reading(first) as reader:
            named = self._item(reader.node_of("this"))
        if named.table in self.facts.public_tables:
            hint = "name a protected table first and join the public one to it"
            raise self.session.refuse("table-public", f"the table {named.table!r} is public", node=named.node, hint=hint)
        known = self.facts.table(named.table)
        scope = Scope(
            scan=Scan(named.table, known.rows_per_unit_max),
            unit_column=self.unit_columns.get(named.table),
            items=[Item(named.name, {column.lower(): column for column in known.columns})],
            columns=dict(known.columns),
        )
        scalars = Scalars(self.session, scope, self.handlers)
        conditions: list[Typed] = []
        for join in joins:
            if type(join) is not exp.Join:
                raise unsupported(self.session, join)
            with self.session.reading(join) as reader:
                conditions += self._join(scalars, reader)
        return scalars, conditions

    def _item(self, node: exp.Expr) -> Named:
        match node:
            case exp.Table():
                with self.session.reading(node) as reader:
                    return self._table(reader)
            case exp.Subquery():
                hint = "ask the inner statement by itself"
                raise self.session.refuse("subquery-unsupported", "subqueries in FROM are not supported yet", node=node, hint=hint)
            case _:
                raise self.session.refuse("table-unsupported", "only tables of the catalogue can stand in FROM", node=node)

    def _table(self, reader: Reader) -> Named:
        node = reader.node_of("this")
        if type(node) is not exp.Identifier:
            raise self.session.refuse("table-unsupported", "only tables of the catalogue can stand in FROM", node=node)
        for name in ("db", "catalog"):
            part = reader.optional(name)
            if part is not None:
                hint = "use the name of the catalogue alone"
                raise self.session.refuse("table-unsupported", "tables are named without a schema", node=reader.node, hint=hint)
        written = identifier(self.session, node)
        table = next((known for known in (*self.facts.tables, *self.facts.public_tables) if known.lower() == written.lower()), None)
        if table is None:
            raise self.session.refuse("unknown-table", f"there is no table {written!r} in this data set", node=node)
        alias = reader.optional("alias")
        return Named(table, table.lower() if alias is None else self._alias(alias), reader.node)

    def _alias(self, node: exp.Expr) -> str:
        if type(node) is not exp.TableAlias:
            raise unsupported(self.session, node)
        with self.session.reading(node) as reader:
            return identifier(self.session, reader.node_of("this")).lower()

    # -- joins ----------------------------------------------------------------------------------------------------------------------

    def _join(self, scalars: Scalars, reader: Reader) -> list[Typed]:
        reader.require_absent("method")
        named, kind = self._item(reader.node_of("this")), self._kind(reader)
        on, using = reader.optional("on"), reader.many("using")
        if any(item.name == named.name for item in scalars.scope.items):
            raise self.session.refuse("ambiguous-table", f"two tables are called {named.name!r}", node=named.node, hint="give one an alias")
        if on is None and not using:
            hint = "JOIN ... ON, or USING, with the key of a public table"
            raise self.session.refuse("join-unconditional", "every row would be joined to every row", node=reader.node, hint=hint)
        if named.table in self.facts.tables:
            message = f"the table {named.table!r} is protected, and joins of two protected tables are not supported yet"
            raise self.session.refuse("join-private", message, node=named.node, hint="join public tables only")
        return self._public_join(scalars, named, kind, on, using)

    def _kind(self, reader: Reader) -> JoinKind:
        match reader.word("side").upper(), reader.word("kind").upper():
            case "", ("" | "INNER"):
                return JoinKind.INNER
            case "LEFT", ("" | "OUTER"):
                return JoinKind.LEFT
            case _:
                hint = "use JOIN or LEFT JOIN, with the protected table on the left"
                raise self.session.refuse("join-unsupported", "this kind of join is not supported", node=reader.node, hint=hint)

    def _public_join(self, scalars: Scalars, named: Named, kind: JoinKind, on: exp.Expr | None, using: tuple[exp.Expr, ...]) -> list[Typed]:
        scope, known = scalars.scope, self.facts.public_table(named.table)
        left = self._using(scalars, named, using, known.key) if using else None
        names: dict[str, str] = {}
        for column, domain in known.columns.items():
            names[column] = scope.free_name(named.table, column)
            scope.columns[names[column]] = with_null(domain, True) if kind is JoinKind.LEFT else domain
        scope.items.append(Item(named.name, {column.lower(): name for column, name in names.items()}))
        conditions: list[Typed] = []
        if on is not None:
            left, conditions = self._on(scalars, on, names, known.key)
        if left is None:
            hint = f"join on the key, {named.name}.{known.key}"
            raise self.session.refuse("join-not-on-key", f"{named.table!r} can be joined on its key only", node=on or named.node, hint=hint)
        if conditions and kind is JoinKind.LEFT:
            hint = "move the condition to WHERE, or into FILTER and CASE"
            raise self.session.refuse("join-unsupported", "a LEFT JOIN takes the key alone", node=conditions[0].node, hint=hint)
        self._check_key(left, known.columns[known.key], named)
        columns = tuple((name, column) for column, name in names.items())
        scope.joins.append(PendingJoin(named.table, left.expression, kind, columns))
        return conditions

    def _using(self, scalars: Scalars, named: Named, using: tuple[exp.Expr, ...], key: str) -> Typed:
        if len(using) != 1:
            raise self.session.refuse("join-not-on-key", f"{named.table!r} can be joined on its key only", node=using[1])
        name = identifier(self.session, using[0])
        found = scalars.scope.lookup(name, None)
        if name.lower() != key.lower() or len(found) != 1:
            hint = f"the key of {named.table!r} is {key!r}"
            raise self.session.refuse("join-not-on-key", f"{named.table!r} can be joined on its key only", node=using[0], hint=hint)
        scalars.scope.used.add(found[0])
        scalars.scope.merged[name.lower()] = found[0]
        return Typed(Column(found[0]), scalars.scope.columns[found[0]], using[0])

    def _on(self, scalars: Scalars, on: exp.Expr, names: Mapping[str, str], key: str) -> tuple[Typed | None, list[Typed]]:
        """The expression that equals the key, and all other conditions."""
        left: Typed | None = None
        others: list[Typed] = []
        for node in self._conjuncts(on):
            found = self._key_equality(scalars, node, names, key) if left is None and type(node) is exp.EQ else None
            if found is not None:
                left = found
            else:
                others.append(scalars.condition(node, "a condition of ON"))
        return left, others

    def _conjuncts(self, node: exp.Expr) -> list[exp.Expr]:
        if type(node) is exp.Paren:
            with self.session.reading(node) as reader:
                return self._conjuncts(reader.node_of("this"))
        if type(node) is not exp.And:
            return [node]
        with self.session.reading(node) as reader:
            return [part for operand in chain(reader, self.session) for part in self._conjuncts(operand)]

    def _key_equality(self, scalars: Scalars, node: exp.Expr, names: Mapping[str, str], key: str) -> Typed | None:
        own, used = set(names.values()), set(scalars.scope.used)
        with self.session.reading(node) as reader:
            sides = scalars.bind(reader.node_of("this")), scalars.bind(reader.node_of("expression"))
        for side, other in (sides, sides[::-1]):
            if side.expression == Column(names[key]) and columns_of(other.expression).isdisjoint(own):
                scalars.scope.used = used | columns_of(other.expression)
                return other
        return None

    def _check_key(self, left: Typed, key: Domain, named: Named) -> None:
        same = left.kind is kind_of(key) and not isinstance(key, RealDomain)
        if same and isinstance(key, KeyDomain) and isinstance(left.domain, KeyDomain):
            same = key.text == left.domain.text
        if not same:
            message = f"the key of {named.table!r} is a {kind_of(key).value}, not a {left.kind.value} like this"
            raise Refused("type-mismatch", message, span=self.session.source.span(left.node))


def columns_of(expression: Expression) -> set[str]:
    """Names of all columns an expression reads."""
    match expression:
        case Column(name):
            return {name}
        case Literal():
            return set()
        case Call(_, arguments):
            return set().union(*(columns_of(argument) for argument in arguments))
        case Case(branches, otherwise):
            return columns_of(otherwise).union(*(columns_of(part) for branch in branches for part in branch))
