"""Blocks of time on DuckDB: which files are read and kept, who may read them, and what a write that is killed leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from lapwing.catalog import Settings
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.engines.duckdb.block_files import blocks_folder, read_index
from lapwing.engines.duckdb.engine import DuckDBEngine
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.block_calendar import Period
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from tests.support.growing_worlds import START, Growing, growing, in_files

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = 7


@pytest.fixture
def world(tmp_path: Path) -> Growing:
    """A version of a week."""
    made = growing(in_files, tmp_path / "world", every=Period.DAY)
    for block in range(_first(made), _first(made) + BLOCKS):
        made.add_block(block)
    made.prepare(1, _held(made))
    return made


def _first(world: Growing) -> int:
    return world.block(START)


def _held(world: Growing) -> PreparedBlocks:
    return PreparedBlocks(_first(world), _first(world) + BLOCKS - 1)


def _version(world: Growing, version: int = 1) -> Path:
    assert isinstance(world.engine, DuckDBEngine)
    return world.engine.path(version)


def _files(world: Growing) -> dict[str, str]:
    """The files of visits by the number of their block."""
    index = read_index(blocks_folder(_version(world)))
    return {str(block): name for block, name in index.files["visits"].items()}


def _counting(snapshot: DuckDBSnapshot, first: int, last: int) -> Certified:
    blocks = snapshot.facts.table("visits").blocks_between(first, last)
    query = Query(Scan("visits", 3, blocks), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), DiscreteGaussian(Fraction(4))),))
    return certify(Plan((query,)), snapshot.facts)


def test_a_scan_reads_the_files_of_its_blocks_and_no_other(world: Growing) -> None:
    folder, files = blocks_folder(_version(world)), _files(world)
    kept = _first(world) + 2
    for block, name in files.items():
        if int(block) not in (kept, kept + 1):
            (folder / name).write_bytes(b"no Parquet")
    snapshot = world.open(1)
    assert isinstance(snapshot, DuckDBSnapshot)
    snapshot.run(_counting(snapshot, kept, kept + 1))
    for first, last in ((kept - 1, kept), (kept + 1, kept + 2)):
        with pytest.raises(Incident):
            snapshot.run(_counting(snapshot, first, last))
    snapshot.close()


def test_files_are_for_the_owner_alone_and_nothing_else_can_be_opened(world: Growing, tmp_path: Path) -> None:
    folder = blocks_folder(_version(world))
    world.add_block(_held(world).last + 1)
    world.write(1, (_held(world).last + 1,) * 2, PreparedBlocks(_first(world), _held(world).last + 1))
    modes = {path: path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    snapshot = world.open(1)
    assert isinstance(snapshot, DuckDBSnapshot)
    source = next((tmp_path / "world").glob("visits-*.parquet"))
    for beside in (source, folder / ".." / ".." / source.name, folder.with_name("v000001.blocks2") / "x.parquet"):
        with pytest.raises(duckdb.PermissionException):
            snapshot._connection.execute(f"SELECT * FROM read_parquet('{beside}')")
    with pytest.raises(duckdb.Error):
        snapshot._connection.execute(f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'")
    with pytest.raises(duckdb.Error):
        snapshot._connection.execute("SET allowed_directories = ['/']")
    snapshot.close()


def test_a_folder_of_blocks_is_no_version_and_goes_with_its_own(world: Growing) -> None:
    folder = blocks_folder(_version(world))
    assert world.engine.versions() == (1,)
    (folder.with_name("v000002.blocks") / "0").mkdir(parents=True)
    assert world.engine.versions() == (1,)
    world.prepare(2, _held(world))
    assert world.rows(1) == world.rows(2)
    opened = world.open(2)
    assert isinstance(opened, DuckDBSnapshot)
    plan = _counting(opened, _first(world), _first(world))
    world.engine.retire(2)
    assert world.engine.versions() == (1,) and not folder.with_name("v000002.blocks").exists()
    with pytest.raises(PreparationError) as refused:
        opened.check(plan)
    assert refused.value.code == "snapshot-unreadable"
    opened.close()
    assert folder.exists() and world.rows(1)["visits"]


def test_a_preparation_that_fails_leaves_no_folder(world: Growing) -> None:
    crowd = [{**world.visit(START), "at": START, "person": 100 + n, "cost": 1.0} for n in range(201)]
    world.add("visits", crowd)
    with pytest.raises(PreparationError):
        world.prepare(2, _held(world))
    assert world.engine.versions() == (1,)
    assert [path.name for path in _version(world).parent.glob("v000002*")] == []


def test_old_files_go_and_what_an_interrupted_write_left_goes_with_the_next(world: Growing) -> None:
    folder, block = blocks_folder(_version(world)), _first(world)
    old = _files(world)[str(block)]
    left = folder / "1" / f"{block}-2.parquet"
    left.write_bytes(b"half a file")
    corrected = _held(world).with_corrections(block, block)
    world.write(1, (block, block), corrected)
    new = _files(world)[str(block)]
    assert new != old and not (folder / old).exists()
    assert {path.relative_to(folder).as_posix() for path in (folder / "1").iterdir()} == set(_files(world).values())
    kept = PreparedBlocks(block + 5, _held(world).last, corrected.corrected)
    world.write(1, (1, 0), kept)
    assert len(list((folder / "1").iterdir())) == 2


def test_many_more_rows_than_are_ranked_at_once(world: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are written in stretches of few rows; a block with more rows than that is a stretch of its own."""
    monkeypatch.setattr("lapwing.engines.duckdb.block_writing.BYTES_PER_ROW", Settings().memory_limit_bytes // 40)
    world.prepare(2, _held(world))
    assert world.rows(1) == world.rows(2)
    monkeypatch.setattr("lapwing.engines.duckdb.block_writing.BYTES_PER_ROW", Settings().memory_limit_bytes)
    world.prepare(3, _held(world))
    assert world.rows(1) == world.rows(3)


STEPS: dict[str, str] = {
    "a file is half written": "writing.BlockFiles._copy = killed",
    "the index is written and not in place": "os.replace = killed",
    "the index is in place and old files are there": "writing.remove_others = lambda folder, index: index.writes > 1 and killed()",
}
KILLED = """
import os, signal, sys
from lapwing.catalog import Settings, load
from lapwing.catalog.blocks import PreparedBlocks
from lapwing.engines.base import BlockWrite
from lapwing.engines.duckdb import DuckDBEngine, block_writing as writing
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
{step}
directory, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
engine = DuckDBEngine(__import__("pathlib").Path(directory) / ".lapwing", Settings())
declaration = load(directory + "/lapwing.toml")
after = PreparedBlocks(first, last).with_corrections(first, first)
engine.write_blocks(1, BlockWrite(declaration, (first, last), after, b"g" * 32))
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_write_that_is_killed_is_done_or_not_begun(world: Growing, step: str) -> None:
    """All blocks are written again and one is new: nobody sees a part of it, and it can be done again."""
    first, last = _first(world), _held(world).last
    before = world.rows(1)
    world.engine.retire(1)
    world.prepare(1, PreparedBlocks(first, first))
    small = world.rows(1)
    directory = _version(world).parent.parent
    script = KILLED.format(step=STEPS[step])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    ended = subprocess.run([sys.executable, "-c", script, str(directory), str(first), str(last)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    is_done = step == "the index is in place and old files are there"
    assert world.rows(1) == (before if is_done else small)
    after = PreparedBlocks(first, last).with_corrections(first, first)
    if is_done:
        after = after.with_corrections(first, last)
    world.write(1, (first, last), after)
    assert world.rows(1) == before
    folder = blocks_folder(_version(world))
    assert {path.relative_to(folder).as_posix() for path in (folder / "1").iterdir()} == set(_files(world).values())


@pytest.mark.parametrize("failing", ["os.replace", "os.fsync", "lapwing.engines.duckdb.block_writing.remove_others"])
def test_a_write_that_fails_is_done_or_not_begun(world: Growing, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """At every call of what makes it durable. The owner hears of old files that cannot be removed, and the next write removes them."""
    first, held, before = _first(world), _held(world), world.rows(1)
    world.add_block(held.last + 1)
    world.prepare(2, PreparedBlocks(first + 1, held.last + 1))
    whole = world.rows(2)
    seen: list[bool] = []
    for step in range(100):
        now = world.engine.prepared_blocks(1)
        assert now is not None
        after = PreparedBlocks(first + 1, held.last + 1, now.corrected).with_corrections(first + 1, held.last + 1)
        with monkeypatch.context() as patched:
            patched.setattr(failing, _failing_after(step, _looked_up(failing)))
            try:
                world.write(1, (first + 1, held.last + 1), after)
            except OSError:
                seen.append(world.engine.prepared_blocks(1) == after)
                assert world.rows(1) == (whole if any(seen) else before)
            else:
                break
    assert world.rows(1) == whole
    assert seen and seen[-1] == (failing != "os.replace")
    folder = blocks_folder(_version(world))
    assert {path.relative_to(folder).as_posix() for path in (folder / "1").iterdir()} == set(_files(world).values())


def _looked_up(name: str) -> Callable[..., object]:
    module, _, attribute = name.rpartition(".")
    found: Callable[..., object] = getattr(sys.modules[module], attribute)
    return found


def _failing_after(steps: int, real: Callable[..., object]) -> Callable[..., object]:
    calls = iter(range(1_000))

    def called(*arguments: object) -> object:
        if next(calls) == steps:
            raise OSError("no room")
        return real(*arguments)

    return called
