"""An owner who prepares or retires beside a question: it ends on the version that it began with, and nothing is taken for an incident."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from lapwing.curator.cost_estimate import CostEstimate, Hold, on_charge
from lapwing.curator.version_use import one_version
from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.errors import Incident, LapwingError, PreparationError

CATALOGUE = """
format = 1
[dataset]
id = "people"
unit = "person"
preparation = "{preparation}"
[budget]
epsilon = 100
statistics_share = 0
[tables.people]
source = "people.parquet"
unit = "id"
one_row_per_unit = true
columns.id = {{ type = "key" }}
columns.age = {{ type = "integer", min = 0, max = 120 }}
"""
COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
ROWS = 5_000
NEAR = 50
"""At epsilon 10 the noise of a count is far below this."""


@pytest.fixture(params=["stored", "virtual"])
def data(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DataSet]:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT range AS id, range % 90 + 1 AS age FROM range({ROWS})) TO '{tmp_path / 'people.parquet'}'")
    (tmp_path / "lapwing.toml").write_text(CATALOGUE.format(preparation=request.param))
    with _opened(tmp_path) as opened:
        opened.prepare()
        yield opened


@pytest.fixture(params=["itself", "another"])
def owner(data: DataSet, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DataSet]:
    """The data set through which the owner acts: that of the question, or another one of this process."""
    if request.param == "itself":
        yield data
        return
    with _opened(tmp_path) as opened:
        yield opened


def _opened(directory: Path) -> DataSet:
    return open_data_set(directory, home=directory / "home")


def _asked_beside(data: DataSet, act: Callable[[], object], *, ends: bool) -> tuple[float, threading.Thread]:
    """The count of a question that is about to be charged when another thread begins ``act``, which ends before it goes on or waits."""
    other = threading.Thread(target=act)

    def watch(_: CostEstimate) -> Hold:
        other.start()
        other.join(None if ends else 0.5)
        assert other.is_alive() is not ends
        return lambda: None

    with on_charge(watch):
        answer = data.ask(COUNT.format(0), epsilon=10)
    return answer.table.column("n")[0].as_py(), other


def test_a_question_ends_on_its_version_while_another_is_prepared(data: DataSet, owner: DataSet, tmp_path: Path) -> None:
    if data.curator.declaration.dataset.preparation.value == "stored":  # of a virtual one the file is the version
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT range AS id, 30 AS age FROM range(10)) TO '{tmp_path / 'people.parquet'}'")
    counted, _ = _asked_beside(data, lambda: owner.prepare(accept_losses=True), ends=True)
    assert abs(counted - ROWS) < NEAR, "the rows of the version that it began with"
    assert not data.curator.balance().closed
    assert owner.curator.facts.version == 2


def test_a_version_is_deleted_when_no_question_reads_it(data: DataSet, owner: DataSet) -> None:
    counted, retiring = _asked_beside(data, lambda: owner.curator.retire(1), ends=False)
    retiring.join(timeout=60)
    assert abs(counted - ROWS) < NEAR and not retiring.is_alive()
    assert not data.curator.balance().closed and data.curator.engine.versions() == ()
    with pytest.raises(PreparationError) as refused:
        data.ask(COUNT.format(1), epsilon=1)
    assert refused.value.code == "not-prepared"
    owner.prepare()
    assert data.ask(COUNT.format(1), epsilon=1).cost.epsilon > 0


def test_a_question_that_comes_while_a_version_is_deleted_reads_the_newest(data: DataSet, owner: DataSet) -> None:
    found: list[int] = []
    later = threading.Thread(target=lambda: found.append(data.curator.facts.version))
    with one_version():
        assert data.curator.facts.version == 1
        retiring = threading.Thread(target=lambda: owner.curator.retire(1))
        retiring.start()
        retiring.join(0.5)
        later.start()
        later.join(0.2)
        assert retiring.is_alive() and later.is_alive() and found == []
        owner.prepare()
        assert data.curator.facts.version == 1, "it began with this one"
    retiring.join(60)
    later.join(60)
    assert found == [2] and data.curator.engine.versions() == (2,)


def test_a_session_keeps_its_version_or_is_ended(data: DataSet, owner: DataSet) -> None:
    session = data.weights("age", alpha="0.2", starts=2, epsilon=1, bins={"age": 4}, rows=ROWS)
    session.open()
    assert session.ask("SELECT COUNT(*) FROM people WHERE age < 30") is not None
    owner.prepare(accept_losses=True)
    owner.curator.retire(1)
    try:
        session.ask("SELECT COUNT(*) FROM people WHERE age < 60")
    except LapwingError as error:
        assert error.code == "session-ended"
    assert not data.curator.balance().closed


def test_a_fault_of_the_engine_is_still_an_incident(data: DataSet, tmp_path: Path) -> None:
    def watch(_: CostEstimate) -> Hold:
        data.curator.snapshot.close()  # what a stored version needs
        (tmp_path / "people.parquet").write_bytes(b"no Parquet file")  # and a virtual one
        return lambda: None

    spent = data.curator.balance().spent.loss
    with on_charge(watch), pytest.raises(Incident):
        data.ask(COUNT.format(2), epsilon=1)
    assert data.curator.balance().closed and data.curator.balance().spent.loss > spent
