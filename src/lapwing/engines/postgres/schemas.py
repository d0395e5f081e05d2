"""Schemas of the owner's tables, for ``lapwing check`` and ``lapwing init``: the server's own catalogue, and no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lapwing.catalog import Settings
from lapwing.engines.postgres.prepare import owners_words
from lapwing.engines.postgres.session import connect, transaction
from lapwing.engines.postgres.sources import source_kinds
from lapwing.render.dialect import SourceKind


def schemas(connection: str, sources: Sequence[str], settings: Settings) -> list[Mapping[str, SourceKind]]:
    """What the columns of some tables hold."""
    with owners_words(), connect(connection) as opened, transaction(opened, settings, read_only=True) as reading:
        return [source_kinds(reading, source) for source in sources]
