"""Who may do what in the database of a ledger: curators ask, owners decide, monitors read, and none of them changes a table."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import LedgerError
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import overview, policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION, Roles, install
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.routines import ACTING, ASKING, COMMITTING, HELPING
from lapwing.ledger.postgres.transfer import move
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import EntryKind
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, MONITOR_ROLE, OWNER_ROLE, SECOND_ROLE, Cluster
from tests.ledger.pg import Place
from tests.ledger.support import new_ledger, pure_budget, request

TABLES = ("data_set", "fingerprint", "analyst_group", "analyst", "worker", "charge", "entry", "proposal")


def test_rights_are_exactly_these(place: Place) -> None:
    place.create().disconnect()
    with place.cluster.superuser(place.database) as superuser:
        for role, callable_ones, reads in (
            (CURATOR_ROLE, {*ASKING, *COMMITTING, *HELPING}, set()),
            (APP_ROLE, {*ASKING, *COMMITTING, *HELPING, *ACTING}, set(TABLES)),
            (MONITOR_ROLE, set(), set(TABLES)),
        ):
            may_call = superuser.execute(
                "SELECT DISTINCT proname FROM pg_proc"
                " WHERE pronamespace = 'lapwing'::regnamespace AND has_function_privilege(%s, oid, 'EXECUTE')",
                [role],
            )
            assert {name for (name,) in may_call} == callable_ones, role
            for table in TABLES:
                for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"):
                    found = superuser.execute("SELECT has_table_privilege(%s, %s, %s)", [role, f"lapwing.{table}", right]).fetchone()
                    assert found == (right == "SELECT" and table in reads,), (role, table, right)
            assert superuser.execute("SELECT has_schema_privilege(%s, 'lapwing', 'CREATE')", [role]).fetchone() == (False,)
        others = superuser.execute(
            "SELECT has_schema_privilege('public', 'lapwing', 'USAGE'), has_schema_privilege('public', 'public', 'CREATE')"
        )
        assert others.fetchone() == (False, False)


def test_a_curator_answers_and_decides_nothing(place: Place) -> None:
    with place.create(pure_budget(10), pure_budget(20)) as owner, replace(place, role=CURATOR_ROLE).open() as curator:
        permit = curator.reserve(request("one"))
        assert isinstance(permit, Permit)
        curator.commit(permit, b"answer")
        assert curator.find("plan of one", analyst="bo") is not None and curator.history(limit=3) and curator.bought(version=1, limit=1)
        assert curator.bought(version=1, limit=1, begins="") and not curator.bought(version=1, limit=1, begins="release ")
        assert policy.analyst_share(curator, "ana") is not None
        failed = curator.reserve(request("two"))
        assert isinstance(failed, Permit)
        curator.forfeit(failed, incident=True)
        for act in (
            lambda: curator.reopen("alone"),
            lambda: curator.close("alone"),
            lambda: curator.set_budget(pure_budget(5), reason="alone"),
            lambda: curator.record(EntryKind.OVERRIDE, "alone"),
            lambda: policy.admit(curator, "eve"),
            lambda: policy.set_limits(curator, policy.Limits()),
            lambda: policy.set_group(curator, "team", loss_total=1),
            lambda: policy.propose_budget(curator, pure_budget(20), by="one", reason=""),
            lambda: policy.propose_ceiling(curator, pure_budget(30), by="one", reason=""),
            lambda: policy.approve(curator, 1, by="two"),
            lambda: overview.analysts(curator),
            lambda: replace(place, role=CURATOR_ROLE, source_id="another").create(),
        ):
            with pytest.raises(LedgerError) as refusal:
                act()
            assert refusal.value.code == "ledger-role"
        assert owner.balance().closed and owner.balance().budget == pure_budget(10)


def test_who_reads_everything_can_settle_nothing(place: Place) -> None:
    """The nonce of a charge is kept as a digest: reading it does not let anybody commit an answer to it, or give it up."""
    with place.create() as ledger:
        permit = ledger.reserve(request("one"))
        assert isinstance(permit, Permit)
        with psycopg.connect(replace(place, role=MONITOR_ROLE).dsn, autocommit=True) as monitor:
            [(epoch, nonce)] = monitor.execute(
                "SELECT epoch, nonce FROM lapwing.charge WHERE ledger_id = %s AND state = 'reserved'", [ledger.ledger_id]
            ).fetchall()
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                monitor.execute("SELECT lapwing.forfeit(%s, %s, %s, 1, false)", [ledger.ledger_id, epoch, nonce])
        assert permit.nonce not in str(nonce)
        with psycopg.connect(replace(place, role=CURATOR_ROLE).dsn, autocommit=True) as other:
            for call in (
                "SELECT outcome FROM lapwing.commit(%s, %s, %s, 1, 'plan of one', 1, 0, NULL, 'forged')",
                "SELECT outcome FROM lapwing.forfeit(%s, %s, %s, 1, false)",
            ):
                assert other.execute(call.encode(), [ledger.ledger_id, epoch, nonce]).fetchall() == [("not-open",)]
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute("SELECT nonce FROM lapwing.charge")
        ledger.commit(permit, b"answer")


@pytest.mark.parametrize("claim", ["yes", "1", ""])
def test_no_setting_of_a_session_turns_the_check_off(place: Place, claim: str) -> None:
    with place.create() as ledger:
        arguments = [ledger.ledger_id, ledger.epoch, secrets.token_hex(4)]
        with psycopg.connect(replace(place, role=CURATOR_ROLE).dsn, autocommit=True) as session:
            session.execute(
                "SELECT set_config('synchronous_commit', 'off', false), set_config('lapwing.flush_follows', %s, false)", [claim]
            )
            for call in (
                "SELECT lapwing.reserve(%s, %s, %s, 'ana', 'k', 'd', 1, '', 1, 0, NULL, 0, '', NULL)",
                "CALL lapwing.reserve_durably(%s, %s, %s, 'ana', 'k', 'd', 1::bigint, '', 1::numeric, 0::numeric, NULL::numeric,"
                " 0::bigint, '', NULL,"
                " NULL, NULL, NULL, NULL, NULL)",
                "SELECT lapwing.forfeit(%s, %s, %s, 1, true)",
            ):
                with pytest.raises(psycopg.Error) as refused:
                    session.execute(call.encode(), arguments)
                assert refused.value.sqlstate == "LW001"
        assert ledger.balance().spent.loss == 0 and not ledger.balance().closed


def test_two_owners_are_two_roles(place: Place) -> None:
    with place.create(pure_budget(10), pure_budget(20)) as ledger:
        number = policy.propose_ceiling(ledger, pure_budget(30), by="olga", reason="more")
        [role] = [
            str(row[0])
            for row in ledger.connection.look("SELECT proposed_role FROM lapwing.proposal WHERE ledger_id = %s", [ledger.ledger_id])
        ]
        assert role == APP_ROLE
        # Not even by changing roles in the session: what counts is who logged in.
        with psycopg.connect(place.dsn, autocommit=True) as session:
            session.execute("SET ROLE lapwing_owners")
            statement = (
                "SELECT outcome FROM lapwing.decide(%s, %s, 'piet', true, (SELECT ceiling FROM lapwing.data_set WHERE ledger_id = %s), '')"
            )
            assert session.execute(statement, [ledger.ledger_id, number, ledger.ledger_id]).fetchall() == [("second-person",)]
        with replace(place, role=SECOND_ROLE).open() as second:
            policy.approve(second, number, by="piet")
        assert ledger.balance().ceiling == pure_budget(30)


def test_a_monitor_verifies(place: Place) -> None:
    with place.create() as ledger:
        assert isinstance(ledger.reserve(request("open")), Permit)
        reading = Connection(replace(place, role=MONITOR_ROLE).dsn, schema_version=SCHEMA_VERSION, standby=True)
        report = verify(reading, place.source_id, anchors=place.anchors)
        assert report.problems == () and report.charges == 1
        with pytest.raises(LedgerError) as refusal:
            reading.ask("SELECT lapwing.set_closed(%s, true, '')", [ledger.ledger_id], again=False)
        assert refusal.value.code == "ledger-role"
        reading.close()


def test_installing_makes_the_roles_and_takes_other_rights_back(cluster: Cluster, tmp_path: Path) -> None:
    roles = Roles(curators='askers "1%"', owners="deciders", monitors="watchers")
    cluster._create_database("own_roles", "template0")
    try:
        with cluster.superuser("own_roles") as superuser:
            superuser.execute(f"ALTER ROLE {OWNER_ROLE} CREATEROLE".encode())
            assert install(cluster.dsn("own_roles", role=OWNER_ROLE), roles=roles) == SCHEMA_VERSION
            superuser.execute(f"GRANT SELECT ON lapwing.charge TO {CURATOR_ROLE}, PUBLIC".encode())
            superuser.execute(f"GRANT deciders TO {APP_ROLE}".encode())
            assert install(cluster.dsn("own_roles", role=OWNER_ROLE), roles=roles) == SCHEMA_VERSION
            reads = "SELECT has_table_privilege(%s, 'lapwing.charge', 'SELECT')"
            assert [superuser.execute(reads, [role]).fetchone() for role in (CURATOR_ROLE, "deciders", "watchers", roles.curators)] == [
                (False,),
                (True,),
                (True,),
                (False,),
            ]
            logins = superuser.execute("SELECT DISTINCT rolcanlogin FROM pg_roles WHERE rolname = ANY (%s)", [[*vars_of(roles)]]).fetchall()
            assert logins == [(False,)]
            superuser.execute(psycopg.sql.SQL("GRANT {} TO {}").format(*map(psycopg.sql.Identifier, (roles.curators, CURATOR_ROLE))))
            needed = [overview.role_to_decide(cluster.dsn("own_roles", role=role)) for role in (CURATOR_ROLE, APP_ROLE)]
            assert needed == ["deciders", None]
        anchors = FileAnchors(tmp_path / "anchors")
        with Place(cluster, "own_roles", anchors, "clinic").create() as ledger:
            assert isinstance(ledger, PostgresLedger)
    finally:
        cluster.drop_database("own_roles")
        with cluster.superuser() as superuser:
            superuser.execute(f"ALTER ROLE {OWNER_ROLE} NOCREATEROLE".encode())
            for role in vars_of(roles):
                superuser.execute(psycopg.sql.SQL("DROP ROLE {}").format(psycopg.sql.Identifier(role)))


def test_a_schema_that_somebody_else_made_is_not_used(cluster: Cluster) -> None:
    cluster._create_database("taken", "template0")
    try:
        with cluster.superuser("taken") as superuser:
            superuser.execute(f"CREATE SCHEMA lapwing AUTHORIZATION {CURATOR_ROLE}".encode())
            superuser.execute(f"GRANT ALL ON SCHEMA lapwing TO {OWNER_ROLE}".encode())
        with pytest.raises(LedgerError) as refusal:
            install(cluster.dsn("taken", role=OWNER_ROLE), roles=Roles())
        assert refusal.value.code == "ledger-owner"
    finally:
        cluster.drop_database("taken")


def test_a_right_that_is_missing_is_said_to_be_that(cluster: Cluster, tmp_path: Path) -> None:
    """Not that the database cannot be reached, which would be tried again."""
    database = cluster.new_database()
    curators = cluster.dsn(database, role=CURATOR_ROLE)

    def refused(act: Callable[[], object]) -> LedgerError:
        with pytest.raises(LedgerError) as refusal:
            act()
        assert refusal.value.code == "ledger-role"
        return refusal.value

    with new_ledger(tmp_path / "local") as local:
        told = refused(
            lambda: move(local, curators, source_id="x", source_fingerprint="x", anchors=FileAnchors(tmp_path), was_closed=False)
        )
        assert "a member of lapwing_owners" in told.hint
        assert isinstance(local.reserve(request("one")), Permit), "and the local ledger is still the one"
    with cluster.superuser() as superuser:
        superuser.execute(f"CREATE DATABASE nobodys OWNER {OWNER_ROLE} TEMPLATE template0".encode())
    refused(lambda: install(cluster.dsn("nobodys", role=CURATOR_ROLE), roles=Roles()))
    with cluster.superuser() as superuser:
        superuser.execute(f"REVOKE CONNECT ON DATABASE {database} FROM PUBLIC".encode())
    refused(lambda: Connection(curators, schema_version=SCHEMA_VERSION, retry_seconds=10_000.0).ask("SELECT 1", again=True))
    for name in ("nobodys", database):
        cluster.drop_database(name)


def vars_of(roles: Roles) -> tuple[str, str, str]:
    return roles.curators, roles.owners, roles.monitors
