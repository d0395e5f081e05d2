"""Schemas of tables of a session's catalogue and of Parquet paths, for ``lapwing check`` and ``lapwing init``: no row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lapwing.engines.base import SourceField
from lapwing.engines.spark.sessions import base_session, own_session
from lapwing.errors import PreparationError
from lapwing.render.spark import source_kind


def schemas(sources: Sequence[str]) -> list[Mapping[str, SourceField]]:
    """What the columns of some sources hold, and which have no NULL; of Parquet files Spark does not say."""
    session = own_session(base_session())
    found: list[Mapping[str, SourceField]] = []
    for source in sources:
        try:
            frame = session.read.parquet(source) if "/" in source or source.endswith(".parquet") else session.table(source)
            fields = frame.schema.fields
            found.append({field.name: SourceField(source_kind(field.dataType.simpleString()), not field.nullable) for field in fields})
        except Exception as error:  # Spark has a class of errors for each kind of session
            raise PreparationError("source-missing", f"there is no table or Parquet file {source!r} in this session") from error
    return found
