"""The list of SELECT and the clauses around it: names of outputs, ordinals, LIMIT, ORDER BY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from lapwing.sql.over_answers import marks
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.values import Value
from lapwing.sql.scalars.binding import column_name, identifier, unsupported
from lapwing.sql.text import constants
from lapwing.sql.text.reader import Session
from lapwing.sql.text.source import Source

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One expression of SELECT: the node, its alias (or empty), and the name it has in the answer."""

    node: exp.Expr
    alias: str
    name: str


def select_item(session: Session, node: exp.Expr) -> SelectItem:
    """An expression of SELECT with its name."""
    if type(node) is not exp.Alias:
        return SelectItem(node, "", _readable(session.source, node))
    with session.reading(node) as reader:
        alias = identifier(session, reader.node_of("alias"))
        return SelectItem(reader.node_of("this"), alias, alias)


def later_names(items: Sequence[SelectItem]) -> dict[str, exp.Expr]:
    """The expressions of the aliases that may be used elsewhere in the same SELECT: those given once."""
    given = [item.alias.lower() for item in items if item.alias]
    return {item.alias.lower(): item.node for item in items if item.alias and given.count(item.alias.lower()) == 1}


def bound_in_order(outputs: Outputs, items: Sequence[SelectItem]) -> list[Value]:
    """The values of SELECT; each may use the aliases before it, unless a column has that name."""
    values: list[Value] = []
    names = later_names(items)
    for item in items:
        values.append(outputs.bind(item.node))
        if item.alias.lower() in names and not outputs.scalars.scope.lookup(item.alias, None):
            outputs.aliases = {**outputs.aliases, item.alias.lower(): values[-1]}
    return values


def distinct_names(names: list[str]) -> list[str]:
    """The names, with a number appended to repeated ones, so that each column of the answer has a distinct name."""
    unique: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in unique:
            candidate, number = f"{name}_{number}", number + 1
        unique.append(candidate)
    return unique


def nth(session: Session, node: exp.Expr, items: Sequence[_T]) -> _T:
    """The expression of an ordinal."""
    number = whole_number(session, node)
    if not 1 <= number <= len(items):
        many = "one column" if len(items) == 1 else f"{len(items)} columns"
        raise session.refuse("ordinal-unknown", f"this column does not exist: SELECT has {many}", node=node)
    return items[number - 1]


def whole_number(session: Session, node: exp.Expr) -> int:
    """A whole number as written, from 0 on."""
    if type(node) is exp.Literal:
        with session.reading(node) as reader:
            is_text, written = reader.flag("is_string"), reader.word("this")
        value = None if is_text else constants.number(written, session, node).value
        if isinstance(value, int) and value < 2**62:
            return value
    raise session.refuse("number-unreadable", "a whole number is needed here", node=node)


def row_count(session: Session, clause: exp.Expr | None) -> int | None:
    """The number of LIMIT or OFFSET."""
    if clause is None:
        return None
    if type(clause) is exp.Fetch:
        return _fetched(session, clause)
    if type(clause) not in (exp.Limit, exp.Offset):
        raise unsupported(session, clause)
    with session.reading(clause) as reader:
        return whole_number(session, reader.node_of("expression"))


def row_share(session: Session, clause: exp.Expr | None) -> int | None:
    """The number of LIMIT n%; None for any other limit."""
    if type(clause) is not exp.Limit or clause.args.get("limit_options") is None:
        return None
    with session.reading(clause) as reader:
        number = whole_number(session, reader.node_of("expression"))
        with session.reading(reader.node_of("limit_options")) as options:
            is_share = options.flag("percent")
    if not is_share or number > 100:
        raise session.refuse("number-unreadable", "a share of rows must be a whole percentage, at most 100", node=clause)
    return number


def keeps_ties(clause: exp.Expr | None) -> bool:
    """Whether rows that tie with the last one are kept, too: FETCH FIRST n ROWS WITH TIES."""
    options = None if type(clause) is not exp.Fetch else clause.args.get("limit_options")
    return isinstance(options, exp.Expr) and bool(options.args.get("with_ties"))


def _fetched(session: Session, clause: exp.Expr) -> int:
    """The number of FETCH FIRST or FETCH NEXT; one where none is written."""
    with session.reading(clause) as reader:
        if reader.word("direction").upper() not in ("FIRST", "NEXT"):
            raise unsupported(session, clause)
        count, options = reader.optional("count"), reader.optional("limit_options")
        if options is not None:
            with session.reading(options) as inside:
                inside.flag("rows")
                inside.flag("with_ties")  # read by ``keeps_ties``
                inside.require_absent("percent")
        return 1 if count is None else whole_number(session, count)


def order_by(outputs: Outputs, order: exp.Expr | None, values: list[Value]) -> tuple[str, ...]:
    """ORDER BY as SQL over noisy tables."""
    if order is None:
        return ()
    if type(order) is not exp.Order:
        raise unsupported(outputs.session, order)
    with outputs.session.reading(order) as reader:
        return tuple(term for node in reader.many("expressions") for term in _ordered(outputs, node, values))


def _ordered(outputs: Outputs, node: exp.Expr, values: list[Value]) -> list[str]:
    """One item of ORDER BY; ALL expands to every selected column, from left to right."""
    session = outputs.session
    if type(node) is not exp.Ordered:
        raise unsupported(session, node)
    with session.reading(node) as reader:
        inner, descending, first = reader.node_of("this"), reader.flag("desc"), reader.flag("nulls_first")
        if type(inner) is exp.Var:
            with session.reading(inner) as word:
                if word.word("this").upper() != "ALL":
                    raise unsupported(session, inner)
            by = values
        else:
            by = [sorted_by(outputs, inner, values)]
    return [marks.order(value.sql, value.mark, descending=descending, nulls_first=first) for value in by]


def sorted_by(outputs: Outputs, node: exp.Expr, values: list[Value]) -> Value:
    """A term of ORDER BY or DISTINCT ON: the number of a column, an alias (which precedes a column of that name), or an expression."""
    if type(node) is exp.Literal and not node.is_string:
        return nth(outputs.session, node, values)
    if type(node) is exp.Column:
        with outputs.session.reading(node) as reader:
            name, table = column_name(outputs.session, reader)
        if table is None and name.lower() in outputs.aliases:
            return outputs.aliases[name.lower()]
    value = outputs.bind(node)
    if value.constant is not None:
        raise outputs.session.refuse("sql-unsupported", "a constant does not define an order", node=node, hint="order by a column")
    return value


def _readable(source: Source, node: exp.Expr) -> str:
    """The name of an output without alias: its text, in lower case except for constants."""
    if type(node) is exp.Column:
        return node.name.lower()
    span = source.span(node)
    tokens = [token for token in source.tokens if span.start <= token.start < span.end]
    pieces: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.end + 1 < token.start:
            pieces.append(" ")
        written = source.text[token.start : token.end + 1]
        pieces.append(written if token.token_type is TokenType.STRING else written.lower())
    return "".join(pieces)
