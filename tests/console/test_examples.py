"""The editor's own example is answered, whatever is declared: from the page itself, over catalogues that have little to offer."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.demo import write_demo
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

HEAD = 'format = 1\n[dataset]\nid = "small"\nunit = "person"\n[budget]\nepsilon = 2\n'
PLACEHOLDER = re.compile(r'placeholder="(SELECT[^"]*)"')


def _write(directory: Path, tables: dict[str, dict[str, str]]) -> None:
    """One file for each table, with a column of persons and columns as they are declared."""
    directory.mkdir()
    text = HEAD
    held = {"integer": pa.array([1, 2, 3]), "real": pa.array([0.5, 1.5, 2.5]), "text": pa.array(["a", "b", "c"])}
    for table, columns in tables.items():
        declared = {"person": 'type = "key"', **columns}
        text += f'[tables."{table}"]\nsource = "{table}.parquet"\nunit = "person"\n[tables."{table}".columns]\n'
        text += "".join(f'"{name}" = {{ {keys} }}\n' for name, keys in declared.items())
        kinds = {name: keys.split('"')[1] for name, keys in columns.items()}
        values = {name: pa.array([True, False, True]) if kind == "boolean" else held[kind] for name, kind in kinds.items()}
        pq.write_table(pa.table({"person": pa.array([1, 2, 3]), **values}), directory / f"{table}.parquet")
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")


LIST = 'type = "text", values = ["a", "b"]'
NUMBER = 'type = "real", min = 0, max = 9'
CATALOGUES: dict[str, tuple[dict[str, dict[str, str]] | None, str]] = {
    "the demonstration": (None, "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"),
    "numbers alone": ({"people": {"wage": NUMBER}}, "SELECT COUNT(*) AS n FROM people"),
    "words that nobody listed": ({"people": {"said": 'type = "text"'}}, "SELECT COUNT(*) AS n FROM people"),
    "units alone": ({"people": {}}, "SELECT COUNT(*) AS n FROM people"),
    "yes and no": ({"people": {"wage": NUMBER, "old": 'type = "boolean"'}}, "SELECT old, COUNT(*) AS n FROM people GROUP BY old"),
    "a word of SQL as a name": ({"order": {"group": LIST}}, 'SELECT "group", COUNT(*) AS n FROM "order" GROUP BY "group"'),
}


@pytest.mark.parametrize("kind", CATALOGUES)
def test_the_example_in_the_editor_is_answered(tmp_path: Path, kind: str) -> None:
    tables, expected = CATALOGUES[kind]

    def write(directory: Path) -> None:
        if tables is None:
            write_demo(directory, patients=100)
        else:
            _write(directory, tables)

    with ServerUnderTest.over(write, tmp_path) as server:
        ada = Visitor(server)
        ada.sign_in("ada")
        found = PLACEHOLDER.search(ada.get("/console/d/{d}/ask").text)
        assert found is not None
        shown = html.unescape(found[1])
        reply = server.call("POST", "/v1/data-sets/{d}/explain", json={"sql": shown})
        assert reply.status_code == 200, (shown, reply.text)
        assert reply.json()["values"]["affordable"]
        assert shown == expected
