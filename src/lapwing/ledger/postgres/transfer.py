"""Moves a local ledger into PostgreSQL, without losing a charge.

The local ledger is closed first, so that nothing more is charged to it. Then all its charges are charged again in the database through the
functions of the protocol, answers included, in one transaction: all of them or none. The sums are compared inside that transaction. A
failure at any point leaves either only the closed local ledger (move again) or both with the same charges, of which only the one in the
database is open.
"""

from __future__ import annotations

import secrets
from dataclasses import astuple
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.amounts import budget_text, lost_between, ranges_text
from lapwing.ledger.block_balances import BlockSpending, BlockTerms
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.rows import ON_SERVER, LedgerState, PaidRequest
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.anchors import AnchorPoint, Anchors
from lapwing.ledger.postgres.blocks import SPENDING, cap_text, charged_text, spending_of, step_text
from lapwing.ledger.postgres.connection import require_extra, right_missing, without_password
from lapwing.ledger.postgres.ledger import OWNER, PostgresLedger
from lapwing.ledger.postgres.outcomes import registered
from lapwing.ledger.postgres.overview import role_to_decide
from lapwing.ledger.postgres.routines import SEARCH_PATH
from lapwing.ledger.protocol import State
from lapwing.ledger.purchases import stored_text

if TYPE_CHECKING:
    import psycopg

_RESERVE = (
    "SELECT outcome, o_charge_id FROM lapwing.reserve(%s, %s, %s, %s, %s, %s, %s, %s, %s::pg_catalog.numeric,"
    " %s::pg_catalog.numeric, %s::pg_catalog.numeric, 0, '', %s, %s)"
)


def move(
    local: LocalLedger, dsn: str, *, source_id: str, source_fingerprint: str, anchors: Anchors, by: str = OWNER, was_closed: bool
) -> PostgresLedger:
    """Move ``local`` into the database of ``dsn`` and open it there.

    Admits every analyst who ever paid, without individual limits. ``was_closed`` says whether the data set was closed to analysts
    before the move, and stays so. (After a failed move this is unknown: then pass True, and re-open the data set.)
    """
    require_extra()
    import psycopg

    if anchors.newest(source_id) is not None:
        raise registered([source_id])
    role = role_to_decide(dsn)
    if role is not None:  # before the local ledger is closed for good
        raise right_missing(role)
    state, paid = local.moved_out(f"{ON_SERVER}, {without_password(dsn)}")
    blocks: BlockSpending | None = local.blocks()
    try:
        with psycopg.connect(dsn, prepare_threshold=None) as connection:
            connection.execute(f"SET LOCAL search_path = {SEARCH_PATH}".encode())
            names = sorted(anchors.known(source_id))
            moved = _copied(connection, state, paid, blocks, source_id, source_fingerprint, by, was_closed, names)
    except psycopg.Error as error:
        raise LedgerError(
            "ledger-unreachable", "the ledger could not be copied; nothing was written", hint="see the server's log"
        ) from error
    anchors.advance(moved, holds=lambda point: True, override=True)
    return PostgresLedger.open(dsn, source_id=source_id, source_fingerprint=source_fingerprint, anchors=anchors)


def _copied(
    connection: psycopg.Connection[tuple[Any, ...]],
    state: LedgerState,
    paid: tuple[PaidRequest, ...],
    blocks: BlockSpending | None,
    source_id: str,
    fingerprint: str,
    by: str,
    was_closed: bool,
    anchor_names: list[str],
) -> AnchorPoint:
    ledger_id, epoch = secrets.token_hex(16), secrets.token_hex(16)

    def call(statement: str, *parameters: object) -> tuple[Any, ...]:
        row = connection.execute(statement.encode(), parameters).fetchone()
        assert row is not None
        return row

    outcome, known = call(
        "SELECT outcome, known FROM lapwing.create_data_set(%s, %s, %s, %s, %s, %s, '', %s::pg_catalog.text[])",
        ledger_id,
        source_id,
        fingerprint,
        budget_text(state.budget),
        budget_text(state.ceiling),
        by,
        anchor_names,
    )
    if outcome != "done":
        raise registered(known)
    call("SELECT lapwing.record(%s, 'override', %s)", ledger_id, f"moved from the local ledger {state.ledger_id}, head {state.head}")
    for analyst in sorted({one.request.analyst for one in paid}):
        call("SELECT lapwing.set_analyst(%s, %s, NULL, false, NULL, NULL, NULL, %s)", ledger_id, analyst, f"admit, by {by}: moved")
    call("SELECT lapwing.register_worker(%s, %s, 'move', '', '', 0, '', 3600, '{}', %s::pg_catalog.text[])", ledger_id, epoch, anchor_names)
    terms = (None, None) if blocks is None else (blocks.terms.every, cap_text(blocks.terms, state.budget))
    undeclared, charged = blocks, Cost.zero()
    for one in (*paid, None):
        if undeclared is not None and (one is None or one.request.ranges):  # what comes before was charged before there were blocks
            statement = (
                "SELECT outcome FROM lapwing.declare_blocks(%s, %s, %s, NULL, %s::pg_catalog.numeric, %s::pg_catalog.numeric,"
                " %s::pg_catalog.numeric, %s)"
            )
            if call(statement, ledger_id, *terms, *astuple(charged), f"{step_text(None, undeclared.terms)}: moved") != ("done",):
                raise _differs()
            undeclared = None
        if one is None:
            break
        nonce = secrets.token_hex(16)
        request, cost = one.request, one.request.cost
        key = (request.analyst, request.request_id, request.digest, request.version, request.summary, *astuple(cost))
        outcome, charge_id = call(_RESERVE, ledger_id, epoch, nonce, *key, stored_text(request.purchase), charged_text(request))
        if outcome == "permit" and one.state is State.COMMITTED:
            (settled,) = call(
                "SELECT outcome FROM lapwing.commit(%s, %s, %s, %s, %s, %s::pg_catalog.numeric, %s::pg_catalog.numeric,"
                " %s::pg_catalog.numeric, %b)",
                *(ledger_id, epoch, nonce, charge_id, request.digest, *astuple(cost), one.payload),
            )
        else:
            (settled,) = call("SELECT outcome FROM lapwing.forfeit(%s, %s, %s, %s, false)", ledger_id, epoch, nonce, charge_id)
        if settled != "done":
            raise _differs()
        charged += sum((each.cost for each in request.ranges if each.first is None), Cost.zero()) if request.ranges else cost
    rest = lost_between(charged, state.spent)
    rest_of_blocks = None if blocks is None else _rest(_spending(connection, ledger_id, blocks.terms), blocks)
    if rest != Cost.zero() or rest_of_blocks is not None:  # what blocks inherited, and what an earlier restore charged again
        budgets = (budget_text(state.budget), budget_text(state.ceiling))
        statement = (
            "SELECT lapwing.accept_override(%s, 'restored earlier', NULL, true, %s::pg_catalog.numeric, %s::pg_catalog.numeric,"
            " %s::pg_catalog.numeric, %s, %s, false, %s::pg_catalog.text[], %s, %s, %s)"
        )
        call(statement, ledger_id, *astuple(rest), *budgets, anchor_names, *terms, rest_of_blocks or ranges_text([], Cost.zero()))
    call("SELECT lapwing.disconnect_worker(%s, %s)", ledger_id, epoch)
    if was_closed:
        call("SELECT lapwing.set_closed(%s, true, 'closed before the move')", ledger_id)
    moved = rows.state_of(call(f"SELECT {rows.STATE} FROM lapwing.data_set WHERE ledger_id = %s", ledger_id))
    if (moved.spent, moved.budget, moved.ceiling, moved.closed) != (state.spent, state.budget, state.ceiling, was_closed):
        raise _differs()
    if blocks is not None and _spending(connection, ledger_id, blocks.terms) != blocks:
        raise _differs()
    return moved


def _spending(connection: psycopg.Connection[tuple[Any, ...]], ledger_id: str, terms: BlockTerms) -> BlockSpending:
    """What blocks have spent in the copy."""
    found = connection.execute(SPENDING.encode(), [ledger_id]).fetchall()
    return spending_of(found, terms)


def _rest(copied: BlockSpending, original: BlockSpending) -> str | None:
    """What blocks and persons lack in the copy; None if nothing."""
    ranges = [*copied.ranges, *original.ranges]
    starts = sorted({edge for each in ranges if each.first is not None and each.last is not None for edge in (each.first, each.last + 1)})
    pieces = [
        BlockCost(first, after - 1, lost_between(copied.most(first, after - 1), original.most(first, after - 1)))
        for first, after in pairwise(starts)
    ]
    lacking, person = [each for each in pieces if each.cost != Cost.zero()], lost_between(copied.person, original.person)
    return ranges_text(lacking, person) if lacking or person != Cost.zero() else None


def _differs() -> LedgerError:
    return LedgerError("ledger-damaged", "the copy would differ from the local ledger; nothing was written")
