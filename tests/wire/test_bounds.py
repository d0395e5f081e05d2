"""What one analyst can make the wire do for others: answers about the catalogue are bounded, hold up nobody, and end when they are left."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from lapwing.interfaces.wire.messages import message, zero_ended
from lapwing.interfaces.wire.portals import PERSON_BYTES_MAX
from lapwing.interfaces.wire.shadow.link import ROWS_MAX
from tests.wire.raw import SYNC, RawClient, bind, describe, error_fields, execute, letters, parse
from tests.wire.world import WireUnderTest

GAP_SECONDS_MAX = 0.5
"""Some 20 ms are meant; a machine that does other things beside needs more."""
WIDE = ", ".join(f"{10 + number} AS c{number}" for number in range(40))
LONG_RUNNING = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"


@contextmanager
def gaps_of_the_loop(wire: WireUnderTest) -> Iterator[Callable[[], float]]:
    """The longest time that the worker's loop did nothing else."""
    longest, over = [0.0], threading.Event()

    async def watch() -> None:
        while not over.is_set():
            before = time.monotonic()
            await asyncio.sleep(0.002)
            longest[0] = max(longest[0], time.monotonic() - before)

    assert wire.server.client.portal is not None
    gc.collect()
    gc.freeze()  # else what all the other tests left behind is looked through, which holds up everybody
    watching = wire.server.client.portal.start_task_soon(watch)
    try:
        yield lambda: longest[0]
    finally:
        over.set()
        gc.unfreeze()
        watching.result(30)


def raw(wire: WireUnderTest) -> RawClient:
    """Ada, byte for byte."""
    return RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set)


def running_backends(wire: WireUnderTest) -> int:
    """How many statements of the wire run in the shadow now."""
    settings = wire.server.app_state.configuration.wire
    assert settings is not None
    with psycopg.connect(wire.cluster.dsn("postgres", role="postgres"), autocommit=True) as shadow:
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active' AND query LIKE '%%count%%series%%series%%'"
        return int((shadow.execute(query, (settings.role,)).fetchone() or (-1,))[0])


def wait_for(holds: Callable[[], bool], seconds: float) -> bool:
    """Whether it holds soon enough."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def refusal(told: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """The error among messages."""
    return error_fields(next(body for letter, body in told if letter == b"E"))


@pytest.mark.parametrize("rows", [160_000, ROWS_MAX + 1])
def test_a_large_answer_is_refused_and_holds_up_nobody(wire: WireUnderTest, rows: int) -> None:
    columns = WIDE if rows == 160_000 else "1"
    with raw(wire) as client, gaps_of_the_loop(wire) as longest:
        client.simple(f"DECLARE large CURSOR WITH HOLD FOR SELECT {columns} FROM generate_series(1, {rows})")
        told = refusal(client.simple("FETCH 1 FROM large"))
        assert (told["C"], told["D"]) == ("53400", "lapwing code: wire-limit")
        assert "LIMIT" in told["H"]
        assert letters(client.simple("SELECT 1")) == "TDCZ"
    assert longest() < GAP_SECONDS_MAX, longest()


def test_an_answer_within_the_bounds_comes_whole_and_holds_up_nobody(wire: WireUnderTest) -> None:
    with raw(wire) as client, gaps_of_the_loop(wire) as longest:
        for form in ("", "COPY ("):
            query = f"SELECT i, NULL AS n, i * 2 AS d FROM generate_series(1, {ROWS_MAX}) AS s (i)"
            told = client.simple(f"{form}{query}{') TO STDOUT' if form else ''}")
            rows = [body for letter, body in told if letter in (b"D", b"d")]
            assert len(rows) == ROWS_MAX
            if form:
                assert rows[-1] == f"{ROWS_MAX}\t\\N\t{2 * ROWS_MAX}\n".encode()
            else:
                assert rows[-1] == struct.pack("!HI5siI6s", 3, 5, b"50000", -1, 6, b"100000")
    assert longest() < GAP_SECONDS_MAX, longest()


def test_one_long_value_is_refused_before_it_is_read(wire: WireUnderTest) -> None:
    with raw(wire) as client:
        told = refusal(client.simple("SELECT string_agg('0123456789', '') FROM generate_series(1, 100000) a, generate_series(1, 10) b"))
        assert (told["C"], told["D"]) == ("53400", "lapwing code: wire-limit")
        assert letters(client.simple("SELECT 1")) == "TDCZ"


LONG_TEXTS = {
    "many words": "SELECT " + ", ".join(["1"] * 9_990),
    "too many words": "SELECT " + ", ".join(["1"] * 60_000),
    "brackets": "SELECT (" * 15_000,
}


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS.keys())
def test_a_long_text_holds_up_nobody(wire: WireUnderTest, text: str) -> None:
    found: list[float] = []
    for _ in range(5):  # the best of them: the machine may do other things beside
        with raw(wire) as client, gaps_of_the_loop(wire) as longest:
            client.simple(text)
        found.append(longest())
    assert min(found) < 0.06, found


def test_what_a_person_keeps_is_bounded_over_all_sessions_and_freed(wire: WireUnderTest) -> None:
    """Eight cursors of 6 MiB are too much, in whichever sessions they are; those that are closed do not count."""
    query = "SELECT repeated.s FROM generate_series(1, 30000), (SELECT string_agg('x', '') AS s FROM generate_series(1, 200)) AS repeated"

    def keep(client: RawClient, number: int) -> bool:
        client.simple(f"DECLARE c{number} CURSOR WITH HOLD FOR {query}")
        told = client.simple(f"FETCH 1 FROM c{number}")
        if letters(told) == "TDCZ":
            return True
        assert (refusal(told)["C"], refusal(told)["D"]) == ("53400", "lapwing code: wire-limit")
        assert "CLOSE" in refusal(told)["H"]
        return False

    with raw(wire) as first:
        with raw(wire) as second:
            kept = [keep(client, number) for number in range(4) for client in (first, second)]
            assert sum(kept) == PERSON_BYTES_MAX // (30_000 * 215)
            assert kept[0] and not kept[-1]
            assert letters(second.simple("CLOSE ALL")) == "CZ"
            assert keep(second, 10) and keep(first, 10)
            assert not all(keep(second, number) for number in range(11, 15))
        assert wait_for(lambda: keep(first, time.monotonic_ns()), 30), "what a session kept is free when it has ended"
        first.simple("CLOSE ALL")
        with raw(wire) as third:
            third.simple("BEGIN")
            for number in range(3):
                third.simple(f"DECLARE t{number} CURSOR FOR {query}")
                assert letters(third.simple(f"FETCH 1 FROM t{number}")) == "TDCZ"
            third.simple("COMMIT")
            assert [keep(first, number) for number in range(20, 24)] == [True] * 4


def test_statements_and_descriptions_are_bounded_too(wire: WireUnderTest) -> None:
    with raw(wire) as client:
        long = "SELECT 1 /* " + "x" * 200_000 + " */"
        client.send(b"".join(parse(long, f"s{number}") for number in range(400)) + SYNC)
        told = client.until()
        assert refusal(told)["D"] == "lapwing code: wire-limit"
        assert letters(told).count("1") < 100
    with raw(wire) as client:
        value = b"x" * 200_000
        text = "SELECT COUNT(*) FROM patients WHERE region IN (" + ", ".join(["$1"] * 1_000) + ")"
        client.send(parse(text, types=(25,)) + bind((value,)) + execute() + SYNC)
        assert refusal(client.until())["D"] == "lapwing code: wire-limit"


def test_what_is_described_is_sent_although_nobody_synchronises(wire: WireUnderTest) -> None:
    with raw(wire) as client:
        client.send(parse("SELECT " + ", ".join(f"1 AS {'n' * 50}{number}" for number in range(1_200))))
        client.send(describe() * 3)
        assert letters([client.read() for _ in range(5)]) == "1tTtT"


@pytest.mark.parametrize("how", ["cancelled", "over time", "closed", "closed with a word"])
def test_a_statement_that_is_left_ends_in_the_shadow_too(wire: WireUnderTest, how: str) -> None:
    for _ in range(6):
        with raw(wire) as client:
            if how == "over time":
                client.simple("SET statement_timeout = 400")
            client.send(message(b"Q", zero_ended(LONG_RUNNING)))
            assert how == "over time" or wait_for(lambda: running_backends(wire) > 0, 5)
            if how == "cancelled":
                with socket.create_connection(("127.0.0.1", wire.port)) as other:
                    other.sendall(struct.pack("!II", 16, 80_877_102) + client.key)
            if how in ("cancelled", "over time"):
                assert refusal(client.until())["C"] == "57014"
            elif how == "closed with a word":
                client.send(message(b"X"))
        assert wait_for(lambda: running_backends(wire) == 0, 3), "PostgreSQL itself would stop it after 10 s"
    with raw(wire) as client:
        assert letters(client.simple("SELECT 1")) == "TDCZ"
