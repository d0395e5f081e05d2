"""A process with many threads that ask several data sets of one database, as a server does, and writes down what it is told.

Run as ``python -m tests.ledger.across_client DSN ANCHORS LOG NAME THREADS ANSWERS SOURCE...``. Each thread asks the sources in an order of
its own. A line is written before anybody could act on it, and in one piece.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from lapwing.errors import LapwingError
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from tests.ledger.support import request


def main(dsn: str, anchors: str, log: str, name: str, threads: str, answers: str, *sources: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with ExitStack() as opened:
        ledgers = [
            opened.enter_context(SharedPostgresLedger.open(dsn, source_id=source, anchors=FileAnchors(Path(anchors)))) for source in sources
        ]

        def ask(thread: int) -> None:
            dice = random.Random(f"{name} {thread}")
            for number in range(int(answers)):
                which = dice.randrange(len(ledgers))
                key = f"{name}.{thread}.{number}"
                try:
                    permit = ledgers[which].reserve(request(key, loss=2))
                    assert isinstance(permit, Permit)
                    os.write(descriptor, f"permit|{sources[which]}|{permit.charge_id}|{key}\n".encode())
                    ledgers[which].commit(permit, f"answer to {key}".encode())
                    os.write(descriptor, f"stored|{sources[which]}|{permit.charge_id}|{key}\n".encode())
                except LapwingError as error:
                    os.write(descriptor, f"{error.code}|{sources[which]}|0|{key}\n".encode())

        crowd = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(int(threads))]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
