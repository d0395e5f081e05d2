"""Tables of PostgreSQL declared through the server: by names that the operator gave, without a word about how they are reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import NamedDatabase, NewDataSettings, read_configuration
from tests.console.library import Library, messy_library
from tests.ledger.cluster import Cluster
from tests.server.under_test import ServerUnderTest

OWNER, READER = "library_keeper", "library_reader"
SECRETS = (READER, OWNER, "lapwing-pg", "dbname", "nowhere.invalid")
"""Words of the connections: no reply has them."""


@pytest.fixture(scope="module")
def library() -> Library:
    return messy_library(readers=300)


@pytest.fixture(scope="module")
def server(shared_cluster: Cluster, library: Library, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server whose operator named two databases, one of which is not there."""
    home = tmp_path_factory.mktemp("databases")
    with shared_cluster.superuser() as connection:
        connection.execute(f"CREATE ROLE {OWNER} LOGIN".encode())
        connection.execute(f"CREATE ROLE {READER} LOGIN".encode())
        connection.execute(f"CREATE DATABASE library OWNER {OWNER} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0".encode())
        connection.execute(b"REVOKE ALL ON DATABASE library FROM PUBLIC")
        connection.execute(f"GRANT CONNECT ON DATABASE library TO {READER}".encode())
    with shared_cluster.superuser("library") as connection:
        connection.execute(f"SET ROLE {OWNER}".encode())
        library.write_to(connection)
        connection.execute("CREATE VIEW library.seen AS SELECT 1 AS x")
        connection.execute('CREATE TABLE library."od""d" (x int)')
        connection.execute('CREATE TABLE public."Two Words" (id bigint PRIMARY KEY)')
        connection.execute('CREATE TABLE public.pointing (of_whom bigint REFERENCES public."Two Words", tags text[])')
    named = [
        NamedDatabase(name="library", connection=shared_cluster.dsn("library", role=READER)),
        NamedDatabase(name="loans-only", connection=shared_cluster.dsn("library", role=READER), schemas=["library"]),
        NamedDatabase(name="gone", connection="host=nowhere.invalid dbname=library user=library_reader"),
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LAPWING_POSTGRES_OWNER", f"user={OWNER}")
        with ServerUnderTest.over(
            lambda directory: write_demo(directory, patients=100), home, new_data=NewDataSettings(), databases=named
        ) as under_test:
            yield under_test


def library_body(**changed: Any) -> dict[str, Any]:
    """Readers, their loans, and fines of the loans."""
    readers = {
        "name": "readers",
        "table": "library.readers",
        "unit": "reader_no",
        "one_row_per_unit": True,
        "columns": {
            "reader_no": {"type": "key", "of": "text", "from": "Reader No"},
            "district": {"type": "text", "from": "District", "values": ["north", "south"]},
        },
    }
    loans = {
        "name": "loans",
        "table": "library.loans",
        "unit": "reader_no -> readers.reader_no",
        "rows_per_unit_max": 60,
        "columns": {
            "reader_no": {"type": "key", "of": "text", "from": "Reader No"},
            "branch": {"type": "text", "from": 'Branch "where"', "values": ["central", "harbour", "hill", "station"]},
        },
    }
    body = {"data_set": "library", "database": "library", "unit": "reader", "epsilon": "100", "tables": [readers, loans]}
    return body | changed


def test_databases_are_named_and_nothing_more(server: ServerUnderTest) -> None:
    reply = server.call("GET", "/v1/sources", by="olga")
    assert reply.json() == {"files": [], "folders": [], "databases": ["library", "loans-only", "gone"]}


def test_tables_are_those_of_the_catalogue_of_the_database(server: ServerUnderTest) -> None:
    found = server.call("GET", "/v1/sources/tables", by="olga", params={"database": "library"}).json()
    assert found["tables"] == ["library.fines", "library.loans", "library.readers", 'public."Two Words"', "public.pointing"]
    assert found["references"] == [{"table": "public.pointing", "column": "of_whom", "target": 'public."Two Words"', "target_column": "id"}]
    some = server.call("GET", "/v1/sources/tables", by="olga", params={"database": "loans-only"}).json()
    assert some["tables"] == ["library.fines", "library.loans", "library.readers"]
    assert some["references"] == []


def test_columns_have_names_and_types_and_no_row_is_read(server: ServerUnderTest) -> None:
    asked = {"database": "library", "table": "library.loans"}
    columns = server.call("GET", "/v1/sources/columns", by="olga", params=asked).json()["columns"]
    assert [(one["name"], one["from"], one["holds"]) for one in columns][2:] == [
        ("branch_where", 'Branch "where"', "text"),
        ("day", "Day", "date"),
        ("days_kept", "Days kept", "integer"),
    ]
    listed = server.call("GET", "/v1/sources/columns", by="olga", params={"database": "library", "table": "public.pointing"}).json()
    assert [one["name"] for one in listed["columns"]] == ["of_whom"], "a list is nothing that can be declared"


@pytest.mark.parametrize(
    "asked",
    [
        {"database": "library", "table": "pg_catalog.pg_authid"},
        {"database": "library", "table": "library.seen"},
        {"database": "library", "table": 'library."od""d"'},
        {"database": "library", "table": "library.loans; SELECT 1"},
        {"database": "loans-only", "table": "public.pointing"},
        {"database": "elsewhere", "table": "library.loans"},
    ],
    ids=["system", "view", "quote", "statement", "schema", "database"],
)
def test_no_other_table_is_looked_at(server: ServerUnderTest, asked: dict[str, str]) -> None:
    reply = server.call("GET", "/v1/sources/columns", by="olga", params=asked)
    assert (reply.status_code, reply.json()["code"]) == (409, "source-missing")
    body = library_body(database=asked["database"], only_check=True)
    body["tables"] = [body["tables"][0] | {"table": asked["table"]}]
    assert server.call("POST", "/v1/data-sets", by="olga", json=body).json()["code"] == "source-missing"


def test_a_database_that_is_gone_is_told_without_its_address(server: ServerUnderTest) -> None:
    tables = server.call("GET", "/v1/sources/tables", by="olga", params={"database": "gone"})
    columns = server.call("GET", "/v1/sources/columns", by="olga", params={"database": "gone", "table": "library.loans"})
    declared = server.call("POST", "/v1/data-sets", by="olga", json=library_body(database="gone"))
    for reply in (tables, columns, declared):
        assert (reply.status_code, reply.json()["code"]) == (409, "engine-unreachable")
        assert not any(word in reply.text for word in SECRETS), reply.text


@pytest.mark.parametrize(
    "changed",
    [{"database": None}, {"tables": [library_body()["tables"][0] | {"file": "loans.csv"}]}],
    ids=["no-database", "both"],
)
def test_a_table_is_from_a_file_or_from_a_database(server: ServerUnderTest, changed: dict[str, Any]) -> None:
    reply = server.call("POST", "/v1/data-sets", by="olga", json=library_body(**changed))
    assert (reply.status_code, reply.json()["code"]) == (422, "body-invalid")


def test_from_tables_to_an_answer_and_the_connection_is_in_the_file_alone(server: ServerUnderTest, library: Library) -> None:
    shown = server.call("POST", "/v1/data-sets", by="olga", json=library_body(only_check=True))
    assert shown.status_code == 200, shown.text
    declared = server.call("POST", "/v1/data-sets", by="olga", json=library_body())
    assert declared.status_code == 201, declared.text
    for reply in (shown, declared):
        assert "the operator's connection to library" in reply.json()["catalogue"]
        assert not any(word in reply.text for word in SECRETS), reply.text
    assert READER in (server.home / "catalogues" / "library" / "lapwing.toml").read_text(encoding="utf-8")
    prepared = server.call("POST", "/v1/data-sets/library/versions", by="olga", json={})
    assert prepared.json() == {"version": 1}, prepared.text
    known = library.known
    losses = {one["table"]: one for one in server.call("GET", "/v1/data-sets/library/versions/1/losses", by="olga").json()["losses"]}
    assert losses["loans"]["no_unit"] + losses["loans"]["no_parent"] == sum(row[1] not in known for row in library.loans)
    question = {"sql": "SELECT branch, COUNT(*) AS n FROM loans GROUP BY branch", "epsilon": "30"}
    rows = server.call("POST", "/v1/data-sets/library/ask", by="ada", json=question).json()["rows"]
    truth = library.loans_of_known_readers()
    assert {row[0] for row in rows} >= set(truth)
    assert all(abs(row[1] - truth[row[0]]) < 60 for row in rows if row[0] is not None), (rows, truth)


def test_a_password_in_the_configuration_is_refused(server: ServerUnderTest) -> None:
    path = server.home / "with-password.toml"
    path.write_text('[[database]]\nname = "x"\nconnection = "dbname=x password=hush"\n', encoding="utf-8")
    with pytest.raises(LapwingError, match="must not hold a password") as refused:
        read_configuration(path).require_safe()
    assert "hush" not in str(refused.value)
    path.write_text('[[database]]\nname = "x"\nconnection = "a"\n[[database]]\nname = "x"\nconnection = "b"\n', encoding="utf-8")
    with pytest.raises(LapwingError, match="the same name"):
        read_configuration(path).require_safe()


def test_a_database_that_went_away_is_told_without_its_address(server: ServerUnderTest, shared_cluster: Cluster) -> None:
    assert server.call("POST", "/v1/data-sets", by="olga", json=library_body(data_set="later")).status_code == 201
    with shared_cluster.superuser() as connection:
        connection.execute(b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'library'")
        connection.execute(b"ALTER DATABASE library RENAME TO library_away")
    try:
        streamed = {"Accept": "text/event-stream"}
        replies = [
            server.call("GET", "/v1/data-sets/later/versions", by="olga"),
            server.call("POST", "/v1/data-sets/later/versions", by="olga", json={}),
            server.call("POST", "/v1/data-sets/later/versions", by="olga", json={}, headers=streamed),
            server.call("GET", "/v1/sources/tables", by="olga", params={"database": "library"}),
        ]
    finally:
        with shared_cluster.superuser() as connection:
            connection.execute(b"ALTER DATABASE library_away RENAME TO library")
    for reply in replies:
        assert "engine-unreachable" in reply.text, reply.text
        assert not any(word in reply.text for word in SECRETS), reply.text
