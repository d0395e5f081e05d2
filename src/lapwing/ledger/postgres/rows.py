"""Converts what the database's functions return into values of Lapwing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger.amounts import budget_value
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.postgres.anchors import AnchoredBlocks, AnchorPoint, BlockSums
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.protocol import Bought, Entry, EntryKind, NamedAnswer, StoredAnswer
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord, kind_text, name_in, named_range, stored_record
from lapwing.receipts import ReceiptStatement, statement_of_row

_TEXT = "::pg_catalog.text"
_AMOUNTS = (f"loss_spent{_TEXT}", f"delta_spent{_TEXT}", "closed", f"pure_spent{_TEXT}")
_SUMS = tuple(f"{what}_{amount}{_TEXT}" for what in ("blocks", "persons") for amount in ("loss", "delta", "pure"))
BLOCKS = ("blocks_every", "person_budget", "blocks_first", "blocks_last", *_SUMS)
"""Of these all are NULL in a data set without blocks of time."""
_COLUMNS = ("ledger_id", "source_id", "entries", "head", "budget", "ceiling", *_AMOUNTS, *BLOCKS)
STATE = ", ".join(_COLUMNS)
"""The columns of a state, from the table or from a function that returns its row."""
STATE_OF_OUTCOME = ", ".join(f"(state).{column}" for column in _COLUMNS)
"""The same, from a function that returns the row beside an outcome."""
ENTRY = f"entry_id, at, kind, analyst, charge_id, loss{_TEXT}, delta{_TEXT}, pure{_TEXT}, detail"


def state_of(row: Sequence[Any]) -> AnchorPoint:
    """The state from a row: after a change, or as found."""
    ledger_id, source_id, entries, head, budget, ceiling, loss, delta, closed, pure, *of_blocks = row
    return AnchorPoint(
        source_id=source_id,
        ledger_id=ledger_id,
        entries=entries,
        head=head,
        budget=_budget(budget),
        ceiling=_budget(ceiling),
        spent=cost_of(loss, delta, pure),
        closed=closed,
        blocks=_blocks_of(of_blocks),
    )


def state_of_texts(texts: Sequence[Any]) -> AnchorPoint:
    """The same, from ``lapwing.state_texts``."""
    ledger_id, source_id, entries, head, budget, ceiling, loss, delta, closed, pure, *of_blocks = texts
    return state_of((ledger_id, source_id, int(entries), head, budget, ceiling, loss, delta, closed == "true", pure, *of_blocks))


def _blocks_of(columns: Sequence[Any]) -> AnchoredBlocks | None:
    """What a state says of blocks of time; None of a data set without any."""
    every, person_budget, first, last, *sums = columns
    if every is None:
        return None
    return AnchoredBlocks(
        terms=BlockTerms(every, None if person_budget is None else _budget(person_budget).epsilon),
        hull=None if first is None else (int(first), int(last)),
        sums=BlockSums(cost_of(*sums[:3]), cost_of(*sums[3:])),
    )


def cost_of(loss: str, delta: str, pure: str | None) -> Cost:
    """A cost from its columns."""
    return Cost(loss=int(loss), delta=int(delta), pure=None if pure is None else int(pure))


def answer_of(charge_id: int, payload: bytes | None, payload_digest: str | None) -> StoredAnswer:
    """A stored answer, checked against the digest that was stored with it."""
    if payload is None or hashlib.sha256(payload).hexdigest() != payload_digest:
        raise LedgerError("ledger-damaged", "a stored answer is not the one that was committed")
    return StoredAnswer(charge_id=charge_id, payload=bytes(payload))


def first_of(connection: Connection, digest: str, *, ledger_id: str, analyst: str | None, request_id: str | None) -> StoredAnswer | None:
    """The answer that ``lapwing.find_answer`` finds, checked against its digest."""
    statement = "SELECT o_charge_id, o_payload, o_payload_digest FROM lapwing.find_answer(%s, %s, %s, %s)"
    [(charge_id, *answer)] = connection.ask(statement, [ledger_id, digest, analyst, request_id], again=True)
    return None if charge_id is None else answer_of(charge_id, *answer)


def entry_of(row: Sequence[Any]) -> Entry:
    """One row of the history."""
    entry_id, at, kind, analyst, charge_id, loss, delta, pure, detail = row
    try:
        known = EntryKind(kind)
    except ValueError as error:
        raise LedgerError("ledger-damaged", "the ledger holds an entry of an unknown kind") from error
    cost = cost_of(loss, delta, pure)
    return Entry(entry_id=entry_id, at=at, kind=known, analyst=analyst, charge_id=charge_id, cost=cost, detail=detail)


def statement_of(connection: Connection, *, source_id: str, ledger_id: str, charge_id: int) -> ReceiptStatement:
    """The receipt statement of a committed charge, from its rows; refuses any other charge (``receipt-missing``)."""
    rows = connection.ask(
        "SELECT analyst, request_id, digest, payload_digest, loss::pg_catalog.text, delta::pg_catalog.text, entry_id, chained, at"
        " FROM lapwing.committed(%s, %s::pg_catalog.int8)",
        [ledger_id, charge_id],
        again=True,
    )
    return statement_of_row(rows[0] if rows else None, source_id=source_id, ledger_id=ledger_id, charge_id=charge_id, amount=int)


def bought_of(
    connection: Connection,
    *,
    ledger_id: str,
    version: int,
    limit: int,
    analyst: str | None,
    kind: PurchaseKind | None = None,
    begins: str = "",
) -> tuple[Bought, ...]:
    """The newest committed charges of a version but those for blocks; with ``analyst``, not those of others unless they are shared.

    Nothing for an analyst who is not, or no longer, admitted: only analysts who see an answer listed here see it from a cache.
    """
    rows = connection.ask(
        "SELECT summary, loss::pg_catalog.text, delta::pg_catalog.text, pure::pg_catalog.text, digest, purchase"
        " FROM lapwing.bought(%s, %s::pg_catalog.int8, %s, %s::pg_catalog.int8)"
        " WHERE CASE WHEN purchase IS NULL THEN pg_catalog.starts_with(summary, %s) ELSE pg_catalog.starts_with(purchase, %s) END"
        " AND (%s::pg_catalog.text IS NULL OR EXISTS (SELECT FROM lapwing.share_of(%s, %s)))",
        [ledger_id, version, analyst, limit, begins, kind_text(kind), analyst, ledger_id, analyst],
        again=True,
    )
    return tuple(Bought(summary, cost_of(*amounts), digest, stored_record(purchase)) for summary, *amounts, digest, purchase in rows)


def named_of(
    connection: Connection, first: str, after: str, *, ledger_id: str, version: int, analyst: str | None
) -> tuple[NamedAnswer, ...]:
    """What was bought for blocks under names in a range, each checked against its digest; with ``analyst``, what that analyst may see."""
    rows = connection.ask(
        "SELECT begins, charge_id, payload, payload_digest FROM lapwing.named(%s, %s::pg_catalog.int8, %s, %s, %s)",
        [ledger_id, version, *named_range(first, after), analyst],
        again=True,
    )
    return tuple(NamedAnswer(name_in(begins), answer_of(*answer)) for begins, *answer in rows)


def purchase_of(connection: Connection, *, ledger_id: str, charge_id: int) -> PurchaseRecord | None:
    """What a charge bought, if the ledger recorded it."""
    [(text,)] = connection.ask("SELECT lapwing.purchase_of(%s, %s::pg_catalog.int8)", [ledger_id, charge_id], again=True)
    return stored_record(text)


def digest_of(*fields: str | None) -> str:
    """The same as ``lapwing.digest`` in the database: SHA-256 of the fields as a JSON list, whose text is different for each list."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def with_later(fields: Sequence[str | None], *later: str | None) -> list[str | None]:
    """The same as ``lapwing.with_later`` in the database: appends the fields of later versions, if any of them is set."""
    return [*fields, *later] if any(field is not None for field in later) else [*fields]


def later_of_charge(pure: str | None, purchase: str | None) -> tuple[str | None, ...]:
    """The same as ``lapwing.later_of_charge`` in the database."""
    return (pure,) if purchase is None else (pure, purchase)


def later_of_entry(pure: str | None, blocks: str | None) -> tuple[str | None, ...]:
    """The same as ``lapwing.later_of_entry`` in the database."""
    return (pure,) if blocks is None else (pure, blocks)


@lru_cache(maxsize=1000)
def _budget(text: str) -> Budget:
    return budget_value(text)
