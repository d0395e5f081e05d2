"""Statements about the data set itself, recognised by the tables that they name; a closed list says what they may contain.

Such a statement goes to the scratch engine, which holds tables made from the catalogue. It goes there only if every table that it names is
one of those, or it names none; and only with the nodes and functions listed here. Any other statement is bound as usual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.sql.text.parse import OwnFunctions, deep_recursion, parse
from lapwing.sql.text.reader import Schemas
from lapwing.sql.text.source import Source

_NO_FUNCTIONS = OwnFunctions()

_STRUCTURE = frozenset(
    {
        *(exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Group),
        *(exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.Distinct, exp.Table, exp.TableAlias, exp.Alias),
        *(exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple, exp.And, exp.Or, exp.Not),
        *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike),
        *(exp.Case, exp.If, exp.Cast, exp.DataType, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.DPipe, exp.Exists, exp.Escape),
        *(exp.Coalesce, exp.Nullif, exp.Concat, exp.Lower, exp.Upper, exp.Length, exp.Substring, exp.Trim, exp.Replace),
        *(exp.Count, exp.Min, exp.Max, exp.Sum, exp.ArrayAgg, exp.GroupConcat),
    }
)
"""Nodes that the scratch engine may receive. None of them reads anything but tables, and none generates rows."""
_SCHEMAS = ("pg_catalog", "information_schema")
_MENTIONS = re.compile(r"\b(?:information_schema|pg_[a-z_]+)\b", re.IGNORECASE)
_NOTHING = re.compile(r"\blimit\s+0\b|\bfetch\b|\bfalse\b|\b\d+\s*(?:=|<>|!=)\s*\d+\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PublicStatement:
    """A statement rewritten for the scratch engine; ``tables`` maps each name in it to a table."""

    sql: str
    tables: Mapping[str, str]


def public_statement(
    text: str, known: Collection[str], own: Collection[str], *, settings: Settings, dialect: str, constants: Mapping[str, str]
) -> PublicStatement | None:
    """The statement if it is about the data set itself, else None.

    ``known`` are the tables that describe the data set, each with its schema; ``own`` the data set's own tables, which come first.
    ``constants`` are SQL for functions that return a fact.
    """
    read = _parsed(text, settings=settings, dialect=dialect)
    if read is None:
        return None
    source, tree = read
    tables = _tables_of(tree, lambda table: _described_by(table, known, own))
    if tables is None or (not tables and tree.find(exp.AggFunc)):  # an aggregate without a table is refused by binding
        return None
    wrong = _with_constants(tree, constants)
    if wrong is not None:
        if not tables:
            return None
        message = "tables that describe a data set take only a part of SQL, which does not include this"
        raise source.refuse("sql-unsupported", message, node=wrong, hint="SHOW TABLES and DESCRIBE list tables and columns")
    return PublicStatement(tree.sql(dialect="duckdb"), tables)


def may_be_public(text: str, own: Collection[str]) -> bool:
    """Whether a text may be about the data set itself: a quick test before parsing."""
    return _MENTIONS.search(text) is not None or not any(re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) for name in own)


def columns_statement(text: str, own: Collection[str], *, settings: Settings, dialect: str, schemas: Schemas) -> PublicStatement | None:
    """A SELECT that cannot return a row, so that its answer is its columns; None for any other.

    The engine gets the data set's own tables without rows, so everything that it returns is public.
    """
    read = _parsed(text, settings=settings, dialect=dialect)
    if read is None or not _has_no_row(read[1]) or _with_constants(read[1], {}) is not None:
        return None
    _, tree = read
    tables = _tables_of(tree, lambda table: _own_table(table, own, schemas))
    return PublicStatement(tree.sql(dialect="duckdb"), tables) if tables else None


def asks_no_row(text: str, *, settings: Settings, dialect: str) -> bool:
    """Whether a statement cannot return a row, whatever the data: LIMIT 0, or a condition between constants that is false."""
    read = _parsed(text, settings=settings, dialect=dialect) if _NOTHING.search(text) else None
    return read is not None and _has_no_row(read[1])


def _parsed(text: str, *, settings: Settings, dialect: str) -> tuple[Source, exp.Expr] | None:
    """The tree, or None: a text that cannot be parsed is refused by binding, which gives the reason."""
    try:
        with deep_recursion(settings.expression_depth_max):
            return parse(text, settings=settings, dialect=dialect, own=_NO_FUNCTIONS)
    except (Refused, RecursionError):
        return None


def _tables_of(tree: exp.Expr, find: Callable[[exp.Table], str | None]) -> Mapping[str, str] | None:
    """The tables that a tree names, by their new names; None if one of them is not found. Changes the tree."""
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables: dict[str, str] = {}
    for table in list(tree.find_all(exp.Table)):
        if type(table.this) is not exp.Identifier:
            return None
        if not table.db and table.name.lower() in named:
            continue
        found = find(table)
        if found is None:
            return None
        place = tables.setdefault(found, f"t{len(tables)}")
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        table.set("this", exp.to_identifier(place))
        table.set("db", None)
        table.set("catalog", None)
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return {place: found for found, place in tables.items()}


def _described_by(table: exp.Table, known: Collection[str], own: Collection[str]) -> str | None:
    name, schema = table.name.lower(), table.db.lower()
    if schema:
        return f"{schema}.{name}" if f"{schema}.{name}" in known else None
    if name in {item.lower() for item in own}:
        return None
    return f"pg_catalog.{name}" if f"pg_catalog.{name}" in known else None


def _own_table(table: exp.Table, own: Collection[str], schemas: Schemas) -> str | None:
    if table.db and table.db.lower() not in schemas.schemas:
        return None
    if table.catalog and table.catalog.lower() not in schemas.catalogues:
        return None
    return next((name for name in own if name.lower() == table.name.lower()), None)


def _with_constants(tree: exp.Expr, constants: Mapping[str, str]) -> exp.Expr | None:
    """The first node that the scratch engine must not receive. Functions that return a fact are replaced by that fact."""
    for dot in list(tree.find_all(exp.Dot)):
        if isinstance(dot.this, exp.Identifier) and dot.this.name.lower() in _SCHEMAS and isinstance(dot.expression, exp.Func):
            dot.replace(dot.expression)
    duckdb = Dialect.get_or_raise("duckdb")
    for node in list(tree.walk()):
        name = _function_name(node)
        if name in constants and not any(isinstance(child, exp.Expr) for child in node.iter_expressions()):
            value: exp.Expr = exp.maybe_parse(constants[name], dialect=duckdb)
            plain = isinstance(node.parent, exp.Select) and node.arg_key == "expressions"
            node.replace(exp.alias_(value, name, quoted=True) if plain else value)
    allowed = {child for value in constants.values() for child in map(type, exp.maybe_parse(value, dialect=duckdb).walk())}
    for node in tree.walk():
        if type(node) not in _STRUCTURE and type(node) not in allowed:
            return node
        if isinstance(node, exp.With) and node.args.get("recursive"):
            return node
    return None


_NAMED: Mapping[type[exp.Expr], str] = {
    exp.CurrentVersion: "version",
    exp.CurrentSchema: "current_schema",
    exp.CurrentDatabase: "current_database",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
}
"""Functions for which the parser has classes."""


def _function_name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else _NAMED.get(type(node), "")


def _has_no_row(select: exp.Expr) -> bool:
    if not isinstance(select, exp.Select):
        return False
    limit = select.args.get("limit")
    count = None if limit is None else limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    if isinstance(count, exp.Literal) and count.name == "0":
        return True
    where = select.args.get("where")
    if where is None or select.args.get("group") is not None or any(item.find(exp.AggFunc) for item in select.expressions):
        return False
    condition = where.this.unnest()
    return any(map(_is_false, condition.flatten() if isinstance(condition, exp.And) else [condition]))


def _is_false(condition: exp.Expr) -> bool:
    if isinstance(condition, exp.Boolean):
        return not condition.this
    sides = (condition.args.get("this"), condition.args.get("expression"))
    if not isinstance(condition, exp.EQ | exp.NEQ) or not all(isinstance(side, exp.Literal) and not side.is_string for side in sides):
        return False
    return (condition.this.name == condition.expression.name) is isinstance(condition, exp.NEQ)
