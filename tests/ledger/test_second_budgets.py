"""Ways to a second budget for the same people, each closed: other names of the rows, another database, an old file, a retired version."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from lapwing.curator.curator import Curator
from lapwing.demo import write_demo
from lapwing.engines.postgres.session import connect
from lapwing.engines.postgres.sources import relation_marks, source_name
from lapwing.errors import CatalogueError, LapwingError, LedgerError, PreparationError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.connect import accept_ledger
from lapwing.ledger.protocol import EntryKind, Request
from lapwing.owner.ledger_admin import accept
from lapwing.receipts import new_key
from tests.ledger.cluster import Cluster
from tests.ledger.wired import BY_SEX, Wired, new_wired
from tests.unit.cli.support import run_process

CATALOGUE = """
format = 1
[dataset]
id = "{name}"
unit = "person"
[budget]
epsilon = 1
statistics_share = 0
[tables.people]
source = "{source}"
unit = "id"
one_row_per_unit = true
columns.id = {{ type = "key" }}
columns.age = {{ type = "integer", min = 0, max = 120 }}
"""
OTHER_TABLE = """
[tables.other]
source = "../other.parquet"
unit = "id"
one_row_per_unit = true
columns.id = { type = "key" }
"""
PUBLISHED = """
[public.people_too]
source = "../people.parquet"
key = "age"
columns.age = { type = "integer", min = 0, max = 120 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT range AS id, range % 90 AS age FROM range(100)) TO '{tmp_path / 'people.parquet'}'")
        connection.execute(f"COPY (SELECT range AS id, range % 90 AS age FROM range(100)) TO '{tmp_path / 'elsewhere.parquet'}'")
        connection.execute(f"COPY (SELECT range AS id FROM range(10)) TO '{tmp_path / 'other.parquet'}'")
    return tmp_path


def _data(folder: Path, name: str, source: str = "../people.parquet", more: str = "") -> Curator:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "lapwing.toml").write_text(CATALOGUE.format(name=name, source=source) + more)
    return Curator(folder / name, home=folder / "home")


def _registered(folder: Path, name: str = "first") -> None:
    with _data(folder, name) as curator:
        curator.prepare()


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("../people.parquet", ""),
        ("../people.parquet", OTHER_TABLE),
        ("../peopl?.parquet", ""),
        ("../p*.parquet", ""),
        ("../linked.parquet", ""),
        ("../symbolic.parquet", ""),
        ("../first/../people.parquet", ""),
        ("../elsewhere.parquet", PUBLISHED),
    ],
)
def test_the_same_file_under_another_name_needs_the_owners_reason(folder: Path, source: str, more: str) -> None:
    _registered(folder)
    os.link(folder / "people.parquet", folder / "linked.parquet")
    (folder / "symbolic.parquet").symlink_to("people.parquet")
    with _data(folder, "second", source, more) as curator, pytest.raises(CatalogueError, match="source-registered") as refused:
        curator.prepare()
    # Both places are named, and what to do.
    theirs = folder / "first" / ".lapwing" / "ledger.sqlite"
    read = {curator.declaration.source_path(table) for table in curator.declaration.all_tables}
    assert f"`first`, whose ledger is {theirs}" in refused.value.message
    assert any(refused.value.message.startswith(f"{path} is, or was, a source of") for path in read)
    assert "lapwing prepare --override REASON" in refused.value.hint
    assert not (folder / "second" / ".lapwing" / "ledger.sqlite").exists()


def test_a_reason_is_written_down_and_asked_for_once(folder: Path) -> None:
    _registered(folder)
    with _data(folder, "second", "../p*.parquet") as curator:
        curator.prepare(override="two studies, announced as two")
        assert any("shares rows with first: two studies" in entry.detail for entry in curator.history() if entry.kind is EntryKind.OVERRIDE)
        curator.prepare()
    _registered(folder)  # the first one goes on as before
    with _data(folder, "third", "../elsewhere.parquet") as unrelated:
        unrelated.prepare()


def test_a_table_of_a_server_is_known_by_its_number_with_its_parts_and_what_a_copy_is_made_from(cluster: Cluster, database: str) -> None:
    dsn = cluster.dsn(database)
    with cluster.superuser(database) as owner:
        owner.execute("CREATE SCHEMA IF NOT EXISTS marks")
        owner.execute("CREATE TABLE marks.whole (id int, at date) PARTITION BY RANGE (at)")
        owner.execute("CREATE TABLE marks.part PARTITION OF marks.whole FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')")
        owner.execute("CREATE TABLE marks.apart (id int)")
        owner.execute("CREATE MATERIALIZED VIEW marks.made AS SELECT id FROM marks.whole")
        owner.execute("GRANT USAGE ON SCHEMA marks TO PUBLIC")
    with connect(dsn) as one, connect(f"{dsn} application_name=another") as other:
        whole = relation_marks(one, source_name("marks.whole"))
        assert whole == relation_marks(other, source_name("marks.whole")) and len(whole) == 2
        assert relation_marks(one, source_name("marks.part")) < whole
        assert relation_marks(one, source_name("marks.made")) & whole
        assert not relation_marks(one, source_name("marks.apart")) & whole


def test_a_retired_version_still_says_what_was_protected(folder: Path) -> None:
    with _data(folder, "first") as curator:
        curator.prepare()
        curator.retire(1)
    catalogue = folder / "first" / "lapwing.toml"
    catalogue.write_text(CATALOGUE.format(name="first", source="../people.parquet").replace('unit = "person"', 'unit = "household"'))
    with Curator(folder / "first", home=folder / "home") as curator:
        with pytest.raises(PreparationError, match="override-needed"):
            curator.prepare()
        assert curator.prepare(override="households are what was asked for") == 2
        assert any(entry.detail == "dataset.unit: households are what was asked for" for entry in curator.history())


def test_without_its_state_directory_a_prepared_data_set_needs_a_reason(folder: Path) -> None:
    _registered(folder)
    state = folder / "first" / ".lapwing"
    for name in ("declared.toml", "v000001.duckdb"):
        (state / name).unlink()
    with _data(folder, "first") as curator:
        with pytest.raises(PreparationError, match="override-needed"):
            curator.prepare()
        curator.prepare(override="the directory was lost")
        assert any("last declaration is not known" in entry.detail for entry in curator.history())


def test_two_data_sets_of_one_id_are_told_where_the_other_is(folder: Path) -> None:
    """A catalogue that was copied for another study, with other rows."""
    _registered(folder)
    (folder / "second").mkdir()
    (folder / "second" / "lapwing.toml").write_text(CATALOGUE.format(name="first", source="../elsewhere.parquet"))
    paths = [folder / name / ".lapwing" / "ledger.sqlite" for name in ("first", "second")]
    with Curator(folder / "second", home=folder / "home") as curator:
        with pytest.raises(CatalogueError, match="source-registered") as refused:
            curator.prepare()
        assert f"whose ledger is {paths[0]}, but this ledger would be at {paths[1]}" in refused.value.message
        assert "its own id" in refused.value.hint
        with pytest.raises(LedgerError, match="ledger-moved"):  # the ledger of the other one is not taken away from it
            accept(curator, reason="it is mine")
    assert not paths[1].exists()
    _registered(folder)


def test_looking_at_a_budget_makes_no_ledger(folder: Path) -> None:
    with _data(folder, "first") as curator:
        with pytest.raises(LedgerError, match="ledger-missing") as refused:
            curator.budget()
        assert "lapwing restore FILE" in refused.value.hint
        assert not curator.place.local.exists()


@pytest.mark.parametrize("lost", ["the state", "the ledger alone"])
def test_a_lost_ledger_is_made_anew_with_what_was_spent(folder: Path, lost: str) -> None:
    """Only by the owner's act, from the memory of the registry; and the lost file is an older state of it if it comes back."""
    with _data(folder, "first") as curator:
        curator.prepare()
        _spend(curator, loss=12345)
        curator.ledger.close("the owner is away")
        before, state = curator.balance(), curator.state.directory
    state.rename(folder / "kept")
    if lost == "the ledger alone":
        shutil.copytree(folder / "kept", state)
        (state / "ledger.sqlite").unlink()
    for act in (Curator.prepare, Curator.budget, lambda opened: opened.prepare(override="begin anew")):
        with Curator(folder / "first", home=folder / "home") as curator, pytest.raises(LedgerError, match="ledger-missing") as refused:
            act(curator)
        assert "lapwing restore FILE" in refused.value.hint
        assert "lapwing ledger accept REASON" in refused.value.hint
    with Curator(folder / "first", home=folder / "home") as curator:
        assert accept(curator, reason="the disk failed") == before
        assert curator.balance() == before
        curator.reopen("the owner is back")
    with Curator(folder / "first", home=folder / "home") as curator:
        if lost == "the state":  # what was protected is not known either
            with pytest.raises(PreparationError, match="override-needed"):
                curator.prepare()
        curator.prepare(override="the state was lost")
        _spend(curator, loss=55)
    (state / "ledger.sqlite").unlink()
    shutil.copy(folder / "kept" / "ledger.sqlite", state / "ledger.sqlite")
    with Curator(folder / "first", home=folder / "home") as curator:
        with pytest.raises(LedgerError, match="ledger-rolled-back"):
            curator.balance()
        spent = accept(curator, reason="the disk was mended").spent
        assert spent.loss == before.spent.loss + 55


def _spend(curator: Curator, *, loss: int) -> None:
    request = Request(analyst="local", request_id=f"{loss}", digest=f"{loss}", cost=Cost(loss=loss, delta=0), version=1, summary="asked")
    permit = curator.ledger.reserve(request)
    assert isinstance(permit, Permit)
    curator.ledger.commit(permit, b"answered")


def test_one_preparation_at_a_time(folder: Path) -> None:
    with _data(folder, "first") as curator, curator.state.preparing():
        code = (
            "import sys\nfrom lapwing.curator.curator import Curator\nfrom pathlib import Path\n"
            "try:\n    Curator(sys.argv[1], home=Path(sys.argv[2])).prepare()\n"
            "except Exception as error:\n    print(error.code)\n"
        )
        said = subprocess.run(
            [sys.executable, "-c", code, str(folder / "first"), str(folder / "home")], capture_output=True, text=True, check=True
        )
        assert said.stdout == "preparation-in-progress\n"
    _registered(folder)


def test_another_database_is_a_second_budget_and_is_written_down(cluster: Cluster, tmp_path: Path) -> None:
    wired = new_wired(tmp_path, cluster.dsn(cluster.new_database()))
    with wired.open() as data:
        data.prepare()
    other = Wired(tmp_path, cluster.dsn(cluster.new_database()))
    wired.edit(f'database = "{wired.dsn}"\nanchors = "../anchors"', f'database = "{other.dsn}"\nanchors = "../other anchors"')
    with other.open() as data, pytest.raises(CatalogueError, match="source-registered"):
        data.prepare()
    with other.open() as data:
        data.prepare(override="the first database is lost")
        overrides = [entry.detail for entry in data.curator.history(limit=100) if entry.kind is EntryKind.OVERRIDE]
        assert any("a second budget in another database: the first database is lost" in detail for detail in overrides)


def test_a_backup_of_a_ledger_that_was_moved_never_serves_again(cluster: Cluster, tmp_path: Path) -> None:
    wired = Wired(tmp_path, cluster.dsn(cluster.new_database()))
    write_demo(wired.directory, patients=200)
    with wired.open() as data:
        data.prepare()
    path = wired.directory / ".lapwing" / "ledger.sqlite"
    shutil.copy(path, tmp_path / "backup")
    _moved(wired)
    path.unlink()
    shutil.copy(tmp_path / "backup", path)
    with wired.open() as data:
        with pytest.raises(LedgerError, match="ledger-elsewhere"):
            data.ask(BY_SEX, epsilon="0.1")
        with pytest.raises(LapwingError, match="ledger-elsewhere"):
            accept_ledger(data.curator.place, data.curator.declaration, reason="restored")
        with pytest.raises(LapwingError, match="ledger-elsewhere"):
            data.prepare(override="restored")
    wired.add_section()
    with wired.open() as data:
        assert data.curator.balance().spent.loss > 0  # in the database, with the old file beside it


def _moved(wired: Wired) -> None:
    new_key(wired.keys)
    arguments = ["ledger", "move", "--database", wired.dsn, "--anchors", str(wired.base / "anchors"), "--keys", str(wired.keys)]
    done = run_process("-C", wired.directory, *arguments, home=wired.home)
    assert done.status == 0, done.err


def test_files_of_the_state_are_for_the_owner_alone(folder: Path) -> None:
    _registered(folder)
    for path in (folder / "first" / ".lapwing").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path.name
