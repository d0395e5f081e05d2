"""Items of FROM: tables of the catalogue, names of WITH, subqueries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from lapwing.kernel.domains import KeyDomain
from lapwing.kernel.expressions import part_count
from lapwing.kernel.ir import Scan
from lapwing.kernel.workload import scans_of
from lapwing.sql.rows.names import BindCatalog, Environment, FromItem, NoisyItem, PublicItem
from lapwing.sql.scalars.binding import PARTS_MAX, identifier, read_schema, unsupported
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import expressions_of

BindQuery = Callable[[exp.Expr, Environment], Rows | NoisyItem]


@dataclass(frozen=True, slots=True)
class Called:
    """An item of FROM, its name there, and its place in the text."""

    item: FromItem
    name: str
    node: exp.Expr
    in_schema: bool = False
    """Whether it is a table of the catalogue under its own name."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Reads items of FROM."""

    session: Session
    known: BindCatalog
    bind_query: BindQuery

    def item(self, node: exp.Expr, environment: Environment) -> Called:
        """The definition of an item, or refuse."""
        match node:
            case exp.Table():
                with self.session.reading(node) as reader:
                    return self._counted(self._table(reader, environment))
            case exp.Subquery():
                with self.session.reading(node) as reader:
                    return self._counted(self._subquery(reader, environment))
            case _:
                raise self.session.refuse("table-unsupported", "FROM takes only tables of the catalogue and subqueries", node=node)

    def _counted(self, called: Called) -> Called:
        """Refuse a statement that reads tables too often once its names of WITH are expanded."""
        if isinstance(called.item, Rows):
            self.session.scans += len(scans_of(called.item.relation))
            limit = self.session.settings.scans_max
            if self.session.scans > limit:
                message = f"with its subqueries expanded, the statement reads protected tables more than {limit} times"
                raise self.session.refuse("statement-too-large", message, node=called.node)
            self.session.parts += sum(part_count(expression) for expression in expressions_of(called.item.relation))
            if self.session.parts > PARTS_MAX:
                message = f"once expanded, the subqueries of this statement have more than {PARTS_MAX} parts"
                raise self.session.refuse("statement-too-large", message, node=called.node)
        return called

    def _subquery(self, reader: Reader, environment: Environment) -> Called:
        alias = reader.optional("alias")
        inner = reader.node_of("this")
        name = "" if alias is None else self.alias(alias)
        return Called(self.bind_query(inner, environment), name, reader.node)

    def _table(self, reader: Reader, environment: Environment) -> Called:
        node = reader.node_of("this")
        if type(node) is not exp.Identifier:
            tables = ", ".join((*self.known.facts.tables, *self.known.facts.public_tables))
            hint = f"the tables are {tables}" if len(tables) < 100 else ""
            raise self.session.refuse("table-unsupported", "FROM takes only tables of the catalogue", node=node, hint=hint)
        in_schema = read_schema(self.session, reader)
        written = identifier(self.session, node)
        alias = reader.optional("alias")
        called = written.lower() if alias is None else self.alias(alias)
        named = None if in_schema else environment.find(written)
        if named is not None:
            if named.bound is None:
                named.bound = self.bind_query(named.node, named.inside)
            return Called(named.bound, called, reader.node)
        facts = self.known.facts
        table = next((known for known in (*facts.tables, *facts.public_tables) if known.lower() == written.lower()), None)
        if table is None:
            close = get_close_matches(written.lower(), (*facts.tables, *facts.public_tables), n=1)
            hint = f"did you mean {close[0]!r}?" if close else ""
            raise self.session.refuse("unknown-table", f"there is no table {written!r} in this data set", node=node, hint=hint)
        item = PublicItem(table) if table in facts.public_tables else self._protected(table, node)
        return Called(item, called, reader.node, in_schema=alias is None)

    def _protected(self, table: str, node: exp.Expr) -> Rows:
        known = self.known.facts.table(table)
        if known.blocks is not None and known.blocks[0] > known.blocks[1]:
            hint = "ask when the first one has closed and is prepared"
            raise self.session.refuse("blocks-open", f"no block of {table} has closed yet", node=node, hint=hint)
        blocks = None if known.blocks is None else known.blocks_between(*known.blocks)
        columns = known.columns if blocks is None else known.columns_within(blocks)
        unit = self.known.unit_columns.get(table)
        return Rows(
            relation=Scan(table, known.rows_per_unit_max, blocks),
            label=table,
            columns=columns,
            names={column.lower(): column for column in columns},
            origins={column: (table, column) for column in columns},
            units=frozenset() if unit is None else frozenset({unit}),
        )

    def alias(self, node: exp.Expr) -> str:
        """The name that an alias gives."""
        if type(node) is not exp.TableAlias:
            raise unsupported(self.session, node)
        with self.session.reading(node) as reader:
            return identifier(self.session, reader.node_of("this")).lower()


UNIT_DOMAIN = KeyDomain(nullable=False)
"""The domain of a virtual unit column, which can only be joined on and counted."""
