"""What is not recognised fails: it is never answered by the shadow, which has no rows."""

from __future__ import annotations

import psycopg
import pytest

from tests.wire.world import WireUnderTest

REFUSED = {
    "query_to_xml": "SELECT query_to_xml('select count(*) from visits', true, true, '')",
    "table_to_xml": "SELECT table_to_xml('visits', true, true, '')",
    "database_to_xml": "SELECT pg_catalog.database_to_xml(true, true, '')",
    "dblink": "SELECT * FROM dblink('dbname=x', 'select 1') AS t(n int)",
    "copy of a table": "COPY visits TO STDOUT",
    "copy to a file": "COPY (SELECT COUNT(*) FROM visits) TO '/tmp/out'",
    "copy to a program": "COPY (SELECT COUNT(*) FROM visits) TO PROGRAM 'cat'",
    "copy in": "COPY visits FROM STDIN",
    "listen": "LISTEN x",
    "notify": "NOTIFY x",
    "pg_notify": "SELECT pg_notify('x', 'y')",
    "large object": "SELECT lo_create(0)",
    "large object, imported": "SELECT lo_import('/etc/passwd')",
    "large object's table": "SELECT * FROM pg_largeobject",
    "sleep": "SELECT pg_sleep(0.01)",
    "sleep, qualified": 'SELECT "pg_catalog"."pg_sleep"(0.01)',
    "sleep, in capitals": "SELECT PG_SLEEP(0.01)",
    "file": "SELECT pg_read_file('/etc/passwd')",
    "terminate": "SELECT pg_terminate_backend(1)",
    "advisory lock": "SELECT pg_advisory_lock(1)",
    "do": "DO $$ BEGIN PERFORM count(*) FROM visits; END $$",
    "call": "CALL something()",
    "insert": "INSERT INTO visits VALUES (1)",
    "update": "UPDATE visits SET cost = 1",
    "delete": "DELETE FROM visits",
    "truncate": "TRUNCATE visits",
    "create table": "CREATE TABLE t AS SELECT * FROM visits",
    "temporary table": "CREATE TEMP TABLE t (n int)",
    "temporary view": "CREATE TEMP VIEW v AS SELECT * FROM visits",
    "security definer": "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM visits'",
    "select into": "SELECT 1 AS n INTO t",
    "changing with": "WITH gone AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM gone",
    "pg_statistic": "SELECT * FROM pg_catalog.pg_statistic",
    "numbers of rows": "SELECT pg_stat_get_live_tuples('visits'::regclass)",
    "sessions": "SELECT * FROM pg_stat_get_activity(NULL)",
    "who depends on whom in other databases": "SELECT * FROM pg_shdepend",
    "names of other databases": "SELECT pg_describe_object('pg_database'::regclass, 1, 0)",
    "numbers of other databases": "SELECT pg_tablespace_databases(1663)",
    "explain analyze": "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits",
    "explain with options": "EXPLAIN (ANALYZE, BUFFERS) SELECT COUNT(*) FROM visits",
    "explain of a catalogue": "EXPLAIN VERBOSE SELECT 1",
    "set role": "SET ROLE postgres",
    "session authorization": "SET SESSION AUTHORIZATION postgres",
    "strings": "SET standard_conforming_strings = off",
    "strings, by a function": "SELECT set_config('standard_conforming_strings', 'off', false)",
    "encoding": "SET client_encoding = 'SJIS'",
    "row security": "SET session_preload_libraries = 'x'",
    "table": "TABLE visits",
    "lock": "LOCK TABLE visits",
    "quoted": 'SELECT * FROM "visits"',
    "quoted and qualified": 'SELECT * FROM "public"."visits"',
    "with a comment": "SELECT * FROM/**/visits",
    "after a comment": "SELECT * -- FROM pg_class\n FROM visits",
    "nested comment": "SELECT * FROM /* /* */ pg_class */ visits",
    "unicode": 'SELECT * FROM U&"\\0076isits"',
    "unicode with another escape": "SELECT * FROM U&\"!0076isits\" UESCAPE '!'",
    "only": "SELECT * FROM ONLY visits",
    "star": "SELECT * FROM visits*",
    "row of a table": "SELECT visits FROM visits",
    "sample": "SELECT * FROM visits TABLESAMPLE SYSTEM (10)",
    "join with a catalogue": "SELECT count(*) FROM visits, pg_class",
    "in a subquery": "SELECT (SELECT count(*) FROM visits) FROM pg_class",
    "for update": "SELECT relname FROM pg_class FOR UPDATE",
    "two texts": "SELECT 'a'\n'b'",
    "continued escapes": "SELECT E'a'\n'\\' || (SELECT count(*) FROM visits) --'",
    "a comment without end": "SELECT 1 /* FROM visits",
    "a text without end": "SELECT 'FROM visits",
    "a backslash": "SELECT 'a\\' FROM visits --'",
    "grant": "GRANT SELECT ON visits TO PUBLIC",
    "vacuum": "VACUUM visits",
    "analyze": "ANALYZE visits",
    "cluster's files": "SELECT pg_ls_dir('.')",
    "very long": "SELECT repeat('x', 1000000000)",
    "a prepared transaction": "PREPARE TRANSACTION 'x'",
    "a binary cursor": "DECLARE c BINARY CURSOR FOR SELECT 1",
    "a cursor of rows": "DECLARE c CURSOR FOR SELECT * FROM visits",
    "a prepared lookup of rows": "PREPARE p AS DELETE FROM visits",
    "load": "LOAD 'x'",
    "comment": "COMMENT ON TABLE visits IS 'x'",
    "security label": "SECURITY LABEL ON TABLE visits IS 'x'",
    "reassign": "REASSIGN OWNED BY lapwing_wire TO postgres",
    "alter": "ALTER TABLE visits ADD COLUMN x int",
    "import": "IMPORT FOREIGN SCHEMA public FROM SERVER s INTO public",
}


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED.keys())
def test_it_is_refused_and_costs_nothing(wire: WireUnderTest, statement: str) -> None:
    before = wire.spent()
    with wire.connect() as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(statement)
        assert refused.value.sqlstate is not None
        assert (refused.value.diag.message_detail or "").startswith("lapwing code: ")
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert wire.spent() == before


HIDDEN = ["SELECT count(*) FROM visits", "SELECT * FROM visits WHERE false", "SELECT 1 FROM pg_class LEFT JOIN visits ON false LIMIT 1"]


@pytest.mark.parametrize("statement", HIDDEN)
def test_the_shadow_itself_refuses_whatever_we_might_overlook(wire: WireUnderTest, statement: str) -> None:
    """The second wall: straight to the shadow, as the role of sessions, nothing of a table can be read, not even that it is empty."""
    settings = wire.server.app_state.configuration.wire
    assert settings is not None
    dsn = wire.cluster.dsn(wire.server.data_set, role=settings.role)
    with psycopg.connect(dsn, autocommit=True) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


WALLS = [
    "CREATE TEMP TABLE t (n int)",
    "CREATE TABLE t (n int)",
    "SELECT lo_create(0)",
    "SELECT query_to_xml('select count(*) from visits', true, true, '')",
    "SELECT pg_read_file('/etc/passwd')",
    "COPY (SELECT 1) TO '/tmp/out'",
    "SELECT pg_sleep(0)",
    "SELECT pg_notify('a', 'b')",
    "SET ROLE postgres",
    "DELETE FROM visits",
]


@pytest.mark.parametrize("statement", WALLS)
def test_the_role_of_sessions_may_do_nothing(wire: WireUnderTest, statement: str) -> None:
    settings = wire.server.app_state.configuration.wire
    assert settings is not None
    with psycopg.connect(wire.cluster.dsn(wire.server.data_set, role=settings.role), autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(statement)
        assert refused.value.sqlstate in ("42501", "25006")
