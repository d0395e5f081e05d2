"""A process with several analysts at once, each in a thread with a worker of its own. Run as a script: reads one JSON command.

``threads`` has for each a list of requests (analyst, key, loss, delta). What each saw is appended to the history that ``log`` names.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request
from tests.faults.history import Event, What, Write, writer
from tests.faults.oracle import answer_digest


def main() -> None:
    command = json.loads(sys.stdin.read())
    write = writer(Path(command["log"]))
    together = threading.Barrier(len(command["threads"]))
    threads = [threading.Thread(target=_ask_all, args=(command, requests, together, write)) for requests in command["threads"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _ask_all(command: dict[str, Any], requests: list[list[Any]], together: threading.Barrier, write: Write) -> None:
    anchors = FileAnchors(Path(command["anchors"]))
    with PostgresLedger.open(command["dsn"], source_id=command["source_id"], anchors=anchors) as ledger:
        together.wait(60)
        for analyst, key, loss, delta in requests:
            _ask(ledger, command["source_id"], Request(analyst, key, f"plan of {key}", Cost(loss=loss, delta=delta), 1, key), write)


def _ask(ledger: PostgresLedger, source_id: str, request: Request, write: Write) -> None:
    def note(what: What, **more: Any) -> None:
        cost = request.cost
        write(Event(what, source_id, request.analyst, request.request_id, request.digest, cost.loss, cost.delta, os.getpid(), **more))

    note(What.ASKED)
    try:
        outcome = ledger.reserve(request)
    except LapwingError as error:
        note(What.REFUSED, code=error.code)
        return
    if not isinstance(outcome, Permit):
        note(What.SENT, answer=answer_digest(outcome.payload))
        return
    note(What.PERMIT, charge_id=outcome.charge_id)
    note(What.RUNNING)
    answer = os.urandom(8)
    ledger.commit(outcome, answer)
    note(What.SENT, answer=answer_digest(answer))


if __name__ == "__main__":
    main()
