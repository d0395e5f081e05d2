"""A question that is broken off says what it is charged, at once and later; and questions that run together do not pass a share."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path

import psycopg
import pytest

from lapwing.interfaces.http.release_schedule import PublicMoments
from lapwing.interfaces.wire.messages import message, zero_ended
from tests.ledger.cluster import Cluster
from tests.wire.raw import Message, RawClient, error_fields, letters
from tests.wire.world import WireUnderTest, wire_over


def _client(wire: WireUnderTest) -> RawClient:
    return RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set)


def _answers_leave_after(wire: WireUnderTest, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """They are charged before that."""
    monkeypatch.setattr(wire.server.app_state.desk.served[wire.server.data_set], "moments", PublicMoments(seconds, True, fixed=True))


def _notices(told: list[Message]) -> list[str]:
    return [error_fields(body)["M"] for letter, body in told if letter == b"N"]


@pytest.mark.parametrize("how", ["cancelled", "over time"])
def test_whoever_breaks_off_hears_of_the_charge_and_of_what_came_of_it(
    wire: WireUnderTest, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    _answers_leave_after(wire, monkeypatch, 3.0)
    year = 1941 if how == "cancelled" else 1942
    question = f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {year}"
    before = wire.spent()
    with _client(wire) as client:
        if how == "over time":
            client.simple("SET statement_timeout = 1500")
        client.send(message(b"Q", zero_ended(question)))
        if how == "cancelled":
            time.sleep(1.5)
            with socket.create_connection(("127.0.0.1", wire.port)) as other:
                other.sendall(struct.pack("!II", 16, 80_877_102) + client.key)
        told = client.until()
        assert letters(told) == "EZ"
        fields = error_fields(told[0][1])
        assert fields["C"] == "57014"
        assert "it is charged (charge " in fields["H"]
        spent = wire.spent()
        assert spent > before
        (continued,) = _notices(client.simple("SELECT 1"))
        assert "continues" in continued and "it is charged" in continued
        time.sleep(2.5)
        (outcome,) = _notices(client.simple("SELECT 1"))
        assert "it is answered: cost epsilon" in outcome
        assert _notices(client.simple("SELECT 1")) == []
        again = client.simple(question)
        assert letters(again) == "NTDCZ"
        assert "free" in _notices(again)[0]
        assert wire.spent() == spent


def test_what_is_broken_off_before_its_charge_is_not_charged(wire: WireUnderTest) -> None:
    before = wire.spent()
    with _client(wire) as client:
        client.simple("SET statement_timeout = 1")
        for year in range(1943, 1948):
            told = client.simple(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {year}")
            assert error_fields(told[-2][1])["H"] == "nothing was charged"
        time.sleep(1.5)
        assert wire.spent() == before
        client.simple("SET statement_timeout = 0")
        assert letters(client.simple("SELECT 1")).lstrip("N") == "TDCZ"


def test_questions_that_run_together_do_not_pass_the_share_of_a_day(
    shared_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wire_over(shared_cluster, tmp_path, session_share=1.0, day_share=0.05) as wire:
        _answers_leave_after(wire, monkeypatch, 2.0)
        before, outcomes = wire.spent(), []

        def ask(connection: psycopg.Connection, year: int) -> None:
            try:
                connection.execute(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {year}")
                outcomes.append("answered")
            except psycopg.errors.ConfigurationLimitExceeded as error:
                outcomes.append(str(error.diag.message_detail))

        connections = [wire.connect() for _ in range(12)]
        for connection in connections:
            connection.execute("SET lapwing.epsilon = 20")
        asking = [threading.Thread(target=ask, args=(one, 1940 + number)) for number, one in enumerate(connections)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join(60)
        for connection in connections:
            connection.close()
        assert set(outcomes) == {"answered", "lapwing code: wire-limit"}
        assert 0.02 < wire.spent() - before <= 0.05
