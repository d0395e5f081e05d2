"""Which rows a source is about, whatever they are called: the marks of its files or tables, and who has claimed them.

A fingerprint says what the catalogue calls its sources. The same file under another spelling, in a wider pattern, under a second name or
beside another table has another fingerprint and the same *marks*: the engine finds them when a version is prepared. A mark that belongs to
another source is a second budget for the same people, and is refused unless the owner gives a reason, which is written down.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path

from lapwing.errors import CatalogueError
from lapwing.ledger import limits
from lapwing.ledger.local import registry
from lapwing.ledger.protocol import EntryKind, Ledger


def require_unclaimed(home: Path | None, source_id: str, marks: AbstractSet[str], *, override: str) -> None:
    """Refuse (``source-registered``) rows that another source has claimed and this one has not, unless the owner gives a reason."""
    books = registry.open_registry(registry.registry_home(home))
    try:
        with books.read() as registered:
            others = registry.others_with(registered, source_id, marks)
    finally:
        books.close()
    if others and not override:
        raise _claimed(others)


def claim(home: Path | None, ledger: Ledger, source_id: str, marks: AbstractSet[str], *, override: str) -> None:
    """Remember that these rows are this source's, for good. An overlap that the owner accepts is an entry of the ledger and an act here.

    Pre: the registry knows the source.
    """
    limits.require_reason(bool(override), override)
    books = registry.open_registry(registry.registry_home(home))
    try:
        with books.read() as registered:
            others = registry.others_with(registered, source_id, marks)
            new = marks - registry.marks_of(registered, source_id)
        if others and not override:
            raise _claimed(others)
        if others:  # in the ledger first: after a crash it is there twice rather than not at all
            ledger.record(EntryKind.OVERRIDE, _accepted(others, override))
        if not new:
            return
        with books.write() as registered:
            late = registry.others_with(registered, source_id, marks)
            if late - others and not override:
                raise _claimed(late)
            for mark in sorted(new):
                registry.add_fingerprint(registered, source_id, mark)
            anchor = registry.find_anchor(registered, source_id)
            if others and anchor is not None:
                registry.add_act(registered, anchor, EntryKind.OVERRIDE, _accepted(others, override))
    finally:
        books.close()


def _accepted(others: AbstractSet[str], reason: str) -> str:
    return f"source-registered: shares rows with {', '.join(sorted(others))}: {reason}"


def _claimed(others: AbstractSet[str]) -> CatalogueError:
    hint = "ask that data set; a second budget for the same rows needs the owner's override and reason"
    return CatalogueError("source-registered", f"rows of this source belong to {', '.join(sorted(others))} already", hint=hint)
