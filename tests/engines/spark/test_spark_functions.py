"""Spark's own functions: an analyst reaches only the closed list, and rendered SQL calls a few of them and no more."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

import pytest
from docs.function_listing import LISTED, SIGNS
from pyspark.sql import SparkSession

from lapwing.audit.plan_shapes import sampled_norms, shapes
from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.engines.spark.sessions import own_session
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.expressions import Function
from lapwing.render.queries import render_plan
from lapwing.render.spark import SPARK, quoted, text_literal
from tests.support.hostile import TEXTS
from tests.support.spark_worlds import spark_session
from tests.unit.sql.clinic import bound

ARGUMENTS = (
    *("", "minutes", "cost", "code", "day", "started", "minutes, 2", "cost, 2", "'a', code", "code, 'a'", "day, 1", "'month', day"),
    "minutes, 1, 2",
)
"""What each function is tried on: columns of every kind, alone and with constants."""
AGGREGATES = frozenset(
    [
        *("avg", "corr", "count", "count_if", "covar_pop", "covar_samp", "max", "mean", "median", "min", "sum", "std", "stddev"),
        *("stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept"),
        *(
            "regr_r2",
            "regr_slope",
            "regr_sxx",
            "regr_sxy",
            "regr_syy",
            "approx_count_distinct",
            "bool_or",
            "bool_and",
            "any",
            "every",
            "some",
        ),
        *("percentile_cont", "percentile_disc", "grouping", "approx_percentile", "percentile_approx", "mode"),
    ]
)
"""Names of aggregates of statements: they are measures of ours, with noise, and no functions of rows."""


@pytest.fixture(scope="module")
def session() -> SparkSession:
    """A session with our settings; without them ``${x}`` in a name or a text would be replaced."""
    return own_session(spark_session())


def _spark_functions() -> list[str]:
    return sorted({str(row[0]).lower() for row in spark_session().sql("SHOW SYSTEM FUNCTIONS").collect()})


def _accepted(name: str) -> bool:
    for arguments in ARGUMENTS:
        for text in (
            f"SELECT COUNT(*) FROM visits WHERE {name}({arguments}) IS NULL",
            f"SELECT SUM({name}({arguments})) FROM visits",
        ):
            try:
                bound(text)
            except Refused:
                continue
            return True
    return False


def test_of_sparks_functions_an_analyst_reaches_only_the_closed_list() -> None:
    names = [name for name in _spark_functions() if re.fullmatch(r"[a-z_0-9]+", name)]
    assert len(names) > 400
    listed = {name.lower() for meaning in (*LISTED, *SIGNS) for name in meaning.names}
    accepted = {name for name in names if _accepted(name)}
    assert {"abs", "floor", "year"} <= accepted
    assert accepted <= listed | AGGREGATES
    assert accepted.isdisjoint({"reflect", "java_method", "try_reflect", "input_file_name", "current_user", "uuid", "rand", "raise_error"})


KEYWORDS = frozenset(
    [
        *("and", "as", "cast", "case", "coalesce", "distinct", "else", "exists", "from", "in", "join", "not", "on", "or", "over", "select"),
        *("then", "when", "where"),
    ]
)
CALLED = frozenset(
    [
        *("abs", "bool_or", "ceil", "count", "date_from_unix_date", "decimal", "floor", "greatest", "least", "max", "month"),
        *("octet_length", "row_number", "sha2", "sqrt", "sum", "unix_date", "xxhash64"),
    ]
)
"""Every function of Spark, and every type with a bracket, that the shapes of plans call."""


def _called(sql: str) -> set[str]:
    bare = re.sub(r"'[^']*'|`(?:[^`]|``)*`", " ", sql)
    return {name.lower() for name in re.findall(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(", bare)} - KEYWORDS


def test_plans_call_a_fixed_list_of_sparks_functions(tmp_path: Path) -> None:
    snapshot = prepare_in_duckdb(declare(random_world(random.Random(1)), tmp_path, neighbours="unbounded", delta='"2^-30"'))
    plans = [certify(shape(snapshot.facts), snapshot.facts) for shape in (*shapes(Account.APPROXIMATE).values(), *sampled_norms().values())]
    snapshot.close()
    called = {name for plan in plans for query in render_plan(plan, SPARK) for name in _called(query.sql)}
    assert called == CALLED


def test_every_function_has_a_spelling_and_none_is_spelt_that_is_not_ours() -> None:
    assert set(SPARK.functions) <= set(Function)


@pytest.mark.parametrize("start", range(0, len(TEXTS), 40))
def test_text_constants_reach_spark_unchanged(session: SparkSession, start: int) -> None:
    texts = TEXTS[start : start + 40]
    listed = ", ".join(f"{text_literal(text)} AS c{i}" for i, text in enumerate(texts))
    (row,) = session.sql(f"SELECT {listed}").collect()
    assert list(row) == list(texts)


def test_names_reach_spark_unchanged(session: SparkSession) -> None:
    names = ["a", "A b", "it's", 'say "hi"', "back`tick", "back\\slash", "ünï", "a.b", "${x}", "a--b"]
    (row,) = session.sql("SELECT " + ", ".join(f"{i} AS {quoted(name)}" for i, name in enumerate(names))).collect()
    assert row.asDict() == {name: i for i, name in enumerate(names)}


@pytest.mark.parametrize("text", ["it's", "\\", "' OR 1=1 --", '"', "${x}", ":key", "a\nb"])
def test_parameters_are_values_and_never_text_of_the_statement(session: SparkSession, text: str) -> None:
    (row,) = session.sql("SELECT :key AS k, sha2(:key, 256) AS h", args={"key": text}).collect()
    assert (row.k, row.h) == (text, hashlib.sha256(text.encode()).hexdigest())
