"""PostgreSQL's own functions: an analyst reaches only the closed list, and statements call a few of pg_catalog and no others."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from docs.function_listing import LISTED, SIGNS

from lapwing.audit.plan_shapes import sampled_norms, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.audit.runs import RANKING_KEY
from lapwing.audit.worlds import declare, distinct_keys, random_world
from lapwing.engines.postgres.session import ask
from lapwing.engines.prepare import SourceTable, private_table
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.expressions import Function
from lapwing.render.dialect import SourceKind
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.postgres import POSTGRES
from lapwing.render.queries import render_plan
from lapwing.sql import DIALECTS, bind
from tests.support.expression_fuzz import KINDS, ExpressionFuzz
from tests.support.postgres_worlds import PostgresWorlds
from tests.unit.sql.clinic import FACTS, REFERENCES, SETTINGS, UNIT_COLUMNS

ARGUMENTS = ("minutes", "cost", "code", "day", "", "minutes, 2", "'month', day", "code, 'a'")
"""What each function is tried on: columns of every kind, alone and with constants."""
AGGREGATES = frozenset(
    [
        *("avg", "count", "max", "min", "sum", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp"),
        *("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "bool_or", "bool_and", "every"),
        *("regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy"),
    ]
)
"""Names of aggregates of statements: they are measures of ours, with noise, and no functions of rows."""
KEYWORDS = frozenset(
    [
        *(
            "and",
            "as",
            "by",
            "cast",
            "case",
            "coalesce",
            "distinct",
            "else",
            "exists",
            "from",
            "in",
            "join",
            "materialized",
            "not",
            "nullif",
        ),
        *("on", "or", "over", "select", "then", "union", "when", "where"),
    ]
)
"""Words of SQL that can stand before a bracket and are no functions; COALESCE and NULLIF are grammar."""
CALLED = frozenset(
    [
        *("abs", "bool_or", "ceil", "convert_to", "cos", "count", "date_part", "date_trunc", "div", "encode", "exp", "extract", "floor"),
        *("greatest", "least", "ln", "log", "max", "octet_length", "power", "round", "row_number", "sha256", "sign", "sin", "sqrt"),
        *("hashtextextended", "starts_with", "substr", "sum", "length", "lower", "upper", "strpos", "translate"),
    ]
)
"""Every function that a statement of ours may call; GREATEST and LEAST are grammar in PostgreSQL."""


def _accepted(name: str, dialect: str) -> bool:
    for arguments in ARGUMENTS:
        try:
            bind(
                f"SELECT COUNT(*) FROM visits WHERE {name}({arguments}) IS NULL",
                FACTS,
                settings=SETTINGS,
                unit_columns=UNIT_COLUMNS,
                references=REFERENCES,
                dialect=dialect,
            )
        except Refused as refusal:
            if refusal.code == "function-unsupported" and arguments == ARGUMENTS[1]:
                return False  # by its name, twice: other arguments will not change that
            continue
        return True
    return False


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_the_servers_functions_an_analyst_reaches_only_the_closed_list(worlds: PostgresWorlds, dialect: str) -> None:
    names = [str(name) for (name,) in ask(worlds.connection, "SELECT DISTINCT proname FROM pg_catalog.pg_proc ORDER BY 1")]
    assert len(names) > 2_000
    listed = {name.lower() for meaning in (*LISTED, *SIGNS) for name in meaning.names}
    accepted = {name for name in names if _accepted(name, dialect)}
    assert {"abs", "floor", "date_trunc"} <= accepted
    assert accepted <= listed | AGGREGATES
    assert accepted.isdisjoint(
        {"pg_sleep", "pg_read_file", "query_to_xml", "current_setting", "set_config", "lo_import", "random", "version"}
    )


def _called(sql: str) -> set[str]:
    """Names before a bracket, outside text constants and quoted identifiers."""
    bare = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", " ", sql)
    return {name.lower() for name in re.findall(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(", bare)} - KEYWORDS


def test_statements_call_a_fixed_list_of_functions_all_of_them_built_in(worlds: PostgresWorlds, tmp_path: Path) -> None:
    world = distinct_keys(random_world(random.Random(1)))
    snapshot = worlds.prepare(declare(world, tmp_path, neighbours="unbounded", delta='"2^-30"'), ranking_key=RANKING_KEY, virtual=True)
    texts = []
    for shape in (*shapes(Account.APPROXIMATE).values(), *sampled_norms().values(), *quantile_shapes(Account.APPROXIMATE).values()):
        for query in render_plan(certify(shape(snapshot.facts), snapshot.facts), snapshot.dialect):
            texts += [query.sql, *(quantiles.sql for quantiles in query.quantiles)]
    for table in snapshot.declaration.tables:
        source = SourceTable("x", dict.fromkeys((column.source_name for column in table.columns), SourceKind.TEXT))
        if not table.unit.hops:
            texts.append(private_table(table, snapshot.declaration, {table.name: source}, snapshot.facts, POSTGRES))
    snapshot.close()
    columns = snapshot.facts.table("visits").columns
    fuzz = ExpressionFuzz(columns, seed=1)
    texts += [
        render_expression(fuzz.expression(kind, depth=4).expression, VisibleColumns(columns, "t", POSTGRES))
        for kind in KINDS
        for _ in range(150)
    ]
    called = {name for text in texts for name in _called(text)}
    assert called == CALLED
    built_in = ask(worlds.connection, "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace")
    assert called - {name for (name,) in built_in} == {"greatest", "least"}


def test_every_function_has_a_spelling_and_none_is_spelt_that_is_not_ours() -> None:
    assert set(POSTGRES.functions) <= set(Function)


def test_a_text_that_the_server_cannot_hold_is_refused_before_anything_is_charged() -> None:
    with pytest.raises(Refused) as refused:
        POSTGRES.text_literal("a\0b")
    assert refused.value.code == "text-invalid"
