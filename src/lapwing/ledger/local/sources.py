"""Which rows a source contains, whatever their name: the marks of its files or tables, and the data sets that have claimed them.

A fingerprint is made from the names of the sources in the catalogue. The same file under another spelling, in a wider pattern, under a
second name or beside another table has another fingerprint but the same *marks*, which the engine finds when it prepares a version. If a
mark belongs to another source, that is a second budget for the same people: refused unless the owner gives a reason, which is recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from lapwing.errors import CatalogueError
from lapwing.ledger import limits
from lapwing.ledger.local import registry
from lapwing.ledger.protocol import EntryKind, Ledger


def require_unclaimed(home: Path | None, source_id: str, marks: Mapping[str, AbstractSet[str]], *, override: str) -> None:
    """Refuse (``source-registered``) rows that another data set has claimed and this one has not, unless the owner gives a reason.

    The keys of ``marks`` are sources as the owner names them: a path, or the name of a table.
    """
    books = registry.open_registry(registry.registry_home(home))
    try:
        with books.read() as registered:
            for source, found in marks.items():
                for other in sorted(registry.others_with(registered, source_id, found)):
                    if not override:
                        raise _claimed(source, registry.whereabouts(registered, other))
    finally:
        books.close()


def claim(home: Path | None, ledger: Ledger, source_id: str, marks: AbstractSet[str], *, override: str) -> None:
    """Record for good that these rows belong to this source. An overlap that the owner accepts is recorded in the ledger and the registry.

    Pre: the source is registered.
    """
    limits.require_reason(bool(override), override)
    books = registry.open_registry(registry.registry_home(home))
    try:
        with books.read() as registered:
            others = registry.others_with(registered, source_id, marks)
            new = marks - registry.marks_of(registered, source_id)
        if others and not override:
            raise _claimed("a source", ", ".join(sorted(others)))
        if others:  # in the ledger first: after a crash it is recorded twice rather than not at all
            ledger.record(EntryKind.OVERRIDE, _accepted(others, override))
        if not new:
            return
        with books.write() as registered:
            late = registry.others_with(registered, source_id, marks)
            if late - others and not override:
                raise _claimed("a source", ", ".join(sorted(late)))
            for mark in sorted(new):
                registry.add_fingerprint(registered, source_id, mark)
            anchor = registry.find_anchor(registered, source_id)
            if others and anchor is not None:
                registry.add_act(registered, anchor, EntryKind.OVERRIDE, _accepted(others, override))
    finally:
        books.close()


def _accepted(others: AbstractSet[str], reason: str) -> str:
    return f"source-registered: shares rows with {', '.join(sorted(others))}: {reason}"


def _claimed(source: str, other: str) -> CatalogueError:
    hint = (
        "the same rows share one budget: query that data set or, if its directory is lost, give this one its id;"
        " if the overlap is intended, run `lapwing prepare --override REASON`, which records the reason"
    )
    return CatalogueError("source-registered", f"{source} is, or was, a source of {other}", hint=hint)
