"""Functions that statements may use but bare DuckDB lacks, by PostgreSQL's definitions, for the comparison of answers."""

from __future__ import annotations

from typing import Protocol

DEFINITIONS: tuple[str, ...] = (
    """CREATE OR REPLACE MACRO width_bucket(x, low, high, n) AS CASE
           WHEN x IS NULL THEN NULL
           WHEN low < high THEN CASE WHEN x < low THEN 0 WHEN x >= high THEN n + 1
                                ELSE 1 + (SELECT count(*) FROM range(1, n) AS t(i) WHERE x >= low + (high - low) * i / n) END
           ELSE CASE WHEN x > low THEN 0 WHEN x <= high THEN n + 1
                ELSE 1 + (SELECT count(*) FROM range(1, n) AS t(i) WHERE x <= low + (high - low) * i / n) END END""",
)
"""``width_bucket``: counts the bounds at or below the value."""


class BareConnection(Protocol):
    """A connection of the engine."""

    def execute(self, query: str, /) -> object:
        """Run a statement."""


def define(connection: BareConnection) -> None:
    """Define these functions in a bare engine."""
    for definition in DEFINITIONS:
        connection.execute(definition)
