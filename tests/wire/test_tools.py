"""Statements as BI tools write them: each is answered, with numbers near the truth, or refused with a way on that works."""

from __future__ import annotations

import psycopg
import pytest

from tests.wire.world import WireUnderTest

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
    assert (refused.value.diag.message_hint or "").startswith("Grafana expands it before it asks")


def test_a_text_in_dollar_signs_may_look_like_a_macro(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        assert connection.execute("SELECT $__x$ a $__x$ AS one").fetchall() == [(" a ",)]
