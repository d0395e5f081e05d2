"""What the ledger tests share: budgets small enough to run out, requests, and a ledger in a temporary directory."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import lapwing.ledger.local.ledger
from lapwing.kernel.accounting import LOSS_UNITS, Budget, Cost, budget_for
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.protocol import Ledger, Request

SOURCE = "clinic"
FINGERPRINT = "files of the clinic"


def pure_budget(units: int) -> Budget:
    """A budget of exactly this many ledger units of epsilon."""
    return budget_for(epsilon=Fraction(units, LOSS_UNITS), delta=Fraction(0))


def approximate_budget(epsilon: int | Fraction = 1, delta: Fraction = Fraction(1, 2**40)) -> Budget:
    return budget_for(epsilon=Fraction(epsilon), delta=delta)


def union_budget(epsilon: int | Fraction = 1, delta: Fraction = Fraction(1, 2**40), *, order: int = 48) -> Budget:
    """Of an account that is a union of filters."""
    return budget_for(epsilon=Fraction(epsilon), delta=delta, order=order)


def request(
    key: str,
    *,
    loss: int = 1,
    delta: int = 0,
    pure: int | None = None,
    digest: str | None = None,
    analyst: str = "ana",
    version: int = 1,
) -> Request:
    return Request(
        analyst=analyst,
        request_id=key,
        digest=f"plan of {key}" if digest is None else digest,
        cost=Cost(loss=loss, delta=delta, pure=pure),
        version=version,
        summary=f"SELECT '{key}'",
    )


def of_standing(one: Request) -> Request:
    """The request of a plan over tables without time alone, on a data set with blocks of time."""
    return replace(one, ranges=(BlockCost(None, None, one.cost),), person=one.cost)


def new_ledger(
    directory: Path,
    *,
    budget: Budget | None = None,
    ceiling: Budget | None = None,
    module: ModuleType = lapwing.ledger.local.ledger,
) -> LocalLedger:
    """A ledger and a registry of its own, in one directory; from a changed copy of the package if ``module`` says so."""
    budget = pure_budget(10) if budget is None else budget
    ledger: LocalLedger = module.LocalLedger.create(
        ledger_path(directory),
        source_id=SOURCE,
        source_fingerprint=FINGERPRINT,
        budget=budget,
        ceiling=budget if ceiling is None else ceiling,
        home=directory / "home",
    )
    return ledger


def open_ledger(
    directory: Path, *, override: bool = False, reason: str = "", module: ModuleType = lapwing.ledger.local.ledger
) -> LocalLedger:
    ledger: LocalLedger = module.LocalLedger.open(
        ledger_path(directory),
        source_id=SOURCE,
        source_fingerprint=FINGERPRINT,
        home=directory / "home",
        override=override,
        reason=reason,
    )
    return ledger


def ledger_path(directory: Path) -> Path:
    return directory / "ledger.sqlite"


def execute(path: Path, *statements: str) -> None:
    """Change a file behind the ledger's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def declare_dead(path: Path, charge_id: int) -> bool:
    """Make the process that reserved this charge look gone: a process with its number and another start time is not it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        changed = connection.execute(
            "UPDATE worker SET started = 'long ago' WHERE worker_id = (SELECT worker_id FROM charge WHERE charge_id = ?)", [charge_id]
        )
        return changed.rowcount == 1


def cost_of_key(key: str, units: tuple[int, int]) -> Cost:
    """What a racing client pays for a key: one to three units."""
    return Cost(loss=(1 + len(key) % 3) * units[0], delta=len(key) % 2 * units[1])


def ranges_of_key(key: str, units: tuple[int, int], blocks: int) -> tuple[BlockCost, ...]:
    """With so many blocks of time: one or two ranges that a key reads, and for every fifth key a table without time."""
    cost, chosen = cost_of_key(key, units), zlib.crc32(key.encode())
    first = chosen % blocks
    last = min(first + chosen // 97 % 8, blocks - 1)
    ranges = [BlockCost(first, last, cost)]
    if last + 2 < blocks and chosen % 3 == 0:
        ranges.append(BlockCost(last + 2, blocks - 1, cost))
    return (*ranges, BlockCost(None, None, cost)) if chosen % 5 == 0 else tuple(ranges)


def require_own_first(ledger: Ledger) -> None:
    """A request finds what it, or a part of it, paid for; nothing while that is open; what others paid for where it paid for nothing."""
    permits = {key: ledger.reserve(request(key, digest="plan")) for key in ("one", "two", "three/norms-1", "open", "gone")}
    for key, permit in permits.items():
        assert isinstance(permit, Permit)
        if key == "gone":
            ledger.forfeit(permit, incident=False)
        elif key != "open":
            ledger.commit(permit, f"answer of {key}".encode())
    found = {key: ledger.find("plan", analyst="ana", request_id=key) for key in ("one", "two", "three", "thre", "open", "gone", "new")}
    said = {key: None if answer is None else answer.payload.decode() for key, answer in found.items()}
    first = "answer of one"
    assert said == {
        "one": "answer of one",
        "two": "answer of two",
        "three": "answer of three/norms-1",
        "thre": first,
        "open": None,
        "gone": first,
        "new": first,
    }
    for other in (ledger.find("plan"), ledger.find("plan", analyst="bo", request_id="one"), ledger.find("plan", request_id="one")):
        assert other is not None and other.payload.decode() == first
