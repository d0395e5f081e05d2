"""Consume all or refuse: whatever is added to a parsed statement that the binder does not read, the statement is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parser import Parser

from lapwing.errors import LapwingError, Refused
from lapwing.sql.rows.aggregates import KNOWN
from lapwing.sql.rows.names import BindCatalog
from lapwing.sql.scalars.handlers import HANDLERS
from lapwing.sql.statement import OWN_FUNCTIONS, bind_tree
from lapwing.sql.text.parse import OwnFunctions, deep_recursion, parse
from lapwing.sql.text.reader import is_set
from lapwing.sql.text.source import Source
from lapwing.statements import Statement
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import FACTS, MOMENT, PUBLIC_ROWS, REFERENCES, SETTINGS, UNIT_COLUMNS

PLANTED: tuple[object, ...] = (True, "WORD", exp.Literal.number(1), exp.column("cost"), [exp.column("cost")])
"""What is put into arguments: a mark, a word, a constant, a column, a list."""


def _bind(source: Source, tree: exp.Expr) -> Statement:
    return bind_tree(source, tree, BindCatalog(FACTS, UNIT_COLUMNS, REFERENCES, PUBLIC_ROWS.get), settings=SETTINGS, moment=MOMENT)


@pytest.fixture(scope="module")
def parsed() -> dict[str, tuple[Source, exp.Expr]]:
    with deep_recursion(SETTINGS.expression_depth_max):
        return {name: parse(text, settings=SETTINGS, dialect="duckdb", own=OWN_FUNCTIONS) for name, text in ACCEPTED.items()}


def _used(parsed: dict[str, tuple[Source, exp.Expr]]) -> set[tuple[type[exp.Expr], str]]:
    """Arguments that some accepted statement sets."""
    trees = (tree for _, tree in parsed.values())
    return {(type(node), name) for tree in trees for node in tree.walk() for name, value in node.args.items() if is_set(value)}


def _places(parsed: dict[str, tuple[Source, exp.Expr]]) -> Iterator[tuple[str, int]]:
    """One node of each class under each class of parent: the statement's name and the node's number in its tree."""
    seen = set()
    for name, (_, tree) in parsed.items():
        for number, node in enumerate(tree.walk()):
            place = (type(node), type(node.parent), node.arg_key)
            if place not in seen:
                seen.add(place)
                yield name, number


def _node(tree: exp.Expr, number: int) -> exp.Expr:
    return next(node for i, node in enumerate(tree.walk()) if i == number)


def test_accepted_statements_bind_as_parsed_trees(parsed: dict[str, tuple[Source, exp.Expr]]) -> None:
    for name, (source, tree) in parsed.items():
        assert _bind(source, tree).text == ACCEPTED[name]


def test_accepted_statements_use_every_class_that_is_read(parsed: dict[str, tuple[Source, exp.Expr]]) -> None:
    """So that the next test covers all of them."""
    seen = {type(node) for _, tree in parsed.values() for node in tree.walk()}
    assert sorted(node.__name__ for node in {*HANDLERS, *KNOWN} - seen) == []


@pytest.mark.slow
def test_an_argument_that_is_not_read_is_refused(parsed: dict[str, tuple[Source, exp.Expr]]) -> None:
    used, tried = _used(parsed), set()
    bound = []
    for name, number in list(_places(parsed)):
        source, tree = parsed[name]
        node = _node(tree, number)
        unread = [argument for argument in (*node.arg_types, "planted") if (type(node), argument) not in used]
        for argument in unread:
            before = node.args.get(argument)
            for planted in PLANTED:
                node.args[argument] = planted
                tried.add((type(node), argument))
                try:
                    _bind(source, tree)
                    bound.append((name, type(node).__name__, argument, planted))
                except Refused as refusal:
                    assert refusal.span is not None
            node.args[argument] = before
            if before is None:
                del node.args[argument]
    assert bound == []
    assert {type(node) for _, tree in parsed.values() for node in tree.walk()} == {node for node, _ in tried}
    assert len(tried) > 200


@pytest.mark.slow
def test_a_part_that_is_not_known_is_refused(parsed: dict[str, tuple[Source, exp.Expr]]) -> None:
    """A foreign node in the place of any other."""
    strangers: tuple[type[exp.Expr], ...] = (exp.Placeholder, exp.Command, exp.Semicolon, exp.Rand, exp.Subquery, exp.Exists)
    bound = []
    for name, number in list(_places(parsed)):
        source, tree = parsed[name]
        node = _node(tree, number)
        if node.parent is None:
            continue
        for stranger in strangers:
            put = stranger(this=exp.select("1"))
            node.replace(put)
            try:
                _bind(source, tree)
                bound.append((name, type(node).__name__, stranger.__name__))
            except Refused:
                pass
            put.replace(node)
    assert bound == []


def test_a_parser_that_cannot_be_told_our_functions_is_no_refusal_of_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the compiled form of the parser, whose classes cannot be made anew."""

    def sealed(*_: object, **__: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    class Sealed(Parser):
        __init__ = sealed

    monkeypatch.setattr(DuckDB, "parser_class", Sealed)
    with pytest.raises(LapwingError) as stopped:
        parse("SELECT 1", settings=SETTINGS, dialect="duckdb", own=OwnFunctions())
    assert stopped.value.code == "parser-compiled"
    assert not isinstance(stopped.value, Refused)
