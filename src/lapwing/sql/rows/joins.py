"""Joins of rows: to public tables on their key, and to other rows of the same unit. Others would let units affect each other's rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, KeyDomain, RealDomain, kind_of, with_null
from lapwing.kernel.expressions import Column, Expression, Function, columns_of
from lapwing.kernel.ir import Filter, JoinKind, Relation
from lapwing.sql.rows.names import BindCatalog, PublicItem
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import Handler, Scalars, column_name, identifier, qualifier
from lapwing.sql.scalars.operators import chain
from lapwing.sql.scalars.scope import Item, PublicPending, Qualifier, Rows, Scope, UnitPending
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader, Session

NOT_ALONG_UNIT = (
    "rows of two protected tables can be joined only within one unit: otherwise one unit could change which rows of others count"
)


@dataclass(frozen=True, slots=True)
class Joins:
    """Adds joins to the scope of a SELECT over rows."""

    session: Session
    known: BindCatalog
    handlers: Mapping[type[exp.Expr], Handler]

    def add(self, scalars: Scalars, called: Called, reader: Reader, links: tuple[exp.Expr, ...] = ()) -> list[Typed]:
        """Join one more item; conditions of ON that are not about keys are returned, to be applied afterwards.

        ``links`` are the conditions of WHERE that replace ON for a comma join.
        """
        reader.require_absent("method")
        kind = join_kind(self.session, reader, crossing=bool(links))
        on, using = reader.optional("on"), reader.many("using")
        return self.joined(scalars, called, kind, reader.node, links if on is None else tuple(conjuncts(self.session, on)), using)

    def joined(
        self, scalars: Scalars, called: Called, kind: JoinKind, node: exp.Expr, on: tuple[exp.Expr, ...], using: tuple[exp.Expr, ...] = ()
    ) -> list[Typed]:
        """The same with the parts of the clause already read."""
        if any(item.name == called.name for item in scalars.scope.items):
            hint = "give one an alias"
            raise self.session.refuse("ambiguous-table", f"two tables are called {called.name!r}", node=called.node, hint=hint)
        if not on and not using:
            hint = "JOIN ... ON, or USING, with the key of a public table or the unit"
            raise self.session.refuse("join-unconditional", "every row would be joined with every row", node=node, hint=hint)
        if isinstance(called.item, PublicItem):
            return self._public(scalars, called, called.item.table, kind, on, using)
        assert isinstance(called.item, Rows)
        return self._private(scalars, called, called.item, kind, on, using)

    # -- public tables --------------------------------------------------------------------------------------------------------------

    def _public(
        self, scalars: Scalars, called: Called, table: str, kind: JoinKind, on: tuple[exp.Expr, ...], using: tuple[exp.Expr, ...]
    ) -> list[Typed]:
        scope, known = scalars.scope, self.known.facts.public_table(table)
        left = self._using_key(scalars, called, table, using, known.key) if using else None
        names: dict[str, str] = {}
        for column, domain in known.columns.items():
            names[column] = scope.free_name(table, column)
            scope.columns[names[column]] = with_null(domain, True) if kind is JoinKind.LEFT else domain
        scope.items.append(Item(called.name, {column.lower(): name for column, name in names.items()}, called.in_schema))
        conditions: list[Typed] = []
        if on:
            left, conditions = self._on_key(scalars, on, names, known.key)
        if left is None:
            hint = f"join on the key, {called.name}.{known.key}"
            raise self.session.refuse(
                "join-not-on-key", f"{table!r} can be joined on its key only", node=_whole(on) or called.node, hint=hint
            )
        if conditions and kind is JoinKind.LEFT:
            hint = "move the condition to WHERE, or into FILTER and CASE"
            raise self.session.refuse(
                "join-unsupported", "the condition of a LEFT JOIN can only compare the key", node=conditions[0].node, hint=hint
            )
        check_key(self.session, left, known.columns[known.key], table)
        scope.joins.append(PublicPending(table, left.expression, kind, tuple((name, column) for column, name in names.items())))
        return conditions

    def _using_key(self, scalars: Scalars, called: Called, table: str, using: tuple[exp.Expr, ...], key: str) -> Typed:
        if len(using) != 1:
            raise self.session.refuse("join-not-on-key", f"{table!r} can be joined on its key only", node=using[1])
        name = identifier(self.session, using[0])
        matches = scalars.scope.lookup(name, None)
        if name.lower() != key.lower() or len(matches) != 1:
            hint = f"the key of {table!r} is {key!r}"
            raise self.session.refuse("join-not-on-key", f"{table!r} can be joined on its key only", node=using[0], hint=hint)
        scalars.scope.used.add(matches[0])
        scalars.scope.merged[name.lower()] = matches[0]
        return Typed(Column(matches[0]), scalars.scope.columns[matches[0]], using[0])

    def _on_key(self, scalars: Scalars, on: tuple[exp.Expr, ...], names: Mapping[str, str], key: str) -> tuple[Typed | None, list[Typed]]:
        """The expression that equals the key, and all other conditions."""
        left: Typed | None = None
        others: list[Typed] = []
        for node in on:
            equal_key = self._key_equality(scalars, node, names, key) if left is None and type(node) is exp.EQ else None
            if equal_key is not None:
                left = equal_key
            else:
                others.append(scalars.condition(node, "a condition of ON"))
        return left, others

    def _key_equality(self, scalars: Scalars, node: exp.Expr, names: Mapping[str, str], key: str) -> Typed | None:
        own, used = set(names.values()), set(scalars.scope.used)
        with self.session.reading(node) as reader:
            sides = scalars.bind(reader.node_of("this")), scalars.bind(reader.node_of("expression"))
        for side, other in (sides, sides[::-1]):
            if side.expression == Column(names[key]) and columns_of(other.expression).isdisjoint(own):
                scalars.scope.used = used | columns_of(other.expression)
                return other
        return None

    # -- protected rows -------------------------------------------------------------------------------------------------------------

    def _private(
        self, scalars: Scalars, called: Called, rows: Rows, kind: JoinKind, on: tuple[exp.Expr, ...], using: tuple[exp.Expr, ...]
    ) -> list[Typed]:
        scope, right = scalars.scope, Scope.over(rows, called.name, in_schema=called.in_schema)
        links = Links(self.session, self.known, scope, right)
        others: list[exp.Expr] = []
        for node in using:
            name = identifier(self.session, node)
            links.equal(column_in(scope, name, None), column_in(right, name, None), node)
            scope.merged[name.lower()] = scope.lookup(name, None)[0]
        for node in on:
            if not links.read(node):
                others.append(node)
        links.require(_whole(on) or (using[0] if using else called.node))
        relation = rows.relation
        if kind is JoinKind.LEFT:
            relation, others = self._right_conditions(relation, right, others)
        names = self._adopt(scope, rows, called, kind)
        used = {column for _, column in links.on}
        conditions = [scalars.condition(node, "a condition of ON") for node in others]
        where = both(scalars, conditions) if kind is JoinKind.LEFT else None
        columns = tuple((names[c], c) for c in rows.columns if c not in rows.virtual)
        scope.joins.append(UnitPending(relation, tuple(links.on), kind, columns, where))
        scope.used |= {left for left, _ in links.on}
        assert used <= set(rows.columns)
        return conditions if kind is JoinKind.INNER else []

    def _right_conditions(self, relation: Relation, right: Scope, others: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
        """For a LEFT JOIN, conditions on the right side alone are applied there: ON decides what is joined, not what is kept.

        Those that name a column of the left are about pairs of rows, and are returned.
        """
        scalars, about_pairs = Scalars(self.session, right, self.handlers), []
        for node in others:
            if all(right.lookup(column.name, qualifier(column)) for column in node.find_all(exp.Column)):
                relation = Filter(relation, scalars.condition(node, "a condition of ON").expression)
            else:
                about_pairs.append(node)
        return relation, about_pairs

    def _adopt(self, scope: Scope, rows: Rows, called: Called, kind: JoinKind) -> dict[str, str]:
        """Give the joined columns their names in the scope."""
        names: dict[str, str] = {}
        optional = kind is JoinKind.LEFT
        for column, domain in rows.columns.items():
            free = names[column] = scope.free_name(rows.label, column)
            scope.columns[free] = with_null(domain, True) if optional else domain
            if column in rows.origins:
                scope.origins[free] = rows.origins[column]
            if column in rows.units:
                (scope.optional_units if optional else scope.units).add(free)
            if column in rows.virtual:
                scope.virtual.add(free)
        scope.items.append(Item(called.name, {written: names[column] for written, column in rows.names.items()}, called.in_schema))
        return names


@dataclass(slots=True)
class Links:
    """Equalities of a join: those that keep rows within one unit (on the unit itself or along a declared key), and others."""

    session: Session
    known: BindCatalog
    left: Scope
    right: Scope
    on: list[tuple[str, str]]
    by_unit: bool

    def __init__(self, session: Session, known: BindCatalog, left: Scope, right: Scope) -> None:
        self.session, self.known, self.left, self.right = session, known, left, right
        self.on, self.by_unit = [], False

    def read(self, node: exp.Expr) -> bool:
        """Take an equality between a column of each side; return False for any other condition."""
        if type(node) is not exp.EQ:
            return False
        sides = [self._side(child) for child in (node.this, node.expression)]
        for (left, _), (_, right) in (sides, sides[::-1]):
            if left is not None and right is not None and (self._are_units(left, right) or self._joinable(left, right)):
                with self.session.reading(node) as reader:
                    for name in ("this", "expression"):
                        with self.session.reading(reader.node_of(name)) as child:
                            column_name(self.session, child)
                self.equal(left, right, node)
                return True
        return False

    def _side(self, node: exp.Expr) -> tuple[str | None, str | None]:
        """The column of the left and of the right scope that a node can be; the right one, the nearer, comes first."""
        if type(node) is not exp.Column:
            return None, None
        name, table = node.name, qualifier(node)
        right = column_in(self.right, name, table)
        return (None if right is not None else column_in(self.left, name, table)), right

    def equal(self, left: str | None, right: str | None, node: exp.Expr) -> None:
        """Note one equality."""
        if left is None or right is None:
            raise self.session.refuse("unknown-column", "both sides of the join need this column", node=node)
        if self._are_units(left, right):
            self.by_unit = True
            return
        if left in self.left.virtual or right in self.right.virtual:
            raise self.session.refuse("join-private", NOT_ALONG_UNIT, node=node, hint="join on the unit of both sides")
        if self.known.along_key(self.left.origins.get(left), self.right.origins.get(right)):
            self.by_unit = True
        if not self._joinable(left, right):
            raise self.session.refuse(
                "type-mismatch", "these columns cannot be joined", node=node, hint="join on identifiers, dates or text"
            )
        self.on.append((left, right))

    def _are_units(self, left: str, right: str) -> bool:
        """Whether both are the unit itself, which has one type, whatever domain a subquery gives to its column."""
        return left in self.left.units and right in self.right.units

    def _joinable(self, left: str, right: str) -> bool:
        """Whether the kernel can join on the equality of two columns; otherwise it is an ordinary condition."""
        if left in self.left.computed or right in self.right.computed:
            return False
        a, b = self.left.columns[left], self.right.columns[right]
        if isinstance(a, KeyDomain) and isinstance(b, KeyDomain):
            return a.text == b.text
        return kind_of(a) is kind_of(b) and not isinstance(a, RealDomain)

    def require(self, node: exp.Expr) -> None:
        """Refuse a join that does not keep rows within their unit."""
        if not self.by_unit:
            suggestion = self._suggestion()
            hint = (
                f"add {suggestion}" if suggestion else "add an equality of the units' columns, or of a declared key on the path to the unit"
            )
            if not self.known.unit_columns:
                hint = "every row is a separate unit here, so rows can be joined only to public tables"
            raise self.session.refuse("join-private", NOT_ALONG_UNIT, node=node, hint=hint)

    def _suggestion(self) -> str:
        """An equality that would keep the rows within their unit, in the names of the statement; empty if there is none."""
        lefts, rights = _called(self.left), _called(self.right)
        for a, left in lefts:
            for b, right in rights:
                if left in self.left.units and right in self.right.units:
                    return f"{a} = {b}"
        for a, left in lefts:
            for b, right in rights:
                if self.known.along_key(self.left.origins.get(left), self.right.origins.get(right)):
                    return f"{a} = {b}"
        return ""


def _called(scope: Scope) -> list[tuple[str, str]]:
    """Columns by their names in the statement, with those in the relation."""
    return [(f"{item.name}.{name}" if item.name else name, column) for item in scope.items for name, column in item.columns.items()]


def column_in(scope: Scope, name: str, table: Qualifier | None) -> str | None:
    """The one column of a scope that a name means, or None."""
    matches = scope.lookup(name, table)
    return matches[0] if len(matches) == 1 else None


def both(scalars: Scalars, conditions: list[Typed]) -> Expression | None:
    """All conditions as one."""
    if len(conditions) < 2:
        return conditions[0].expression if conditions else None
    return scalars.call(conditions[0].node, Function.AND, *conditions).expression


def _whole(on: tuple[exp.Expr, ...]) -> exp.Expr | None:
    """The whole condition of which these are the parts, for messages."""
    if not on:
        return None
    whole = on[0]
    while isinstance(whole.parent, exp.And | exp.Paren):
        whole = whole.parent
    return whole


def join_kind(session: Session, reader: Reader, *, crossing: bool = False) -> JoinKind:
    """Inner or left; ``crossing`` means that WHERE has the condition of a CROSS JOIN."""
    match reader.word("side").upper(), reader.word("kind").upper():
        case "", ("" | "INNER"):
            return JoinKind.INNER
        case "", "CROSS" if crossing:
            return JoinKind.INNER
        case "LEFT", ("" | "OUTER"):
            return JoinKind.LEFT
        case _:
            hint = "use JOIN or LEFT JOIN, with the protected table on the left"
            raise session.refuse("join-unsupported", "this kind of join is not supported", node=reader.node, hint=hint)


def conjuncts(session: Session, node: exp.Expr) -> list[exp.Expr]:
    """The operands of AND."""
    if type(node) is exp.Paren:
        with session.reading(node) as reader:
            return conjuncts(session, reader.node_of("this"))
    if type(node) is not exp.And:
        return [node]
    with session.reading(node) as reader:
        return [part for operand in chain(reader, session) for part in conjuncts(session, operand)]


def check_key(session: Session, left: Typed, key: Domain, table: str) -> None:
    """Refuse a value that cannot equal the key of a public table."""
    same = left.kind is kind_of(key) and not isinstance(key, RealDomain)
    if same and isinstance(key, KeyDomain) and isinstance(left.domain, KeyDomain):
        same = key.text == left.domain.text
    if not same:
        message = f"the key of {table!r} is a {kind_of(key).value}, and this is a {left.kind.value}"
        raise Refused("type-mismatch", message, span=session.source.span(left.node))
