"""A session's life: cursors, pipelines, formats, settings, limits and TLS."""

from __future__ import annotations

import datetime
import ssl
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import ListenTo, ServerConfiguration, WireSettings
from lapwing.interfaces.wire.values import NUMERIC, encoded, literal
from tests.ledger.cluster import Cluster
from tests.server.certificate import write_certificate
from tests.wire.raw import SYNC, RawClient, bind, describe, execute, letters, parse
from tests.wire.world import WireUnderTest, wire_over

BY_REGION = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region"


@pytest.mark.parametrize("binary", [False, True])
def test_a_server_cursor_gives_what_a_plain_one_gives(wire: WireUnderTest, binary: bool) -> None:
    with psycopg.connect(wire.dsn()) as connection:
        whole = connection.execute(BY_REGION).fetchall()
        with connection.cursor("named", binary=binary) as cursor:
            cursor.execute(BY_REGION)
            assert [column.name for column in cursor.description or ()] == ["region", "n"]
            assert [*cursor.fetchmany(3), *cursor.fetchmany(9), *cursor.fetchall()] == whole
        with connection.cursor("with_value", binary=binary) as cursor:
            cursor.execute("SELECT COUNT(*) AS n FROM patients WHERE birth_year > %s", (1980,))
            assert len(cursor.fetchall()) == 1


def test_a_pipeline_is_answered_in_order(wire: WireUnderTest) -> None:
    with wire.connect() as connection, connection.pipeline():
        first = connection.execute(BY_REGION)
        second = connection.execute("SELECT 7 AS seven")
        third = connection.execute("SELECT COUNT(*) AS n FROM patients WHERE birth_year > %s", (1980,))
        assert len(first.fetchall()) == 20
        assert second.fetchall() == [(7,)]
        assert len(third.fetchall()) == 1


def test_an_error_in_a_pipeline_passes_over_the_rest(wire: WireUnderTest) -> None:
    with RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set) as client:
        before = wire.spent()
        asked = parse("SELECT COUNT(*) AS unpaid FROM patients WHERE smoker") + bind() + execute()
        client.send(
            parse("SELECT nonsense FROM patients") + bind() + execute() + asked + SYNC + parse("SELECT 1") + bind() + execute() + SYNC
        )
        assert letters(client.until()) == "12EZ"
        assert letters(client.until()) == "12DCZ"
        assert wire.spent() == before


@pytest.mark.parametrize(
    ("kept", "text"),
    [("itself", "FETCH ALL FROM itself"), ("b", "BEGIN"), ("s", "SET lapwing.intervals = on"), ("e", "EXECUTE e"), ("c", "CLOSE ALL")],
)
def test_rows_are_fetched_of_questions_only(wire: WireUnderTest, kept: str, text: str) -> None:
    """The protocol keeps any statement under any name: one that fetches or executes itself would never end."""
    with RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set) as client:
        client.send(parse(text, kept) + bind(portal=kept, statement=kept) + parse(f"FETCH ALL FROM {kept}") + bind() + execute() + SYNC)
        assert letters(client.until()) == "1212EZ"
        client.send(parse(f"EXECUTE {kept}") + bind() + execute() + SYNC)
        assert letters(client.until()) == "12EZ"
        client.send(describe("S", kept) + SYNC)
        assert letters(client.until())[-1] == "Z"
        client.send(parse("SELECT 7 AS seven") + bind() + execute() + SYNC)
        assert letters(client.until())[-1] == "Z"


def test_rows_are_handed_out_as_many_as_are_asked_for(wire: WireUnderTest) -> None:
    with RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set) as client:
        client.simple("BEGIN")
        client.send(parse(BY_REGION) + bind(portal="p", formats=(0, 1)) + describe("P", "p") + execute(8, "p") + SYNC)
        assert letters(client.until()).replace("N", "") == "12T" + "D" * 8 + "sZ"
        client.send(execute(8, "p") + execute(8, "p") + SYNC)
        assert letters(client.until()) == "D" * 8 + "s" + "D" * 4 + "CZ"
        client.simple("COMMIT")
        client.send(execute(1, "p") + SYNC)
        assert letters(client.until()) == "EZ"


TYPED = [
    ("SELECT MIN(day) AS d FROM visits", datetime.date),
    ("SELECT MIN(started) AS d FROM visits", datetime.datetime),
    ("SELECT AVG(birth_year) AS d FROM patients", float),
    ("SELECT COUNT(*) > 100 AS d FROM patients", bool),
    ("SELECT MAX(birth_year) AS d FROM patients", int),
    ("SELECT DISTINCT sex AS d FROM patients", str),
    ("SELECT COUNT(*) * 2.5 AS d FROM patients", (float, Decimal)),
]


@pytest.mark.parametrize(("statement", "kind"), TYPED)
def test_a_value_is_the_same_in_text_and_binary(wire: WireUnderTest, statement: str, kind: Any) -> None:
    with wire.connect() as connection:
        text, binary = (connection.execute(statement, binary=form).fetchall() for form in (False, True))
        assert text == binary
        assert isinstance(text[0][0], kind)
        prepared = connection.execute(statement, prepare=True).fetchall()
        assert prepared == text


@pytest.mark.parametrize("number", ["0", "1", "-1.5", "12345678.9012", "0.0001", "-100000000", "99999999999999.00000001"])
def test_numbers_of_any_length_come_back_from_their_binary_form(number: str) -> None:
    sent = encoded(Decimal(number), NUMERIC, 1)
    assert Decimal(literal(sent, NUMERIC, 1).strip("()")) == Decimal(number)


VALUES = ["f", "o'clock", "\\", "\\'; --", "$1", 'a"b', "é", ""]


@pytest.mark.parametrize("value", VALUES)
def test_a_text_is_a_value_whatever_it_holds(wire: WireUnderTest, value: str) -> None:
    with wire.connect() as connection:
        statement = "SELECT COUNT(*) AS n FROM patients WHERE region = %s"
        rows = connection.execute(statement, (value,)).fetchall()
        assert rows[0][0] == 0  # declared values are known, and none of these is one: nothing is measured


def test_settings_follow_transactions(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        connection.execute("SET lapwing.epsilon = 0.5")
        connection.execute("BEGIN")
        connection.execute("SET lapwing.epsilon = 0.7")
        connection.execute("ROLLBACK")
        assert connection.execute("SHOW lapwing.epsilon").fetchone() == ("0.5",)
        connection.execute("BEGIN")
        connection.execute("SET LOCAL lapwing.epsilon = 0.7")
        assert connection.execute("SHOW lapwing.epsilon").fetchone() == ("0.7",)
        connection.execute("COMMIT")
        assert connection.execute("SHOW lapwing.epsilon").fetchone() == ("0.5",)
        connection.execute("DISCARD ALL")
        assert connection.execute("SHOW lapwing.epsilon").fetchone() == ("",)


def test_a_price_that_is_set_holds_unless_the_statement_names_one(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        connection.execute("SET lapwing.epsilon = 0.02")
        costs = []
        for text in ("1963", "1964 AND region <> 'with privacy'", "1965 WITH PRIVACY (reuse = never)"):
            before = wire.spent()
            connection.execute(f"SELECT COUNT(*) AS n FROM patients WHERE region <> 'north' AND birth_year < {text}")
            costs.append(wire.spent() - before)
        assert 0 < max(costs) <= 2 * costs[0]


def test_an_accuracy_is_asked_for_by_a_setting(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        connection.execute("SET lapwing.error = 15")
        connection.execute("SET lapwing.intervals = on")
        row = connection.cursor(row_factory=dict_row).execute("SELECT COUNT(*) AS n FROM patients WHERE birth_year < 1970").fetchone()
        assert row is not None
        assert row["n_hi"] - row["n_lo"] <= 30
        exact = wire.truth("SELECT COUNT(*) FROM patients WHERE birth_year < 1970")[0][0]
        assert abs(row["n"] - exact) < 40


def test_a_tool_on_its_own_spends_its_share_and_no_more(shared_cluster: Cluster, tmp_path: Path) -> None:
    with wire_over(shared_cluster, tmp_path, session_share=0.03, day_share=0.05) as wire:
        before = wire.spent()
        told: list[str] = []
        for _ in range(3):
            with wire.connect() as connection:
                connection.execute("SET lapwing.epsilon = 20")
                for year in range(1930, 1990):
                    try:
                        connection.execute(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {year}")
                    except psycopg.errors.ConfigurationLimitExceeded as error:
                        told.append(str(error.diag.message_primary))
                        assert error.diag.message_detail == "lapwing code: wire-limit"
                        connection.execute("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1930")  # paid for: free
                        break
        assert any("session" in text for text in told)
        assert any("day" in text for text in told)
        assert 0.03 < wire.spent() - before <= 0.05


def test_without_a_certificate_the_wire_listens_on_loopback_alone() -> None:
    open_to_all = ServerConfiguration(server=ListenTo(behind_proxy=True), wire=WireSettings(shadow="postgresql://x", host="0.0.0.0"))
    with pytest.raises(LapwingError) as refused:
        open_to_all.require_safe()
    assert refused.value.code == "server-configuration"


def test_with_a_certificate_nothing_is_said_in_the_clear(shared_cluster: Cluster, tmp_path: Path) -> None:
    write_certificate(tmp_path)
    trusted = tmp_path / "server.pem"
    with wire_over(shared_cluster, tmp_path, listen=ListenTo(certificate="server.pem", key="server.key")) as wire:
        with psycopg.connect(wire.dsn(sslmode="verify-full", sslrootcert=str(trusted))) as connection:
            assert connection.execute("SELECT COUNT(*) AS n FROM patients").fetchall()
            assert connection.pgconn.ssl_in_use
        with pytest.raises(psycopg.OperationalError, match="requires TLS"):
            psycopg.connect(wire.dsn(sslmode="disable"))
        with RawClient(wire.port, "ada", "x", "y", log_in=False) as early:
            early.send(b"\0\0\0\x08\x04\xd2\x16\x2f" + b"\0\0\0\x10something")  # more than the request, before TLS
            assert early.socket.recv(10) in (b"", b"S")
            with pytest.raises((ssl.SSLError, OSError)):
                ssl.create_default_context(cafile=trusted).wrap_socket(early.socket, server_hostname="127.0.0.1")
