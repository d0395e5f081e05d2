"""Comma joins: which conditions of WHERE join the tables of FROM, and in what order.

A comma pairs every row with every row, and WHERE keeps those that belong together; that is an inner join on these conditions. It is read as
one where WHERE has the key of a public table, or an equality that keeps rows within their unit, for each table after the first. The order
of inner joins does not matter, so a table is placed once the tables that it is joined to are placed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.sql.rows.names import BindCatalog, PublicItem
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import qualifier
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.text.reader import is_set


@dataclass(frozen=True, slots=True)
class JoinItem:
    """An item of FROM with its join, None for the first; ``links`` are the conditions of WHERE that join it."""

    called: Called
    join: exp.Expr | None
    links: tuple[exp.Expr, ...] = ()

    @property
    def by_comma(self) -> bool:
        """Whether nothing in FROM says how it is joined."""
        return self.join is None or is_comma(self.join)


def is_comma(join: exp.Expr) -> bool:
    """Whether a join pairs every row with every row."""
    bare = not any(is_set(join.args.get(name)) for name in ("on", "using", "side", "method"))
    return bare and join.text("kind").upper() in ("", "CROSS")


def in_order(known: BindCatalog, called: Sequence[Called], joins: Sequence[exp.Expr], where: Sequence[exp.Expr]) -> list[JoinItem]:
    """Items in an order in which each can be joined to those before it, with its links; items without a link come last."""
    waiting = [JoinItem(item, join) for item, join in zip(called, (None, *joins), strict=True)]
    if not any(is_comma(join) for join in joins):
        return waiting
    start = next((listed for listed in waiting if isinstance(listed.called.item, Rows) and listed.by_comma), None)
    if start is None:
        return waiting
    equalities = [node for condition in where for node in _implied(condition)]
    waiting.remove(start)
    placed = [start]
    while waiting:
        found = next((one for item in waiting for one in _joinable(known, item, waiting, placed, called, equalities)), None)
        if found is None:
            return placed + waiting
        waiting = [item for item in waiting if item.called is not found.called]
        placed.append(found)
    return placed


def _joinable(
    known: BindCatalog,
    item: JoinItem,
    waiting: Sequence[JoinItem],
    placed: Sequence[JoinItem],
    called: Sequence[Called],
    where: Sequence[exp.Expr],
) -> Iterator[JoinItem]:
    """The item with its links, if it can be placed now."""
    if not item.by_comma:
        before = called[: called.index(item.called)]
        if all(any(one.called is other for one in placed) for other in before):
            yield item
        return
    links = [node for node in where if _links(known, node, item.called, [one.called for one in placed], called)]
    if isinstance(item.called.item, PublicItem):
        links = links[:1]
    elif not any(_holds(known, node, item.called, called) for node in links):
        return
    if links:
        yield JoinItem(item.called, item.join, tuple(links))


def _links(known: BindCatalog, node: exp.Expr, item: Called, placed: Sequence[Called], called: Sequence[Called]) -> bool:
    """Whether an equality joins an item to those already placed."""
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if type(side) is not exp.Column or _owner(known, side, called) is not item:
            continue
        if isinstance(item.item, PublicItem):
            key = known.facts.public_table(item.item.table).key
            columns = [_owner(known, column, called) for column in other.find_all(exp.Column)]
            return side.name.lower() == key.lower() and bool(columns) and all(_among(owner, placed) for owner in columns)
        return type(other) is exp.Column and _among(_owner(known, other, called), placed)
    return False


def _among(owner: Called | None, placed: Sequence[Called]) -> bool:
    return any(owner is one for one in placed)


def _holds(known: BindCatalog, node: exp.Expr, item: Called, called: Sequence[Called]) -> bool:
    """Whether an equality of two columns keeps rows within their unit."""
    sides = [(side.name.lower(), _owner(known, side, called)) for side in (node.this, node.expression)]
    columns = [(owner.item, owner.item.names[name]) for name, owner in sides if owner is not None and isinstance(owner.item, Rows)]
    if len(columns) != 2:
        return False
    if all(column in rows.units for rows, column in columns):
        return True
    one, other = (rows.origins.get(column) for rows, column in columns)
    return known.along_key(one, other)


def _owner(known: BindCatalog, column: exp.Expr, called: Sequence[Called]) -> Called | None:
    """The one item that a column can belong to."""
    by, name = qualifier(column), column.name.lower()
    matching = []
    for item in called:
        meant = by is None or (item.name == by.table.lower() and (item.in_schema or not by.schema))
        if meant and name in _names(known, item):
            matching.append(item)
    return matching[0] if len(matching) == 1 else None


def _names(known: BindCatalog, called: Called) -> set[str]:
    match called.item:
        case PublicItem(table):
            return {column.lower() for column in known.facts.public_table(table).columns}
        case Rows(names=names):
            return set(names)
        case _:
            return set()


def _implied(condition: exp.Expr) -> list[exp.Expr]:
    """The equalities that must be true where a condition is: itself, or those that every branch of an OR has."""
    if type(condition) is exp.EQ:
        return [condition]
    if type(condition) is exp.Paren:
        return _implied(condition.this)
    if type(condition) is exp.And:
        return [*_implied(condition.this), *_implied(condition.expression)]
    if type(condition) is exp.Or:
        others = _implied(condition.expression)
        return [node for node in _implied(condition.this) if node in others]
    return []
