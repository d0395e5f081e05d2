"""A database in which others may create objects: nothing of theirs is ever run by whoever installs or uses the ledger."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lapwing.ledger.postgres
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import across, overview, policy
from lapwing.ledger.postgres import connection as connections
from lapwing.ledger.postgres.anchoring import report_lost
from lapwing.ledger.postgres.batch import Batch, commit_columns
from lapwing.ledger.postgres.install import SCHEMA_VERSION, install
from lapwing.ledger.postgres.routines import COMMITTING, SEARCH_PATH
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.ledger.postgres.verify import sources, verify
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, MONITOR_ROLE, OWNER_ROLE, ROLES, SECOND_ROLE, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.planted import caught, names_in_the_ledger, plant
from tests.ledger.support import pure_budget, request

HOSTILE_PATH = "public, pg_catalog"
PACKAGE = Path(next(iter(lapwing.ledger.postgres.__path__)))


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """Roles are given settings here that no other test should meet."""
    running = Cluster()
    yield running
    running.close()


@pytest.mark.slow
@pytest.mark.parametrize("pooled", [False, True])
def test_nothing_that_others_planted_is_run(own_cluster: Cluster, tmp_path: Path, pooled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted before the installation, in the first place of the search path of every role; ``pooled``: what a connection pinned is
    lost."""
    name = f"planted_{pooled}".lower()
    own_cluster._create_database(name, "template0")
    with own_cluster.superuser(name) as superuser:
        assert plant(superuser, names_in_the_ledger()) > 300
        for role in (OWNER_ROLE, APP_ROLE, SECOND_ROLE, CURATOR_ROLE, MONITOR_ROLE):
            superuser.execute(f"ALTER ROLE {role} IN DATABASE {name} SET search_path = {HOSTILE_PATH}".encode())
        _prove_that_it_can_be_caught(own_cluster, name, superuser)
        if pooled:
            connect = connections.Connection._connect

            def forgetful(self: connections.Connection) -> psycopg.Connection[tuple[Any, ...]]:
                opened = connect(self)
                opened.execute("RESET search_path")
                return opened

            monkeypatch.setattr(connections.Connection, "_connect", forgetful)
        install(own_cluster.dsn(name, role=OWNER_ROLE), roles=ROLES)
        superuser.execute("GRANT ALL ON SCHEMA public TO PUBLIC")
        install(own_cluster.dsn(name, role=OWNER_ROLE), roles=ROLES)
        _live(new_place(own_cluster, name, tmp_path))
        assert caught(superuser) == []


def _prove_that_it_can_be_caught(cluster: Cluster, database: str, superuser: psycopg.Connection[tuple[object, ...]]) -> None:
    with psycopg.connect(cluster.dsn(database), autocommit=True) as unwary:
        for statement in ("SELECT current_setting('fsync')", "SELECT array_agg('x'::pg_catalog.text)", "SELECT 'a'::pg_catalog.text = 'b'"):
            unwary.execute(statement.encode())
    assert [what for what, _ in caught(superuser)] == ["array_agg", "current_setting", "operator ="]
    superuser.execute("TRUNCATE public.caught")


def _live(place: Place) -> None:
    """Everything that a ledger is used for."""
    with (
        place.create(pure_budget(60), pure_budget(80)) as owner,
        place.second() as second,
        replace(place, role=CURATOR_ROLE).open() as curator,
    ):
        policy.set_group(owner, "team", loss_total=50)
        policy.admit(owner, "bo", group="team", loss_total=20)
        policy.set_limits(owner, policy.Limits(statement_loss_max=9, day_loss_max=50))
        policy.approve(second, policy.propose_budget(owner, pure_budget(70), by="olga", reason="x"), by="piet")
        policy.deny(second, policy.propose_ceiling(owner, pure_budget(90), by="olga", reason="x"), by="piet")
        policy.approve(owner, policy.request_budget(curator, "bo", Cost(loss=30, delta=0), reason="more"), by="olga")
        permit = curator.reserve(request("one", loss=3, analyst="bo"))
        assert isinstance(permit, Permit)
        curator.commit(permit, b"answer")
        many = curator.reserve_many([request(f"many {number}", analyst="ana") for number in range(3)])
        assert all(isinstance(one, Permit) for one in many)
        curator.reserve_many([request("many 0"), request("absurd", loss=10**6)])
        assert isinstance(many[0], Permit)
        curator.forfeit(many[0], incident=True)
        owner.reopen("understood")
        _live_together(place)
        assert curator.find("plan of one", analyst="ana") is not None and curator.bought(version=1, limit=9) != ()
        assert curator.history(limit=5) != () and policy.analyst_share(curator, "bo") is not None
        assert overview.analysts(owner) != () and overview.groups(owner) != () and overview.limits_in_force(owner) != policy.Limits()
        assert policy.group_share(owner, "team") is not None
        owner.set_budget(pure_budget(65), reason="less")
        owner.close("closed")
        curator.renew()
    reading = connections.Connection(replace(place, role=MONITOR_ROLE).dsn, schema_version=SCHEMA_VERSION, standby=True)
    assert place.source_id in sources(reading)
    assert verify(reading, place.source_id, anchors=place.anchors).problems == ()
    reading.close()
    acting = connections.Connection(place.dsn, schema_version=SCHEMA_VERSION)
    assert report_lost(acting, place.source_id, next(iter(place.anchors.known(place.source_id))), by="olga", reason="lost") is not None
    acting.close()


def _live_together(place: Place) -> None:
    """Two uses at once, as of two data sets: their statements go together, one of them alone, then two in one."""
    opened = [SharedPostgresLedger.open(place.dsn, source_id=place.source_id, anchors=place.anchors) for _ in range(2)]
    crossing = across.crossing_of(opened[0]._database)
    assert crossing is not None
    for one in opened:
        permit = one.reserve(request(f"shared {one.epoch}"))
        assert isinstance(permit, Permit)
        one.commit(permit, b"answer")
    batch, known = Batch.of([request("shared a"), request("shared b")]), opened[0]._known
    decided = crossing.reservations.decided(across.LedgerPart(one.ledger_id, opened[0].epoch, known, [*batch.columns, batch.purchases]))
    assert decided is not None
    answers = commit_columns([(permit, b"answer") for permit in batch.permits(decided.marks)])
    assert crossing.answers.decided(across.LedgerPart(one.ledger_id, opened[0].epoch, known, answers)) is not None
    for one in opened:
        one.disconnect()


def test_every_routine_is_pinned_or_bound_or_names_everything(place: Place) -> None:
    """The rule that holds on every version of PostgreSQL, by the catalogue of the server and by the text of the statements."""
    with place.cluster.superuser(place.database) as superuser:
        routines = superuser.execute(
            "SELECT proname, proconfig, prosqlbody IS NOT NULL, prosrc, prosecdef, proacl::text FROM pg_proc"
            " WHERE pronamespace = 'lapwing'::regnamespace"
        ).fetchall()
    assert len(routines) > 50
    for name, settings, is_bound, source, is_definer, rights in routines:
        pinned = f"search_path={SEARCH_PATH}" in (settings if isinstance(settings, list) else [])
        assert pinned or is_bound or name in COMMITTING, name
        assert not is_definer or pinned, name
        assert "=X/" not in re.findall(r"[{,](=X/)", str(rights)), f"anybody may call {name}"
        if name in COMMITTING:
            assert unqualified(str(source)) == [], name


def test_every_statement_of_a_client_names_everything() -> None:
    statements = [text for path in sorted(PACKAGE.glob("*.py")) for text in _statements(path)]
    assert len(statements) > 25
    for statement in statements:
        assert unqualified(statement) == [], statement


@pytest.mark.parametrize(
    "statement",
    ["SELECT count(1)", "SELECT lapwing.f(a = b)", "SELECT x::text FROM lapwing.f()", "CALL lapwing.f(a || b)", "SELECT a FROM t"],
)
def test_the_rule_can_be_broken(statement: str) -> None:
    assert unqualified(statement) != []


def unqualified(text: str) -> list[str]:
    """Names of functions, types and tables without a schema, and operators, in a statement or in the body of a procedure."""
    text = re.sub(r"--[^\n]*|'[^']*'", " ", text)
    found = [name for before, name in re.findall(r"([\w.]?)\b([a-z_]\w*)\(", text) if before != "." and name not in {"many"}]
    found += re.findall(r"::(?!pg_catalog\.|\{)\s*(\w+)", text)
    found += re.findall(r"\bFROM (?!lapwing\.|\{call\})(\S+)", text)
    found += re.findall(r"(?<![:<>=|+*/-])(?:=|<>|<|>|\|\||\+|\*|/)(?![:<>=|+*/-])", re.sub(r"r\.\*|\w+ := ", " ", text))
    return found


def _statements(path: Path) -> Iterator[str]:
    """The texts that a module gives to ``Connection.ask`` or that such texts are made of: those that begin as a statement or a call
    does."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in {"ask", "_ask", "act", "change"} or not node.args:
            continue
        text = _text(node.args[0])
        if text:
            yield text


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=parts):
            return "".join(
                part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else _inserted(part) for part in parts
            )
        case _:
            return ""


def _inserted(part: ast.expr) -> str:
    """Columns that are checked where they are written (rows.py) and calls that are checked where they are made."""
    source = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
    return "{call}" if source == "call" else "a_column"
