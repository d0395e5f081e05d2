"""What happens to an open ledger when the process forks. Run as a script by ``test_processes``: ``python forking.py SCENARIO DIRECTORY``.

A script, because the process that runs the tests may have threads, and forking such a process is a risk of its own.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lapwing.errors import LapwingError
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from tests.ledger.support import open_ledger, request


def reserve(ledger: LocalLedger, key: str) -> Permit:
    outcome = ledger.reserve(request(key))
    assert isinstance(outcome, Permit)
    return outcome


def code_of(act: Callable[[], object]) -> str:
    try:
        act()
    except LapwingError as error:
        return error.code
    return "done"


def in_child(act: Callable[[], None]) -> None:
    """Run ``act`` in a forked child that ends as scripts do, finalisers and all; its failure is ours."""
    pid = os.fork()
    if pid == 0:
        act()
        sys.exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def child_has_its_own_identity(directory: Path) -> None:
    with open_ledger(directory) as ledger:
        permit = reserve(ledger, "the parent's")

        def child() -> None:
            assert code_of(lambda: ledger.commit(permit, b"stolen")) == "charge-not-open"
            assert code_of(lambda: ledger.forfeit(permit, incident=False)) == "charge-not-open"
            assert code_of(lambda: reserve(ledger, "the parent's")) == "request-in-progress"
            ledger.commit(reserve(ledger, "the child's"), b"child")
            reserve(ledger, "left behind")

        in_child(child)
        ledger.commit(permit, b"parent")
        answer = ledger.find("plan of the child's")
        assert answer is not None and answer.payload == b"child"
        assert code_of(lambda: reserve(ledger, "left behind")) == "request-forfeited"


def child_may_let_go_without_harm(directory: Path) -> None:
    with open_ledger(directory) as ledger:
        permit = reserve(ledger, "one")
        in_child(lambda: None)
        in_child(ledger.disconnect)
        ledger.commit(permit, b"answer")


def grandchildren_too(directory: Path) -> None:
    with open_ledger(directory) as ledger:

        def child() -> None:
            permit = reserve(ledger, "child")
            in_child(lambda: ledger.commit(reserve(ledger, "grandchild"), b"grandchild"))
            ledger.commit(permit, b"child")

        in_child(child)
        ledger.commit(reserve(ledger, "parent"), b"parent")


def forks_in_the_middle_of_transactions(directory: Path) -> None:
    """A thread keeps charging while the process forks; no child may carry half a transaction away, or undo it when it ends."""
    with open_ledger(directory) as ledger:
        stop = threading.Event()
        done: list[str] = []

        def charge_as(key: str, payload: bytes) -> None:
            ledger.commit(reserve(ledger, key), payload)

        def charge() -> None:
            while not stop.is_set():
                key = f"thread {len(done)}"
                charge_as(key, b"thread")
                done.append(key)

        thread = threading.Thread(target=charge)
        thread.start()
        for number in range(12):
            in_child(lambda: None)
            in_child(partial(charge_as, f"child {number}", b"child"))
        stop.set()
        thread.join()
        assert len(done) > 5
        for key in done:
            answer = ledger.find(f"plan of {key}")
            assert answer is not None and answer.payload == b"thread"
        assert ledger.balance().spent.loss == len(done) + 12


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
    print("passed")
