"""Older states of a database that are put back: a copy of the stopped server's files, a base backup of the running one, a dump."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import assert_never

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.verify import verify
from tests.faults.table import Outcome, fault
from tests.ledger.cluster import OWNER_ROLE, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request


class BackupKind(Enum):
    """How a state is kept and put back."""

    FILES = "files"
    """A copy of the data directory of the stopped server."""
    BASE = "base"
    """``pg_basebackup`` of the running server."""
    DUMP = "dump"
    """``pg_dump`` of the one database, restored into an empty one."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A state that can be put back, and what had been spent in it by the count of whoever spent."""

    kind: BackupKind
    path: Path
    entries: int
    spent: int


def taken(place: Place, kind: BackupKind, path: Path, *, spent: int, ledger: PostgresLedger) -> Backup:
    """Keep the state of now."""
    cluster = place.cluster
    match kind:
        case BackupKind.FILES:
            cluster.backup(path)
        case BackupKind.BASE:
            made = cluster.home / "base"  # where the user of the server may write
            cluster.run("pg_basebackup", "-D", str(made), "-d", cluster.dsn("postgres", role="postgres"), "-c", "fast")
            shutil.move(made, path)
        case BackupKind.DUMP:
            command = [str(cluster.programs / "pg_dump"), "-Fc", "-f", str(path), cluster.dsn(place.database, role="postgres")]
            subprocess.run(command, check=True, timeout=300)
        case _:
            assert_never(kind)
    return Backup(kind, path, ledger.state().entries, spent)


def put_back(place: Place, backup: Backup) -> None:
    """Replace what is there by what was kept. Connections are lost; clients that are at work find the older state."""
    cluster = place.cluster
    match backup.kind:
        case BackupKind.FILES | BackupKind.BASE:
            cluster.restore(backup.path)
        case BackupKind.DUMP:
            cluster.drop_database(place.database)
            with cluster.superuser() as connection:
                connection.execute(f"CREATE DATABASE {place.database} OWNER {OWNER_ROLE} TEMPLATE template0".encode())
            command = [str(cluster.programs / "pg_restore"), "-d", cluster.dsn(place.database, role="postgres"), str(backup.path)]
            subprocess.run(command, check=True, timeout=300)
        case _:
            assert_never(backup.kind)


def spend(ledger: PostgresLedger, key: str, chance: random.Random) -> int:
    """One act, of a kind that chance picks, that charges something; what it charged."""
    loss = chance.randint(1, 9)
    permit = ledger.reserve(request(key, loss=loss))
    assert isinstance(permit, Permit)
    match chance.randrange(3):
        case 0:
            ledger.commit(permit, key.encode())
        case 1:
            ledger.forfeit(permit, incident=False)
        case _:
            pass  # it stays reserved
    return loss


def code_of_opening(place: Place) -> str:
    """With which code a new worker is refused; empty if it is not."""
    try:
        place.open().disconnect()
    except LedgerError as refusal:
        return refusal.code
    return ""


def judged(place: Place, ledger: PostgresLedger, backup: Backup, *, spent_really: int, number: int) -> tuple[list[str], int]:
    """Put a state back, see that it is refused, let the owner accept it; every violation, and what was then charged too much.

    ``ledger`` is a worker that knew the newest state. The owner's act is judged to the unit: charged again is what the anchor
    remembers beyond the newest milestone that the restored state still has, so never less than was lost.
    """
    found = []
    anchor = place.anchors.newest(place.source_id)
    assert anchor is not None
    put_back(place, backup)
    # A milestone of the anchor is in the restored state if it is not newer: the history before the backup is the same.
    older = [one for one in place.anchors.milestones(place.source_id) if one.entries <= backup.entries]
    common_spent = max(older, key=lambda one: one.entries).spent.loss if older else 0
    for _ in range(2):  # not only the first time
        try:
            ledger.reserve(request(f"live {number}"))
            found.append("a worker that knew better was served")
        except LedgerError as refusal:
            if refusal.code != "ledger-rolled-back":
                found.append(f"a worker that knew better was refused with {refusal.code}")
        code = code_of_opening(place)
        if code != "ledger-rolled-back":
            found.append(f"a new worker was refused with {code or 'nothing'}")
    with place.open(override=True, reason="a disk failed") as accepted:
        spent = accepted.balance().spent
        if spent.loss < spent_really:
            found.append(f"{spent_really - spent.loss} units were forgotten")
        if spent != Cost(loss=backup.spent + anchor.spent.loss - common_spent, delta=0):
            found.append("the amount charged again is not what the anchor remembers beyond the common milestone")
        found += verify(accepted.connection, place.source_id, anchors=place.anchors).problems
        if not isinstance(accepted.reserve(request(f"after {number}")), Permit):
            found.append("nothing is served after the owner's act")
    if code_of_opening(place):
        found.append("it is refused again after the owner's act")
    return [f"backup {number} ({backup.kind.value}): {problem}" for problem in found], spent.loss - spent_really


def restore_older_backups(
    cluster: Cluster, directory: Path, *, seed: int, kinds: tuple[BackupKind, ...], acts_between: tuple[int, ...]
) -> tuple[Outcome, Counter[int]]:
    """A backup of each kind in turn, some acts after each; then every one of them is put back, each as if it were the first.

    Also counts by how much too much was charged again.
    """
    chance = random.Random(seed)
    place = new_place(cluster, cluster.new_database(), directory)
    assert isinstance(place.anchors, FileAnchors)
    backups, spent = [], 0
    outcome, excess = Outcome(), Counter[int]()
    with place.create(pure_budget(10**9)) as ledger:
        for number, acts in enumerate(acts_between):
            backups.append(taken(place, kinds[number % len(kinds)], directory / f"backup {number}", spent=spent, ledger=ledger))
            for act in range(acts - 1):
                spent += spend(ledger, f"{number}.{act}", chance)
            # The last act is one entry, so that the newest backup can be one entry old.
            assert isinstance(ledger.reserve(request(f"{number}.last", loss=1)), Permit)
            spent += 1
        kept = directory / "anchors of the newest state"
        shutil.copytree(place.anchors.directory, kept)
        newest = ledger.state().entries
        for number, backup in enumerate(backups):
            shutil.rmtree(place.anchors.directory)
            shutil.copytree(kept, place.anchors.directory)
            found, too_much = judged(place, ledger, backup, spent_really=spent, number=number)
            outcome.violations += found
            outcome.counts[f"backup restored: {backup.kind.value}"] += 1
            outcome.counts["one entry ago"] += backup.entries == newest - 1
            excess[too_much] += 1
    return outcome, excess


@fault("backup restored")
def restore_some(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign."""
    acts = tuple(random.Random(seed).choice([1, 2, 3, 10, 30]) for _ in range(5))
    return restore_older_backups(cluster, directory, seed=seed, kinds=tuple(BackupKind), acts_between=acts)[0]
