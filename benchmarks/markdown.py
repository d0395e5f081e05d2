"""Figures as Markdown tables, so that a run can be pasted into a page."""

from __future__ import annotations

from collections.abc import Sequence


def show(*lines: str) -> None:
    """Print at once: a run takes minutes."""
    print("\n".join(lines), flush=True)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, figures to the right."""
    rule = ["---" if index == 0 else "---:" for index in range(len(head))]
    show("", title, "", *(f"| {' | '.join(row)} |" for row in (head, rule, *rows)))


def megabytes(size_bytes: int) -> str:
    """In millions of bytes."""
    return f"{size_bytes / 1e6:,.0f}"
