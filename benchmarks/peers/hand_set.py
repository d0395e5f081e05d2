"""Bounds set by hand: the one a caller guesses who knows nothing, and the best, chosen with sight of the rows.

No caller could choose the best without reading the rows for nothing; it is what a lucky guess would give. It is found by computing, for
every bound of a grid, what is cut on average and the noise that hides one user (Laplace for rows in all, Gaussian for rows in each of some
groups), and taking the least root mean square error of the question's first output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
from benchmarks.peers.peer_jobs import AMOUNT_MAX, EPSILON, RHO
from benchmarks.peers.questions import QUESTIONS

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

ROWS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1_200, 2_000, 3_000, 5_000)
GROUPS = (1, 2, 3, 5, 8, 12, 20, 30, 50)
ROWS_OF_GROUPS = (1, 2, 3, 5, 8, 12, 20, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Bound:
    """So many rows of a user, in all or, with ``groups``, in each of so many groups."""

    rows: int
    groups: int = 0


def bounds_by_hand(question: str, source: Path, *, has_groups: bool) -> dict[str, list[Bound]]:
    """The guess, and what is tried for the best."""
    guess = Bound(QUESTIONS[question].default_rows)
    match question:
        case "Q2":
            return {"guess": [guess]}
        case "Q6":
            return {"guess": [guess], "best": [Bound(1), Bound(3)]}
        case "Q7":
            return {"guess": [guess], "best": [Bound(1), Bound(5)]}
    shares = _Shares.read(question, source)
    rows = min(((shares.error_of_rows(bound), bound) for bound in ROWS), key=lambda item: item[0])[1]
    best = [Bound(rows)]
    if has_groups and question in ("Q4", "Q5"):
        pairs = [(shares.error_of_groups(groups, rows), Bound(rows, groups)) for groups, rows in _grid()]
        best.append(min(pairs, key=lambda item: item[0])[1])
    return {"guess": [guess], "best": best}


def _grid() -> Iterator[tuple[int, int]]:
    return ((groups, rows) for groups in GROUPS for rows in ROWS_OF_GROUPS)


@dataclass(frozen=True, slots=True)
class _Shares:
    """Rows of every user in every group that the question has."""

    users: Integers
    groups: Integers
    rows: Floats
    values: Floats
    """Of the first output: rows, or the sum of amounts."""
    unit: float
    """How far one row moves the output at most, times the number of outputs that share the price."""

    @classmethod
    def read(cls, question: str, source: Path) -> _Shares:
        keys, outputs = QUESTIONS[question].keys, QUESTIONS[question].outputs
        key = keys[0] if keys else "0"
        sql = f"SELECT user_id, {key} AS k, COUNT(*) AS n, SUM(amount) AS v FROM '{source}' GROUP BY 1, 2"
        found = duckdb.connect().execute(sql).fetchnumpy()
        _, users = np.unique(found["user_id"], return_inverse=True)
        _, groups = np.unique(np.asarray(found["k"]).astype(str), return_inverse=True)
        rows = np.asarray(found["n"], dtype=np.float64)
        is_sum = outputs[0] == "total"
        values = np.asarray(found["v"], dtype=np.float64) if is_sum else rows
        return cls(users, groups, rows, values, (AMOUNT_MAX if is_sum else 1.0) * len(outputs))

    def _error(self, kept: Floats, deviation: float) -> float:
        cut = np.bincount(self.groups, self.values * (1 - kept))
        return math.sqrt(float(np.mean(cut**2)) + deviation**2)

    def error_of_rows(self, bound: int) -> float:
        """With so many rows in all, chosen at random, and Laplace noise."""
        total = np.bincount(self.users, self.rows)[self.users]
        return self._error(np.minimum(1, bound / total), math.sqrt(2) * bound * self.unit / EPSILON)

    def error_of_groups(self, groups: int, rows: int) -> float:
        """With so many rows in each of so many groups, chosen at random, and Gaussian noise."""
        many = np.bincount(self.users)[self.users]
        kept = np.minimum(1, groups / many) * np.minimum(1, rows / self.rows)
        return self._error(kept, math.sqrt(groups) * rows * self.unit / math.sqrt(2 * RHO))
