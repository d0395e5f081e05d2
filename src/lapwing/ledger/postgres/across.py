"""Batches requests to several data sets of one database into one statement.

A process that uses several data sets of a database, with one role, sends its requests to them together: see ``sql/batch.sql``. The database
leaves out a data set whose requests do not all certainly fit, or that is locked, damaged or unknown; the ledger of that data set then sends
them alone. So no data set is refused, charged or delayed because of another.

Batches have their own connections: a wait on a ledger's connection affects only its data set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lapwing.errors import LedgerError
from lapwing.ledger.postgres.anchors import AnchorPoint
from lapwing.ledger.postgres.batch import REQUESTS_MAX
from lapwing.ledger.postgres.batcher import Batcher
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION

BYTES_MAX = 2**22
"""Maximum size of batched answers: larger ones are sent alone, to avoid long waits and large copies."""
_TROUBLE_OF_ALL = frozenset({"ledger-unreachable", "ledger-not-durable"})
"""Codes that affect every data set: a statement sent alone would fail in the same way."""
_RESERVE = (
    "CALL lapwing.reserve_across_durably(%s::pg_catalog.text[], %s::pg_catalog.text[], %s::pg_catalog.int8[], %s::pg_catalog.text[],"
    " %s::pg_catalog.text[], %s::pg_catalog.text[], %s::pg_catalog.text[], %s::pg_catalog.text[], %s::pg_catalog.int8[],"
    " %s::pg_catalog.text[], %s::pg_catalog.numeric[], %s::pg_catalog.numeric[], %s::pg_catalog.numeric[],"
    " %s::pg_catalog.text[], NULL, NULL)"
)
_COMMIT = (
    "CALL lapwing.commit_across_durably(%s::pg_catalog.text[], %s::pg_catalog.text[], %s::pg_catalog.int8[], %s::pg_catalog.text[],"
    " %s::pg_catalog.text[], %s::pg_catalog.int8[], %s::pg_catalog.text[], %s::pg_catalog.numeric[], %s::pg_catalog.numeric[],"
    " %s::pg_catalog.numeric[], %b::pg_catalog.bytea[], NULL, NULL)"
)
"""Both may be sent again after a lost reply: they skip what is stored already, which the ledger then finds alone by its nonce."""


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """The requests of one worker to one data set, of which it knows this state. Each row of the columns is a request or an answer."""

    ledger_id: str
    epoch: str
    known: AnchorPoint
    columns: Sequence[Sequence[object]]
    payload_bytes: int = 0

    @property
    def rows(self) -> int:
        return len(self.columns[0])

    @property
    def weight(self) -> int:
        """Its share of ``BYTES_MAX``, and of the maximum number of requests in a statement."""
        return max(self.payload_bytes, self.rows * (BYTES_MAX // REQUESTS_MAX))

    def whole_columns(self) -> list[list[object]]:
        same: tuple[object, ...] = (self.ledger_id, self.epoch, self.known.entries, self.known.head)
        return [[value] * self.rows for value in same] + [list(column) for column in self.columns]


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """The database's decision on every row of a part."""

    marks: Sequence[Any]
    """For each row: the number of its charge, or whether its answer is stored."""
    state: Sequence[Any]
    """The resulting state, as texts."""


class CrossDataSetBatch:
    """One kind of statement over several data sets; requests that arrive while one is running wait for the next, which batches them."""

    def __init__(self, statement: str, dsn: str, retry_seconds: float) -> None:
        self._statement = statement
        self._connection = Connection(dsn, schema_version=SCHEMA_VERSION, retry_seconds=retry_seconds)
        self._parts: Batcher[LedgerPart, PartOutcome | None] = Batcher(
            self._send, count_max=REQUESTS_MAX, weight=lambda part: part.weight, weight_max=BYTES_MAX
        )

    def decided(self, part: LedgerPart) -> PartOutcome | None:
        """The decision from a batch; None if the part must be sent alone, with the same nonces."""
        if part.payload_bytes > BYTES_MAX:
            return None
        try:
            return self._parts.outcome(part)
        except LedgerError as error:
            if error.code in _TROUBLE_OF_ALL:
                raise
            return None

    def close(self) -> None:
        self._connection.close()

    def _send(self, parts: Sequence[LedgerPart]) -> list[PartOutcome | None]:
        columns = [[value for one in several for value in one] for several in zip(*(part.whole_columns() for part in parts), strict=True)]
        [(marks, states)] = self._connection.ask(self._statement, columns, again=True)
        if not states:
            return [None] * len(parts)
        of_ledger = {state[0]: state for state in states}
        results: list[PartOutcome | None] = []
        begin = 0
        for part in parts:
            mine = marks[begin : begin + part.rows]
            begin += part.rows
            state = of_ledger.get(part.ledger_id)
            results.append(None if state is None or not all(mine) else PartOutcome(mine, state))
        return results


@dataclass(slots=True, eq=False)
class Crossing:
    """Both batches for one database, shared by all its ledgers in this process."""

    reservations: CrossDataSetBatch
    answers: CrossDataSetBatch
    uses: int = 0


Database = tuple[str, float]
"""The connection string, and for how long to retry a lost connection."""
_gate = Lock()
_crossings: dict[Database, Crossing] = {}
_of_parents: list[object] = []
"""Objects inherited across a fork, kept so that this process never closes what belongs to its parent."""


def begin_use(database: Database) -> None:
    """Register that this process uses a ledger of this database."""
    with _gate:
        crossing = _crossings.get(database)
        if crossing is None:
            crossing = _crossings[database] = Crossing(CrossDataSetBatch(_RESERVE, *database), CrossDataSetBatch(_COMMIT, *database))
        crossing.uses += 1


def end_use(database: Database) -> None:
    """Register that a use has ended; the last one closes the connections."""
    with _gate:
        crossing = _crossings.get(database)
        if crossing is None:
            return
        crossing.uses -= 1
        if crossing.uses > 0:
            return
        del _crossings[database]
    crossing.reservations.close()
    crossing.answers.close()


def crossing_of(database: Database) -> Crossing | None:
    """The batcher of requests to this database; None while only one of its ledgers is in use."""
    crossing = _crossings.get(database)
    return None if crossing is None or crossing.uses < 2 else crossing


def _begin_anew() -> None:
    """In a forked child: start with no ledger in use, and without the parent's threads."""
    global _gate, _crossings
    _of_parents.append(_crossings)
    _gate, _crossings = Lock(), {}


os.register_at_fork(after_in_child=_begin_anew)
