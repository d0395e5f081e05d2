"""An analyst's side of a server: the command line, Python with and without waiting, receipts that are checked here."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lapwing
from lapwing.errors import CallRefused, LapwingError, LedgerError, PreparationError
from lapwing.interfaces.python.credentials import token_in
from lapwing.interfaces.python.remote import AsyncDataSet, RemoteDataSet
from lapwing.interfaces.python.waiting import SHOWN_AFTER_SECONDS, waited_for
from lapwing.receipts import new_key
from tests.server.process import Running, lapwing_in, started
from tests.unit.cli.support import ROOT, Ran, run

pytestmark = pytest.mark.xdist_group("server: client")

STATEMENT = "SELECT kind, COUNT(*) AS n FROM visits JOIN clinics USING (clinic_id) GROUP BY kind ORDER BY kind"
LOCAL_ONLY = {"analyst", "check", "curator", "prepare", "weights"}
"""What an owner does with the files, who asks, which a token says on a server, and sessions that stay with a process."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose charges are signed, and a registry of its own."""
    directory = tmp_path_factory.mktemp("owner")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_HOME", str(directory / "home"))
        yield from _served(directory)


def _served(directory: Path) -> Iterator[Running]:
    lapwing_in(directory, "demo", "clinic", "--patients", "400")
    new_key(directory / "clinic" / "keys")
    catalogue = directory / "clinic" / "lapwing.toml"
    catalogue.write_text(catalogue.read_text(encoding="utf-8") + '\n[ledger]\nkeys = "keys"\n', encoding="utf-8")
    lapwing_in(directory, "-C", "clinic", "prepare")
    with started(directory, ("serve", "clinic")) as (process, url):
        lapwing_in(directory, "access", "grant", "ada", "analyst", "*")
        yield Running(process, url, directory, lapwing_in(directory, "access", "key", "ada").strip())


@pytest.fixture
def public_keys(running: Running, tmp_path: Path) -> Path:
    """What an owner gives to whoever wants to check receipts."""
    directory = tmp_path / "public"
    directory.mkdir()
    for path in (running.directory / "clinic" / "keys").glob("*.public.pem"):
        (directory / path.name).write_bytes(path.read_bytes())
    return directory


def _here(running: Running, *arguments: str) -> Ran:
    return run("-C", running.directory / "clinic", *arguments, home=running.directory / "home")


def _there(running: Running, tmp_path: Path, *arguments: str, token: str | None = None) -> Ran:
    return run("--server", running.url, *arguments, home=tmp_path, variables={"LAPWING_TOKEN": running.key if token is None else token})


def _parameters(of: object) -> dict[str, object]:
    assert callable(of)
    return {name: parameter.default for name, parameter in inspect.signature(of).parameters.items()}


def test_a_remote_data_set_has_the_members_of_a_local_one_with_the_same_parameters() -> None:
    local = {name for name in dir(lapwing.DataSet) if not name.startswith("_")} - LOCAL_ONLY
    assert local - {"name"} == {name for name in dir(RemoteDataSet) if not name.startswith("_")}
    assert local - {"name"} == {name for name in dir(AsyncDataSet) if not name.startswith("_")}
    for name in local:
        here, there = inspect.getattr_static(lapwing.DataSet, name), inspect.getattr_static(RemoteDataSet, name, None)
        assert isinstance(here, property) == (isinstance(there, property) or name == "name"), name
        if inspect.isfunction(here):
            taken = _parameters(there)
            assert taken.pop("waiting", None) is None
            wanted = _parameters(here)
            wanted.pop("analyst", None)
            assert taken == wanted, name
            assert _parameters(getattr(AsyncDataSet, name)).keys() - {"waiting"} == wanted.keys(), name


@pytest.mark.parametrize(
    "command",
    [
        ("explain", STATEMENT, "--epsilon", "0.2"),
        ("explain", STATEMENT, "--format", "json"),
        ("explain", STATEMENT, "--reuse", "never"),
        ("ask", "SELECT COUNT(*) FROM patients", "--reuse", "only"),
        ("describe",),
        ("describe", "visits", "--format", "json"),
        ("budget",),
        ("budget", "--format", "json"),
        ("ask", "SELECT nonsense FROM visits"),
        ("ask", "SELECT COUNT(*) FROM visits", "--epsilon", "2.9999"),
        ("describe", "nothing"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_command_shows_the_same_here_and_there(running: Running, tmp_path: Path, command: tuple[str, ...]) -> None:
    assert _there(running, tmp_path, *command) == _here(running, *command)


def test_asking_there_and_again_here(running: Running, tmp_path: Path) -> None:
    asked = _there(running, tmp_path, "ask", STATEMENT, "--epsilon", "0.11", "--request-id", "once", "--receipt", str(tmp_path / "r.json"))
    again = _here(running, "ask", STATEMENT, "--epsilon", "0.11", "--analyst", "ada")
    assert asked.status == 0, asked.err
    assert asked.out.partition("\n\n")[0] == again.out.partition("\n\n")[0]
    assert "paid by ada" in asked.out
    assert '"request_id": "once"' in (tmp_path / "r.json").read_text(encoding="utf-8")
    listed = _there(running, tmp_path, "history")
    assert listed.status == 0
    assert "ada" in listed.out and "version 1 prepared" not in listed.out, "an analyst sees entries of their own"


def test_what_is_for_files_is_wrong_usage_with_a_server(running: Running, tmp_path: Path) -> None:
    for command in (("prepare",), ("check",), ("ask", "SELECT 1", "--analyst", "eve"), ("ledger", "status")):
        assert _there(running, tmp_path, *command).status == 2, command
    assert run("-C", tmp_path, "--token-file", "x", "budget", home=tmp_path).status == 2


def test_a_token_comes_from_the_environment_or_from_a_file_that_others_cannot_read(running: Running, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(running.key + "\n", encoding="utf-8")
    file.chmod(0o600)
    ran = run("--server", running.url, "--token-file", file, "budget", home=tmp_path, variables={"LAPWING_TOKEN": ""})
    assert ran.status == 0, ran.err
    file.chmod(0o640)
    refused = run("--server", running.url, "--token-file", file, "budget", home=tmp_path)
    assert (refused.status, "[token-file]" in refused.err, running.key in refused.err) == (1, True, False)
    for content in (b"", b"\xff"):
        file.write_bytes(content)
        file.chmod(0o600)
        with pytest.raises(LapwingError) as unreadable:
            token_in(file)
        assert unreadable.value.code == "token-file"
    missing = _there(running, tmp_path, "budget", token="")
    assert (missing.status, "[token-missing]" in missing.err) == (1, True)
    unknown = _there(running, tmp_path, "budget", token="lw_0")
    assert (unknown.status, "[unauthenticated]" in unknown.err) == (3, True)


def test_receipts_are_checked_here(running: Running, public_keys: Path, tmp_path: Path) -> None:
    with lapwing.connect(running.url, token=running.key, keys=public_keys) as checked:
        answer = checked.ask(STATEMENT, epsilon="0.07")
        assert answer.receipt is not None
        assert checked.receipt(answer.receipt.statement.charge_id) == answer.receipt
        assert checked.describe().receipt is None, "nothing was measured, so nothing is signed"
    with lapwing.open(running.directory / "clinic", analyst="ada") as local:
        assert local.receipt(answer.receipt.statement.charge_id) == answer.receipt
        assert local.replay(STATEMENT, epsilon="0.07").table == answer.table
        with pytest.raises(CallRefused) as unasked:
            local.replay("SELECT COUNT(*) AS never FROM visits", epsilon="0.3")
        assert unasked.value.code == "not-answered-before"
    new_key(tmp_path / "others")
    with lapwing.connect(running.url, token=running.key, keys=tmp_path / "others") as suspicious:
        for read in (lambda: suspicious.ask(STATEMENT, epsilon="0.07"), lambda: suspicious.receipt(answer.receipt.statement.charge_id)):
            with pytest.raises(LedgerError) as foreign:
                read()
            assert foreign.value.code == "receipt-invalid"
    answer.stored = b"something else"
    with pytest.raises(LedgerError, match="receipt-invalid"):
        answer.check_receipt(public_keys)
    answer.receipt = None
    with pytest.raises(LedgerError, match="receipt-invalid"):
        answer.check_receipt(public_keys)


def test_the_examples_of_the_page_run(
    running: Running, public_keys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that the page itself cannot run, having no server."""
    monkeypatch.setenv("LAPWING_TOKEN", running.key)
    page = (ROOT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^% skip: next\n\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"lapwing": lapwing, "asyncio": asyncio}
    exec(first.replace("https://curator.example:8765", running.url).replace("public-keys", str(public_keys)), names)
    assert len(names["answer"]) == 1
    exec(second, names)
    asyncio.run(names["ages"](running.url))
    assert capsys.readouterr().out.count("cost epsilon 0.05") == 3


def test_many_statements_are_awaited_at_once(running: Running) -> None:
    async def ask() -> list[str]:
        async with await lapwing.connect_async(running.url, token=running.key) as data_set:
            assert repr(data_set) == f"<AsyncDataSet {data_set.name!r}>"
            statements = [f"SELECT COUNT(*) AS n FROM visits WHERE minutes > {minutes}" for minutes in range(4)]
            answers = await asyncio.gather(*(data_set.ask(sql, epsilon="0.01") for sql in statements))
            assert [answer.cost.free for answer in answers] == [False] * 4
            assert (await data_set.replay(statements[0], epsilon="0.01")).table == answers[0].table
            assert "price" in str(await data_set.explain(STATEMENT))
            assert "visits" in await data_set.tables()
            assert len(await data_set.describe("visits")) > 3
            assert len(await data_set.history(limit=3)) == 3
            assert (await data_set.budget()).share_spent > 0
            with pytest.raises(LapwingError) as local_ledger:
                await data_set.request(0.5)
            assert local_ledger.value.code == "ledger-local"
            receipt = answers[0].receipt
            assert receipt is not None
            assert await data_set.receipt(receipt.statement.charge_id) == receipt
            return [answer.receipt.statement.analyst for answer in answers if answer.receipt is not None]

    assert asyncio.run(ask()) == ["ada"] * 4


def test_what_the_owner_must_see_to_ends_as_it_does_locally() -> None:
    from lapwing.interfaces.python.problems import error_of

    error = error_of(503, b'{"code": "data-set-unavailable", "title": "not now"}')
    assert isinstance(error, PreparationError)
    assert error.code == "data-set-unavailable"


def test_a_long_answer_is_told_of_while_it_is_waited_for() -> None:
    import threading

    finish, told = threading.Event(), list[float]()

    def waiting(seconds: float) -> None:
        told.append(seconds)
        if len(told) == 3:
            finish.set()

    assert waited_for(lambda: finish.wait(60), waiting) is True
    assert told[0] >= SHOWN_AFTER_SECONDS
    assert told == sorted(told)
    assert waited_for(lambda: "at once", told.append) == "at once"
    assert len(told) == 3
    with pytest.raises(ZeroDivisionError):
        waited_for(lambda: 1 // 0, told.append)


def test_a_release_is_bought_and_read_from_the_terminal_of_an_analyst(running: Running, tmp_path: Path) -> None:
    asked = ("people", "sex", "region", "--with", "birth_year --tree", "--epsilon", "0.1")
    planned = _there(running, tmp_path, "release", "plan", *asked)
    assert planned.status == 0 and "2. tree of ranges: 50% of the price" in planned.out, planned.err
    ran = _there(running, tmp_path, "release", "run", *asked)
    assert ran.status == 0 and ran.out.startswith("Released people: ") and "cost epsilon 0.1" in ran.out, ran.err
    assert "marginals, tree" in _there(running, tmp_path, "release", "list").out
    sql = "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1970"
    there = _there(running, tmp_path, "release", "query", "people", sql, "--format", "csv")
    assert there.status == 0 and there.out == _here(running, "release", "query", "people", sql, "--format", "csv", "--analyst", "ada").out
    file = tmp_path / "people.lapwing"
    assert _there(running, tmp_path, "release", "save", "people", str(file)).status == 0
    assert lapwing.open_release(file, keys=running.directory / "clinic" / "keys").name == "people"
    assert _there(running, tmp_path, "release", "list", "--analyst", "ada").status == 2, "the token says who asks"
