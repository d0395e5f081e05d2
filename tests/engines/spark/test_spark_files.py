"""Folders of files on Spark: the same rules as on DuckDB (``tests/engines/suite/test_source_files.py``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration
from lapwing.engines.base import silent
from lapwing.engines.marks import file_marks
from lapwing.errors import PreparationError
from tests.engines.suite.engines import OnSpark
from tests.engines.suite.test_source_files import declared, write
from tests.support.spark_worlds import prepare_in_spark, spark_engine

INTEGER = 'x = { type = "integer", min = 0, max = 100 }'


def rows(declaration: Declaration) -> list[tuple[object, ...]]:
    """The prepared rows: unit and the declared column after it."""
    snapshot = prepare_in_spark(declaration)
    return sorted(OnSpark().select(snapshot, "t._unit, t.x", "people"), key=repr)


def refused(declaration: Declaration) -> PreparationError:
    """How preparation is refused."""
    assert declaration.directory is not None
    engine = spark_engine(declaration.directory / ".lapwing")
    with pytest.raises(PreparationError) as caught:
        engine.prepare(declaration, "", version=2, ranking_key=RANKING_KEY, progress=silent)
    assert 2 not in engine.versions()
    return caught.value


def test_names_of_folders_change_nobody_elses_values(tmp_path: Path) -> None:
    write(tmp_path, {"x=0/part.parquet": "SELECT 1::BIGINT AS id", "x=1/part.parquet": "SELECT 2::BIGINT AS id"})
    declaration = declared(tmp_path, "*/*.parquet", INTEGER, table='partitions = ["x"]')
    assert rows(declaration) == [(1, 0), (2, 1)]
    hostile = ["unknown", "2024-01-01", "__HIVE_DEFAULT_PARTITION__", "a%2Fb+c", "", "'", "1e3", "%35"]
    write(tmp_path, {f"x={folder}/part.parquet": f"SELECT {700 + n}::BIGINT AS id" for n, folder in enumerate(hostile)})
    theirs = [(700 + n, {"1e3": 100, "%35": 5}.get(folder)) for n, folder in enumerate(hostile)]
    assert rows(declaration) == [(1, 0), (2, 1), *theirs]
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "people").symlink_to(tmp_path / "people")
    text = declared(tmp_path / "text", "*/*.parquet", 'x = { type = "text" }', table='partitions = ["x"]')
    written = ["unknown", "2024-01-01", None, "a/b+c", "", "'", "1e3", "5"]
    assert rows(text) == [(1, "0"), (2, "1"), *((700 + n, value) for n, value in enumerate(written))]
    write(tmp_path, {"x=[01]/part.parquet": "SELECT 777::BIGINT AS id"})
    assert refused(declaration).code == "source-format"


def test_folders_that_are_not_declared_are_only_folders(tmp_path: Path) -> None:
    """Spark would put the folder's value in the place of the file's."""
    write(tmp_path, {"x=9/a.parquet": "SELECT 1::BIGINT AS id, 5 AS x", "x=8/b.parquet": "SELECT 6 AS x, 2::BIGINT AS id, 'z' AS z"})
    assert rows(declared(tmp_path, "*/*.parquet", INTEGER)) == [(1, 5), (2, 6)]
    assert refused(declared(tmp_path, "*/*.parquet", 'y = { type = "text" }')).code == "source-column-missing"


def test_files_that_differ_stop_the_owner(tmp_path: Path) -> None:
    write(tmp_path, {"b.parquet": "SELECT 1::BIGINT AS id, 0.4::DOUBLE AS x"})
    declaration = declared(tmp_path, "*.parquet", 'x = { type = "real", min = 0, max = 1, steps = 100 }')
    for other, said in (
        ("1::INTEGER AS x", "int in a.parquet"),
        ("1::DOUBLE AS X", "missing in a.parquet"),
        ("1.5::FLOAT AS x", "float in a.parquet"),
    ):
        write(tmp_path, {"a.parquet": f"SELECT 777::BIGINT AS id, {other}"})
        error = refused(declaration)
        assert error.code == "source-files-differ" and said in str(error)


def test_sources_are_known_by_their_files_as_on_other_engines(tmp_path: Path) -> None:
    write(tmp_path, {"a b+1.parquet": "SELECT 1::BIGINT AS id, 5 AS x", "other.parquet": "SELECT 2::BIGINT AS id, 6 AS x"})
    whole, one = declared(tmp_path, "*.parquet", INTEGER), declared(tmp_path, "a*.parquet", INTEGER)
    engine = spark_engine(tmp_path / ".lapwing")
    files = sorted((tmp_path / "people").rglob("*.parquet"))
    assert engine.source_marks(whole) == {"people": file_marks(map(str, files))}
    assert engine.source_marks(one) == {"people": file_marks([str(files[0])])}
