"""E2: no value of a row is ever quoted. Canary texts stand in the rows; everything that can be read or printed is searched for them."""

from __future__ import annotations

import io
import logging
import os
import pickle
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.asking.ask import plan_of
from lapwing.data_set import DataSet
from lapwing.errors import Incident, LapwingError, PreparationError, Refused
from lapwing.kernel.certify import certify
from lapwing.kernel.permit import issue
from lapwing.kernel.release import release
from tests.attacks.pair import CANARY, HOSTILE, TARGET, open_world, write_world
from tests.attacks.test_two_worlds import ANSWERED, REFUSED

PROBES = (
    *(sql for sql in ANSWERED if CANARY not in sql),  # what the analyst wrote may be repeated
    *REFUSED,
    "SELECT kind, COUNT(*) AS n, AVG(amount) AS a FROM events GROUP BY kind",
    "SELECT note, SUM(x) AS s FROM people WHERE num = 777 GROUP BY note ORDER BY note",
    "SELECT COUNT(*) FROM people WHERE id = 'somebody'",
    "SELECT note || 'x' FROM people",
    "SELECT COUNT(*) FROM people WHERE note LIKE '%ecret%'",
    "SELECT COUNT(*) FROM peeple",
)


def clean(text: str) -> bool:
    """No canary, and none in capitals either."""
    return CANARY not in text.lower() and TARGET not in text


def texts_of(thing: object) -> Iterator[str]:
    """How something can come to be printed."""
    yield str(thing)
    yield repr(thing)
    yield f"{thing}"


def texts_of_error(error: BaseException) -> Iterator[str]:
    """An error as anything might log it: with its chain, its traceback, and the local variables of every frame."""
    yield from texts_of(error)
    yield repr(error.args)
    yield repr(getattr(error, "__dict__", {}))
    whole = traceback.TracebackException.from_exception(error, capture_locals=True)
    yield "".join(whole.format(chain=True))


def assert_clean(texts: Iterator[str]) -> int:
    """All of them, and how many characters were looked at."""
    searched = 0
    for text in texts:
        assert clean(text), text[:2_000]
        searched += len(text)
    return searched


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataSet]:
    write_world(tmp_path / "w1", hostile=HOSTILE[0], epsilon="10_000", statistics_share="0.01")
    with open_world(tmp_path / "w1") as opened:
        yield opened


def test_the_canaries_are_there_to_be_found(data: DataSet) -> None:
    directory = data.curator.path.parent
    assert CANARY.encode() in (directory / "people.parquet").read_bytes()
    snapshot = next((directory / ".lapwing").glob("*.duckdb")).read_bytes()
    assert CANARY.encode() in snapshot, "the snapshot holds the rows, so it must be kept from analysts"
    _, planned = plan_of(data.curator, "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind", 1)
    exact = data.curator.snapshot.run(planned.certified)
    assert any(CANARY in str(group) for group in exact._tables[0]._groups), "the exact figures hold a canary, unseen"


def test_nothing_on_the_path_of_an_answer_shows_a_row(
    data: DataSet, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    searched = errors = 0
    for sql in PROBES:
        try:
            explained, answer = data.explain(sql, epsilon=40), data.ask(sql, epsilon=40)
        except Refused as error:
            searched += assert_clean(texts_of_error(error))
            errors += 1
            continue
        statement, planned = plan_of(data.curator, sql, 40)
        exact = data.curator.snapshot.run(planned.certified)
        permit = issue(1, planned.certified.digest, planned.certified.cost)
        released = release(planned.certified, permit, exact)
        things = (explained, answer, statement, planned, planned.certified, exact, exact._tables[0], permit, released, data, data.curator)
        searched += assert_clean(text for thing in things for text in texts_of(thing))
        searched += assert_clean(iter([str(explained.to_dict()), str(answer.to_dict()), answer._repr_html_()]))
        for hidden in (exact, exact._tables[0]):
            with pytest.raises(TypeError, match="cannot be stored"):
                pickle.dump(hidden, io.BytesIO())
    out, err = capfd.readouterr()
    assert clean(out) and clean(err) and clean(caplog.text)
    others = (*data.history(limit=1_000), data.budget, data.curator.balance(), data.curator.facts, data.curator.contributions())
    searched += assert_clean(text for thing in others for text in texts_of(thing))
    assert errors >= len(REFUSED) and searched > 100_000


def files_of(data: DataSet) -> dict[Path, bytes]:
    """Every file Lapwing keeps, but for the snapshots themselves."""
    directory = data.curator.path.parent
    found = [*(directory / ".lapwing").rglob("*"), *(directory.parent / f"home-{directory.name}").rglob("*")]
    return {path: path.read_bytes() for path in found if path.is_file() and path.suffix != ".duckdb"}


def test_no_file_but_the_snapshot_holds_a_row(data: DataSet) -> None:
    for sql in PROBES:
        with suppress(Refused):
            data.ask(sql, epsilon=40)
    data.close()
    files = files_of(data)
    assert {"ledger.sqlite", "statistics.json", "ranking.key"} <= {path.name for path in files}
    for path, content in files.items():
        assert CANARY.encode() not in content, path.name


def _damage(path: Path) -> None:
    """Overwrite the blocks of a snapshot behind the back of the engine that has it open."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(12_288)
        file.write(b"\xff" * (size - 12_288))
        file.flush()
        os.fsync(file.fileno())


def test_an_engine_fault_is_one_opaque_charged_refusal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A real fault: the file is damaged while it is open. The error says nothing, is charged, and closes the data set."""
    caplog.set_level(logging.DEBUG)
    write_world(tmp_path / "w1", hostile=HOSTILE[0])
    open_world(tmp_path / "w1").close()
    with lw.open(tmp_path / "w1", home=tmp_path / "home-w1") as data:
        sql = "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind"
        price = data.explain(sql, epsilon=40).cost
        _damage(data.curator.state.directory / "v000001.duckdb")
        with pytest.raises(Incident) as caught:
            data.ask(sql, epsilon=40)
        assert_clean(texts_of_error(caught.value))
        assert str(caught.value) == str(Incident()) and caught.value.__cause__ is None and caught.value.__context__ is None
        assert data.budget.share_spent > 0 and price.rho is not None
        with pytest.raises(Refused, match="data-set-closed") as closed:
            data.ask("SELECT COUNT(*) AS n FROM events", epsilon=1)
        assert_clean(texts_of_error(closed.value))
        assert_clean(text for entry in data.history() for text in texts_of(entry))
    out, err = capfd.readouterr()
    assert clean(out) and clean(err) and clean(caplog.text)
    assert all(CANARY.encode() not in content for content in files_of(data).values())


def test_errors_of_the_kernel_and_of_opening_show_no_row(data: DataSet, tmp_path: Path) -> None:
    _, planned = plan_of(data.curator, "SELECT note, COUNT(*) AS n FROM people GROUP BY note", 40)
    _, other = plan_of(data.curator, "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind", 40)
    exact, certified = data.curator.snapshot.run(planned.certified), planned.certified
    permit = issue(1, certified.digest, certified.cost)
    seen: list[LapwingError] = []
    for attempt in (
        lambda: release(certify(other.certified.plan, data.curator.facts), issue(2, other.certified.digest, other.certified.cost), exact),
        lambda: release(certified, issue(3, "another", certified.cost), exact),
        lambda: [release(certified, permit, exact), release(certified, permit, exact)],
    ):
        with pytest.raises(LapwingError) as caught:
            attempt()
        seen.append(caught.value)
    (tmp_path / "w1" / ".lapwing" / "v000002.duckdb").write_bytes(b"not a snapshot")
    with pytest.raises(PreparationError) as unreadable, lw.open(tmp_path / "w1", home=tmp_path / "home-w1") as again:
        again.ask("SELECT COUNT(*) AS n FROM people", epsilon=1)
    seen.append(unreadable.value)
    assert [error.code for error in seen[:3]] == ["engine-result", "permit-mismatch", "permit-used"]
    assert sum(assert_clean(texts_of_error(error)) for error in seen) > 1_000
