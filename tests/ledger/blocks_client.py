"""A process that charges the same blocks of time as others: ``python -m tests.ledger.blocks_client DSN SOURCE ANCHORS``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from lapwing.errors import BudgetRefused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from tests.ledger.support import request

ASKS = 30


def main() -> None:
    dsn, source_id, anchors = sys.argv[1:]
    permits = 0
    with PostgresLedger.open(dsn, source_id=source_id, anchors=FileAnchors(Path(anchors))) as ledger:
        for number in range(ASKS):
            part = BlockCost(number % 5, 5 + number % 7, Cost(loss=1, delta=0))
            try:
                ledger.reserve(replace(request(f"{os.getpid()}.{number}"), ranges=(part,), person=part.cost))
                permits += 1
            except BudgetRefused as refusal:
                assert refusal.code == "block-budget", refusal.code
    print(permits)


if __name__ == "__main__":
    main()
