"""A part of the benchmark that a process of its own can measure."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.reliability.measure import Truth, measured_statement
from benchmarks.reliability.repeated import make_repeatable
from benchmarks.reliability.shop import SEED, write_shop
from benchmarks.reliability.statements import FAMILIES, statements

from lapwing.curator.curator import Curator

TABLES = ("users", "events", "orders", "items")


@dataclass(frozen=True, slots=True)
class Task:
    """What one process measures at a time: statements of one family on one data set of one law.

    Under a heavy-tailed law a few users decide how much a bound cuts off everywhere, so that coverage on one data set says little about
    the law: each family has data sets of its own.
    """

    law: str
    family: str
    users: int
    data_set: int
    data_sets: int
    """Of so many data sets this is the one for one statement in as many."""
    many: int
    draws: int
    epsilons: tuple[str, ...]
    one_price_each: bool

    def measured(self) -> list[dict[str, Any]]:
        """All its records."""
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            write_shop(directory, law=self.law, users=self.users, seed=SEED + list(FAMILIES).index(self.family) * 100 + self.data_set)
            truth = Truth(directory, TABLES)
            with Curator(directory, home=directory / "registry") as curator:
                curator.prepare(accept_losses=False)
                ledger = make_repeatable(curator)
                return [
                    record
                    for number, statement in enumerate(statements(self.family, self.many))
                    if number % self.data_sets == self.data_set
                    for record in measured_statement(
                        curator,
                        ledger,
                        truth,
                        statement,
                        law=self.law,
                        epsilons=[self.epsilons[number % len(self.epsilons)]] if self.one_price_each else self.epsilons,
                        draws=self.draws,
                    )
                ]
