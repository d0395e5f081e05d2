"""Exact results in a form that can be compared between engines."""

from __future__ import annotations

from typing import TypeAlias

from lapwing.engines.base import Snapshot
from lapwing.kernel.exact import Counts, Exact
from lapwing.kernel.expressions import Value

Comparable: TypeAlias = list[tuple[dict[tuple[Value, ...], list[int]], list[Counts]]]
"""Of each table: its vectors by group, and its sets of quantiles."""


def comparable(exact: Exact) -> Comparable:
    """Exact tables without the order of their rows, which means nothing. Groups are listed in one order, so that texts compare too."""
    found: Comparable = []
    for table in exact._tables:
        columns = [*table._vectors, *([table._units] if table._units is not None else [])]
        rows = {group: [int(column[i]) for column in columns] for i, group in enumerate(table._groups)}
        quantiles: list[Counts] = [{group: sorted(item[group]) for group in sorted(item, key=repr)} for item in table._quantiles]
        found.append((dict(sorted(rows.items(), key=repr)), quantiles))
    return found


def public_tables(snapshot: Snapshot) -> dict[str, set[tuple[Value, ...]]]:
    """The rows of every frozen public table, without their order."""
    found = {}
    for name in snapshot.facts.public_tables:
        rows = snapshot.public_rows(name)
        assert rows is not None and list(rows) == list(snapshot.facts.public_tables[name].columns)
        found[name] = set(zip(*rows.values(), strict=True))
    return found
