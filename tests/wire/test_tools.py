"""Statements as BI tools write them: each is answered, with numbers near the truth, or refused with a way on that works."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.wire.world import WireUnderTest

COUNTED: dict[str, tuple[str, str, int]] = {
    "a column and its count": (
        'select "public"."patients"."region" as "region", count(*) as "count" from "public"."patients"'
        ' group by "public"."patients"."region" order by "public"."patients"."region" asc',
        "SELECT region, COUNT(*) FROM patients GROUP BY region",
        1,
    ),
    "months of a year": (
        """SELECT DATE_TRUNC('month', "public"."visits"."day") AS "day", COUNT(*) AS "count" FROM "public"."visits" WHERE"""
        """ "public"."visits"."day" >= DATE '2025-01-01' AND "public"."visits"."day" < DATE '2026-01-01'"""
        """ GROUP BY DATE_TRUNC('month', "public"."visits"."day") ORDER BY DATE_TRUNC('month', "public"."visits"."day") ASC""",
        "SELECT DATE_TRUNC('month', day)::DATE, COUNT(*) FROM visits WHERE year(day) = 2025 GROUP BY 1",
        1,
    ),
    "distinct values": (
        'SELECT count(distinct "public"."patients"."sex") AS "count" FROM "public"."patients"',
        "SELECT COUNT(DISTINCT sex) FROM patients",
        0,
    ),
    "days, as Grafana cuts them": (
        'SELECT floor(extract(epoch from started)/86400)*86400 AS "time", count(*) AS v FROM visits'
        " WHERE started BETWEEN '2025-01-01T00:00:00Z' AND '2025-02-01T00:00:00Z' GROUP BY 1 ORDER BY 1",
        "SELECT epoch_us(started) // 86400000000 * 86400, COUNT(*) FROM visits"
        " WHERE started BETWEEN '2025-01-01' AND '2025-02-01' GROUP BY 1",
        1,
    ),
    "five minutes and a metric, as Grafana cuts them": (
        'SELECT floor(extract(epoch from started)/300)*300 AS "time", clinic_id > 12 AS metric, count(*) AS v FROM visits'
        " WHERE started BETWEEN '2025-03-03T06:00:00Z' AND '2025-03-03T18:00:00.999Z' GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT epoch_us(started) // 300000000 * 300, clinic_id > 12, COUNT(*) FROM visits"
        " WHERE started BETWEEN '2025-03-03 06:00:00' AND '2025-03-03 18:00:00.999' GROUP BY 1, 2",
        2,
    ),
    "a share of the whole": (
        "SELECT region, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM patients GROUP BY region",
        "SELECT region, COUNT(*) FROM patients GROUP BY region",
        1,
    ),
    "a total beside its parts": (
        "SELECT COALESCE(region, 'total') AS region, COUNT(*) AS n FROM patients GROUP BY ROLLUP(region)",
        "SELECT COALESCE(region, 'total'), COUNT(*) FROM patients GROUP BY ROLLUP(region)",
        1,
    ),
    "a rank": (
        "SELECT region, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS rk FROM patients GROUP BY region",
        "SELECT region, COUNT(*) FROM patients GROUP BY region",
        1,
    ),
    "months as text": (
        "SELECT to_char(day, 'YYYY-MM') AS m, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT strftime(day, '%Y-%m'), COUNT(*) FROM visits GROUP BY 1",
        1,
    ),
    "days of the week": (
        "SELECT date_part('dow', day) AS dow, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT dayofweek(day), COUNT(*) FROM visits GROUP BY 1",
        1,
    ),
    "a histogram": (
        "SELECT width_bucket(income, 0, 200000, 10) AS b, COUNT(*) AS n FROM patients GROUP BY 1",
        "SELECT CAST(FLOOR(income / 20000) AS INTEGER) + 1, COUNT(*) FROM patients GROUP BY 1",
        1,
    ),
    "a computed column in a subquery": (
        "SELECT age, COUNT(*) AS n FROM (SELECT 2025 - birth_year AS age FROM patients) t GROUP BY age",
        "SELECT 2025 - birth_year, COUNT(*) FROM patients GROUP BY 1",
        1,
    ),
    "bands": (
        "SELECT CASE WHEN income < 20000 THEN 'low' WHEN income < 50000 THEN 'mid' ELSE 'high' END AS band, COUNT(*) AS n"
        " FROM patients GROUP BY 1",
        "SELECT CASE WHEN income < 20000 THEN 'low' WHEN income < 50000 THEN 'mid' ELSE 'high' END, COUNT(*) FROM patients GROUP BY 1",
        1,
    ),
    "some of the groups": (
        "SELECT sex, COUNT(*) FILTER (WHERE vaccinated) AS v FROM patients GROUP BY sex HAVING COUNT(*) > 100",
        "SELECT sex, COUNT(*) FILTER (WHERE vaccinated) FROM patients GROUP BY sex HAVING COUNT(*) > 100",
        1,
    ),
}
"""What is asked, what is true, and how many columns of it name a group."""


@pytest.mark.parametrize(("asked", "true", "keys"), COUNTED.values(), ids=COUNTED.keys())
def test_counts_of_tools_are_those_of_the_rows_within_their_bars(wire: WireUnderTest, asked: str, true: str, keys: int) -> None:
    found = _with_bars(wire, asked, keys)
    exact = {row[:keys]: row[keys] for row in wire.truth(true)}
    assert found.keys() >= exact.keys()
    assert all(low <= exact.get(group, 0) <= high for group, (low, high) in found.items()), (found, exact)


def _with_bars(wire: WireUnderTest, sql: str, keys: int) -> dict[tuple[Any, ...], tuple[float, float]]:
    """The bars of the first column after the keys, which hold for all groups together but for one time in thousands."""
    with wire.connect() as connection:
        connection.execute("SET lapwing.intervals = 'on'")
        connection.execute("SET lapwing.confidence = 0.999999")
        return {row[:keys]: (row[keys + 1], row[keys + 2]) for row in connection.execute(sql.encode()).fetchall()}


def test_medians_averages_and_ends_of_tools_are_near_those_of_the_rows(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        medians: dict[str, float] = dict(
            connection.execute(
                "SELECT sex, percentile_cont(0.5) WITHIN GROUP (ORDER BY income) AS med FROM patients GROUP BY sex"
            ).fetchall()
        )
        rounded = connection.execute("SELECT sex, ROUND(AVG(income), 2) FROM patients GROUP BY sex").fetchall()
        spent = wire.spent()
        as_numeric = connection.execute("SELECT sex, ROUND(AVG(income)::numeric, 2) FROM patients GROUP BY sex").fetchall()
        assert (as_numeric, wire.spent()) == (rounded, spent)
        (ends,) = connection.execute("SELECT MIN(day), MAX(day) FROM visits").fetchall()
        top = connection.execute(
            "SELECT region, n FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t WHERE n > 25 ORDER BY n DESC LIMIT 3"
        ).fetchall()
    for sex in "fm":
        ((median, average),) = wire.truth(f"SELECT MEDIAN(income), AVG(income) FROM patients WHERE sex = '{sex}'")
        assert abs(medians[sex] - median) < 10_000
        told = next(float(value) for group, value in rounded if group == sex)
        assert abs(told - average) < 15_000
        assert told == round(told, 2)
    first, last = wire.truth("SELECT MIN(day), MAX(day) FROM visits")[0]
    assert first <= ends[0] < ends[1] <= last
    numbers = [n for _, n in top]
    assert len(top) == 3 and numbers == sorted(numbers, reverse=True) and numbers[-1] > 25


ABOUT_TABLES = {
    "columns, as Grafana lists them": (
        """SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns"""
        " WHERE quote_ident(table_name) = 'clinics' ORDER BY 1",
        [("city", "text"), ("clinic_id", "bigint"), ("kind", "text")],
    ),
    "tables, as Metabase lists them": (
        "select n.nspname as \"schema\", c.relname as \"name\", case c.relkind when 'r' then 'TABLE' else 'VIEW' end as \"type\","
        ' stat.n_live_tup as "estimated-row-count" from pg_catalog.pg_class c join pg_catalog.pg_namespace n on c.relnamespace = n.oid'
        " left join pg_catalog.pg_description d on c.oid = d.objoid and d.objsubid = 0"
        " left join pg_stat_user_tables stat on n.nspname = stat.schemaname and c.relname = stat.relname"
        " where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'p', 'v', 'f', 'm') order by 1, 2",
        [("public", name, "TABLE", None) for name in ("clinics", "diagnoses", "patients", "prescriptions", "visits")],
    ),
    "enumerations": ("select typname, typtype from pg_type where typtype = 'e'", []),
    "the version, as Grafana asks for it": ("SELECT current_setting('server_version_num')::int/100 > 1300 as version", [(True,)]),
    "an extension": ("SELECT extname FROM pg_extension WHERE extname = 'timescaledb'", []),
}


@pytest.mark.parametrize(("asked", "shown"), ABOUT_TABLES.values(), ids=ABOUT_TABLES.keys())
def test_what_tools_ask_about_tables_is_what_is_declared(wire: WireUnderTest, asked: str, shown: list[tuple[Any, ...]]) -> None:
    with wire.connect() as connection:
        assert connection.execute(asked.encode()).fetchall() == shown


ROWS_ASKED = {
    "a sample of Metabase": 'SELECT SUBSTRING("public"."patients"."sex", 1, 1234) AS "substring123", "public"."patients"."region"'
    ' FROM "public"."patients" LIMIT 10000',
    "a histogram of Superset": "SELECT income AS income FROM public.patients WHERE NOT income IS NULL LIMIT 10000",
    "a histogram of whole numbers": "SELECT minutes FROM visits LIMIT 50000",
    "a few whole numbers": 'SELECT "clinic_id" FROM "public"."visits"',
    "moments": "SELECT started AS \"time\" FROM visits WHERE started >= '2025-01-01T00:00:00Z' ORDER BY 1",
    "open text": "SELECT drug FROM prescriptions LIMIT 100",
}


@pytest.mark.parametrize("asked", ROWS_ASKED.values(), ids=ROWS_ASKED.keys())
def test_a_tool_that_asks_for_rows_is_told_the_statement_that_counts_them(wire: WireUnderTest, asked: str) -> None:
    with wire.connect() as connection:
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="rows are never shown") as refused:
            connection.execute(asked.encode())
        words, _, instead = (refused.value.diag.message_hint or "").partition(": ")
        assert words == "count the rows of each kind"
        assert connection.execute(instead.encode()).fetchall() != []


def test_the_histogram_in_the_hint_is_that_of_the_rows(wire: WireUnderTest) -> None:
    with wire.connect() as connection, pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        connection.execute("SELECT income AS income FROM public.patients LIMIT 10000")
    instead = (refused.value.diag.message_hint or "").partition(": ")[2]
    assert instead == "SELECT WIDTH_BUCKET(income, 0, 200000, 20), COUNT(*) FROM patients GROUP BY 1"
    exact = dict(wire.truth("SELECT CAST(FLOOR(income / 10000) AS INTEGER) + 1, COUNT(*) FROM patients GROUP BY 1"))
    assert all(low <= exact.get(bucket, 0) <= high for (bucket,), (low, high) in _with_bars(wire, instead, 1).items())


@pytest.mark.parametrize("column", ["patient_id", "visit_id"])
def test_no_statement_is_proposed_that_would_be_refused(wire: WireUnderTest, column: str) -> None:
    with wire.connect() as connection, pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        connection.execute(f"SELECT {column} FROM visits LIMIT 10".encode())
    assert refused.value.diag.message_hint == "ask for an aggregate such as COUNT(*)"


MISTYPED = {
    "a table": ("SELECT COUNT(*) FROM visit", "42P01", "visit ", "did you mean 'visits'?"),
    "a table in a schema": ("SELECT COUNT(*) FROM public.visit", "42P01", "visit ", "did you mean 'visits'?"),
    "a table in quotes": ('SELECT COUNT(*) FROM "Visit"', "42P01", '"Visit" ', "did you mean 'visits'?"),
    "a table in a common table": ("WITH v AS (SELECT * FROM vists) SELECT COUNT(*) FROM v", "42P01", "vists)", "did you mean 'visits'?"),
    "a table after a function that the catalogue has not": (
        "SELECT MEDIAN(cost), MY_OWN(cost) FROM vists ",
        "42P01",
        "vists ",
        "did you mean 'visits'?",
    ),
    "a table in a copy": ("COPY (SELECT COUNT(*) FROM vists) TO STDOUT", "42P01", "vists)", "did you mean 'visits'?"),
    "a table beside another": ("SELECT COUNT(*) FROM visits JOIN patient USING (x)", "42P01", "patient ", "did you mean 'patients'?"),
    "a table that is like none": ("SELECT COUNT(*) FROM zzz", "42P01", "zzz ", None),
    "a column": ("SELECT COUNT(*) FROM visits WHERE dya > '2025-01-01'", "42703", "dya ", "did you mean 'day'?"),
}


@pytest.mark.parametrize(("sql", "state", "at", "hint"), MISTYPED.values(), ids=MISTYPED.keys())
def test_a_name_that_is_mistyped_has_the_state_of_postgresql_and_a_hint(
    wire: WireUnderTest, sql: str, state: str, at: str, hint: str | None
) -> None:
    with wire.connect() as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(sql)
    assert (refused.value.sqlstate, refused.value.diag.message_hint) == (state, hint)
    assert f"{sql} "[int(refused.value.diag.statement_position or 0) - 1 :].startswith(at)


def test_relations_of_the_catalogue_that_are_not_shown_are_no_tables_that_are_mistyped(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        for sql in ("SELECT * FROM pg_authid", "SELECT x FROM information_schema.nothing", "SELECT * FROM pg_catalog.visits_"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="is not a relation of the catalogue that is shown here"):
                connection.execute(sql)


@pytest.mark.parametrize("macro", ["$__timeFilter(started)", "$__timeGroupAlias(started, '1d') IS NULL", "started > $__timeFrom()"])
def test_a_macro_of_grafana_that_was_not_expanded_is_named(wire: WireUnderTest, macro: str) -> None:
    with wire.connect() as connection, pytest.raises(psycopg.errors.SyntaxError, match=r"\$__time\w+ is a macro of Grafana") as refused:
        connection.execute(f"SELECT COUNT(*) FROM visits WHERE {macro}")
    assert (refused.value.diag.message_hint or "").startswith("only Grafana expands it")


def test_a_text_in_dollar_signs_may_look_like_a_macro(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        assert connection.execute("SELECT $__x$ a $__x$ AS one").fetchall() == [(" a ",)]
