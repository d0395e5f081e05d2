"""Analysts who ask servers at once, and go on whatever breaks: a request has a name and is sent again, to any replica, until it is decided.

What each of them asked and got is written down, to be compared with the ledger.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import psycopg

from lapwing.asking.answer_bytes import MEDIA_TYPE, unpacked
from tests.server.fleet import Fleet, Replica

REPLY_SECONDS = 60.0
UNDECIDED_SECONDS = 240.0
"""Nobody waits as long for a decision, whatever was killed meanwhile."""
PAUSE_SECONDS = 0.2
FINAL = frozenset({"budget-exceeded", "analyst-budget", "request-forfeited", "not-answered-before"})
"""What ends a request without an answer. Anything else that is refused is not expected here."""


PASSING = frozenset({0, 202, 503})
"""Statuses of what passes by itself; 0 is a connection that broke."""
WIRE_PASSING = frozenset({"08", "53", "57", "58"})
"""Classes of SQLSTATE of what passes by itself: connections, resources, an operator's intervention, faults outside."""


class Kind(StrEnum):
    """What an analyst does."""

    NEW = "new question"
    CROWDED = "question that others ask at the same time"
    REPEATED = "question that was asked before"
    AGAIN = "request sent again"
    REPLAY = "replay"
    EXPLAIN = "explain"


WEIGHTS = {Kind.NEW: 40, Kind.CROWDED: 8, Kind.REPEATED: 25, Kind.AGAIN: 10, Kind.REPLAY: 7, Kind.EXPLAIN: 10}


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement with a price, of one data set, by one analyst under one name."""

    analyst: str
    data_set: str
    sql: str
    epsilon: str
    key: str


@dataclass(frozen=True, slots=True)
class Got:
    """What came of it: an answer (by its charge and the digest of the bytes in the ledger), or the code of a refusal."""

    asked: Asked
    kind: Kind
    code: str = ""
    charge_id: int = 0
    stored: str = ""
    free: bool = False
    seconds: float = 0.0
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Read:
    """What an analyst on the wire asked of the first data set, and the rows of the answer."""

    analyst: str
    sql: str
    rows: list[tuple[object, ...]]


@dataclass
class Crowd:
    """Threads that ask until they are told to stop."""

    fleet: Fleet
    analysts: Sequence[str]
    epsilons: Sequence[str]
    """What one statement costs, by data set."""
    seed: int = 0
    got: list[Got] = field(default_factory=list)
    read: list[Read] = field(default_factory=list)
    troubles: Counter[str] = field(default_factory=Counter)
    """What happened on the way to a decision: broken connections, 503, ..."""
    surprises: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._threads = [threading.Thread(target=self._live, args=(number, name)) for number, name in enumerate(self.analysts)]
        self._threads += [threading.Thread(target=self._live_on_the_wire, args=(name,)) for name in self.fleet.on_the_wire]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Let everybody come to the decision of the last request."""
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _live(self, number: int, name: str) -> None:
        analyst = Analyst(self, name, random.Random(1000 * self.seed + number))
        while not self.stop.is_set():
            analyst.act()
        analyst.close()

    def _live_on_the_wire(self, name: str) -> None:
        """Ask new questions only. A request has no name there: what breaks off is asked again as a question, free if it was answered."""
        dice = random.Random(f"{self.seed} {name}")
        line: psycopg.Connection[tuple[object, ...]] | None = None
        while not self.stop.is_set():
            sql, begun = self.new_statement(), time.monotonic()
            while True:
                try:
                    line = line or self._wire_line(name, dice.choice(self.fleet.replicas))
                    self.read.append(Read(name, sql, line.execute(sql.encode()).fetchall()))
                    break
                except psycopg.Error as error:
                    self._wire_trouble(error)
                    if line is not None:
                        line.close()
                    line = None
                if time.monotonic() > begun + UNDECIDED_SECONDS:
                    self.surprises["wire: undecided"] += 1
                    break
                time.sleep(PAUSE_SECONDS * (0.5 + dice.random()))
        if line is not None:
            line.close()

    def _wire_line(self, name: str, replica: Replica) -> psycopg.Connection[tuple[object, ...]]:
        where = f"host=127.0.0.1 port={replica.wire_port} dbname={self.fleet.names[0]} user={name} connect_timeout=20"
        made = psycopg.connect(where, password=self.fleet.keys[name], autocommit=True)
        made.execute(f"SET lapwing.epsilon = {self.epsilons[0]}".encode())
        return made

    def _wire_trouble(self, error: psycopg.Error) -> None:
        said = error.diag.message_detail or type(error).__name__
        self.troubles[f"wire: {error.sqlstate or 'no SQLSTATE'} {said[:60]}"] += 1
        if error.sqlstate is not None and error.sqlstate[:2] not in WIRE_PASSING:
            self.surprises[f"wire: {error.sqlstate} {said[:60]}"] += 1

    def new_statement(self) -> str:
        """One that nobody has asked."""
        return self.statement(next(self._numbers))

    def statement(self, number: int) -> str:
        """The statement of this number."""
        if number % 4 == 0:  # of which units have many rows: a histogram of what they add is bought first
            return f"SELECT SUM(minutes) AS m FROM visits WHERE minutes + {number} > 5 + {number}"
        by = ("region", "sex")[number % 2]
        return f"SELECT {by}, COUNT(*) AS n FROM patients WHERE birth_year + {number} > 1950 + {number} GROUP BY {by}"


class Analyst:
    """One of the crowd, with a connection to each replica."""

    def __init__(self, crowd: Crowd, name: str, dice: random.Random) -> None:
        self.crowd, self.name, self.dice = crowd, name, dice
        self._headers = {"Authorization": f"Bearer {crowd.fleet.keys[name]}", "Content-Type": "application/json"}
        self._lines: dict[str, http.client.HTTPConnection] = {}

    def close(self) -> None:
        """Hang up."""
        for line in self._lines.values():
            line.close()

    def act(self) -> None:
        """Do one thing, by chance."""
        kind = self.dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        place = self.dice.choices(range(len(self.crowd.epsilons)), [4, 1][: len(self.crowd.epsilons)])[0]
        data_set, epsilon = self.crowd.fleet.names[place], self.crowd.epsilons[place]
        answered = [one for one in self._some() if one.charge_id]
        sql = self.crowd.new_statement()
        if kind in (Kind.REPEATED, Kind.REPLAY) and answered:
            before = self.dice.choice(answered).asked
            data_set, epsilon, sql = before.data_set, before.epsilon, before.sql
        if kind is Kind.CROWDED:
            sql = self.crowd.statement(10_000_000 + int(time.monotonic() - self.crowd.fleet.begun))
        asked = Asked(self.name, data_set, sql, epsilon, secrets.token_hex(12))
        own = [one for one in answered if one.asked.analyst == self.name]
        if kind is Kind.AGAIN and own:
            asked = self.dice.choice(own).asked
        if kind is Kind.EXPLAIN:
            self._explain(asked)
        else:
            self.crowd.got.append(self.ask(asked, kind))

    def _some(self) -> list[Got]:
        """Some of what was got by anybody, newest first."""
        newest = self.crowd.got[-400:]
        return self.dice.sample(newest, min(len(newest), 60))

    def _explain(self, asked: Asked) -> None:
        body = {"sql": asked.sql, "epsilon": asked.epsilon}
        begun = time.monotonic()
        while time.monotonic() < begun + UNDECIDED_SECONDS:
            status, _, content = self._send(f"/v1/data-sets/{asked.data_set}/explain", body, {})
            if status == 200:
                return
            self._trouble(status, content)
            if status not in PASSING:
                return
        self.crowd.surprises["explain: undecided"] += 1

    def rows_again(self, data_set: str, sql: str, epsilon: str) -> list[tuple[object, ...]] | None:
        """What the ledger has of a question, free; None where it has nothing."""
        begun = time.monotonic()
        while time.monotonic() < begun + UNDECIDED_SECONDS:
            body = {"sql": sql, "epsilon": epsilon}
            status, _, content = self._send(f"/v1/data-sets/{data_set}/replay", body, {"Accept": MEDIA_TYPE})
            if status == 200:
                return [tuple(row.values()) for row in unpacked(content).table.to_pylist()]
            if status not in PASSING:
                return None
            time.sleep(PAUSE_SECONDS)
        return None

    def ask(self, asked: Asked, kind: Kind) -> Got:
        """Ask until it is decided."""
        where = "replay" if kind is Kind.REPLAY else "ask"
        headers = {"Accept": MEDIA_TYPE} | ({} if kind is Kind.REPLAY else {"Idempotency-Key": asked.key})
        begun, attempts = time.monotonic(), 0
        while time.monotonic() < begun + UNDECIDED_SECONDS:
            attempts += 1
            status, _, content = self._send(
                f"/v1/data-sets/{asked.data_set}/{where}", {"sql": asked.sql, "epsilon": asked.epsilon}, headers
            )
            took = time.monotonic() - begun
            if status == 200:
                answer = unpacked(content)
                assert answer.receipt is not None and answer.stored is not None
                stored = hashlib.sha256(answer.stored).hexdigest()
                return Got(asked, kind, "", answer.receipt.statement.charge_id, stored, answer.cost.free, took, attempts)
            code = self._trouble(status, content)
            if status not in PASSING:
                return Got(asked, kind, code, seconds=took, attempts=attempts)
        self.crowd.surprises[f"{kind}: undecided"] += 1
        return Got(asked, kind, "undecided", seconds=UNDECIDED_SECONDS, attempts=attempts)

    def _trouble(self, status: int, content: bytes) -> str:
        """The code of what is no answer; after what passes by itself, a pause."""
        code = "connection broken" if status == 0 else "not yet (202)" if status == 202 else str(json.loads(content).get("code", status))
        if code in FINAL:
            return code
        self.crowd.troubles[code] += 1
        if status not in PASSING:
            self.crowd.surprises[f"{status} {code}"] += 1
        time.sleep(PAUSE_SECONDS * (0.5 + self.dice.random()))
        return code

    def _send(self, path: str, body: object, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and content; 0 where the connection broke."""
        replica: Replica = self.dice.choice(self.crowd.fleet.replicas)
        line = self._lines.get(replica.url)
        if line is None:
            line = self._lines[replica.url] = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=REPLY_SECONDS)
        try:
            line.request("POST", path, body=json.dumps(body), headers={**self._headers, **headers})
            reply = line.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read()
        except (OSError, http.client.HTTPException):
            line.close()
            del self._lines[replica.url]
            return 0, {}, b""
