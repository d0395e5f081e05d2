"""One file under two names in one catalogue: a protected file is not public by another way to it, and no file is two protected tables."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from lapwing.curator.curator import Curator
from lapwing.curator.source_checks import source_problems
from lapwing.errors import CatalogueError

CATALOGUE = """
format = 1
[dataset]
id = "people"
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
PUBLIC = """
[public.everybody]
source = "{source}"
key = "id"
columns.id = {{ type = "key" }}
columns.age = {{ type = "integer", min = 0, max = 120 }}
"""
PROTECTED = """
[tables.again]
source = "{source}"
unit = "age"
rows_per_unit_max = 9
columns.age = {{ type = "key" }}
"""
WAYS = ["hard.parquet", "symbolic.parquet", "folder/people.parquet", "[h]*.parquet", "fo*/people.parquet"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory in which several ways lead to ``people.parquet``, and none to ``copy.parquet``."""
    with duckdb.connect() as connection:
        for name in ("people", "copy"):
            connection.execute(f"COPY (SELECT range AS id, range % 90 AS age FROM range(100)) TO '{tmp_path / name}.parquet'")
    os.link(tmp_path / "people.parquet", tmp_path / "hard.parquet")
    (tmp_path / "symbolic.parquet").symlink_to("people.parquet")
    (tmp_path / "folder").symlink_to(".")
    return tmp_path


def _curator(folder: Path, more: str, source: str = "people.parquet") -> Curator:
    (folder / "lapwing.toml").write_text(CATALOGUE.format(source=source) + more)
    return Curator(folder, home=folder / "home")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("declared", "code"), [(PUBLIC, "catalogue-contradiction"), (PROTECTED, "catalogue-duplicate")], ids=["public", "protected"]
)
def test_another_way_to_a_protected_file_is_refused(folder: Path, declared: str, code: str, way: str) -> None:
    with _curator(folder, declared.format(source=way)) as curator:
        (problem,) = source_problems(curator.declaration)
        assert "`people`" in problem
        with pytest.raises(CatalogueError) as refused:
            curator.prepare(override="an owner who is in a hurry")
        assert refused.value.code == code and "`people`" in refused.value.message
        assert curator.engine.versions() == () and not curator.state.ledger_path.exists()


def test_a_protected_link_is_the_file_that_it_leads_to(folder: Path) -> None:
    with _curator(folder, PUBLIC.format(source="people.parquet"), source="hard.parquet") as curator:
        with pytest.raises(CatalogueError) as refused:
            curator.prepare()
        assert refused.value.code == "catalogue-contradiction"


def test_a_source_of_its_own_is_public(folder: Path) -> None:
    with _curator(folder, PUBLIC.format(source="copy.parquet")) as curator:
        assert list(source_problems(curator.declaration)) == []
        assert curator.prepare() == 1
