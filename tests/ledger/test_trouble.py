"""Trouble of the ledger is no incident: nothing is charged that could not be answered, and what was paid for is not lost.

The trouble is real: files that others hold locked, an anchor that cannot be written, a standby that is gone. Each comes at the moment it
hurts, while the engine runs, and goes.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.demo import write_demo
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.errors import Incident, LedgerError, Refused
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.permit import Permit
from lapwing.ledger import settling
from lapwing.ledger.local import sqlite_file as database
from lapwing.ledger.local.deaths import DEATHS_MAX
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.protocol import EntryKind, StoredAnswer
from tests.ledger.cluster import Cluster
from tests.ledger.support import declare_dead, ledger_path, new_ledger, open_ledger, request
from tests.ledger.wired import BY_SEX, Wired, new_wired, server_ledger


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataSet]:
    """A prepared data set on a local ledger that does not wait long for others."""
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(settling, "PATIENCE_SECONDS", 0.5)
    write_demo(tmp_path / "clinic", patients=200)
    with DataSet(Curator(tmp_path / "clinic", home=tmp_path / "home")) as opened:
        opened.prepare()
        yield opened


@pytest.fixture
def wired(cluster: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wired:
    monkeypatch.setattr(settling, "PATIENCE_SECONDS", 0.5)
    return new_wired(tmp_path, cluster.dsn(database))


@pytest.fixture
def shared(wired: Wired) -> Iterator[DataSet]:
    with wired.open(analyst="ana") as opened:
        opened.prepare()
        policy.admit(server_ledger(opened), "ana")
        yield opened


@contextmanager
def _held(path: Path, how: str) -> Iterator[None]:
    """Somebody else has the file locked: BEGIN IMMEDIATE to write, or a long read, which lets nobody commit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(how)
        other.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield
        other.execute("ROLLBACK")


@contextmanager
def _unwritable(directory: Path) -> Iterator[None]:
    """The anchors are out of reach, also for an administrator: a file stands where their directory was."""
    away = directory.with_name("anchors away")
    directory.rename(away)
    directory.write_text("")
    yield
    directory.unlink()
    away.rename(directory)


def _while_running(monkeypatch: pytest.MonkeyPatch, act: object) -> None:
    """The engine runs, and then ``act`` happens, before the answer can be stored."""
    real = DuckDBSnapshot.run

    def run(self: DuckDBSnapshot, certified: Certified) -> Exact:
        found = real(self, certified)
        assert callable(act)
        act()
        return found

    monkeypatch.setattr(DuckDBSnapshot, "run", run)


def _charges(data: DataSet) -> int:
    return sum(entry.kind is EntryKind.RESERVE for entry in data.curator.history(limit=1000))


def test_an_answer_that_a_busy_ledger_cannot_store_is_kept_and_given_to_whoever_asks_again(
    local: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = local.curator.place.local
    holding = _held(path, "BEGIN")
    before = _charges(local)
    with monkeypatch.context() as patched:
        _while_running(patched, holding.__enter__)
        with pytest.raises(LedgerError, match="answer-pending") as refused:
            local.ask(BY_SEX, epsilon="0.2")
        assert "not charged twice" in refused.value.hint
        with pytest.raises(LedgerError, match="answer-pending"):
            local.ask(BY_SEX, epsilon="0.2")
        holding.__exit__(None, None, None)
        patched.setattr(DuckDBSnapshot, "run", lambda *_: pytest.fail("the data was read a second time"))
        answer = local.ask(BY_SEX, epsilon="0.2")
    assert answer.cost.free and local.ask(BY_SEX, epsilon="0.2").table == answer.table
    assert not local.curator.balance().closed and _charges(local) == before + 1


def test_two_answers_to_one_plan_wait_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(settling, "PATIENCE_SECONDS", 0.2)
    ledger, waiting = new_ledger(tmp_path), settling.PendingCommits()
    asked = [request(key, digest="the same plan") for key in ("one", "two")]
    permits = [ledger.reserve(one) for one in asked]
    with _held(ledger_path(tmp_path), "BEGIN IMMEDIATE"):
        for one, permit in zip(asked, permits, strict=True):
            assert isinstance(permit, Permit)
            with pytest.raises(LedgerError, match="answer-pending"):
                waiting.store(ledger, one, permit, f"answer {one.request_id}".encode())
    for _ in asked:
        assert waiting.pending(ledger, analyst="ana", digest="the same plan") is not None
    assert waiting.pending(ledger, analyst="ana", digest="the same plan") is None
    replayed = [ledger.reserve(one) for one in asked]
    assert [answer.payload for answer in replayed if isinstance(answer, StoredAnswer)] == [b"answer one", b"answer two"]


def test_what_a_process_still_has_is_stored_when_it_ends(local: DataSet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    holding = _held(local.curator.place.local, "BEGIN")
    with monkeypatch.context() as patched:
        _while_running(patched, holding.__enter__)
        with pytest.raises(LedgerError, match="answer-pending"):
            local.ask(BY_SEX, epsilon="0.2")
    holding.__exit__(None, None, None)
    local.close()
    with DataSet(Curator(tmp_path / "clinic", home=tmp_path / "home")) as again:
        assert again.ask(BY_SEX, epsilon="0.2").cost.free


def test_while_the_registry_is_held_nothing_is_charged(local: DataSet, tmp_path: Path) -> None:
    before = local.curator.balance()
    with _held(tmp_path / "home" / "registry.sqlite", "BEGIN IMMEDIATE"):
        for _ in range(3):
            with pytest.raises(LedgerError, match="ledger-busy"):
                local.ask(BY_SEX, epsilon="0.2")
    assert local.curator.balance() == before
    assert not local.ask(BY_SEX, epsilon="0.2").cost.free


def test_a_fault_of_the_engine_is_an_incident_even_if_the_ledger_hears_of_it_later(local: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    holding = _held(local.curator.place.local, "BEGIN")

    def fails(*_: object) -> Exact:
        holding.__enter__()
        raise Incident

    with monkeypatch.context() as patched:
        patched.setattr(DuckDBSnapshot, "run", fails)
        with pytest.raises(Incident):
            local.ask(BY_SEX, epsilon="0.2")
    with pytest.raises(LedgerError, match="ledger-busy"):
        local.ask(BY_SEX, epsilon="0.3")
    holding.__exit__(None, None, None)
    with pytest.raises(Refused, match="data-set-closed"):
        local.ask(BY_SEX, epsilon="0.3")


def test_while_the_anchor_cannot_be_written_nothing_is_charged(wired: Wired, shared: DataSet) -> None:
    before = shared.curator.balance()
    with _unwritable(wired.base / "anchors"):
        for number in range(10):
            with pytest.raises(LedgerError, match="anchor-unreachable"):
                shared.ask(BY_SEX, epsilon=f"0.0{number + 1}")
    assert shared.curator.balance() == before
    assert not shared.ask(BY_SEX, epsilon="0.2").cost.free


def test_an_answer_that_could_not_be_anchored_is_given_later_and_nothing_is_closed(
    wired: Wired, shared: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = _unwritable(wired.base / "anchors")
    before = _charges(shared)
    with monkeypatch.context() as patched:
        _while_running(patched, away.__enter__)
        with pytest.raises(LedgerError, match="answer-pending"):
            shared.ask(BY_SEX, epsilon="0.2")
        assert not shared.curator.balance().closed
        away.__exit__(None, None, None)
        patched.setattr(DuckDBSnapshot, "run", lambda *_: pytest.fail("the data was read a second time"))
        assert shared.ask(BY_SEX, epsilon="0.2").cost.free
    assert _charges(shared) == before + 1


def test_a_server_that_goes_away_before_the_answer_is_stored(
    wired: Wired, shared: DataSet, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is held by somebody else, or it cannot be reached: both come back from the connection as an error of the ledger."""
    before, real = _charges(shared), Connection.ask
    with monkeypatch.context() as patched:

        def ask(self: Connection, statement: str, *arguments: object, **options: object) -> object:
            if "commit_durably" in statement:
                raise LedgerError("ledger-busy", "the ledger was held by others for too long; nothing was changed")
            return real(self, statement, *arguments, **options)  # type: ignore[arg-type]

        patched.setattr(Connection, "ask", ask)
        with pytest.raises(LedgerError, match="answer-pending"):
            shared.ask(BY_SEX, epsilon="0.2")
        assert not shared.curator.balance().closed
    assert shared.ask(BY_SEX, epsilon="0.2").cost.free and _charges(shared) == before + 1


def test_deaths_close_a_local_data_set_only_when_there_were_too_many(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        for number in range(DEATHS_MAX):
            assert not ledger.balance().closed
            dying = open_ledger(tmp_path)
            assert isinstance(dying.reserve(request(f"key {number}")), Permit)
            assert declare_dead(ledger_path(tmp_path), number + 1)
            open_ledger(tmp_path).disconnect()
            dying.disconnect()
        assert ledger.balance().closed and ledger.history(limit=1)[0].detail == "too many processes died while answering"
        ledger.reopen("they were killed by hand")
        assert not ledger.balance().closed


def test_a_command_that_is_told_to_stop_ends_in_order_and_counts_as_no_death(tmp_path: Path) -> None:
    write_demo(tmp_path / "clinic", patients=200)
    with DataSet(Curator(tmp_path / "clinic", home=tmp_path / "home")) as opened:
        opened.prepare()
    code = (
        "import sys, time, pathlib\n"
        "from lapwing.engines.duckdb.snapshot import DuckDBSnapshot\n"
        "def run(self, certified):\n"
        "    print('running', flush=True)\n"
        "    time.sleep(600)\n"
        "DuckDBSnapshot.run = run\n"
        f"sys.argv = ['lapwing', '-C', {str(tmp_path / 'clinic')!r}, 'ask', {BY_SEX!r}, '--epsilon', '0.2']\n"
        "from lapwing.interfaces.cli.app import main\n"
        "main()\n"
    )
    environment = {**os.environ, "LAPWING_HOME": str(tmp_path / "home")}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == b"running\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    with DataSet(Curator(tmp_path / "clinic", home=tmp_path / "home")) as opened:
        newest = opened.curator.history(limit=1)[0]
        assert (newest.kind, newest.detail) == (EntryKind.FORFEIT, "no answer")
