"""``lapwing check`` says what would stop preparation, from names, schemas and first lines of files alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tests.unit.cli.support import run

CATALOGUE = """
format = 1
[dataset]
id = "library"
unit = "reader"
[budget]
epsilon = 1
[tables.loans]
source = "loans/{source}"
unit = "reader"
{table}
[tables.loans.columns]
reader = {{ type = "key" }}
days = {{ type = "integer", min = 0, max = 60 }}
"""


def said(directory: Path, source: str, files: dict[str, bytes | pa.Table], *, table: str = "") -> str:
    """What ``check`` writes."""
    for name, content in files.items():
        path = directory / "loans" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            parquet.write_table(content, path)
    (directory / "lapwing.toml").write_text(CATALOGUE.format(source=source, table=table), encoding="utf-8")
    found = run("-C", directory, "check", home=directory / "home")
    return " ".join((found.out + found.err).split())


@pytest.mark.parametrize(("sign", "shown"), [(b";", ";"), (b"\t", "\\t"), (b"|", "|")])
def test_another_delimiter_is_named(tmp_path: Path, sign: bytes, shown: str) -> None:
    content = b"\xef\xbb\xbf" + sign.join([b"reader", b"days"]) + b"\r\n\xff\xff"
    assert f'write `delimiter = "{shown}"`' in said(tmp_path, "*.csv", {"a.csv": content})
    assert "can be prepared" in said(tmp_path, "*.csv", {}, table=f'delimiter = "{shown}"')


def test_files_that_differ_are_named(tmp_path: Path) -> None:
    first = pa.table({"reader": [1], "days": [5]})
    assert "can be prepared" in said(tmp_path, "*.parquet", {"a.parquet": first, "b.parquet": first.select(["days", "reader"])})
    found = said(tmp_path, "*.parquet", {"c.parquet": pa.table({"reader": [1], "days": [5.5]})})
    assert "differ in column 'days'" in found and "c.parquet" in found
    found = said(tmp_path, "*.csv", {"a.csv": b"reader,days\n", "b.csv": b"days,reader\n"})
    assert "first lines of a.csv and b.csv differ" in found


def test_columns_in_folders_are_named(tmp_path: Path) -> None:
    files: dict[str, bytes | pa.Table] = {"days=5/a.parquet": pa.table({"reader": [1]})}
    assert 'list it in `partitions = ["days"]`' in said(tmp_path, "*/*.parquet", files)
    assert "can be prepared" in said(tmp_path, "*/*.parquet", {}, table='partitions = ["days"]')
    found = said(tmp_path, "*/*.parquet", {"b/b.parquet": pa.table({"reader": [1]})}, table='partitions = ["days"]')
    assert "does not lie in one folder days=VALUE" in found
