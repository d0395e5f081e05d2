"""Reading versions with Spark, in a session of our own."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lapwing.catalog import Declaration, Preparation, Settings, parse
from lapwing.engines.arrow import exact_table
from lapwing.engines.prepare import private_table
from lapwing.engines.public_rows import public_rows
from lapwing.engines.salts import group_salt
from lapwing.engines.spark.block_views import BlockViews
from lapwing.engines.spark.sessions import awaited, limited, unlogged
from lapwing.engines.spark.sources import SourceFiles, are_unchanged, source_table
from lapwing.engines.spark.stored import Stored, register_tables
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.render.dialect import GROUP_SALT, RANKING_KEY, Dialect
from lapwing.render.queries import RenderedQuery, render_plan
from lapwing.render.spark import SPARK, WIDE, quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


GRACE_SECONDS = 30.0
"""How long an interrupted plan has to end before it is abandoned."""


class SparkSnapshot:
    """One version, opened for reading. ``session`` is ours alone; its settings are pinned.

    Of a virtual version nothing but public tables is stored: every run reads the files that were there when it was prepared, and no others.
    Where one of them is gone or was written again, every plan is refused before it is charged; where that happens while it runs, it is an
    Incident.
    """

    def __init__(
        self,
        session: SparkSession,
        directory: Path,
        stored: Stored,
        *,
        ranking_key: bytes,
        settings: Settings,
        catalogue_directory: Path | None = None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._facts = stored.facts(settings)
        self._arguments = {GROUP_SALT: group_salt(ranking_key)}
        self._lock = threading.Lock()
        declaration = replace(parse(stored.text, settings=settings), directory=catalogue_directory)
        self._virtual = declaration if declaration.dataset.preparation is Preparation.VIRTUAL else None
        self._files = {name: SourceFiles.of(body) for name, body in stored.files.items()}
        if self._virtual is not None:
            self._arguments[RANKING_KEY] = ranking_key.hex()
        database = register_tables(session, directory, stored)
        self._stored = replace(SPARK, table=lambda table: f"{quoted(database)}.{quoted(table)}")
        self._blocks = None if stored.blocks is None else BlockViews(session, directory, stored)
        if self._blocks is not None:
            self._stored = replace(self._stored, blocks=self._blocks.name)

    @property
    def facts(self) -> Facts:
        """The public facts of this version, from the declaration stored in it."""
        return self._facts

    def check(self, certified: Certified) -> None:
        """Refuse what cannot be run, before anything is charged: other files, a plan of another version, one that cannot be rendered, or
        one that reads blocks of time which have other rows now.
        """
        self._require_rendered(certified)
        if self._blocks is not None:
            self._blocks.require_as_opened(certified)
        if not are_unchanged(self._session, self._files):
            raise PreparationError("snapshot-outdated", "a file of this version was changed or taken away", hint="run prepare")

    def _require_rendered(self, certified: Certified) -> None:
        if certified.facts != self._facts:
            raise PreparationError("version-mismatch", "the plan was certified for another version")
        render_plan(certified, self._stored)

    def run(self, certified: Certified) -> Exact:
        """Run every query of the plan; any fault of the engine becomes the one opaque Incident.

        Each statement's result is collected once, whole, before this returns, and noise is drawn from what was collected: a task that Spark
        runs again changes nothing that was drawn.
        """
        self._require_rendered(certified)
        tables: list[ExactTable] | None = None
        with self._lock, unlogged():
            try:
                limit = self._settings.query_timeout_seconds
                with limited(self._session, limit):
                    tables = awaited(lambda: self._tables(certified), limit + GRACE_SECONDS)
            except Exception:  # no detail may leave: the text of an engine error can carry a value
                tables = None
        if tables is None:
            raise Incident()
        return Exact(tables, certified=certified)

    def _tables(self, certified: Certified) -> list[ExactTable]:
        if self._blocks is not None:
            self._blocks.make(certified)
        if self._virtual is None:
            return [exact_table(self._collect, query) for query in render_plan(certified, self._stored)]
        dialect = self._virtual_dialect(self._virtual)
        tables = [exact_table(self._collect, query) for query in render_plan(certified, dialect)]
        if not are_unchanged(self._session, self._files):
            raise OSError("a file changed since the version was prepared")
        return tables

    def _virtual_dialect(self, declaration: Declaration) -> Dialect:
        """Tables as the SELECTs that prepare them. Nothing checks the number of rows here, so sums are wide."""
        sources = {table.name: source_table(self._session, declaration, table, self._files[table.name]) for table in declaration.tables}
        prepared = {table.name: f"({private_table(table, declaration, sources, self._facts, SPARK)})" for table in declaration.tables}
        return replace(
            self._stored,
            table=lambda table: prepared[table] if table in prepared else self._stored.table(table),
            total=lambda value: f"SUM(CAST({value} AS {WIDE}))",
        )

    def _collect(self, sql: str) -> pa.Table:
        used = {name: value for name, value in self._arguments.items() if SPARK.parameter(name) in sql}
        return self._session.sql(sql, args=used).toArrow()

    def public_rows(self, table: str) -> Mapping[str, Sequence[Value]] | None:
        """The rows of a frozen public table, by column; None where they are too many to be read."""
        with self._lock, unlogged():
            return public_rows(self._collect, table, self._facts.public_table(table), self._stored)

    def explain(self, certified: Certified) -> list[str]:
        """Spark's physical plan of every statement, for the owner's eyes: it holds no row."""
        if self._blocks is not None:
            self._blocks.make(certified)
        return [self._plan(sql) for query in render_plan(certified, self._stored) for sql in _statements(query)]

    def _plan(self, sql: str) -> str:
        used = {name: value for name, value in self._arguments.items() if SPARK.parameter(name) in sql}
        return str(self._session.sql(f"EXPLAIN FORMATTED {sql}", args=used).collect()[0][0])

    def close(self) -> None:
        """Nothing is held open between calls; the session goes with its Spark."""


def _statements(query: RenderedQuery) -> list[str]:
    return [*([query.sql] if query.sql else []), *(item.sql for item in query.quantiles)]
