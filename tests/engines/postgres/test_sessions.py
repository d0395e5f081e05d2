"""A statement means what its text says, whatever the server, the database or the role is set to and whatever others planted there."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from lapwing.catalog import Settings
from lapwing.engines.postgres.prepare import schema_name
from lapwing.engines.postgres.session import ask, connect, transaction
from lapwing.errors import Incident, PreparationError
from tests.engines.postgres.place import KEY, Place, by_ward, totals
from tests.ledger.cluster import Cluster

PLANTED = """
CREATE FUNCTION {0}.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS 'BEGIN INSERT INTO {0}.seen VALUES (1); RETURN $1; END';
CREATE FUNCTION {0}.floor(double precision) RETURNS double precision LANGUAGE sql AS 'SELECT 7.0::float8';
CREATE FUNCTION {0}.count_all() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
CREATE FUNCTION {0}.smaller(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR {0}.<= (LEFTARG = int, RIGHTARG = int, FUNCTION = {0}.smaller);
CREATE DOMAIN {0}.text AS integer;
CREATE TABLE {0}.visits (x int);
CREATE TABLE {0}.cells (x int)
"""
"""Functions, operators, a type and tables with names that our statements use."""
SETTINGS = {
    "search_path": "planted, pg_catalog, public",
    "TimeZone": "Pacific/Auckland",
    "DateStyle": "SQL, DMY",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "row_security": "on",
    "IntervalStyle": "sql_standard",
    "default_transaction_isolation": "read committed",
    "client_encoding": "LATIN1",
}


def _plant(place: Place, *roles: str) -> None:
    with place.as_superuser() as superuser:
        ask(superuser, "CREATE SCHEMA planted")
        ask(superuser, "CREATE TABLE planted.seen (x int)")
        for statement in PLANTED.format("planted").split(";\n"):
            ask(superuser, statement)
        ask(superuser, "GRANT ALL ON SCHEMA planted TO PUBLIC")
        ask(superuser, "GRANT ALL ON ALL TABLES IN SCHEMA planted TO PUBLIC")
        for role in roles:
            for name, value in SETTINGS.items():
                ask(superuser, f"ALTER ROLE {role} SET {name} = {value if ',' in value else repr(value)}")


def test_settings_and_planted_functions_change_nothing(place: Place) -> None:
    first = place.prepare(version=1).open(1, ranking_key=KEY)
    expected = by_ward(first)
    first.close()
    _plant(place, place.owner, place.reader)
    with connect(place.cluster.dsn(place.database, role=place.reader)) as reader:
        # the plant works on whoever does not look out for it
        assert ask(reader, "SELECT floor(1.5::float8), 1 <= 2") == [(7.0, False)]
    engine = place.prepare(version=2)
    snapshot = engine.open(2, ranking_key=KEY)
    found = by_ward(snapshot)
    assert dict(zip(found._groups, zip(*found._vectors, strict=True), strict=True)) == dict(
        zip(expected._groups, zip(*expected._vectors, strict=True), strict=True)
    )
    with place.as_superuser() as superuser:
        assert ask(superuser, "SELECT COUNT(*) FROM planted.seen") == [(0,)]
    snapshot.close()


def test_a_transaction_of_a_reader_cannot_write_and_leaves_nothing_behind(place: Place) -> None:
    with place.as_owner() as owner:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), transaction(owner, Settings(), read_only=True):
            ask(owner, "DELETE FROM clinic.visits")
        before = ask(owner, "SELECT current_setting('search_path'), current_setting('TimeZone'), current_setting('statement_timeout')")
        with transaction(owner, Settings(query_timeout_seconds=7), read_only=True):
            inside = ask(owner, "SELECT current_setting('search_path'), current_setting('TimeZone'), current_setting('statement_timeout')")
        after = ask(owner, "SELECT current_setting('search_path'), current_setting('TimeZone'), current_setting('statement_timeout')")
        assert inside == [("pg_catalog, pg_temp", "UTC", "7s")]
        assert before == after != inside


def test_all_statements_of_a_plan_see_one_state(place: Place) -> None:
    with place.as_owner() as reading, place.as_owner() as writing:
        with transaction(reading, Settings(), read_only=True):
            first = ask(reading, "SELECT COUNT(*) FROM clinic.visits")
            ask(writing, "DELETE FROM clinic.visits")
            assert ask(reading, "SELECT COUNT(*) FROM clinic.visits") == first
        assert ask(reading, "SELECT COUNT(*) FROM clinic.visits") == [(0,)]


def test_a_question_that_takes_too_long_is_an_incident_without_words(place: Place) -> None:
    engine = place.prepare()
    snapshot = engine.open(1, ranking_key=KEY)
    schema = schema_name(f"visits.{place.number}", 1)
    with place.as_owner() as owner, owner.transaction():
        # A lock that only the owner can take: the question waits, as it would for a slow disk.
        ask(owner, f"LOCK TABLE {schema}.visits IN ACCESS EXCLUSIVE MODE")
        slow = place.engine(settings=Settings(query_timeout_seconds=1)).open(1, ranking_key=KEY)
        with pytest.raises(Incident) as incident:
            by_ward(slow)
        assert incident.value.__context__ is None
    assert totals(by_ward(slow))[0] > 0  # and the next one is answered
    slow.close()
    snapshot.close()


def test_a_lost_connection_is_opened_again(place: Place) -> None:
    snapshot = place.prepare().open(1, ranking_key=KEY)
    expected = totals(by_ward(snapshot))
    with place.as_superuser() as superuser:
        ask(superuser, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", [place.reader])
    with pytest.raises(Incident):
        by_ward(snapshot)
    assert totals(by_ward(snapshot)) == expected
    snapshot.close()


def test_a_database_in_another_encoding_is_refused(cluster: Cluster) -> None:
    with cluster.superuser() as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    with pytest.raises(PreparationError) as refused:
        connect(cluster.dsn("latin", role="postgres"))
    assert refused.value.code == "engine-version"


def test_a_server_that_is_not_there_is_an_error_for_the_owner(tmp_path: Path) -> None:
    with pytest.raises(PreparationError) as refused:
        connect(f"host={tmp_path} dbname=none user=none")
    assert refused.value.code == "engine-unreachable"


def test_the_ranking_key_is_in_no_log_and_in_no_stored_statement(place: Place) -> None:
    """The server logs every statement in these databases, with log_parameter_max_length = 0 as the how-to says."""
    with place.as_owner() as owner:
        ask(owner, f"GRANT USAGE ON SCHEMA clinic TO {place.reader}")
        ask(owner, f"GRANT SELECT ON clinic.visits TO {place.reader}")
    virtual = place.prepare(preparation="virtual")
    snapshot = virtual.open(1, ranking_key=KEY)
    by_ward(snapshot)
    snapshot.close()
    log = (place.cluster.home / "log").read_text(encoding="utf-8", errors="replace")
    assert "sha256(convert_to(CAST($1 AS TEXT)" in log
    assert KEY.hex() not in log
    with place.as_superuser() as superuser:
        definitions = ask(superuser, "SELECT COUNT(*) FROM pg_views WHERE definition LIKE '%sha256%'")
        functions = ask(superuser, "SELECT COUNT(*) FROM pg_proc WHERE prosrc LIKE $1", [f"%{KEY.hex()}%"])
    assert (definitions, functions) == ([(0,)], [(0,)])
