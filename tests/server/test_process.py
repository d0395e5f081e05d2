"""The server as a process, from an empty directory, and an analyst who is another user of the operating system: asks, and cannot read."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import lapwing
from lapwing.errors import BudgetRefused, CallRefused, LapwingError, Refused
from lapwing.interfaces.python.remote import RemoteDataSet
from tests.server.process import Running, free_port, lapwing_in, started

pytestmark = pytest.mark.xdist_group("server: process")

NOBODY = 65_534
STATEMENT = "SELECT kind, COUNT(*) AS n FROM visits JOIN clinics USING (clinic_id) GROUP BY kind"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """What the README says, from an empty directory."""
    directory = tmp_path_factory.mktemp("owner")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_HOME", str(directory / "home"))  # one of its own: a demonstration may have been made here before
        yield from _served(directory)


def _served(directory: Path) -> Iterator[Running]:
    lapwing_in(directory, "demo", "clinic", "--patients", "400")
    lapwing_in(directory, "-C", "clinic", "prepare")
    serve = ("serve", "clinic")
    with started(directory, serve) as (process, url):
        served = lapwing_in(directory, "access", "grant", "ada", "analyst", "*")
        assert "ada is analyst of *" in served
        key = lapwing_in(directory, "access", "key", "ada").strip()
        assert re.fullmatch(r"lw_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", key)
        yield Running(process, url, directory, key)


@pytest.fixture
def remote(running: Running) -> RemoteDataSet:
    """The analyst's view."""
    return lapwing.connect(running.url, token=running.key)


def _as_another_user(url: str, key: str, rows: Path, outcome: Connection) -> None:
    """In a process of its own that gives up every right of its parent: try to read, then ask."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    try:
        read = "could read" if rows.read_bytes() else ""
    except PermissionError:
        read = "could not read"
    with lapwing.connect(url, token=key) as data_set:
        outcome.send((read, str(data_set.explain(STATEMENT, epsilon="0.1")), str(data_set.ask(STATEMENT, epsilon="0.1"))))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_asks_and_cannot_read_the_rows(running: Running, remote: RemoteDataSet) -> None:
    assert "gaussian" in str(remote.explain("SELECT COUNT(*) AS n FROM patients"))
    remote.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.01")  # from here on every module is loaded: the other user cannot read them
    rows = running.directory / "clinic" / "visits.parquet"
    here, there = multiprocessing.Pipe(duplex=False)
    analyst = multiprocessing.get_context("fork").Process(target=_as_another_user, args=(running.url, running.key, rows, there))
    analyst.start()
    assert here.poll(60)
    read, explained, answer = here.recv()
    analyst.join()
    assert read == "could not read"
    assert "price" in explained
    assert "hospital" in answer
    assert "cost epsilon 0.1" in answer


def test_a_remote_data_set_is_like_a_local_one(running: Running, remote: RemoteDataSet) -> None:
    with remote, lapwing.open(running.directory / "clinic", analyst="ada") as local:
        assert remote.tables == local.tables
        assert str(remote.budget) == str(local.budget)
        assert remote.describe("visits").to_dict()["rows"] == local.describe("visits").to_dict()["rows"]
        sql = "SELECT AVG(cost) AS c, COUNT(*) AS n FROM visits"
        assert str(remote.explain(sql, epsilon="0.2")) == str(local.explain(sql, epsilon="0.2"))
        asked = remote.ask(sql, epsilon="0.2")
        same = local.ask(sql, epsilon="0.2")
        assert not asked.cost.free
        assert same.cost.free
        for part in ("columns", "rows", "intervals", "marks"):
            assert asked.to_dict()[part] == same.to_dict()[part]
        assert asked.stored == same.stored
        assert remote.replay(sql, epsilon="0.2").to_dict()["rows"] == same.to_dict()["rows"]
        assert [entry.analyst for entry in remote.history(limit=2)] == ["ada", "ada"]
        assert set(remote.history()) <= set(local.history())
        assert repr(remote) == f"<RemoteDataSet {remote.name!r}>"


def test_errors_are_those_of_the_library(remote: RemoteDataSet) -> None:
    with pytest.raises(Refused) as refused:
        remote.ask("SELECT nonsense FROM visits")
    assert (refused.value.code, refused.value.span is not None) == ("unknown-column", True)
    with pytest.raises(BudgetRefused) as unpaid:
        remote.ask("SELECT COUNT(*) FROM visits", epsilon="2.9999")
    assert unpaid.value.code == "statement-limit"
    with pytest.raises(CallRefused) as unasked:
        remote.replay("SELECT COUNT(*) AS never FROM visits", epsilon="0.3")
    assert unasked.value.code == "not-answered-before"
    with pytest.raises(Refused) as unsigned:
        remote.receipt(1)
    assert unsigned.value.code == "receipt-missing"
    with pytest.raises(LapwingError) as local_ledger:
        remote.request(0.5)
    assert local_ledger.value.code == "ledger-local"


def test_a_token_goes_to_its_server_alone(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAPWING_TOKEN", raising=False)
    for url in ("http://example.org", "ftp://127.0.0.1", "https://user@host", "nowhere", "http://127.0.0.1/?a=b"):
        with pytest.raises(LapwingError) as wrong:
            lapwing.connect(url, token="t")
        assert wrong.value.code == "server-address"
    with pytest.raises(LapwingError) as missing:
        lapwing.connect(running.url)
    assert missing.value.code == "token-missing"
    with pytest.raises(LapwingError) as unknown:
        lapwing.connect(running.url, token="lw_no")
    assert unknown.value.code == "unauthenticated"
    with pytest.raises(LapwingError) as nowhere:
        lapwing.connect(running.url, token=running.key, data_set="other")
    assert nowhere.value.code == "data-set-missing"
    with pytest.raises(LapwingError) as unreachable:
        lapwing.connect(f"http://127.0.0.1:{free_port()}", token="t")
    assert unreachable.value.code == "server-unreachable"


def test_the_same_words_again_start_it_and_others_are_told_where_to_write(running: Running) -> None:
    """The server of these tests holds the port, so that a second one ends by itself."""
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "serve"]
    for again in (["clinic"], ["clinic/lapwing.toml"], []):
        second = subprocess.run([*command, *again], cwd=running.directory, capture_output=True, text=True, timeout=120)
        assert second.stdout == f"Serves 1 data set at {running.url}. Ctrl C ends it.\n"
        assert second.returncode != 0 and "address already in use" in second.stderr
    for other, place in ((["small"], "[[data_set]]"), (["clinic", "--shadow", "postgresql://db/postgres"], "[wire]")):
        refused = subprocess.run([*command, *other], cwd=running.directory, capture_output=True, text=True, timeout=120)
        assert refused.returncode == 2 and refused.stdout == "" and place in refused.stderr


def test_told_to_stop_it_finishes_and_ends(running: Running, remote: RemoteDataSet) -> None:
    """Last in this file: the server is gone afterwards."""
    before = remote.ask("SELECT COUNT(*) AS n FROM visits WHERE minutes > 33", epsilon="0.05").to_dict()["rows"]
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=60) == 128 + signal.SIGTERM
    assert running.process.stderr is not None
    assert running.process.stderr.read() == b""
    with lapwing.open(running.directory / "clinic", analyst="ada") as local:
        again = local.ask("SELECT COUNT(*) AS n FROM visits WHERE minutes > 33", epsilon="0.05")
        assert again.cost.free
        assert again.to_dict()["rows"] == before
        assert not local.budget.closed
