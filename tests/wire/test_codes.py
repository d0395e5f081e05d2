"""What else the wire refuses, each by its code."""

from __future__ import annotations

import socket
import struct

import psycopg
import pytest

from lapwing.errors import LapwingError
from lapwing.interfaces.http.rates import Rates
from lapwing.interfaces.wire.shadow.database import make_shadow
from tests.wire.raw import SYNC, RawClient, bind, describe, error_fields, execute, letters, parse
from tests.wire.world import WireUnderTest

SIMPLE = [
    ("SELECT pg_sleep(1)", "wire-function", "42501"),
    ("VACUUM", "wire-statement", "0A000"),
    ("SET work_memory = 1", "wire-setting", "22023"),
    ("SET client_encoding = latin1", "wire-setting", "22023"),
    ("SET lapwing.epsilon = many", "wire-setting", "22023"),
    ("FETCH 1 FROM nowhere", "wire-name", "34000"),
    ("EXECUTE nothing", "wire-name", "34000"),
    ("SELECT COUNT(*) FROM visits WHERE minutes > $1", "wire-parameter", "22P02"),
    ("BEGIN; SELECT nonsense FROM visits", "unknown-column", "42703"),
]


def _client(wire: WireUnderTest, who: str = "ada", options: str = "") -> RawClient:
    return RawClient(wire.port, who, wire.server.keys[who], wire.server.data_set, options=options)


def _code(messages: list[tuple[bytes, bytes]]) -> tuple[str, str]:
    fields = error_fields(next(body for letter, body in messages if letter == b"E"))
    return fields["D"].removeprefix("lapwing code: "), fields["C"]


@pytest.mark.parametrize(("text", "code", "state"), SIMPLE)
def test_a_simple_statement_is_refused(wire: WireUnderTest, text: str, code: str, state: str) -> None:
    with _client(wire) as client:
        assert _code(client.simple(text)) == (code, state)


def test_a_statement_may_take_as_long_as_the_session_says(wire: WireUnderTest) -> None:
    with _client(wire, options="-c statement_timeout=1") as client:
        code, state = _code(client.simple("SELECT COUNT(*) AS over_time FROM visits WHERE minutes < 77"))
        assert (code, state) == ("wire-time-over", "57014")


def test_after_an_error_a_transaction_answers_nothing_until_it_ends(wire: WireUnderTest) -> None:
    with _client(wire) as client:
        assert client.simple("BEGIN")[-1] == (b"Z", b"T")
        assert client.simple("SELECT nonsense FROM visits")[-1] == (b"Z", b"E")
        assert _code(client.simple("SELECT 1")) == ("wire-transaction", "25P02")
        ended = client.simple("COMMIT")
        assert ended == [(b"C", b"ROLLBACK\0"), (b"Z", b"I")]


def test_what_is_not_the_protocol_is_refused_and_the_session_goes_on(wire: WireUnderTest) -> None:
    with _client(wire) as client:
        client.send(parse("SELECT 1") + bind(formats=(7,)) + execute() + SYNC)
        assert _code(found := client.until()) == ("wire-protocol", "08P01")
        assert letters(found) == "1EZ"
        client.send(parse("SELECT 1; SELECT 2") + SYNC)
        assert _code(client.until())[0] == "statement-several"
        client.send(describe("P", "nowhere") + execute() + SYNC)
        assert letters(client.until()) == "EZ"
        client.send(b"F" + struct.pack("!I", 4))
        assert _code(client.until())[0] == "wire-statement"
        assert letters(client.simple("SELECT 1")) == "TDCZ"
        client.send(b"?" + struct.pack("!I", 4))
        assert client.read() == (b"", b"")


def test_a_session_keeps_so_many_statements(wire: WireUnderTest) -> None:
    with _client(wire) as client:
        client.send(b"".join(parse("", f"s{number}") for number in range(1_001)) + SYNC)
        code = _code(client.until())[0]
        assert code == "wire-limit"


def test_a_statement_is_broken_off_when_asked_and_charged_once(wire: WireUnderTest) -> None:
    with _client(wire) as client:
        for number in range(20):
            client.send(
                b"Q" + struct.pack("!I", 5 + len(text := f"SELECT COUNT(*) AS broken_{number} FROM visits WHERE minutes > {number}"))
            )
            client.send(text.encode() + b"\0")
            with socket.create_connection(("127.0.0.1", wire.port)) as other:
                other.sendall(struct.pack("!II", 16, 80_877_102) + client.key)
            told = client.until()
            if letters(told) == "EZ":
                assert _code(told) == ("wire-cancelled", "57014")
                break
        else:
            raise AssertionError("nothing was broken off")
        assert letters(client.simple("SELECT 1")).lstrip("N") == "TDCZ"  # after a word on what came of it
        assert letters(client.simple(text)).lstrip("N") == "TDCZ"


def test_the_shadow_is_made_only_where_it_is_safe(wire: WireUnderTest) -> None:
    settings = wire.server.app_state.configuration.wire
    assert settings is not None
    wrong = [("postgres", "wire_other"), (wire.server.data_set, "postgres")]
    for database, role in wrong:
        with pytest.raises(LapwingError) as refused:
            make_shadow(settings.shadow, database=database, role=role, password="x", tables=[])
        assert refused.value.code == "wire-shadow"
    with pytest.raises(LapwingError) as nowhere:
        make_shadow("postgresql://127.0.0.1:1/postgres", database="x", role="y", password="z", tables=[])
    assert nowhere.value.code == "wire-shadow"


WRONG = [("ada", "lw_wrong"), ("nobody-of-this-name", "x"), ("", "x")]


@pytest.mark.parametrize(("who", "password"), WRONG)
def test_a_wrong_name_and_a_wrong_key_look_the_same(wire: WireUnderTest, who: str, password: str) -> None:
    with RawClient(wire.port, who, password, wire.server.data_set) as client:
        told = client.greeting
        assert letters(told) == "RRE"
        fields = error_fields(told[-1][1])
        code = fields["D"].removeprefix("lapwing code: ")
        assert (code, fields["C"], fields["S"]) == ("unauthenticated", "28P01", "FATAL")
    with RawClient(wire.port, who, password, wire.server.data_set) as again:
        salts = [dict(part.split("=", 1) for part in told[1][1][4:].decode().split(","))["s"] for told in (client.greeting, again.greeting)]
        assert salts[0] == salts[1]


def test_a_good_key_passes_whatever_its_address_did(wire: WireUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire.server.app_state, "failures", Rates(0.01, 2))
    for expected in ("unauthenticated", "unauthenticated", "too-many-requests", "too-many-requests"):
        with RawClient(wire.port, "ada", "lw_wrong", wire.server.data_set) as client:
            assert error_fields(client.greeting[-1][1])["D"] == f"lapwing code: {expected}"
    with RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set) as good:
        assert letters(good.simple("SELECT 1")) == "TDCZ"


def test_nobody_without_a_role_is_let_in_and_owners_do_not_ask(wire: WireUnderTest) -> None:
    with RawClient(wire.port, "nemo", wire.server.keys["nemo"], wire.server.data_set) as client:
        code = error_fields(client.greeting[-1][1])["D"]
        assert code == "lapwing code: not-found"
    with RawClient(wire.port, "ada", wire.server.keys["ada"], "other") as client:
        assert error_fields(client.greeting[-1][1])["C"] == "3D000"
    with wire.connect("olga") as connection:
        assert connection.execute("EXPLAIN SELECT COUNT(*) FROM visits").fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            connection.execute("SELECT COUNT(*) FROM visits")
        assert refused.value.diag.message_detail == "lapwing code: forbidden"


def test_a_key_that_is_revoked_ends_its_sessions(wire: WireUnderTest) -> None:
    key, entry = wire.server.app_state.identities.new_key("ada")
    with psycopg.connect(wire.dsn(password=key), autocommit=True) as connection:
        assert connection.execute("SELECT COUNT(*) AS n FROM patients").fetchall()
        assert wire.server.app_state.identities.revoke(entry.key_id)
        with pytest.raises(psycopg.errors.InvalidPassword):
            connection.execute("SELECT COUNT(*) AS n FROM patients")
        assert connection.closed
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(wire.dsn(password=key))
