"""Who waits for whom: a charge waits for the registry; whoever reads a ledger waits for neither."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.registry import REGISTRY_FILE
from lapwing.ledger.protocol import Balance, StoredAnswer
from tests.ledger.support import ledger_path, new_ledger, pure_budget, request

HOLD = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], isolation_level=None) as connection:
    connection.execute("BEGIN IMMEDIATE")
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another_process(file: Path) -> Iterator[None]:
    """As while another process charges."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate()


def other_ledger(directory: Path) -> LocalLedger:
    """Of another data set with the same registry."""
    budget, path = pure_budget(10), directory / "other.sqlite"
    return LocalLedger.create(
        path, source_id="other", source_fingerprint="other files", budget=budget, ceiling=budget, home=directory / "home"
    )


def test_a_balance_is_read_while_a_charge_waits_for_the_registry(tmp_path: Path) -> None:
    """Of the same data set, and of another one in the same process."""
    reserved: list[Permit | StoredAnswer] = []
    seen: list[Balance] = []
    with new_ledger(tmp_path) as charged, other_ledger(tmp_path) as other:
        charge = threading.Thread(target=lambda: reserved.append(charged.reserve(request("one", loss=3))))
        look = threading.Thread(target=lambda: seen.extend([other.balance(), charged.balance()]))
        with held_by_another_process(tmp_path / "home" / REGISTRY_FILE):
            charge.start()
            time.sleep(0.5)
            assert charge.is_alive()  # it waits for the registry
            look.start()
            look.join(timeout=10)
            assert [balance.spent for balance in seen] == [Cost.zero(), Cost.zero()]
            assert charge.is_alive()
            assert not reserved
        charge.join(timeout=60)
        look.join(timeout=60)
        assert isinstance(reserved[0], Permit)
        assert charged.balance().spent == Cost(loss=3, delta=0)


def test_a_ledger_in_use_by_another_process_holds_up_no_other(tmp_path: Path) -> None:
    seen: list[Balance] = []
    with new_ledger(tmp_path) as charged, other_ledger(tmp_path) as other:
        closing = threading.Thread(target=charged.close, args=("the owner is away",))
        look = threading.Thread(target=lambda: seen.append(other.balance()))
        with held_by_another_process(ledger_path(tmp_path)):
            closing.start()
            time.sleep(0.5)
            look.start()
            look.join(timeout=10)
            assert seen
            assert closing.is_alive()
        closing.join(timeout=60)
        look.join(timeout=60)
        assert charged.balance().closed
