"""Schemas of tables of a session's catalogue and of Parquet paths, for ``lapwing check`` and ``lapwing init``: no row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lapwing.engines.spark.sessions import base_session, own_session
from lapwing.errors import PreparationError
from lapwing.render.dialect import SourceKind
from lapwing.render.spark import source_kind


def schemas(sources: Sequence[str]) -> list[Mapping[str, SourceKind]]:
    """What the columns of some sources hold."""
    session = own_session(base_session())
    kinds: list[Mapping[str, SourceKind]] = []
    for source in sources:
        try:
            frame = session.read.parquet(source) if "/" in source or source.endswith(".parquet") else session.table(source)
            kinds.append({field.name: source_kind(field.dataType.simpleString()) for field in frame.schema.fields})
        except Exception as error:  # Spark has a class of errors for each kind of session
            raise PreparationError("source-missing", f"there is no table or Parquet file {source!r} in this session") from error
    return kinds
