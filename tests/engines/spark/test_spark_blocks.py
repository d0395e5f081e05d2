"""Versions on Spark that grow by blocks of time: the rows of a preparation from nothing, and nothing else of a version is touched."""

from __future__ import annotations

import random
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit.block_shapes import block_shapes
from lapwing.audit.block_worlds import declare_blocks, random_block_world
from lapwing.audit.runs import RANKING_KEY, prepare_in_duckdb
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite, Snapshot, silent
from lapwing.engines.losses import TableLosses
from lapwing.engines.spark import SparkSnapshot, block_writing, stored
from lapwing.engines.spark import sources as spark_sources
from lapwing.engines.spark.stored import rows_path
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.accounting import Account
from lapwing.kernel.block_calendar import Period
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteLaplace
from tests.engines.comparison import comparable
from tests.support.spark_blocks import ROWS_PER_UNIT_MAX, Visits
from tests.support.spark_worlds import spark_engine

SHAPES = block_shapes(Account.APPROXIMATE)
SAME_AS_DUCKDB = (
    "clipped, over blocks",
    "clipped, within blocks",
    "discovered, grouped, over blocks",
    "join along a key, of one block",
    "per unit, within blocks",
    "came in January, not in December",
    "people with visits of one block",
    "visits of one block by sex",
    "a union of two ranges",
    "weighted over blocks",
)


def _rows_of(opened: Snapshot, first: int, last: int) -> Certified:
    """Count the visits of some blocks."""
    scan = Scan("visits", ROWS_PER_UNIT_MAX, opened.facts.tables["visits"].blocks_between(first, last))
    query = Query(scan, (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), DiscreteLaplace(Fraction(8))),))
    return certify(Plan((query,)), opened.facts)


def _counted(opened: Snapshot, first: int, last: int) -> int:
    certified = _rows_of(opened, first, last)
    opened.check(certified)
    (table,) = opened.run(certified)._tables
    return int(table._vectors[0][0])


def _refused(opened: Snapshot, first: int, last: int) -> bool:
    try:
        opened.check(_rows_of(opened, first, last))
    except PreparationError as error:
        return error.code == "snapshot-outdated"
    return False


def _visits(directory: Path, *, blocks: int) -> Visits:
    """One file for each block."""
    visits = Visits(directory)
    for number in range(blocks):
        visits.add_many(visits.first + number, seed=number)
    return visits


@pytest.mark.parametrize(
    ("every", "times", "texts"), [(Period.DAY, False, False), (Period.WEEK, True, True), (Period.MONTH, False, True)], ids=str
)
def test_a_version_that_grew_holds_the_rows_of_a_preparation_from_nothing(tmp_path: Path, every: Period, times: bool, texts: bool) -> None:
    visits = Visits(tmp_path / "data", every=every, times=times, texts=texts)
    first, empty = visits.first, visits.first + 2
    visits.add(None, [(1, 5), (2, 6)])
    visits.add_many(first, seed=1)
    visits.add_many(first + 1, seed=2)
    visits.prepare(1, first, first)
    before = visits.files_of()
    visits.append(first + 1, first + 1)
    visits.add_many(first + 3, seed=3)
    visits.add_many(first + 4, seed=4)
    visits.append(empty, first + 5)
    assert before.items() <= visits.files_of().items() and len(before) == 1
    visits.prepare(2, first, first + 5)
    assert visits.rows(1) == visits.rows(2)
    kept = {block: len(rows) for block, rows in visits.rows(1).items()}
    assert list(kept) == [first, first + 1, first + 3, first + 4]
    assert visits.engine.prepared_blocks(1) == PreparedBlocks(first, first + 5)
    opened = visits.open()
    assert opened.facts.tables["visits"].blocks == (first, first + 5)
    assert _counted(opened, first + 1, first + 3) == kept[first + 1] + kept[first + 3]
    assert _counted(opened, empty, empty) == 0


def test_late_rows_are_left_out_and_counted_for_the_owner(tmp_path: Path) -> None:
    visits = _visits(tmp_path / "data", blocks=2)
    first = visits.first
    visits.prepare(1, first, first + 1)
    rows = visits.rows()
    visits.add(first, [(7, 1), (7, 1), (3, 9)])
    visits.add(None, [(7, 1)])
    visits.add_many(first + 2, seed=9)
    visits.append(first + 2, first + 2)
    assert {block: visits.rows()[block] for block in rows} == rows
    assert visits.engine.late_rows(visits.declaration, 1) == {"visits": 3}
    assert stored.marker_path(tmp_path / "data" / ".lapwing", 1).stat().st_mode & 0o077 == 0
    visits.write((first, first), visits.held[1].with_corrections(first, first))
    assert visits.engine.late_rows(visits.declaration, 1) == {"visits": 0}


def test_a_correction_replaces_its_block_alone_and_an_open_snapshot_of_it_refuses(tmp_path: Path) -> None:
    visits = _visits(tmp_path / "data", blocks=4)
    first = visits.first
    visits.prepare(1, first, first + 2)
    opened = visits.open()
    rows, files = visits.rows(), visits.files_of()
    asked = {block: len(rows[block]) for block in rows}
    assert _counted(opened, first, first + 1) == asked[first] + asked[first + 1]
    visits.append(first + 3, first + 3)
    assert _counted(opened, first, first + 2) == sum(asked.values())
    visits.add(first + 1, [(7, 7)])
    visits.write((first + 1, first + 1), visits.held[1].with_corrections(first + 1, first + 1))
    assert {block: visits.rows()[block] for block in (first, first + 2)} == {block: rows[block] for block in (first, first + 2)}
    assert len(visits.rows()[first + 1]) == asked[first + 1] + 1
    kept = {name: state for name, state in files.items() if not name.split("/")[2].endswith(f"={first + 1}")}
    assert kept.items() <= visits.files_of().items() and 0 < len(kept) < len(files)
    assert not set(files) - set(kept) & set(visits.files_of())
    assert [_refused(opened, *blocks) for blocks in ((first, first + 2), (first + 1, first + 1), (first, first))] == [True, True, False]
    assert _counted(opened, first + 2, first + 2) == asked[first + 2]
    again = visits.open()
    assert again.facts.tables["visits"].corrected == ((first + 1, 1),)
    assert _counted(again, first + 1, first + 1) == asked[first + 1] + 1


def test_blocks_that_are_not_kept_are_deleted_and_a_retired_version_leaves_nothing(tmp_path: Path) -> None:
    visits = _visits(tmp_path / "data", blocks=4)
    first = visits.first
    visits.prepare(1, first, first + 2)
    opened, rows = visits.open(), visits.rows()
    visits.write((first + 3, first + 3), PreparedBlocks(first + 2, first + 3))
    assert sorted(visits.rows()) == [first + 2, first + 3] and visits.rows()[first + 2] == rows[first + 2]
    assert {name.split("=")[1].split("/")[0] for name in visits.files_of()} == {str(first + 2), str(first + 3)}
    assert _refused(opened, first, first) and _counted(opened, first + 2, first + 2) == len(rows[first + 2])
    visits.write((first + 4, first + 3), PreparedBlocks(first + 3, first + 3))
    assert sorted(visits.rows()) == [first + 3]
    visits.engine.retire(1)
    assert list((tmp_path / "data" / ".lapwing").iterdir()) == []
    assert _refused(opened, first + 2, first + 2)


def test_a_write_that_fails_leaves_the_version_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = _visits(tmp_path / "data", blocks=3)
    first = visits.first
    visits.prepare(1, first, first + 1)
    opened, rows, files = visits.open(), visits.rows(), visits.files_of()

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    for name in ("write_marker", "are_unchanged"):
        with monkeypatch.context() as broken, pytest.raises(PreparationError, match="no space left"):
            broken.setattr(block_writing, name, fails)
            visits.write((first, first + 2), PreparedBlocks(first, first + 2).with_corrections(first, first + 1))
        assert (visits.files_of(), visits.rows()) == (files, rows)
        assert visits.engine.prepared_blocks(1) == PreparedBlocks(first, first + 1)
    # what a writer leaves that was killed
    folder = rows_path(tmp_path / "data" / ".lapwing", 1) / "visits"
    shutil.copytree(folder / "w000001", folder / "w000002")
    assert _counted(opened, first, first + 1) == sum(map(len, rows.values()))
    visits.append(first + 2, first + 2)
    assert {block: visits.rows()[block] for block in rows} == rows
    assert sorted(path.name for path in (folder / "w000002").glob("_in_block=*")) == [f"_in_block={first + 2}"]
    # and one that was killed after the version had changed, before the folders that it replaced were gone
    with monkeypatch.context() as killed:
        killed.setattr(block_writing, "remove_others", lambda *_: None)
        visits.write((first, first), visits.held[1].with_corrections(first, first))
    assert len(visits.files_of()) == 4 and len(visits.rows()) == 3
    visits.append(first + 3, first + 3)
    assert len(visits.files_of()) == 3


def test_a_block_with_too_many_rows_is_refused_and_two_with_half_of_them_are_not(tmp_path: Path) -> None:
    visits = Visits(tmp_path / "data", rows_max=6)
    first = visits.first
    for block in (first, first + 1):
        visits.add(block, [(person, 1) for person in range(6)])
    visits.add(first + 2, [(person, 1) for person in range(7)])
    visits.prepare(1, first, first + 1)
    with pytest.raises(PreparationError, match="rows-max"):
        visits.append(first + 2, first + 2)
    assert sorted(visits.rows()) == [first, first + 1]
    assert {name.split("=")[1].split("/")[0] for name in visits.files_of()} == {str(first), str(first + 1)}


def test_the_losses_of_a_write_are_those_of_its_blocks(tmp_path: Path) -> None:
    visits = Visits(tmp_path / "data")
    first, seen = visits.first, list[TableLosses]()
    visits.add(first, [(1, 1)] * (ROWS_PER_UNIT_MAX + 2))
    visits.prepare(1, first, first, witness=seen.extend)
    visits.add(first, [(2, 2)])
    visits.add(None, [(2, 2)])
    visits.add(first + 1, [(1, 1)] * ROWS_PER_UNIT_MAX + [(2, 500)])
    visits.add(first + 2, [(1, 1)] * (ROWS_PER_UNIT_MAX + 1))
    visits.write((first + 1, first + 2), PreparedBlocks(first, first + 2), witness=seen.extend)
    found = [(item.table, item.rows, item.beyond_cap) for item in seen]
    assert found == [("people", 8, 0), ("visits", 5, 2), ("visits", 8, 1)]
    assert [(change.column, change.rows) for change in seen[-1].changed] == [("minutes", 1)]


def test_a_scan_reads_the_folders_of_its_blocks_alone_and_sessions_keep_few_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = _visits(tmp_path / "data", blocks=4)
    first = visits.first
    visits.prepare(1, first, first + 3)
    opened = visits.open()
    assert isinstance(opened, SparkSnapshot) and opened._blocks is not None
    monkeypatch.setattr("lapwing.engines.spark.block_views.VIEWS_MAX", 2)
    for start in range(3):
        _counted(opened, first + start, first + start + 1)
        name = f"_lapwing_visits_{first + start}_{first + start + 1}"
        folders = {path.split("/")[-2] for path in opened._session.table(name).inputFiles()}
        assert folders == {f"_in_block={first + start}", f"_in_block={first + start + 1}"}
    assert list(opened._blocks._made) == [f"_lapwing_visits_{first + 1}_{first + 2}", f"_lapwing_visits_{first + 2}_{first + 3}"]
    assert not opened._session.catalog.tableExists(f"_lapwing_visits_{first}_{first + 1}")


def test_a_correction_between_the_check_and_the_run_is_an_incident(tmp_path: Path) -> None:
    visits = _visits(tmp_path / "data", blocks=1)
    first = visits.first
    visits.prepare(1, first, first)
    opened = visits.open()
    certified = _rows_of(opened, first, first)
    opened.check(certified)
    visits.write((first, first), visits.held[1].with_corrections(first, first))
    with pytest.raises(Incident):
        opened.run(certified)


def test_only_new_files_are_asked_for_their_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = _visits(tmp_path / "data", blocks=2)
    first = visits.first
    visits.prepare(1, first, first + 1)
    asked: list[str] = []
    plain = spark_sources._plain_reader

    class Reader:
        """Says which files are read for their schema: those that are read alone."""

        def __init__(self, session: Any) -> None:
            self._reader = plain(session)

        def schema(self, schema: Any) -> Any:
            return self._reader.schema(schema)

        def parquet(self, path: str) -> Any:
            asked.append(Path(path).name)
            return self._reader.parquet(path)

    visits.add_many(first + 2, seed=5)
    with monkeypatch.context() as noted:
        noted.setattr(spark_sources, "_plain_reader", Reader)
        visits.append(first + 2, first + 2)
    assert asked == ["003.parquet"]
    pq.write_table(pa.table({"person_id": [1], "moment": pa.array([19_723], pa.date32()), "minutes": ["5"]}), visits.add(first + 3, []))
    with pytest.raises(PreparationError, match="source-files-differ"):
        visits.append(first + 3, first + 3)


def test_exact_results_are_those_of_duckdb(tmp_path: Path) -> None:
    """Of a version that grew: January to March were prepared, the others appended in two writes."""
    declared = declare_blocks(random_block_world(random.Random(3)), tmp_path, neighbours="bounded", delta='"2^-30"')
    expected = prepare_in_duckdb(declared)
    held = expected.facts.tables["visits"].blocks
    assert held is not None
    first, last = held
    text, engine = (tmp_path / "lapwing.toml").read_text(encoding="utf-8"), spark_engine(tmp_path / ".lapwing")
    start = PreparedBlocks(first, first + 2)
    engine.prepare(declared, text, version=1, ranking_key=RANKING_KEY, progress=silent, blocks=start)
    for write in ((first + 3, first + 5), (first + 6, last)):
        after = PreparedBlocks(first, write[1])
        engine.write_blocks(1, BlockWrite(declared, write, after, RANKING_KEY))
    opened = engine.open(1, ranking_key=RANKING_KEY)
    for name in SAME_AS_DUCKDB:
        ours, theirs = (certify(SHAPES[name](each.facts), each.facts) for each in (opened, expected))
        assert comparable(opened.run(ours)) == comparable(expected.run(theirs)), name
