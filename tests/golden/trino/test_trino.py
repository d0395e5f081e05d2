"""The dialect for Trino, which has not been executed: every statement parses in Trino's grammar and calls functions that Trino has.

That is all that can be checked without a server. Set LAPWING_WRITE_GOLDEN=1 to write the file anew.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from lapwing.audit import worlds
from lapwing.audit.plan_shapes import sampled_norms, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.catalog import Declaration, EngineKind, PublicDecl, TableDecl
from lapwing.catalog.facts import facts as declared_facts
from lapwing.engines.prepare import SourceTable, private_table, public_table
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, KeyDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.expressions import Call
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import SourceKind
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.queries import render_plan
from lapwing.render.trino import TRINO, source_kind
from tests.unit.render.test_render_expressions import COLUMNS, RENDERED

GOLDEN = Path(__file__).parent / "trino.txt"
FUNCTIONS = frozenset(
    {
        "abs", "array_max", "array_min", "bool_or", "ceil", "ceiling", "coalesce", "cos", "count", "date_add", "date_diff", "date_trunc",
        "day", "day_of_week", "day_of_year", "exp", "filter", "floor", "from_unixtime_nanos", "greatest", "hour", "is_finite", "least",
        "length", "ln", "log10", "log2", "lower", "max", "minute", "mod", "month", "nullif", "quarter", "regexp_like",
        "row_number", "second", "sha256", "sign", "sin", "sqrt", "starts_with", "strpos", "substr", "sum", "to_hex", "to_utf8",
        "translate", "week", "year",
        "from_big_endian_64", "xxhash64", "year_of_week",
    }
)  # fmt: skip
"""Functions in the list of Trino's manual that the dialect uses."""
KINDS = {
    BooleanDomain: SourceKind.BOOLEAN,
    IntegerDomain: SourceKind.INTEGER,
    RealDomain: SourceKind.FRACTIONAL,
    DateDomain: SourceKind.DATE,
    TimestampDomain: SourceKind.TIMESTAMP,
    TextDomain: SourceKind.TEXT,
}


def _declaration(directory: Path) -> Declaration:
    return worlds.declare(worlds.random_world(random.Random(1)), directory, neighbours="unbounded", delta='"2^-30"')


def _facts(declaration: Declaration) -> Facts:
    open_columns = [(public.name, column.name) for public in declaration.public_tables for column in public.columns]
    values: dict[str, dict[str, list[str | None]]] = {}
    for table, column in open_columns:
        values.setdefault(table, {})[column] = ["here", "there"]
    return declared_facts(declaration, values, version=1)


def _kind(domain: Domain, *, text: bool) -> SourceKind:
    if text:
        return SourceKind.TEXT
    if isinstance(domain, KeyDomain):
        return SourceKind.TEXT if domain.text else SourceKind.INTEGER
    return KINDS[type(domain)]


def _preparing(declaration: Declaration, *, text: bool) -> Iterator[tuple[str, str]]:
    """Statements that prepare, from sources of the declared types or of text."""
    facts = _facts(declaration)
    tables: tuple[TableDecl | PublicDecl, ...] = (*declaration.tables, *declaration.public_tables)
    sources = {
        table.name: SourceTable(
            TRINO.quoted(f"source {table.name}"), {column.source_name: _kind(column.domain, text=text) for column in table.columns}
        )
        for table in tables
    }
    kind = "text" if text else "its own types"
    for table in declaration.tables:
        yield f"prepare {table.name} from {kind}", private_table(table, declaration, sources, facts, TRINO)
    for public in declaration.public_tables:
        domains = {column.name: column.domain for column in public.columns}
        yield f"prepare {public.name} from {kind}", public_table(public, sources[public.name], domains, TRINO)


def _statements(declaration: Declaration) -> Iterator[tuple[str, str]]:
    """Everything the dialect can write: functions, plans of every shape, preparation."""
    for function, (arguments, _) in RENDERED.items():
        written = render_expression(Call(function, arguments), VisibleColumns(COLUMNS, "t", TRINO))
        yield f"function {function.name}", f"SELECT {written} AS x FROM t"
    facts = _facts(declaration)
    for name, shape in {**shapes(Account.APPROXIMATE), **sampled_norms(), **quantile_shapes(Account.APPROXIMATE)}.items():
        for number, query in enumerate(render_plan(certify(shape(facts), facts), TRINO)):
            for part, sql in enumerate([query.sql, *(item.sql for item in query.quantiles)]):
                if sql:
                    yield f"plan {name}, query {number}, statement {part}", sql
    for text in (False, True):
        yield from _preparing(declaration, text=text)


@pytest.fixture(scope="module")
def statements(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return dict(_statements(_declaration(tmp_path_factory.mktemp("world"))))


def test_every_statement_parses_in_trinos_grammar(statements: dict[str, str]) -> None:
    assert len(statements) > 100
    for name, sql in statements.items():
        (tree,) = sqlglot.parse(sql, dialect="trino", error_level=sqlglot.ErrorLevel.RAISE)
        assert isinstance(tree, exp.Select | exp.Union), name
        assert not list(tree.find_all(exp.Command)), name


def test_every_function_that_is_called_is_one_of_trinos(statements: dict[str, str]) -> None:
    words = {"and", "array", "by", "cast", "decimal", "else", "exists", "from", "in", "join", "not", "on", "or", "over", "select", "then"}
    words |= {"timestamp", "try_cast", "union", "values", "when", "where", "as", "all", "with", "distinct"}
    found: set[str] = set()
    for sql in statements.values():
        tokens = sqlglot.tokenize(sql, read="trino")
        pairs = itertools.pairwise(tokens)
        found |= {token.text.lower() for token, following in pairs if following.text == "(" and token.text.isidentifier()}
    assert found - words == FUNCTIONS


def test_the_statements_as_they_are(statements: dict[str, str]) -> None:
    found = "-- Not executed on any server.\n\n" + "\n".join(f"-- {name}\n{sql};\n" for name, sql in statements.items())
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        GOLDEN.write_text(found, encoding="utf-8")
    assert GOLDEN.read_text(encoding="utf-8") == found


def test_the_dialect_says_that_it_was_not_executed_and_no_catalogue_can_ask_for_it() -> None:
    assert not TRINO.executed
    assert TRINO.name not in {engine.value for engine in EngineKind}


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("bigint", SourceKind.INTEGER),
        ("decimal(10,0)", SourceKind.INTEGER),
        ("decimal(10,2)", SourceKind.DECIMAL),
        ("varchar(20)", SourceKind.TEXT),
        ("char(3)", SourceKind.OTHER),
        ("timestamp(6)", SourceKind.TIMESTAMP),
        ("timestamp(3) with time zone", SourceKind.OTHER),
        ("row(a bigint)", SourceKind.OTHER),
    ],
)
def test_kinds_of_source_columns(type_name: str, kind: SourceKind) -> None:
    assert source_kind(type_name) is kind
