"""Data sets declared over HTTP: from files of one directory, into catalogues of another, by owners of every data set, and asked at once."""

from __future__ import annotations

import csv
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.demo import write_demo
from lapwing.interfaces.http.configuration import NewDataSettings
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: declaring")
FILE_COLUMNS = ["Reader", "Branch", "Day", "Days kept"]


def write_loans(target: Path, *, readers: int = 300) -> None:
    """Three loans of each reader."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(FILE_COLUMNS)
        for reader in range(readers):
            for loan in range(3):
                writer.writerow([f"R{reader:04}", ["central", "hill"][(reader + loan) % 2], f"2025-0{loan + 1}-11", 7 * loan])


def loans_body(**changed: Any) -> dict[str, Any]:
    """A data set of the loans, as somebody would describe it."""
    columns = {
        "reader": {"type": "key", "of": "text", "from": "Reader", "null": False},
        "branch": {"type": "text", "from": "Branch", "values": ["central", "hill"], "null": False},
        "day": {"type": "date", "from": "Day", "min": "2025-01-01", "max": "2025-12-31"},
        "days_kept": {"type": "integer", "from": "Days kept", "min": "0", "max": 120},
    }
    table = {"name": "loans", "file": "loans.csv", "unit": "reader", "rows_per_unit_max": 5, "columns": columns}
    return {"data_set": "loans", "unit": "reader", "epsilon": "2", "tables": [table]} | changed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server that lets files be declared."""
    home = tmp_path_factory.mktemp("declaring")
    files = home / "files"
    (files / "deep" / "er").mkdir(parents=True)
    write_loans(files / "loans.csv")
    pq.write_table(pa.table({"id": [1], "when": [None], "tags": [["a"]]}), files / "deep" / "er" / "typed.parquet")
    (files / "broken.parquet").write_bytes(b"PAR1 not really")
    (files / "semicolons.csv").write_text("a;b;b\n1;2;3\n", encoding="utf-8")
    for folder, columns in (("months", "a,b"), ("mixed", "a,b"), ("watched", "a,b")):
        (files / folder).mkdir()
        (files / folder / "01.csv").write_text(f"{columns}\n1,2\n", encoding="utf-8")
        (files / folder / "02.csv").write_text(f"{'a,c' if folder == 'mixed' else columns}\n3,4\n", encoding="utf-8")
    os.symlink("/etc/hostname", files / "watched" / "03.csv")
    (files / ".hidden.csv").write_text("a\n1\n", encoding="utf-8")
    (home / "outside.csv").write_text("secret\n1\n", encoding="utf-8")
    os.symlink(home / "outside.csv", files / "link.csv")
    settings = NewDataSettings(sources="files")
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=100), home, new_data=settings) as under_test:
        yield under_test


def test_files_are_those_of_the_directory_and_no_others(server: ServerUnderTest) -> None:
    found = server.call("GET", "/v1/sources", by="olga").json()
    assert [file for file in found["files"] if file[:1] not in "mw"] == [
        "broken.parquet",
        "deep/er/typed.parquet",
        "loans.csv",
        "semicolons.csv",
    ]
    assert found["folders"] == ["mixed/*.csv", "months/*.csv"], "a folder in which a link lies is not offered"


def test_a_folder_is_one_table_if_its_files_are_alike(server: ServerUnderTest) -> None:
    asked = server.call("GET", "/v1/sources/columns", by="olga", params={"file": "months/*.csv"})
    assert [one["name"] for one in asked.json()["columns"]] == ["a", "b"]
    mixed = server.call("GET", "/v1/sources/columns", by="olga", params={"file": "mixed/*.csv"})
    assert (mixed.status_code, mixed.json()["code"]) == (409, "source-missing")
    columns = {"a": {"type": "integer", "from": "a", "min": 0, "max": 9}}
    table = {"name": "months", "file": "months/*.csv", "unit": "row", "columns": columns}
    body = {"data_set": "months", "unit": "row", "epsilon": "2", "tables": [table]}
    assert server.call("POST", "/v1/data-sets", by="olga", json=body).status_code == 201
    assert server.call("POST", "/v1/data-sets/months/versions", by="olga", json={}).json() == {"version": 1}
    losses = server.call("GET", "/v1/data-sets/months/versions/1/losses", by="olga").json()["losses"]
    assert losses == [] or losses[0]["rows"] == 2


def test_tables_that_lead_to_another_one(server: ServerUnderTest) -> None:
    readers = {
        "name": "readers",
        "file": "semicolons.csv",
        "unit": "a",
        "one_row_per_unit": True,
        "columns": {"a": {"type": "key", "of": "text", "from": "a"}},
    }
    loans = loans_body()["tables"][0] | {"unit": "reader -> readers.a"}
    checked = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(tables=[readers, loans], only_check=True))
    assert checked.status_code == 200, checked.text
    assert 'unit = "reader -> readers.a"' in checked.json()["catalogue"]
    circle = [readers | {"unit": "a -> loans.reader"}, loans]
    refused = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(tables=circle, only_check=True))
    assert (refused.status_code, refused.json()["code"][:9]) == (409, "catalogue")


@pytest.mark.parametrize(("name", "file", "swapped"), [("later", "later.csv", "later.csv"), ("many", "many/*.csv", "many/02.csv")])
def test_a_link_that_comes_later_is_not_followed(server: ServerUnderTest, name: str, file: str, swapped: str) -> None:
    files = server.home / "files"
    for path in ("later.csv", "many/01.csv", "many/02.csv"):
        (files / path).parent.mkdir(exist_ok=True)
        (files / path).unlink(missing_ok=True)
        (files / path).write_text("a\n1\n2\n", encoding="utf-8")
    columns = {"a": {"type": "integer", "from": "a", "min": 0, "max": 9}}
    body = {"data_set": name, "unit": "row", "epsilon": "2", "tables": [{"name": "t", "file": file, "unit": "row", "columns": columns}]}
    assert server.call("POST", "/v1/data-sets", by="olga", json=body).status_code == 201
    assert server.call("POST", f"/v1/data-sets/{name}/versions", by="olga", json={}).json() == {"version": 1}
    (server.home / "elsewhere.csv").write_text("a\n3\n", encoding="utf-8")
    (files / swapped).unlink()
    os.symlink(server.home / "elsewhere.csv", files / swapped)
    refused = server.call("POST", f"/v1/data-sets/{name}/versions", by="olga", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "source-missing")
    assert "elsewhere" not in refused.text
    (files / swapped).unlink()
    (files / swapped).write_text("a\n1\n", encoding="utf-8")
    assert server.call("POST", f"/v1/data-sets/{name}/versions", by="olga", json={}).json() == {"version": 2}


@pytest.mark.parametrize(
    "file",
    [
        "../outside.csv",
        "link.csv",
        "watched/*.csv",
        "*.csv",
        "deep/*.parquet",
        ".hidden.csv",
        "/etc/passwd",
        "deep/../loans.csv",
        "nowhere.csv",
    ],
)
def test_no_other_file_is_looked_at(server: ServerUnderTest, file: str) -> None:
    reply = server.call("GET", "/v1/sources/columns", by="olga", params={"file": file})
    assert (reply.status_code, reply.json()["code"]) == (409, "source-missing")
    body = loans_body(tables=[loans_body()["tables"][0] | {"file": file}])
    reply = server.call("POST", "/v1/data-sets", by="olga", json=body)
    assert reply.json()["code"] == "source-missing"


def test_columns_are_named_and_typed_by_the_schema_alone(server: ServerUnderTest) -> None:
    def columns(file: str) -> list[tuple[str, str, str]]:
        reply = server.call("GET", "/v1/sources/columns", by="olga", params={"file": file})
        assert reply.status_code == 200, reply.text
        return [(one["name"], one["from"], one["holds"]) for one in reply.json()["columns"]]

    assert columns("loans.csv")[3] == ("days_kept", "Days kept", "unknown")
    assert columns("semicolons.csv") == [("a", "a", "unknown"), ("b", "b", "unknown"), ("b_2", "b", "unknown")]
    assert columns("deep/er/typed.parquet")[0] == ("id", "id", "integer")
    broken = server.call("GET", "/v1/sources/columns", by="olga", params={"file": "broken.parquet"}).json()
    assert broken["code"] == "source-missing"
    assert "not really" not in str(broken)


def test_a_declaration_can_be_looked_at_before_it_is_written(server: ServerUnderTest) -> None:
    reply = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(only_check=True))
    assert reply.status_code == 200, reply.text
    assert 'values = ["central", "hill"]' in reply.json()["catalogue"]
    assert "min = 2025-01-01" in reply.json()["catalogue"]
    assert '[limits]\nper_statement = "0.2"\nper_day = "0.5"\n' in reply.json()["catalogue"], "an owner sees how fast it may be spent"
    assert "loans" not in server.call("GET", "/v1/data-sets", by="olga").json()["data_sets"]


def test_from_a_file_to_an_answer(server: ServerUnderTest) -> None:
    assert server.call("POST", "/v1/data-sets", by="olga", json=loans_body()).status_code == 201
    assert "loans" in server.call("GET", "/v1/data-sets", by="olga").json()["data_sets"]
    assert server.call("POST", "/v1/data-sets/loans/versions", by="olga", json={}).json() == {"version": 1}
    question = {"sql": "SELECT branch, COUNT(*) AS n FROM loans GROUP BY branch", "epsilon": "0.8"}
    answer = server.call("POST", "/v1/data-sets/loans/ask", by="ada", json=question).json()
    assert [row[0] for row in answer["rows"]] == ["central", "hill"]
    again = server.call("POST", "/v1/data-sets", by="olga", json=loans_body())
    assert (again.status_code, again.json()["code"]) == (409, "data-set-exists")


def test_a_data_set_that_is_configured_is_not_declared_again(server: ServerUnderTest) -> None:
    reply = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(data_set=server.data_set))
    assert reply.json()["code"] == "data-set-exists"


@pytest.mark.parametrize(
    ("changed", "status", "code"),
    [
        ({"data_set": "../elsewhere"}, 422, "body-invalid"),
        ({"data_set": "Loans"}, 422, "body-invalid"),
        ({"epsilon": "-1"}, 409, "catalogue-bad-budget"),
        ({"unit": 'x"\n[ledger]\ndatabase = "evil'}, 409, ""),
        ({"surprise": 1}, 422, "body-invalid"),
    ],
    ids=["path", "capitals", "negative", "injection", "unknown"],
)
def test_what_no_catalogue_can_say_is_refused(server: ServerUnderTest, changed: dict[str, Any], status: int, code: str) -> None:
    reply = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(only_check=True) | changed)
    if not code:  # a unit of strange words is a text like any other, or refused: never another line
        assert reply.status_code in (200, 409)
        assert "\n[ledger]\n" not in reply.json().get("catalogue", "")
        return
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text


def test_names_of_columns_cannot_become_lines(server: ServerUnderTest) -> None:
    column = {"type": "text", "from": 'a"\nb = { type = "key" } #'}
    table = loans_body()["tables"][0] | {"columns": {"reader": {"type": "key", "of": "text", "from": "Reader"}, "x": column}}
    reply = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(only_check=True, tables=[table]))
    assert reply.status_code == 409, "the name of a column has no line breaks"
    column["from"] = 'a", type = "key" } #'
    reply = server.call("POST", "/v1/data-sets", by="olga", json=loans_body(only_check=True, tables=[table]))
    assert tomllib.loads(reply.json()["catalogue"])["tables"]["loans"]["columns"]["x"] == column
    table["columns"]["x = 1\n[ledger]"] = column
    assert server.call("POST", "/v1/data-sets", by="olga", json=loans_body(tables=[table])).json()["code"] == "body-invalid"


def test_an_owner_of_one_data_set_declares_none(server: ServerUnderTest) -> None:
    server.app_state.identities.grant("lone", Grant(Role.OWNER, server.data_set))
    key, _ = server.app_state.identities.new_key("lone")
    for method, path, body in (("GET", "/v1/sources", None), ("POST", "/v1/data-sets", loans_body(data_set="other"))):
        reply = server.call(method, path, token=key, json=body)
        assert (reply.status_code, reply.json()["code"]) == (403, "forbidden")


def test_without_a_directory_nothing_is_declared(tmp_path: Path) -> None:
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=100), tmp_path) as closed:
        for method, path, body in (("GET", "/v1/sources", None), ("POST", "/v1/data-sets", loans_body())):
            reply = closed.call(method, path, by="olga", json=body)
            assert (reply.status_code, reply.json()["code"]) == (404, "declaring-off")
