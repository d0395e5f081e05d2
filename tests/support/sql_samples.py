"""Random calls of every function that is called by name, from the samples of the entries; arguments are random, or calls again."""

from __future__ import annotations

import random
from collections.abc import Mapping

from lapwing.kernel.domains import Domain, Kind, kind_of
from lapwing.sql.scalars.handlers import NAMED
from lapwing.sql.scalars.named_function import NamedFunction
from tests.support.sql_queries import SqlQueries

_INTERVALS = ("INTERVAL '1 month'", "INTERVAL 400 DAY", "INTERVAL '2 years'", "INTERVAL '1 quarter'", "INTERVAL 3 WEEKS")
_SHORT = ("INTERVAL '90 minutes'", "INTERVAL 5 SECONDS", "INTERVAL '7 hours'")


class SqlSamples:
    """A source of random calls over the columns of one table."""

    def __init__(self, queries: SqlQueries, columns: Mapping[str, Domain], *, seed: int) -> None:
        self._queries = queries
        self._columns = columns
        self._rng = random.Random(seed)
        self._numeric = [entry for entry in NAMED if entry.meaning.samples]

    def number(self, depth: int) -> tuple[str, NamedFunction]:
        """A call that gives a number, and the entry it is a call of."""
        entry = self._rng.choice(self._numeric)
        text = self._rng.choice(entry.meaning.samples)
        for name in ("number", "integer", "real", "date", "timestamp"):
            while f"{{{name}}}" in text:
                text = text.replace(f"{{{name}}}", self._argument(name, depth), 1)
        return text, entry

    def _argument(self, name: str, depth: int) -> str:
        match name:
            case "date":
                return self._dated(Kind.DATE, depth)
            case "timestamp":
                return self._dated(Kind.TIMESTAMP, depth)
            case "number" if depth > 0 and self._rng.random() < 0.35:
                # a call inside a call, kept small as an analyst would
                return f"LEAST(GREATEST({self.number(depth - 1)[0]}, -{self._rng.choice((0, 1, 9))}), {self._rng.choice((1, 50, 199))})"
            case "real":
                return self._queries.real(depth)
            case "integer":
                return self._queries.integer(depth)
            case _:
                return self._rng.choice((self._queries.integer, self._queries.real))(depth)

    def _dated(self, kind: Kind, depth: int) -> str:
        columns = [name for name, domain in self._columns.items() if kind_of(domain) is kind]
        chosen = self._rng.choice(columns)
        if depth <= 0 or self._rng.random() < 0.5:
            return chosen
        inner, sign = self._dated(kind, depth - 1), self._rng.choice("+-")
        if kind is Kind.DATE:
            moved = f"({inner} {sign} (({self._queries.integer(1)}) % 100))"
            return self._rng.choice(
                (f"({inner} {sign} {self._rng.choice(_INTERVALS)})", moved, f"LAST_DAY({inner})", f"LEAST({inner}, {chosen})")
            )
        return self._rng.choice((f"({inner} {sign} {self._rng.choice((*_INTERVALS, *_SHORT))})", f"DATE_TRUNC('hour', {inner})", chosen))
