"""The role that makes the shadows need not be a superuser: LOGIN, CREATEDB and CREATEROLE do. What a superuser would add is said once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import NewDataSettings
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.wire.catalogue.words import RELATIONS, SCHEMA_RELATIONS
from lapwing.interfaces.wire.shadow.database import DeclaredColumn, DeclaredTable, make_shadow, what_is_missing
from tests.ledger.cluster import Cluster
from tests.server.fleet import Replica
from tests.server.process import free_port
from tests.server.test_declaring import loans_body, write_loans
from tests.wire.world import shadow_url, wire_over

MAKER = "shadow_maker"
SESSIONS = "ordinary_sessions"


@pytest.fixture(scope="module")
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """A server of its own, since a database that shadows are copied from is made in it; not without the one of the other tests."""
    del shared_cluster
    running = Cluster()
    with running.superuser() as superuser:
        superuser.execute(f"CREATE ROLE {MAKER} LOGIN CREATEDB CREATEROLE".encode())
    yield running
    running.close()


def _tables(*names: str) -> list[DeclaredTable]:
    return [DeclaredTable(name, "", (DeclaredColumn("x", "bigint", nullable=True, description=""),)) for name in names]


def _make(cluster: Cluster, database: str, *tables: str, maker: str = MAKER) -> None:
    role = f"{SESSIONS}_{maker}"
    make_shadow(shadow_url(cluster, maker), database=database, role=role, password="x", tables=_tables(*tables))


def _seen(cluster: Cluster, database: str, maker: str = MAKER) -> list[str]:
    """The tables that sessions see there."""
    with psycopg.connect(cluster.dsn(database, role=f"{SESSIONS}_{maker}")) as session:
        listed = session.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1")
        return [name for (name,) in listed]


def test_a_shadow_is_made_made_again_and_changed(cluster: Cluster) -> None:
    _make(cluster, "first", "a")
    _make(cluster, "first", "a")
    assert _seen(cluster, "first") == ["a"]
    _make(cluster, "first", "a", "b")
    assert _seen(cluster, "first") == ["a", "b"]
    _make(cluster, "second", "c")
    assert _seen(cluster, "second") == ["c"]
    for statement in ("SELECT count(*) FROM a", "CREATE TEMP TABLE t (n int)", "CREATE TABLE t (n int)", "DROP TABLE a"):
        with psycopg.connect(cluster.dsn("first", role=f"{SESSIONS}_{MAKER}"), autocommit=True) as session:
            with pytest.raises(psycopg.Error) as refused:
                session.execute(statement.encode())
            assert refused.value.sqlstate in ("42501", "25006")


def test_a_data_set_that_is_declared_later_is_on_the_wire(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write_loans(tmp_path / "files" / "loans.csv")
    new_data = NewDataSettings(sources="files")
    with wire_over(cluster, tmp_path, lambda path: write_demo(path, patients=50), new_data=new_data, maker=MAKER) as wire:
        assert wire.server.call("POST", "/v1/data-sets", by="olga", json=loans_body(epsilon="50")).status_code == 201
        assert wire.server.call("POST", "/v1/data-sets/loans/versions", by="olga", json={}).json() == {"version": 1}
        with psycopg.connect(wire.dsn(dbname="loans"), autocommit=True) as connection:
            listed = connection.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'loans'")
            assert {row[0] for row in listed} == {"reader", "branch", "day", "days_kept"}
            row = connection.execute("SELECT COUNT(*) AS n FROM loans").fetchone()
            assert row is not None


@pytest.mark.parametrize("right", ["CREATEDB", "CREATEROLE"])
def test_a_right_that_is_missing_is_named_with_the_statement_that_gives_it(cluster: Cluster, right: str) -> None:
    maker, other = f"lacks_{right.lower()}", {"CREATEDB": "CREATEROLE", "CREATEROLE": "CREATEDB"}[right]
    with cluster.superuser() as superuser:
        superuser.execute(f"CREATE ROLE {maker} LOGIN {other}".encode())
        with pytest.raises(LapwingError) as refused:
            _make(cluster, maker, "a", maker=maker)
        assert refused.value.code == "wire-shadow"
        assert refused.value.hint is not None
        statement = refused.value.hint.removeprefix("a superuser must run: ")
        assert statement == f'ALTER ROLE "{maker}" {right}'
        superuser.execute(statement.encode())
        _make(cluster, maker, "a", maker=maker)
        assert not any(right in one for one in what_is_missing(shadow_url(cluster, maker), later=False))
        superuser.execute(f"ALTER ROLE {maker} NO{right}".encode())
    _make(cluster, maker, "a", maker=maker)  # what is there goes on
    assert any(one.endswith(f"A superuser must run: {statement}") for one in what_is_missing(shadow_url(cluster, maker), later=False))


def test_a_shadow_of_somebody_else_is_left_to_them(cluster: Cluster) -> None:
    _make(cluster, "of_postgres", "a", maker="postgres")
    with pytest.raises(LapwingError, match="belongs to") as refused:
        _make(cluster, "of_postgres", "a")
    assert refused.value.hint is not None
    with cluster.superuser() as superuser:
        statement = refused.value.hint.split(": ")[1].split(";")[0]
        superuser.execute(statement.encode())
    _make(cluster, "of_postgres", "a")
    assert _seen(cluster, "of_postgres") == ["a"]


NOT_NEEDED = [
    "lo_get(1)",
    "lo_from_bytea(0, 'x')",
    "pg_sleep_for('0')",
    "pg_sleep_until(now())",
    "query_to_xml_and_xmlschema('select 1', true, true, '')",
    "cursor_to_xmlschema('x', true, true, '')",
    "pg_advisory_lock(1)",
    "pg_advisory_xact_lock_shared(1)",
    "pg_try_advisory_lock(1)",
    "pg_terminate_backend(0)",
    "pg_stat_get_activity(NULL)",
    "pg_stat_get_backend_idset()",
    "pg_stat_get_backend_activity(1)",
    "pg_stat_get_db_numbackends(1)",
    "pg_stat_clear_snapshot()",
    "pg_lock_status()",
    "pg_blocking_pids(1)",
    "pg_notify('a', 'b')",
    "pg_export_snapshot()",
    "pg_logical_emit_message(false, 'a', 'b')",
    "pg_describe_object('pg_database'::regclass, 1, 0)",
    "pg_identify_object('pg_database'::regclass, 1, 0)",
    "pg_tablespace_databases(1663)",
    "pg_get_replication_slots()",
    "repeat('x', 2)",
]
TELLS_OF_OTHERS = ["pg_stat_activity", "pg_stat_database", "pg_locks", "pg_db_role_setting", "pg_shdepend", "pg_subscription"]


@pytest.mark.parametrize("text", [*NOT_NEEDED, *(f"(SELECT count(*) FROM {name})" for name in TELLS_OF_OTHERS)])
def test_behind_the_rules_a_superusers_shadow_has_a_wall(cluster: Cluster, text: str) -> None:
    _make(cluster, "walled", "a", maker="postgres")
    dsn = cluster.dsn("walled", role=f"{SESSIONS}_postgres")
    with psycopg.connect(dsn, autocommit=True) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(f"SELECT {text}".encode())


def test_the_wall_stands_in_front_of_nothing_that_tools_read(cluster: Cluster) -> None:
    """Every view and table of the catalogue that can be read without the wall, and that the rules pass on, can be read behind it."""
    _make(cluster, "walled", "a", maker="postgres")
    _make(cluster, "open", "a")
    with cluster.superuser("walled") as superuser:
        listed = superuser.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v')"
            " AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) ORDER BY 1"
        ).fetchall()
    refused: dict[str, set[str]] = {}
    for database, maker in (("walled", "postgres"), ("open", MAKER)):
        refused[database] = set()
        with psycopg.connect(cluster.dsn(database, role=f"{SESSIONS}_{maker}"), autocommit=True) as session:
            session.execute("SELECT set_config('timezone', 'UTC', false)")
            session.execute("DISCARD ALL")
            for (name,) in listed:
                try:
                    session.execute(f"SELECT * FROM {name} LIMIT 1".encode())
                except psycopg.errors.InsufficientPrivilege:
                    refused[database].add(str(name))
    listed_here = RELATIONS | {f"information_schema.{name}" for name in SCHEMA_RELATIONS}
    assert (refused["walled"] - refused["open"]) & listed_here == set()


def _serve(home: Path, environment: dict[str, str]) -> Replica:
    one = Replica(home, environment)
    text = re.sub(r"(?m)^\[server\]\nport = \d+", f"[server]\nport = {one.port}", (home / "lapwing-server.toml").read_text())
    (home / "lapwing-server.toml").write_text(text, encoding="utf-8")
    (home / "stderr").write_text("")
    one.start()
    return one


def test_what_a_superuser_would_run_is_said_once_at_the_start_and_is_right(cluster: Cluster, tmp_path: Path) -> None:
    clinic, home, port = tmp_path / "clinic", tmp_path / "server", free_port()
    write_demo(clinic, patients=50)
    with lapwing.open(clinic, home=tmp_path / "home") as data_set:
        data_set.prepare()
        name = data_set.curator.declaration.dataset.id
    home.mkdir(mode=0o700)
    (home / "files").mkdir()
    lines = ["[server]", "port = 0", "workers = 2", "[new_data]", 'sources = "files"', "[wire]", f"port = {port}"]
    lines += [f'shadow = "{shadow_url(cluster, MAKER)}"', 'role = "said_once"', "[[data_set]]", f'catalogue = "{clinic}"']
    (home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    identities = Identities(f"sqlite:///{home / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    key, _ = identities.new_key("ada")
    identities.close()

    def start() -> str:
        """What a server says from its start on, while somebody logs in; it is stopped again."""
        one = _serve(home, {"LAPWING_HOME": str(tmp_path / "home")})
        try:
            for _ in range(4):  # whichever of the workers answers
                with psycopg.connect(host="127.0.0.1", port=port, user="ada", password=key, dbname=name, autocommit=True) as session:
                    assert session.execute("SELECT count(*) FROM pg_class WHERE relname = 'visits'").fetchone() == (1,)
        finally:
            one.stop()
        return (home / "stderr").read_text(encoding="utf-8")

    said = start()
    assert said.count("superuser must run") == 1, said
    found = re.search(r"superuser must run: (CREATE DATABASE .*?); and in each of the databases (.*?): (DO .*\$\$)", said)
    assert found is not None, said
    assert f'"{name}"' in found[2].split(", ") and "lapwing_shadow_template" in found[2].split(", ")
    with cluster.superuser() as superuser:
        superuser.execute(found[1].encode())
    for database in found[2].split(", "):
        with cluster.superuser(database.strip('"')) as superuser:
            superuser.execute(found[3].encode())
    assert "superuser" not in start(), "the second start, with the shadows of the first"
    _make(cluster, "made_later", "a")
    assert what_is_missing(shadow_url(cluster, MAKER), later=True) == []
    dsn = cluster.dsn("made_later", role=f"{SESSIONS}_{MAKER}")
    with psycopg.connect(dsn, autocommit=True) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT pg_sleep(0)")
