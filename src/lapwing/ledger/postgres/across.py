"""What waits for several data sets of one database, in one statement.

A process that uses several data sets of a database, with one role, sends what is asked of them together: see ``sql/batch.sql``. A data set
of which not all certainly fits, or that is locked by others, damaged or unknown, is left out by the database, and its own ledger asks for
it alone. So no data set is refused, charged or kept waiting for what another is.

The connections are of their own: a wait on a ledger's connection affects its data set alone.
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
"""Maximum size of batched answers: larger ones are sent alone, so that others do not wait long and large copies are avoided."""
_TROUBLE_OF_ALL = frozenset({"ledger-unreachable", "ledger-not-durable"})
"""Asked alone, it would be the same again."""
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
"""Both may be sent again after a lost reply: what is there already is left out, and the ledger that asks alone finds it by its nonce."""


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """What is asked of one data set by one worker, which knows of this state of it. A row of the columns is a request, or an answer."""

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
        """Its share of ``BYTES_MAX``, and of as many requests as there may be in a statement."""
        return max(self.payload_bytes, self.rows * (BYTES_MAX // REQUESTS_MAX))

    def whole_columns(self) -> list[list[object]]:
        same: tuple[object, ...] = (self.ledger_id, self.epoch, self.known.entries, self.known.head)
        return [[value] * self.rows for value in same] + [list(column) for column in self.columns]


@dataclass(frozen=True, slots=True)
class PartOutcome:
    """What the database decided on a part, all of it."""

    marks: Sequence[Any]
    """Of each row: the number of its charge, or that its answer is stored."""
    state: Sequence[Any]
    """The state it led to, as texts."""


class CrossDataSetBatch:
    """One kind of statement over several data sets; threads that ask meanwhile wait and go together."""

    def __init__(self, statement: str, dsn: str, retry_seconds: float) -> None:
        self._statement = statement
        self._connection = Connection(dsn, schema_version=SCHEMA_VERSION, retry_seconds=retry_seconds)
        self._parts: Batcher[LedgerPart, PartOutcome | None] = Batcher(
            self._send, count_max=REQUESTS_MAX, weight=lambda part: part.weight, weight_max=BYTES_MAX
        )

    def decided(self, part: LedgerPart) -> PartOutcome | None:
        """What was decided together with others; None if it is to be asked alone, with the same nonces."""
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
    """Both kinds, of all uses of one database in this process."""

    reservations: CrossDataSetBatch
    answers: CrossDataSetBatch
    uses: int = 0


Database = tuple[str, float]
"""The connection string, and for how long a lost connection is tried again."""
_gate = Lock()
_crossings: dict[Database, Crossing] = {}
_of_parents: list[object] = []
"""Inherited over a fork: kept, so that this process never closes what belongs to its parent."""


def begin_use(database: Database) -> None:
    """A ledger of this database is used in this process."""
    with _gate:
        crossing = _crossings.get(database)
        if crossing is None:
            crossing = _crossings[database] = Crossing(CrossDataSetBatch(_RESERVE, *database), CrossDataSetBatch(_COMMIT, *database))
        crossing.uses += 1


def end_use(database: Database) -> None:
    """And no longer. The last one ends the connections."""
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
    """In a forked child: no ledger is used here yet, and threads of the parent are not here."""
    global _gate, _crossings
    _of_parents.append(_crossings)
    _gate, _crossings = Lock(), {}


os.register_at_fork(after_in_child=_begin_anew)
