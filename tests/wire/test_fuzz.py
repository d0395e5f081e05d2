"""Messages at random, in and out of order, whole and broken: nothing crashes, nothing is answered unpaid, and no table of the shadow is
ever looked at."""

from __future__ import annotations

import logging
import random
import struct
from collections import Counter

import psycopg
import pytest

from lapwing.interfaces.wire.messages import message, zero_ended
from tests.ledger.cluster import Cluster
from tests.support.sizes import size
from tests.wire.raw import FLUSH, SYNC, RawClient, bind, describe, error_fields, execute, parse
from tests.wire.world import WireUnderTest, wire_over

ASKS = [
    "SELECT COUNT(*) AS n FROM patients",
    'SELECT sex, COUNT(*) AS n FROM "patients" GROUP BY sex',
    "select count(*) as n from PUBLIC.Patients where smoker",
    "SELECT COUNT(*) AS n FROM patients WHERE birth_year > $1",
    "COPY (SELECT COUNT(*) AS n FROM patients) TO STDOUT",
    "DECLARE c CURSOR WITH HOLD FOR SELECT region, COUNT(*) AS n FROM patients GROUP BY region",
    "EXPLAIN SELECT COUNT(*) FROM visits",
]
OTHERS = [
    *(
        "SELECT 1",
        "SELECT relname FROM pg_class LIMIT 3",
        "SELECT $1::int + 1",
        "SHOW server_version",
        "SELECT 'visits'::regclass::text",
        "",
    ),
    *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "FETCH 2 FROM c", "CLOSE ALL", "DISCARD ALL", "DEALLOCATE ALL", "SET timezone = 'UTC'"),
    *("SET lapwing.intervals = on", "RESET ALL", "PREPARE k AS SELECT COUNT(*) AS n FROM patients", "EXECUTE k", "MOVE ALL FROM c"),
]
REFUSED = [
    *("SELECT * FROM visits", "TABLE visits", "COPY visits TO STDOUT", "SELECT query_to_xml('table visits', true, true, '')", "LISTEN a"),
    *(
        "SELECT count(*) FROM pg_class, visits",
        "SELECT 'a' 'b'",
        'SELECT * FROM U&"visits"',
        "DO $$x$$",
        "SELECT 1; TABLE visits",
        "SELECT $",
    ),
    *("SELECT * FROM ONLY public . visits", "WITH v AS (TABLE visits) SELECT count(*) FROM v", "SELECT lo_import('/etc/passwd')", "/*"),
]
STATEMENTS = ASKS * 2 + OTHERS * 3 + REFUSED
NAMES = ["", "", "a", "b", "c"]


def _random_message(chance: random.Random) -> bytes:
    text, name, other = chance.choice(STATEMENTS), chance.choice(NAMES), chance.choice(NAMES)
    formats = chance.choice([(), (), (0,), (1,), (0, 1), (7,)])
    values = chance.choice([(), (), (b"1980",), (None,), (b"\0\0\7\xbc",), (b"x" * 50, b"")])
    kinds = chance.choice([(), (), (23,), (25,), (0,), (1700,), (999_999,)])
    match chance.randrange(12):
        case 0 | 1:
            return message(b"Q", zero_ended(text))
        case 2 | 3:
            return parse(text, name, kinds)
        case 4 | 5:
            return bind(values, portal=name, statement=other, forms=chance.choice([(), (0,), (1,)]), formats=formats)
        case 6:
            return describe(chance.choice("SPX"), name)
        case 7 | 8:
            return execute(chance.choice([0, 0, 1, 2, -1]), name)
        case 9:
            return message(b"C", chance.choice([b"S", b"P", b"?"]) + zero_ended(name))
        case 10:
            return chance.choice([SYNC, FLUSH])
        case _:
            return _broken(chance, text)


def _broken(chance: random.Random, text: str) -> bytes:
    """A message with a body that is not its own."""
    letter = chance.choice([b"Q", b"P", b"B", b"D", b"E", b"C", b"F", b"d", b"c", b"f", b"S", b"H"])
    body = chance.choice([b"", b"\0", chance.randbytes(chance.randrange(40)), zero_ended(text)[:-1], zero_ended(text) + b"\xff\xff"])
    return message(letter, body)


def test_random_messages_crash_nothing_and_pay_for_every_answer(
    shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(17)
    with (
        wire_over(shared_cluster, tmp_path_factory.mktemp("fuzz"), session_share=1.0, day_share=1.0) as wire,
        caplog.at_level(logging.ERROR),
    ):
        entries, looked = _entries(wire), _looked(wire)
        seen = _fuzzed(wire, chance, size("random messages on the wire"))
        assert [record.message for record in caplog.records if record.name.startswith("lapwing")] == []
        assert seen["code internal"] == 0
        assert seen["ready"] > 20
        assert seen["rows"] > 20
        assert seen["rows of a table"] == 0
        assert len([code for code in seen if code.startswith("code ")]) > 8
        # Six questions, each asked again and again: six charges, and none is left open. Those with many rows first buy how much each adds.
        assert _entries(wire) - entries <= 2 * len(ASKS)
        assert _looked(wire) == looked


def _looked(wire: WireUnderTest) -> object:
    """How often a table of the shadow was read; keys are checked once, when they are made."""
    with psycopg.connect(wire.cluster.dsn(wire.server.data_set, role="postgres"), autocommit=True) as shadow:
        shadow.execute("SELECT pg_stat_force_next_flush()")
        return shadow.execute("SELECT coalesce(sum(seq_scan + coalesce(idx_scan, 0)), 0)::int FROM pg_stat_user_tables").fetchone()


def _fuzzed(wire: WireUnderTest, chance: random.Random, count: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    sent = 0
    while sent < count:
        with RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set) as client:
            for _ in range(chance.randrange(1, 80)):
                batch = [_random_message(chance) for _ in range(chance.randrange(1, 8))]
                sent += len(batch)
                client.send(b"".join(batch) + SYNC)
                if not _read(client, seen):
                    break  # what is not the protocol ended the session
    return seen


def _read(client: RawClient, seen: Counter[str]) -> bool:
    """Read until the server is ready once more; whether the session goes on."""
    client.socket.settimeout(10)
    waiting = True
    while waiting:
        letter, body = client.read()
        if letter == b"":
            return False
        if letter == b"Z":
            seen["ready"] += 1
            waiting = False
        elif letter == b"D":
            seen["rows"] += 1
        elif letter == b"E":
            fields = error_fields(body)
            seen[f"code {fields.get('D', 'of the shadow').removeprefix('lapwing code: ')}"] += 1
        elif letter == b"T":
            at = 2
            for _column in range(struct.unpack("!H", body[:2])[0]):
                end = body.index(b"\0", at)
                seen["rows of a table"] += struct.unpack("!I", body[end + 1 : end + 5])[0] >= 16_384
                at = end + 19
    return True


def _entries(wire: WireUnderTest) -> int:
    with wire.server.app_state.desk.served[wire.server.data_set].opened() as opened:
        return len(opened.history(limit=10_000))
