"""Statements that make as much as they can of one unit's rows, and the two worlds they are aimed at.

In w1 one unit has everything: as many rows as the table keeps, each with the longest text there may be, no two alike. In w0 it has nothing.
Every statement looks at nobody else, so whatever it costs more in w1 is that unit's doing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import load
from lapwing.catalog.declaration import Declaration

ROWS = 1_000
"""Rows of one unit that preparation keeps: the default of a table that does not say."""
LONGEST = 1_024
"""Bytes of the longest text."""

UNIT_COLUMNS = {"people": "id", "events": "id"}

CATALOGUE = """
format = 1
[dataset]
id = "bombs"
unit = "person"
units = 10_000
[budget]
epsilon = 1
statistics_share = 0
[tables.people]
source = "people.parquet"
unit = "id"
one_row_per_unit = true
rows_max = 1_000_000
[tables.people.columns]
id = { type = "key" }
zip = { type = "integer", min = 0, max = 99_999 }
[tables.events]
source = "events.parquet"
unit = "id"
rows_max = 1_000_000
[tables.events.columns]
id = { type = "key" }
mark = { type = "integer", min = 0, max = 9 }
day = { type = "date", min = 2024-01-01, max = 2026-12-31 }
amount = { type = "real", min = 0, max = 1_000, steps = 100 }
note = { type = "text" }
place = { type = "text", values = ["north", "south", "east", "west"] }
"""


def declare(folder: Path, *, target: bool, others: int = 2_000) -> Declaration:
    """One of the two worlds, in files."""
    folder.mkdir(parents=True)
    ids = [*range(others), *([777_777] if target else [])]
    people = {"id": ids, "zip": [54_321 if one == 777_777 else one % 50_000 for one in ids]}
    pq.write_table(pa.table(people), folder / "people.parquet")
    owners = [*range(others), *([777_777] * ROWS if target else [])]
    events = {
        "id": owners,
        "mark": [9 if owner == 777_777 else 1 for owner in owners],
        "day": pa.array([19_800 + i % 1_000 for i in range(len(owners))], pa.int32()).cast(pa.date32()),
        "amount": [float(i % 1_000) for i in range(len(owners))],
        "note": [f"{i}-".ljust(LONGEST, "x") for i in range(len(owners))],
        "place": [("north", "south", "east", "west")[i % 4] for i in range(len(owners))],
    }
    pq.write_table(pa.table(events), folder / "events.parquet")
    (folder / "lapwing.toml").write_text(CATALOGUE)
    return load(folder / "lapwing.toml")


_ONE_ROW = "SELECT id, zip AS n FROM people WHERE zip = 54321"
_ALL_ROWS = "SELECT id, mark, day, amount, note, place FROM events WHERE mark = 9"


class Bombs:
    """Generated statements, made to fan out as far as the limits let them: about half of them a little too far."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def statements(self, count: int) -> Iterator[str]:
        """So many statements."""
        kinds = (self._copies, self._joined, self._joined, self._behind_conditions, self._per_unit, self._long_expression)
        for _ in range(count):
            yield self._rng.choice(kinds)()

    def _copied(self, name: str, source: str, columns: str, times: int) -> str:
        return f"{name} AS ({' UNION ALL '.join([f'SELECT {columns} FROM {source}'] * times)})"

    def _copies(self) -> str:
        """One row, or a unit's rows, copied by UNION ALL over and over, then joined with itself."""
        base, columns = self._rng.choice(((_ONE_ROW, "id, n"), (_ALL_ROWS, "id, mark, day, amount, note, place")))
        first, second = self._rng.randint(2, 8), self._rng.randint(1, 6)
        named = f"WITH p AS ({base}), {self._copied('m', 'p', columns, first)}, {self._copied('n', 'm', columns, second)}"
        joins = self._rng.randint(0, 4)
        joined = " ".join(f"JOIN n t{i} ON a.id = t{i}.id" for i in range(joins))
        value = "a.n" if "n" in columns.split(", ") else "a.amount"
        counted = self._rng.choice(("COUNT(*)", "COUNT(DISTINCT a.id)", f"SUM({value})", f"AVG({value})", f"MEDIAN({value})"))
        return f"{named} SELECT {counted} AS x FROM n a {joined}"

    def _joined(self) -> str:
        """A unit's rows joined with each other within the unit; measured by what keeps most in memory."""
        joins = self._rng.randint(1, 3)
        kind = self._rng.choice(("JOIN", "LEFT JOIN"))
        joined = " ".join(f"{kind} ({_ALL_ROWS}) t{i} ON a.id = t{i}.id" for i in range(joins))
        last = f"t{joins - 1}"
        select = self._rng.choice(
            (
                "COUNT(*) AS x",
                f"COUNT(DISTINCT {last}.note) AS x",
                f"a.note, {last}.note AS other, COUNT(*) AS x",
                f"{last}.place, COUNT(*) AS x, SUM(a.amount) AS y",
                f"SUM(a.amount * {last}.amount) AS x, COUNT(DISTINCT a.id) AS y",
                f"a.day, {last}.day AS other, COUNT(DISTINCT a.id) AS x",
                f"MEDIAN(a.amount + {last}.amount) AS x",
            )
        )
        keys = [part.split(" AS ")[0] for part in select.split(", ") if "(" not in part]
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {select} FROM ({_ALL_ROWS}) a {joined}{grouped}"

    def _behind_conditions(self) -> str:
        """The same behind EXISTS and IN, where nothing of it is in the answer."""
        inner = " ".join(f"JOIN events t{i} ON e.id = t{i}.id" for i in range(self._rng.randint(0, 5)))
        negated = self._rng.choice(("", "NOT "))
        outer = self._rng.choice((_ONE_ROW, _ALL_ROWS))
        return (
            f"SELECT COUNT(*) AS x FROM ({outer}) a WHERE {negated}EXISTS (SELECT 1 FROM events e {inner} WHERE e.id = a.id AND e.mark = 9)"
        )

    def _per_unit(self) -> str:
        """One row per unit made of very many."""
        inner = " ".join(f"JOIN events t{i} ON e.id = t{i}.id" for i in range(self._rng.randint(0, 3)))
        value = self._rng.choice(("COUNT(*)", "SUM(e.amount)", "MAX(e.amount)", "SUM(e.mark)"))
        rows = f"SELECT e.id, {value} AS v FROM events e {inner} WHERE e.mark = 9 GROUP BY e.id"
        return f"SELECT {self._rng.choice(('SUM(v)', 'AVG(v)', 'COUNT(*)'))} AS x FROM ({rows}) AS units"

    def _long_expression(self) -> str:
        """Much to compute on every row."""
        terms = self._rng.randint(50, 400)
        body = self._rng.choice(
            (
                " + ".join(f"ABS(a.amount - {i})" for i in range(terms)),
                " + ".join(f"SQRT(a.amount + {i})" for i in range(terms)),
                "CASE " + " ".join(f"WHEN a.note LIKE '{i}-%' THEN {i}" for i in range(terms)) + " ELSE 0 END",
            )
        )
        joined = f"JOIN ({_ALL_ROWS}) t ON a.id = t.id" if self._rng.random() < 0.5 else ""
        counted = self._rng.choice((f"SUM({body})", f"COUNT(*) FILTER (WHERE {body} > 100)"))
        return f"SELECT {counted} AS x FROM ({_ALL_ROWS}) a {joined}"
