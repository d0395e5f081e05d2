"""Exact results in a form that can be compared between engines."""

from __future__ import annotations

from lapwing.kernel.exact import Exact


def comparable(exact: Exact) -> list[object]:
    """Exact tables without the order of their rows, which means nothing."""
    found: list[object] = []
    for table in exact._tables:
        columns = [*table._vectors, *([table._units] if table._units is not None else [])]
        rows = {group: [int(column[i]) for column in columns] for i, group in enumerate(table._groups)}
        ordered = sorted(rows.items(), key=repr)
        found.append((ordered, [sorted((group, sorted(counts)) for group, counts in item.items()) for item in table._quantiles]))
    return found
