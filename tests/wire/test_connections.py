"""Who may be connected, and for how long: strangers take no room from people, nor one person from others; a revoked key ends sessions."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.wire import startup
from lapwing.interfaces.wire.connections import STRANGERS_MAX
from lapwing.interfaces.wire.messages import message, zero_ended
from tests.ledger.cluster import Cluster
from tests.wire.raw import RawClient, error_fields, letters
from tests.wire.world import WireUnderTest, wire_over

HELLO = struct.pack("!IIIIH", 8, 80_877_104, 1_000, 196_608, 0)
"""A client that asks for GSS, and then begins something that it never ends."""


@pytest.fixture(scope="module")
def small(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireUnderTest]:
    """A server with room for few sessions."""
    home = tmp_path_factory.mktemp("small")
    with wire_over(shared_cluster, home, connections_max=5, sessions_per_person=3, idle_seconds=2.0) as under_test:
        yield under_test


@pytest.mark.parametrize("said", [b"", HELLO], ids=["silent", "talking"])
def test_strangers_keep_nobody_out(small: WireUnderTest, said: bytes) -> None:
    with ExitStack() as open_ones:
        for _ in range(STRANGERS_MAX + 50):
            stranger = open_ones.enter_context(socket.create_connection(("127.0.0.1", small.port), timeout=10))
            stranger.sendall(said)
        with small.connect(connect_timeout=5) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_of_strangers_the_silent_ones_are_dropped_first(small: WireUnderTest) -> None:
    with ExitStack() as open_ones:
        talking = open_ones.enter_context(socket.create_connection(("127.0.0.1", small.port), timeout=1))
        talking.sendall(HELLO)
        assert talking.recv(10) == b"N"
        silent = [open_ones.enter_context(socket.create_connection(("127.0.0.1", small.port), timeout=9)) for _ in range(STRANGERS_MAX + 5)]
        silent[-1].settimeout(1)
        assert silent[0].recv(10) == b""
        with pytest.raises(TimeoutError):
            silent[-1].recv(10)
        with pytest.raises(TimeoutError):
            talking.recv(10)


def test_a_stranger_who_says_nothing_is_sent_away(small: WireUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    assert startup.FIRST_SECONDS <= 5.0
    monkeypatch.setattr(startup, "FIRST_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", small.port), timeout=10) as stranger:
        assert stranger.recv(10) == b""


def test_one_person_does_not_take_all_sessions(small: WireUnderTest) -> None:
    with ExitStack() as open_ones:
        mine = [open_ones.enter_context(small.connect()) for _ in range(3)]
        with pytest.raises(psycopg.OperationalError, match="you have 3 sessions already"):
            small.connect()
        other = open_ones.enter_context(small.connect("olga"))
        assert other.execute("SELECT 1").fetchone() == (1,)
        mine.pop().close()
        time.sleep(0.2)
        open_ones.enter_context(small.connect())


def test_a_session_that_says_nothing_ends(small: WireUnderTest) -> None:
    with RawClient(small.port, "ada", small.server.keys["ada"], small.server.data_set) as client:
        time.sleep(1)
        assert letters(client.simple("SELECT 1")) == "TDCZ"
        begun = time.monotonic()
        letter, body = client.read()
        assert letter == b"E"
        fields = error_fields(body)
        assert (fields["S"], fields["C"], fields["D"]) == ("FATAL", "57P05", "lapwing code: wire-idle")
        assert 1.5 < time.monotonic() - begun < 10
        assert client.read() == (b"", b"")


def test_a_revoked_key_ends_sessions_at_once(wire: WireUnderTest) -> None:
    """One that asks about the catalogue at its next statement, one that runs and one that is idle within two seconds."""
    identities = wire.server.app_state.identities
    identities.grant("rex", Grant(Role.ANALYST, "*"))
    key, entry = identities.new_key("rex")
    with ExitStack() as open_ones:
        asking, idle, running = (open_ones.enter_context(RawClient(wire.port, "rex", key, wire.server.data_set)) for _ in range(3))
        asking.simple("BEGIN")
        asking.simple("DECLARE c CURSOR FOR SELECT relname FROM pg_class")
        asking.simple("FETCH 1 FROM c")
        running.send(message(b"Q", zero_ended("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b")))
        time.sleep(0.5)
        assert identities.revoke(entry.key_id)
        begun = time.monotonic()
        for client, told in ((asking, asking.simple("FETCH 1 FROM c")), (idle, idle.until()), (running, running.until())):
            fields = error_fields(told[0][1])
            assert (fields["S"], fields["C"], fields["D"]) == ("FATAL", "28P01", "lapwing code: unauthenticated")
            assert client.read() == (b"", b"")
        assert time.monotonic() - begun < 4


def test_a_statement_about_the_catalogue_asks_whether_the_key_is_good(wire: WireUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    identities = wire.server.app_state.identities
    monkeypatch.setattr("lapwing.interfaces.wire.listener.KEYS_SECONDS", 600.0)
    time.sleep(1.1)
    key, entry = identities.new_key("ada")
    with psycopg.connect(wire.dsn(password=key), autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert identities.revoke(entry.key_id)
        with pytest.raises(psycopg.errors.InvalidPassword):
            connection.execute("SELECT datname FROM pg_database LIMIT 1")
        assert connection.closed
