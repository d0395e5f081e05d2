"""What the tests of the ledger on PostgreSQL share: a ledger with analysts, in a database of the test's own server."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

from lapwing.kernel.accounting import Budget
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import Anchors, FileAnchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.ledger import PostgresLedger
from tests.ledger.cluster import APP_ROLE, SECOND_ROLE, Cluster
from tests.ledger.support import pure_budget

ANALYSTS = ("ana", "bo")
_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """A source of its own in a database, and where its anchor is."""

    cluster: Cluster
    database: str
    anchors: Anchors
    source_id: str
    via: Path | None = None
    """Where something between the clients and the server listens; None for nothing."""
    role: str = APP_ROLE

    @property
    def dsn(self) -> str:
        direct = self.cluster.dsn(self.database, role=self.role)
        return direct if self.via is None else direct.replace(f"host={self.cluster.home}", f"host={self.via}")

    def create(self, budget: Budget | None = None, ceiling: Budget | None = None) -> PostgresLedger:
        """A ledger to which ``ANALYSTS`` are admitted."""
        budget = pure_budget(10) if budget is None else budget
        ledger = PostgresLedger.create(
            self.dsn,
            source_id=self.source_id,
            source_fingerprint=f"files of {self.source_id}",
            budget=budget,
            ceiling=budget if ceiling is None else ceiling,
            anchors=self.anchors,
        )
        for analyst in ANALYSTS:
            policy.admit(ledger, analyst)
        return ledger

    def open(self, *, override: bool = False, reason: str = "") -> PostgresLedger:
        return PostgresLedger.open(
            self.dsn,
            source_id=self.source_id,
            source_fingerprint=f"files of {self.source_id}",
            anchors=self.anchors,
            override=override,
            reason=reason,
        )

    def second(self) -> PostgresLedger:
        """A use by another owner: another role of the database."""
        return replace(self, role=SECOND_ROLE).open()

    @contextmanager
    def in_another_role(self, ledger: PostgresLedger) -> Iterator[PostgresLedger]:
        """The same worker, whose acts are those of another owner: no worker comes or goes."""
        other = copy(ledger)
        other._connection = Connection(replace(self, role=SECOND_ROLE).dsn, schema_version=SCHEMA_VERSION)
        try:
            yield other
        finally:
            other._connection.close()

    def execute(self, *statements: str) -> None:
        """Change the database behind the ledger's back."""
        with self.cluster.superuser(self.database) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def declare_dead(self, charge_id: int) -> bool:
        """Let the lease of the worker that reserved this charge run out; True if there is a worker to do that to."""
        with self.cluster.superuser(self.database) as connection:
            changed = connection.execute(
                "UPDATE lapwing.worker SET lease_until = '2000-01-01' WHERE ended_at IS NULL AND epoch = ("
                " SELECT epoch FROM lapwing.charge JOIN lapwing.data_set USING (ledger_id) WHERE source_id = %s AND charge_id = %s)",
                [self.source_id, charge_id],
            )
            return changed.rowcount == 1


def new_place(cluster: Cluster, database: str, directory: Path, *, via: Path | None = None) -> Place:
    return Place(cluster, database, FileAnchors(directory / "anchors"), f"source {os.getpid()}.{next(_numbers)}", via)
