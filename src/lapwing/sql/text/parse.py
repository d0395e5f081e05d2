"""Calls the third-party parser: from the text of one SELECT to its tree, or a refusal that points at the place."""

from __future__ import annotations

import logging
import sys
import threading
import types
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token

from lapwing.catalog.settings import Settings
from lapwing.errors import LapwingError, Refused, Span
from lapwing.sql.text.refusals import span_of
from lapwing.sql.text.source import Source, tokenise

_FRAMES_PER_LEVEL = 40
"""Python frames the parser needs for one level of nesting; measured at most 25."""
_LEVELS_MAX = 500
"""Levels for which frames are reserved; deeper statements are refused whatever the settings allow."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnFunctions:
    """Functions that Lapwing reads itself, whatever the parser knows about them."""

    bound_by_name: Container[str] = ()
    """In upper case. The parser leaves calls of them as calls by name."""
    spellings: Mapping[str, type[exp.Func]] = field(default_factory=dict)
    """Calls of them become these classes in every dialect."""


@contextmanager
def deep_recursion(levels: int) -> Iterator[None]:
    """Room on the stack for this many levels of nesting. The process has one limit: threads share it, and the last one restores it."""
    frames = _FRAMES_PER_LEVEL * min(levels, _LEVELS_MAX)
    _room.take(frames)
    try:
        yield
    finally:
        _room.give_back(frames)


class _Room:
    """The stack that parsing threads need: as much as the thread that needs most."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._taken: list[int] = []
        self._usual = 0

    def take(self, frames: int) -> None:
        with self._gate:
            if not self._taken:
                self._usual = sys.getrecursionlimit()
            self._taken.append(frames)
            sys.setrecursionlimit(self._usual + max(self._taken))

    def give_back(self, frames: int) -> None:
        with self._gate:
            self._taken.remove(frames)
            sys.setrecursionlimit(self._usual + max(self._taken, default=0))


_room = _Room()
_parsing = threading.local()
logging.getLogger("sqlglot").addFilter(lambda _: not getattr(_parsing, "now", False))


@contextmanager
def _quiet() -> Iterator[None]:
    """The parser logs statements that it does not understand; an analyst's text must not reach our logs."""
    _parsing.now = True
    try:
        yield
    finally:
        _parsing.now = False


def parse(
    text: str,
    tokens: tuple[Token, ...] | None = None,
    *,
    settings: Settings,
    dialect: str,
    own: OwnFunctions,
) -> tuple[Source, exp.Expr]:
    """The tree of one SELECT or UNION ALL, or refuse. Pre: inside ``deep_recursion``."""
    grammar = Dialect.get_or_raise(dialect)
    source = tokenise(text, tokens, settings=settings, dialect=grammar)
    parser = _parser(grammar, own)
    try:
        with _quiet():
            trees = parser.parse(list(source.tokens), text)
    except ParseError as error:
        raise Refused("sql-syntax", "the statement cannot be parsed here", span=_place(source, error)) from error
    except RecursionError:
        raise
    except Exception as error:
        # The parser may raise anything on hostile text; in every case the text was not understood.
        raise source.refuse("sql-syntax", "the statement cannot be parsed") from error
    statements = [tree for tree in trees if tree is not None and type(tree) is not exp.Semicolon]
    tree = statements[0] if len(statements) == 1 else None
    if isinstance(tree, exp.Except | exp.Intersect):
        hint = "send the statements one by one"
        raise source.refuse("union-unsupported", "INTERSECT and EXCEPT are not supported", node=tree.expression, hint=hint)
    if type(tree) not in (exp.Select, exp.Union):
        raise source.refuse("statement-unsupported", "only a single SELECT is answered", node=tree, hint="remove the brackets around it")
    assert isinstance(tree, exp.Expr)
    _check_nodes(source, tree, settings)
    _forget_dialect(tree)
    return source, tree


def _parser(grammar: Dialect, own: OwnFunctions) -> Parser:
    try:
        return _parser_class(grammar.parser_class, own)(dialect=grammar, error_level=ErrorLevel.IMMEDIATE)
    except TypeError as error:
        message = "the compiled form of the SQL parser (sqlglotc) is installed, which does not allow functions to be redefined"
        raise LapwingError("parser-compiled", message) from error


@cache
def _parser_class(of: type[Parser], own: OwnFunctions) -> type[Parser]:
    """The dialect's parser, except for these functions.

    By default it turns such calls into its own classes, which differ between dialects, with changed and added arguments.
    """
    spelled = {name: node.from_arg_list for name, node in own.spellings.items()}
    functions = {name: rule for name, rule in of.FUNCTIONS.items() if name not in own.bound_by_name}
    parsers = {name: rule for name, rule in of.FUNCTION_PARSERS.items() if name not in own.bound_by_name}
    tables = {"FUNCTIONS": {**functions, **spelled}, "FUNCTION_PARSERS": parsers}
    return types.new_class(of.__name__, (of,), exec_body=lambda names: names.update(tables))


def _forget_dialect(tree: exp.Expr) -> None:
    """Undo what the parser does for one dialect only, so that a statement has the same tree in every dialect.

    It notes whether a quotient of integers is an integer (here it never is), and writes IS NOT NULL with a flag instead of a NOT. Brackets
    around one column have no meaning in any dialect: ``(t.x) = (u.x)`` is an equality of columns. The words of a frame are in upper case,
    however they are written.
    """
    for node in list(tree.find_all(exp.Div, exp.Is, exp.Paren, exp.WindowSpec)):
        if isinstance(node, exp.Paren):
            inner = node.unnest()
            if type(inner) is exp.Column and type(node.parent) is not exp.Paren:
                node.replace(inner)
        elif isinstance(node, exp.Div):
            node.set("typed", None)
            node.set("safe", None)
        elif isinstance(node, exp.WindowSpec):
            for name in [name for name, value in node.args.items() if isinstance(value, str)]:
                node.set(name, node.args[name].upper())
        elif node.args.get("negate") is True:
            node.set("negate", None)
            negated = exp.Not()
            node.replace(negated)
            negated.set("this", node)


def _place(source: Source, error: ParseError) -> Span:
    """Where the parser stopped. It reports line and column of the end of a token."""
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line"), first.get("col")
    for token in source.tokens:
        if token.line == line and token.col == column:
            return span_of(source.text, token.start, token.end + 1)
    last = source.tokens[-1]
    return span_of(source.text, last.start, last.end + 1)


def _check_nodes(source: Source, tree: exp.Expr, settings: Settings) -> None:
    for number, node in enumerate(tree.walk(), start=1):
        if number > settings.statement_nodes_max:
            raise source.refuse("statement-too-large", f"the statement has more than {settings.statement_nodes_max} parts", node=node)
