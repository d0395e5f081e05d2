"""Data sets for the textbook attacks: made-up people, one row each, and a budget to attack.

The same rows can be asked exactly, by the bare engine, and privately, by Lapwing, in the same words.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw

FALSE_ALARM = Fraction(1, 10**6)
"""Chance of each statistical test in the textbook attacks to fail although the guarantee holds."""

_CATALOGUE = """
format = 1
[dataset]
id = "{name}"
unit = "person"
neighbours = "{neighbours}"
units = {units}
[budget]
epsilon = {epsilon}
delta = {delta}
[tables.people]
source = "people.parquet"
unit = "person"
one_row_per_unit = true
rows_max = 100_000
[tables.people.columns]
person = {{ type = "key", of = "text" }}
{columns}
"""

Record = dict[str, Any]


@dataclass(frozen=True)
class Street:
    """One table of people on disk."""

    directory: Path
    columns: Mapping[str, str]
    """Declarations in the words of the catalogue."""

    def exact(self, sql: str) -> list[Record]:
        """What a tool without privacy says."""
        with duckdb.connect() as engine:
            engine.execute(f"CREATE VIEW people AS SELECT * FROM read_parquet('{self.directory / 'people.parquet'}')")
            asked = engine.execute(sql)
            names = [column[0] for column in asked.description or ()]
            return [dict(zip(names, row, strict=True)) for row in asked.fetchall()]

    def open(self, *, epsilon: int | str, delta: str = "0", neighbours: str = "bounded") -> lw.DataSet:
        """The same people behind a new budget. Each call is another owner's data set: no account is shared."""
        name = f"street-{sum(1 for _ in self.directory.iterdir())}"
        own = self.directory / name
        own.mkdir()
        (own / "people.parquet").symlink_to(self.directory / "people.parquet")
        declared = "\n".join(f"{column} = {words}" for column, words in self.columns.items())
        filled = _CATALOGUE.format(name=name, neighbours=neighbours, units=10_000, epsilon=epsilon, delta=delta, columns=declared)
        (own / "lapwing.toml").write_text(filled)
        data = lw.open(own, home=own / "home")
        data.prepare(accept_losses=True)
        return data


def make_street(directory: Path, rows: Sequence[Record], columns: Mapping[str, str]) -> Street:
    """Write the rows; each gets a ``person`` of its own."""
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([{"person": f"p{i}", **row} for i, row in enumerate(rows)]), directory / "people.parquet")
    return Street(directory, columns)


def told(answer: lw.Answer) -> list[Record]:
    """The rows of an answer."""
    found: list[Record] = answer.table.to_pylist()
    return found


def coins(count: int) -> list[bool]:
    """Fair and independent secrets, new in every run: the bounds on many guesses are over the secrets as well as the noise."""
    return [bool(secrets.randbits(1)) for _ in range(count)]
