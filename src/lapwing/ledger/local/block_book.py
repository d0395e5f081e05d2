"""The balances of blocks that a process keeps in memory, caught up with the entries of all processes."""

from __future__ import annotations

import sqlite3

from lapwing.ledger.amounts import cost_value
from lapwing.ledger.block_balances import BlockBalances, BlockCharge
from lapwing.ledger.local import rows
from lapwing.ledger.local.block_state import charge_of
from lapwing.ledger.local.rows import LedgerState
from lapwing.ledger.protocol import EntryKind


class BlockBook:
    """Balances as of one entry, and the head of the chain there.

    It is used inside transactions of the file only. Those of one process exclude each other, so that threads do too. After a fork a ledger
    opens anew, and makes a new one.
    """

    __slots__ = ("_balances", "_entries", "_head")

    def __init__(self) -> None:
        self._balances: BlockBalances | None = None
        self._entries, self._head = 0, ""

    def keep(self, state: LedgerState, balances: BlockBalances) -> None:
        """Remember these balances, which are those of this state."""
        self._balances, self._entries, self._head = balances, state.entries, state.head

    def balances(self, connection: sqlite3.Connection, state: LedgerState) -> BlockBalances | None:
        """The balances of this state; None if the data set has no blocks. They change when this is called again.

        What is remembered counts only if the chain still has the entry that it ends with. If not, every entry is read again.
        """
        if state.blocks is None:
            return None
        balances = self._balances
        if balances is None or rows.head_at(connection, self._entries) != self._head:
            balances = BlockBalances(state.blocks.terms, _charges(connection, _first(connection), state.entries))
        else:
            for charge in _charges(connection, self._entries + 1, state.entries):
                balances.add(charge)
        balances.terms = state.blocks.terms
        self.keep(state, balances)
        return balances


def _charges(connection: sqlite3.Connection, first: int, last: int) -> list[BlockCharge]:
    """What these entries charge to blocks and persons."""
    entries = connection.execute("SELECT loss, delta, pure, blocks FROM entry WHERE entry_id BETWEEN ? AND ?", [first, last])
    found = (charge_of(cost_value(*amounts), blocks) for *amounts, blocks in entries)
    return [charge for charge in found if charge is not None]


def _first(connection: sqlite3.Connection) -> int:
    """The entry by which blocks were declared: what was spent before is part of what it charges."""
    row = connection.execute("SELECT min(entry_id) FROM entry WHERE kind = ?", [EntryKind.BLOCKS.value]).fetchone()
    return int(row[0])
