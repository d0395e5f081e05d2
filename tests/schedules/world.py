"""One source with its analysts, clients that use it step by step, and what they saw.

Every statement a client sends, and every look at or move of the anchor, is a step at which the scheduler may let others go first. What a
client does and hears is written down as :mod:`tests.faults.history` says, and judged by :mod:`tests.faults.oracle`, plus what only the
order of events can show: nothing is permitted after the owner was told that it is closed, or before its charge is anchored.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg.sql

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.postgres.anchors import AnchorPoint, FileAnchors, Milestone
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request
from tests.faults.history import Event, What
from tests.faults.oracle import LedgerState, answer_digest, state_over, violations
from tests.ledger.cluster import APP_ROLE
from tests.ledger.support import pure_budget
from tests.schedules.scheduler import Client, Died
from tests.schedules.subject import Subject

ANALYSTS = ("ana", "bo")
UNKNOWN_OUTCOME = frozenset({"reply-lost", "ledger-unreachable", "anchor-unreachable"})
_numbers = itertools.count()
_TABLES = ("data_set", "analyst_group", "analyst", "worker", "charge", "entry", "proposal")
_here = threading.local()
"""Which client this thread is, if it is one."""


def step(label: str) -> None:
    """A step of the client whose thread this is; outside a schedule, nothing."""
    client: Client | None = getattr(_here, "client", None)
    if client is not None and not getattr(_here, "quiet", False):
        client.step(label)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without steps: while the anchor's file is locked, nobody else could go on."""
    before = getattr(_here, "quiet", False)
    _here.quiet = True
    try:
        yield
    finally:
        _here.quiet = before


class PacedConnection:
    """A connection of which every statement is a step, and whose reply can be lost."""

    def __init__(self, inner: Connection) -> None:
        self.inner = inner
        self.lose = ""
        """A part of the next statement whose reply is to be lost."""
        self.sent: list[tuple[str, Sequence[object]]] = []

    def ask(self, statement: str, parameters: Sequence[object] = (), *, again: bool) -> list[tuple[Any, ...]]:
        step(statement)
        self.sent.append((statement, list(parameters)))
        rows = self.inner.ask(statement, parameters, again=again)
        if self.lose and self.lose in statement:
            self.lose = ""
            if not again:
                raise LedgerError("reply-lost", "the connection broke before the reply came")
            step("sent again")
            return self.inner.ask(statement, parameters, again=True)
        return rows

    def look(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        step(statement)
        return self.inner.look(statement, parameters)

    def read(self, act: Callable[[Any], None]) -> None:
        self.inner.read(act)

    def close(self) -> None:
        """It belongs to the pool."""


@dataclass(frozen=True)
class PacedAnchors:
    """Anchors of which every use is a step."""

    inner: FileAnchors

    def newest(self, source_id: str) -> AnchorPoint | None:
        step("anchor read")
        return self.inner.newest(source_id)

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        return self.inner.milestones(source_id)

    def require_ready(self, source_id: str) -> None:
        self.inner.require_ready(source_id)

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        step("anchor read")
        return self.inner.known(source_id)

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        step("anchor moved")
        with _quiet():
            return self.inner.advance(point, holds=holds, override=override)


class Pool:
    """Connections to the database of a subject, one for each name, kept from one schedule to the next."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._connections: dict[str, Connection] = {}
        self.superuser = subject.cluster.superuser(subject.database)
        self.verifying = Connection(subject.dsn, schema_version=SCHEMA_VERSION)
        """For the shipped ``verify``, whatever the subject is."""

    def connection(self, name: str, *, role: str = APP_ROLE) -> Connection:
        if name not in self._connections:
            made: Connection = self.subject.module("postgres.connection").Connection(
                f"{self.subject.cluster.dsn(self.subject.database, role=role)} application_name={name}",
                schema_version=SCHEMA_VERSION,
                retry_seconds=20.0,
            )
            self._connections[name] = made
        return self._connections[name]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self.verifying.close()
        self.superuser.close()


@dataclass
class World:
    """A source of its own. Everything with an analyst or an owner in it goes through here, so that it is written down."""

    pool: Pool
    directory: Path
    budget: Budget = field(default_factory=lambda: pure_budget(10))
    ceiling: Budget | None = None
    sends_before_commit: bool = False
    """A mistake of whoever uses the ledger: the answer goes out first."""
    runs_before_reserve: bool = False
    """Likewise: the data is read first."""

    def __post_init__(self) -> None:
        subject = self.pool.subject
        self.source_id = f"source {next(_numbers)}"
        self.files = subject.module("postgres.anchors").FileAnchors(self.directory / "anchors")
        self.anchors = PacedAnchors(self.files)
        self.history: list[Event] = []
        self.found: list[str] = []
        """Violations that only the order of events shows."""
        self.closed_times, self.is_closed = 0, False
        self.permits: dict[str, tuple[PostgresLedger, Any]] = {}
        """Who holds a permit, by the name of the client."""
        ceiling = self.budget if self.ceiling is None else self.ceiling
        setup = self.pool.connection("setup")
        rows = subject.module("postgres.rows")
        [columns] = setup.ask(
            f"SELECT {rows.STATE_OF_OUTCOME} FROM lapwing.create_data_set(%s, %s, %s, %s, %s, 'owner', '', %s::text[])",
            [
                *(secrets.token_hex(16), self.source_id, f"files of {self.source_id}", budget_text(self.budget), budget_text(ceiling)),
                sorted(self.files.known(self.source_id)),
            ],
            again=False,
        )
        self.ledger_id: str = columns[0]
        for analyst in ANALYSTS:
            setup.ask("SELECT lapwing.set_analyst(%s, %s, NULL, false, NULL, NULL, NULL, 'admit')", [self.ledger_id, analyst], again=False)
        self.files.advance(rows.state_of(columns), holds=lambda point: True, override=True)

    def open(self, name: str, *, override: bool = False, lease_seconds: int = 900) -> PostgresLedger:
        """A new worker, on the connection of that name."""
        ledger: PostgresLedger = self.pool.subject.module("postgres.ledger").PostgresLedger(
            self.pool.subject.dsn,
            source_id=self.source_id,
            fingerprint=None,
            anchors=self.anchors,
            lease_seconds=lease_seconds,
            retry_seconds=20.0,
        )
        ledger._connection = PacedConnection(self.pool.connection(name))  # type: ignore[assignment]
        ledger._start(override_reason="restored" if override else None)
        return ledger

    def request(
        self, key: str, *, analyst: str = "ana", loss: int = 1, delta: int = 0, digest: str | None = None, pure: int | None = None
    ) -> Request:
        made: Request = self.pool.subject.module("protocol").Request(
            analyst=analyst,
            request_id=key,
            digest=f"plan of {key}" if digest is None else digest,
            cost=Cost(loss=loss, delta=delta, pure=pure),
            version=1,
            summary=f"SELECT '{key}'",
        )
        return made

    def client(self, program: Callable[[], None]) -> Callable[[Client], None]:
        """A program that acts as this client; it is done when it returns, or when it died."""

        def live(client: Client) -> None:
            _here.client = client
            program()

        return live

    def note(self, what: What, request: Request, *, client: int, charge_id: int = 0, answer: bytes | None = None, code: str = "") -> None:
        self.history.append(
            Event(
                what,
                self.source_id,
                request.analyst,
                request.request_id,
                request.digest,
                request.cost.loss,
                request.cost.delta,
                client=client,
                charge_id=charge_id,
                answer="" if answer is None else answer_digest(answer),
                code=code,
            )
        )

    def ask(self, ledger: PostgresLedger, request: Request, *, dies: str = "", fault: str = "") -> None:
        """One request, as a curator does it: reserve, run, commit, send; ``fault`` (``plain``, ``incident``) in the place of an answer."""
        client = threading.get_ident()

        def step_of_protocol(name: str) -> None:
            if name == dies:
                self.note(What.STOPPED, request, client=client, code=name)
                raise Died

        def run() -> bytes:
            self.note(What.RUNNING, request, client=client)
            self.note(What.RAN, request, client=client)
            return secrets.token_bytes(8)

        was_closed = self.closed_times if self.is_closed else None
        self.note(What.ASKED, request, client=client)
        answer = run() if self.runs_before_reserve else b""
        step_of_protocol("before reserve")
        try:
            outcome = ledger.reserve(request)
        except LapwingError as error:
            self.note(What.LOST if error.code in UNKNOWN_OUTCOME else What.REFUSED, request, client=client, code=error.code)
            return
        if was_closed is not None and self.is_closed and self.closed_times == was_closed:
            self.found.append("served while closed")
        if not isinstance(outcome, Permit):
            self.note(What.SENT, request, client=client, answer=outcome.payload)
            return
        self.note(What.PERMIT, request, client=client, charge_id=outcome.charge_id)
        self._require_anchored(outcome)
        step_of_protocol("after reserve")
        if not self.runs_before_reserve:
            answer = run()
        try:
            if fault:
                ledger.forfeit(outcome, incident=fault == "incident")
                self.note(What.FORFEITED, request, client=client, charge_id=outcome.charge_id)
                if fault == "incident":
                    self.closed_times, self.is_closed = self.closed_times + 1, True
                return
            if self.sends_before_commit:
                self.note(What.SENT, request, client=client, answer=answer)
                step("sent")
                step_of_protocol("before commit")
            ledger.commit(outcome, answer)
        except LapwingError as error:
            self.note(What.LOST, request, client=client, code=error.code)
            return
        step_of_protocol("after commit")
        if not self.sends_before_commit:
            self.note(What.SENT, request, client=client, answer=answer)

    def ask_many(self, ledger: PostgresLedger, requests: Sequence[Request]) -> None:
        """Several requests, reserved in one statement, then run, their answers stored in one statement, and sent."""
        client = threading.get_ident()
        for request in requests:
            self.note(What.ASKED, request, client=client)
        outcomes = ledger.reserve_many(requests)
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Permit):
                self.note(What.PERMIT, request, client=client, charge_id=outcome.charge_id)
                self._require_anchored(outcome)
        paid: list[tuple[Request, Permit, bytes]] = []
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, LapwingError):
                self.note(What.REFUSED, request, client=client, code=outcome.code)
            elif isinstance(outcome, Permit):
                self.note(What.RUNNING, request, client=client)
                paid.append((request, outcome, secrets.token_bytes(8)))
            else:
                self.note(What.SENT, request, client=client, answer=outcome.payload)
        stored = ledger.commit_many([(permit, answer) for _, permit, answer in paid]) if paid else ()
        for (request, _, answer), error in zip(paid, stored, strict=True):
            if error is None:
                self.note(What.SENT, request, client=client, answer=answer)
            else:
                self.note(What.LOST, request, client=client, code=error.code)

    def close(self, owner: PostgresLedger) -> None:
        """From here on, whoever begins to ask is refused."""
        owner.close("asked")
        self.closed_times, self.is_closed = self.closed_times + 1, True

    def reopen(self, owner: PostgresLedger) -> None:
        step("about to re-open")
        self.is_closed = False
        owner.reopen("asked")

    def send_again(self, ledger: PostgresLedger, part: str) -> None:
        """A copy of the newest such statement of that worker, which a server process had kept: nobody waits for what comes of it."""
        step(f"a copy of {part}")
        connection: Any = ledger._connection
        copies = [call for call in connection.sent if part in call[0]]
        if copies:
            self.pool.connection("copies").ask(*copies[-1], again=False)

    def declare_dead(self, ledger: PostgresLedger) -> None:
        """Its lease runs out."""
        step("declared dead")
        self.pool.superuser.execute(
            "UPDATE lapwing.worker SET lease_until = '2000-01-01' WHERE ended_at IS NULL AND epoch = %s", [ledger.epoch]
        )

    def ask_until_permit(self, ledger: PostgresLedger, request: Request) -> None:
        """Reserve and read, and nothing after that: what one does that dies then."""
        outcome = ledger.reserve(request)
        assert isinstance(outcome, Permit)
        for what in (What.PERMIT, What.RUNNING):
            self.note(what, request, client=threading.get_ident(), charge_id=outcome.charge_id)

    def keep(self) -> None:
        """Remember the rows of this source, as a backup does."""
        for table in _TABLES:
            self.pool.superuser.execute(f"DROP TABLE IF EXISTS kept_{table}".encode())
            statement = f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM lapwing.{table} WHERE ledger_id = %s"
            self.pool.superuser.execute(psycopg.sql.SQL(statement.replace("%s", "{}")).format(self.ledger_id))

    def put_back(self) -> None:
        """Put the remembered rows in the place of what is there: for this source, the database is an older one now."""
        step("an older state is put back")
        with self.pool.superuser.transaction():
            self.pool.superuser.execute("SET LOCAL session_replication_role = replica")
            for table in _TABLES:
                self.pool.superuser.execute(f"DELETE FROM lapwing.{table} WHERE ledger_id = %s".encode(), [self.ledger_id])
                self.pool.superuser.execute(f"INSERT INTO lapwing.{table} SELECT * FROM kept_{table}".encode())

    def judged(self) -> list[str]:
        """Everything that is wrong, after all clients are gone and the ledger was recovered: that is done twice."""
        self.pool.superuser.execute(
            "UPDATE lapwing.worker SET lease_until = '2000-01-01' WHERE ended_at IS NULL AND ledger_id = %s", [self.ledger_id]
        )
        first = self.open("judge")
        entries = first.state().entries
        first.disconnect()
        self.open("judge").disconnect()
        state = self.state()
        wrong = self.problems(state, settled=True)
        if state.entries != entries:
            wrong.append("recovery done twice changes something")
        return sorted({*self.found, *wrong})

    def state(self) -> LedgerState:
        """What the database has of this source."""
        anchors = FileAnchors(self.directory / "anchors")
        return state_over(self.pool.superuser, self.pool.verifying, self.source_id, anchors=anchors)

    def problems(self, state: LedgerState, *, settled: bool = False) -> list[str]:
        """What the oracle says to it."""
        return violations(self.history, state, settled=settled)

    def _require_anchored(self, permit: Permit) -> None:
        found = self.pool.superuser.execute(
            "SELECT entry_id FROM lapwing.entry WHERE ledger_id = %s AND charge_id = %s AND kind = 'reserve'",
            [self.ledger_id, permit.charge_id],
        ).fetchone()
        kept = self.files.newest(self.source_id)
        if found is not None and (kept is None or kept.entries < int(str(found[0]))):
            self.found.append("a permit before its anchor")
