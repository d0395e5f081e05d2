"""psql and psycopg ask, see what is declared, and are refused everything else."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import psycopg
import pytest

from tests.wire.raw import SYNC, RawClient, bind, describe, execute, letters, parse
from tests.wire.world import WireUnderTest

BY_SMOKER = "SELECT smoker, COUNT(*) AS n FROM patients GROUP BY smoker ORDER BY smoker"


@pytest.fixture
def connection(wire: WireUnderTest) -> Iterator[psycopg.Connection]:
    with wire.connect() as opened:
        yield opened


def test_an_answer_is_near_the_truth_and_says_its_price(wire: WireUnderTest, connection: psycopg.Connection) -> None:
    told: list[str] = []
    connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
    connection.execute("SET lapwing.intervals = on")
    connection.execute("SET lapwing.confidence = 0.999999")
    exact = dict(wire.truth("SELECT smoker, COUNT(*) FROM patients GROUP BY smoker"))
    found = connection.execute(BY_SMOKER).fetchall()
    assert len(found) == 3
    for smoker, n, lo, hi in found:
        assert lo <= exact[smoker] <= hi
        assert lo <= n <= hi
    assert told[-1].split("; ")[1].startswith(("cost epsilon", "free"))
    before = wire.spent()
    assert connection.execute(BY_SMOKER).fetchall() == found
    assert wire.spent() == before
    assert told[-1].split("; ")[1] == "free"


@pytest.mark.parametrize("binary", [False, True])
def test_values_are_the_same_in_both_formats(connection: psycopg.Connection, binary: bool) -> None:
    found = connection.execute(
        "SELECT region, AVG(birth_year) AS y, MIN(birth_year) AS m, COUNT(*) AS n FROM patients GROUP BY region", binary=binary
    )
    names = [column.name for column in found.description or ()]
    assert names == ["region", "y", "m", "n"]
    rows = found.fetchall()
    assert len(rows) == 20
    assert all(isinstance(row[3], int) and (row[1] is None or isinstance(row[1], float)) for row in rows)


def test_parse_and_describe_are_free_and_only_execute_pays(wire: WireUnderTest) -> None:
    with RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set) as client:
        before = wire.spent()
        client.send(parse("SELECT COUNT(*) AS n FROM patients WHERE birth_year > $1", "kept", (23,)) + describe("S", "kept") + SYNC)
        assert letters(client.until()) == "1tTZ"
        client.send(bind((b"1990",), statement="kept") + describe("P") + SYNC)
        assert letters(client.until()) == "2TZ"
        assert wire.spent() == before
        client.send(bind((b"1990",), statement="kept") + execute() + SYNC)
        first = client.until()
        assert letters(first) == "2NDCZ"
        paid = wire.spent()
        assert paid > before
        client.send(bind((struct.pack("!i", 1990),), statement="kept", forms=(1,)) + execute() + SYNC)
        assert [body for letter, body in client.until() if letter == b"D"] == [body for letter, body in first if letter == b"D"]
        assert wire.spent() == paid


def test_psql_sees_tables_columns_and_comments(wire: WireUnderTest) -> None:
    seen = wire.psql("\\d\n\\d+ visits\n\\dn\n\\l\n\\df\n\\du\n")
    assert seen.returncode == 0
    assert "ERROR" not in seen.stderr, seen.stderr
    for words in ("prescriptions", "NULL while there is no diagnosis", "timestamp without time zone", wire.server.data_set):
        assert words in seen.stdout


def test_a_refusal_points_at_its_place(connection: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("SELECT nonsense FROM visits")
    assert (refused.value.sqlstate, refused.value.diag.statement_position) == ("42703", "8")
    assert refused.value.diag.message_detail == "lapwing code: unknown-column"
    with pytest.raises(psycopg.Error) as rows:
        connection.execute("SELECT * FROM visits LIMIT 5")
    assert rows.value.diag.message_detail == "lapwing code: rows-not-aggregates"
    assert connection.execute("SELECT 1").fetchone() == (1,)
