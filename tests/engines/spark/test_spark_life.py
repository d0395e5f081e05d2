"""Versions on Spark: whole or not at all, failing tasks, time limits, tables of the catalogue, and reading without a copy."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import RANKING_KEY
from lapwing.audit.worlds import declare, random_world
from lapwing.catalog import Settings, load
from lapwing.curator.curator import Curator
from lapwing.engines.base import silent
from lapwing.engines.spark import SparkSnapshot, use_session
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.ledger.protocol import EntryKind
from tests.engines.comparison import comparable
from tests.support.spark_worlds import prepare_in_spark, spark_engine, spark_session

SHAPES = shapes(Account.APPROXIMATE)
CATALOGUE = """
format = 1
[dataset]
id = "trips"
unit = "rider"
engine = "spark"
preparation = "{preparation}"
[budget]
epsilon = 4
statistics_share = 0
[tables.trips]
source = "{source}"
unit = "rider_id"
rows_per_unit_max = 3
rows_max = 1000
[tables.trips.columns]
rider_id = {{ type = "key" }}
minutes = {{ type = "integer", min = 0, max = 60 }}
"""


@pytest.fixture(autouse=True)
def _one_spark() -> Iterator[SparkSession]:
    use_session(spark_session())
    yield spark_session()
    use_session(None)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> SparkSnapshot:
    declaration = declare(random_world(random.Random(5)), tmp_path_factory.mktemp("life"), neighbours="unbounded", delta='"2^-30"')
    made = prepare_in_spark(declaration)
    assert isinstance(made, SparkSnapshot)
    return made


def _certified(snapshot: SparkSnapshot, name: str = "grouped") -> Certified:
    return certify(SHAPES[name](snapshot.facts), snapshot.facts)


def _with_tables(snapshot: SparkSnapshot, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every prepared table read through one more condition, in Spark's own words."""
    plain = snapshot._stored.table
    planted = replace(snapshot._stored, table=lambda name: f"(SELECT * FROM {plain(name)} WHERE {condition})")
    monkeypatch.setattr(snapshot, "_stored", planted)


def _trips(directory: Path, *, riders: int = 20) -> None:
    rows = [{"rider_id": i % riders, "minutes": i % 61} for i in range(riders * 5)]
    pq.write_table(pa.Table.from_pylist(rows), directory / "trips.parquet")


def _curator(directory: Path, *, source: str = "trips.parquet", preparation: str = "stored") -> Curator:
    (directory / "lapwing.toml").write_text(CATALOGUE.format(source=source, preparation=preparation), encoding="utf-8")
    return Curator(directory, home=directory / "home")


def _count(curator: Curator) -> int:
    """The exact number of prepared rows, by the engine."""
    (table,) = curator.snapshot.run(certify(_rows_plan(), curator.facts))._tables
    return int(table._vectors[0][0])


def _rows_plan() -> Plan:
    return Plan((Query(Scan("trips", 3), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), DiscreteLaplace(Fraction(8))),)),))


def test_a_task_that_fails_is_run_again_and_the_answer_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt of a task fails inside Spark; the result is still collected once, noised once and written once."""
    _trips(tmp_path)
    with _curator(tmp_path) as curator:
        curator.prepare()
        snapshot = curator.snapshot
        assert isinstance(snapshot, SparkSnapshot)
        exact, flag = _count(curator), f"lapwing.{tmp_path.name}"
        # setProperty gives the value before, as text: null the first time in this Spark, and then the row raises
        once = f"(CASE WHEN reflect('java.lang.System', 'setProperty', '{flag}', 'x') = 'null' THEN raise_error('first') ELSE true END)"
        _with_tables(snapshot, once, monkeypatch)
        collected: list[str] = []
        collect = snapshot._collect

        def collect_and_count(sql: str) -> pa.Table:
            collected.append(sql)
            return collect(sql)

        monkeypatch.setattr(snapshot, "_collect", collect_and_count)
        failed_before = _failed_tasks()
        first = curator.answer(_rows_plan(), summary="rows")
        failed = _failed_tasks() - failed_before
        second = curator.answer(_rows_plan(), summary="rows")
        entries = [entry.kind for entry in curator.history()]
    assert failed >= 1
    assert len(collected) == 1
    assert (first.free, second.free) == (False, True)
    noisy = [answered.released.tables[0].columns[0].values for answered in (first, second)]
    assert noisy[0] == noisy[1]
    assert abs(int(noisy[0][0]) - exact) < 400
    assert entries.count(EntryKind.COMMIT) == 1


def _failed_tasks() -> int:
    """Attempts of tasks that failed so far, as Spark counts them."""
    executors = spark_session().sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).failedTasks() for i in range(executors.size()))


def test_a_statement_that_takes_too_long_is_stopped_and_is_an_incident(snapshot: SparkSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_tables(snapshot, "COALESCE(reflect('java.lang.Thread', 'sleep', CAST(5000 AS BIGINT)), 'woken') <> 'never'", monkeypatch)
    monkeypatch.setattr(snapshot, "_settings", Settings(query_timeout_seconds=2))
    started = time.monotonic()
    with pytest.raises(Incident):
        snapshot.run(_certified(snapshot))
    # there are rows to sleep for many minutes over
    assert 2 <= time.monotonic() - started < 60


def test_an_engine_fault_is_an_incident_without_words(
    snapshot: SparkSnapshot, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _with_tables(snapshot, "raise_error('secret value 4711') IS NULL", monkeypatch)
    with pytest.raises(Incident) as caught:
        snapshot.run(_certified(snapshot))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    monkeypatch.undo()
    assert "4711" not in str(caught.value)
    out, err = capfd.readouterr()
    assert "4711" not in out + err
    assert comparable(snapshot.run(_certified(snapshot))) == comparable(snapshot.run(_certified(snapshot)))


def test_a_failed_preparation_leaves_nothing_behind(tmp_path: Path) -> None:
    _trips(tmp_path)
    (tmp_path / "lapwing.toml").write_text(CATALOGUE.format(source="trips.parquet", preparation="stored").replace("1000", "10"))
    declaration, engine = load(tmp_path / "lapwing.toml"), spark_engine(tmp_path / ".lapwing")
    with pytest.raises(PreparationError, match="rows-max"):
        engine.prepare(declaration, "", version=1, ranking_key=RANKING_KEY, progress=silent)
    assert engine.versions() == ()
    assert [path.name for path in (tmp_path / ".lapwing").iterdir()] == []


def test_tables_of_the_catalogue_are_sources_and_views_are_not(tmp_path: Path) -> None:
    _trips(tmp_path)
    spark = spark_session()
    spark.sql("CREATE DATABASE IF NOT EXISTS lapwing_town")
    spark.sql("DROP TABLE IF EXISTS lapwing_town.trips")
    spark.read.parquet(str(tmp_path / "trips.parquet")).write.option("path", str(tmp_path / "t")).saveAsTable("lapwing_town.trips")
    spark.sql("CREATE OR REPLACE VIEW lapwing_town.mixed AS SELECT rider_id, max(minutes) OVER () AS minutes FROM lapwing_town.trips")
    with _curator(tmp_path, source="lapwing_town.trips") as curator:
        assert curator.prepare() == 1
        assert _count(curator) == 20 * 3
        curator.retire(1)
        assert not (tmp_path / ".lapwing" / "v000001.spark").exists()
    (tmp_path / "virtual").mkdir()
    virtual = _curator(tmp_path / "virtual", source="lapwing_town.trips", preparation="virtual")
    with virtual as curator, pytest.raises(PreparationError, match="source-format"):
        curator.prepare()
    (tmp_path / "other").mkdir()
    with _curator(tmp_path / "other", source="lapwing_town.mixed") as curator, pytest.raises(PreparationError, match="source-not-a-table"):
        curator.prepare()


def test_reading_without_a_copy_gives_the_same_and_new_files_wait_for_the_next_version(tmp_path: Path) -> None:
    (tmp_path / "trips").mkdir()
    _trips(tmp_path / "trips")
    with _curator(tmp_path, source="trips/*.parquet", preparation="virtual") as curator:
        curator.prepare()
        assert _count(curator) == 20 * 3
        assert not (tmp_path / ".lapwing" / "v000001.spark" / "trips").exists()
        pq.write_table(pa.Table.from_pylist([{"rider_id": 99, "minutes": 5}]), tmp_path / "trips" / "more.parquet")
        assert _count(curator) == 20 * 3
        curator.answer(_rows_plan(), summary="rows")
        curator.prepare()
        assert _count(curator) == 20 * 3 + 1
        (tmp_path / "trips" / "more.parquet").unlink()
        with pytest.raises(PreparationError, match="snapshot-outdated"):
            curator.answer(_rows_plan(), summary="rows")
        assert not curator.balance().closed


def test_every_shape_without_a_copy_gives_the_integers_of_a_copy(snapshot: SparkSnapshot, tmp_path: Path) -> None:
    declaration = declare(random_world(random.Random(5)), tmp_path, neighbours="unbounded", delta='"2^-30"')
    path = tmp_path / "lapwing.toml"
    path.write_text(path.read_text().replace('unit = "person"\n', 'unit = "person"\npreparation = "virtual"\n', 1))
    virtual = prepare_in_spark(load(path))
    assert virtual.facts == snapshot.facts
    assert declaration.directory == tmp_path
    for name in ("ranked, by clinic", "clipped", "grouped", "join along a key", "discovered, grouped", "weighted"):
        certified = _certified(snapshot, name)
        assert comparable(virtual.run(certified)) == comparable(snapshot.run(certified)), name


def test_a_source_that_changes_while_it_is_read_is_an_incident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trips").mkdir()
    _trips(tmp_path / "trips")
    with _curator(tmp_path, source="trips/*.parquet", preparation="virtual") as curator:
        curator.prepare()
        snapshot = curator.snapshot
        assert isinstance(snapshot, SparkSnapshot)
        collect = snapshot._collect

        def collect_and_grow(sql: str) -> pa.Table:
            found = collect(sql)
            pq.write_table(pa.Table.from_pylist([{"rider_id": 98, "minutes": 5}]), tmp_path / "trips" / "trips.parquet")
            return found

        monkeypatch.setattr(snapshot, "_collect", collect_and_grow)
        with pytest.raises(Incident):
            _count(curator)
