"""Blocks of time as relations of a session: a view over the folders of those that a scan reads, and over no others.

Opening a version lists no folder, and asking about a month lists the folders of a month, however many blocks there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.engines.block_rows import require_as_opened
from lapwing.engines.spark.sessions import listed_by_driver
from lapwing.engines.spark.stored import Stored, read_marker, rows_path
from lapwing.errors import PreparationError
from lapwing.kernel.certify import Certified
from lapwing.kernel.ir import Blocks
from lapwing.kernel.workload import scans_of
from lapwing.render.spark import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS_MAX = 200
"""Most views at once: a session keeps the list of files of each."""


class BlockViews:
    """The blocks of one version as they were when it was opened. ``session`` is ours alone."""

    def __init__(self, session: SparkSession, directory: Path, stored: Stored) -> None:
        self._session, self._directory, self._version = session, directory, stored.version
        self._rows = rows_path(directory.resolve(), stored.version)
        self._index = stored.index()
        self._columns = {table: stored.columns[table] for table in self._index.held}
        self._made: dict[str, None] = {}

    def name(self, table: str, blocks: Blocks) -> str:
        """SQL of the view of these blocks of a table."""
        return quoted(_plain_name(table, blocks))

    def require_as_opened(self, certified: Certified) -> None:
        """Refuse a plan that reads blocks which have other rows now than when the version was opened, or none."""
        try:
            now = read_marker(self._directory, self._version).index().prepared
        except PreparationError as error:
            raise PreparationError("snapshot-outdated", "the version is gone", hint="open the data set again") from error
        require_as_opened(certified, self._index.prepared, now)

    def make(self, certified: Certified) -> None:
        """Make the views that a plan reads.

        Folders are removed only after the version has ceased to name them. It still does after they were listed, so the lists are whole;
        where a file goes later, reading it fails.
        """
        scans = [scan for query in certified.plan.queries for scan in scans_of(query.source)]
        needed = {_plain_name(scan.table, scan.blocks): (scan.table, scan.blocks) for scan in scans if scan.blocks is not None}
        missing = {name: needed[name] for name in needed if name not in self._made}
        if not missing:
            return
        for name in list(self._made):
            if len(self._made) + len(missing) > VIEWS_MAX and name not in needed:
                self._session.catalog.dropTempView(name)
                del self._made[name]
        for name, (table, blocks) in missing.items():
            self._view(name, table, blocks)
        self.require_as_opened(certified)
        self._made |= dict.fromkeys(missing)

    def _view(self, name: str, table: str, blocks: Blocks) -> None:
        columns = self._columns[table]
        paths = [str(folder) for folder in self._index.folders(self._rows, table, (blocks.first, blocks.last))]
        if not paths:
            listed = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(column)}" for column, kind in columns)
            self._session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quoted(name)} AS SELECT {listed} WHERE false")
            return
        schema = ", ".join(f"{quoted(column)} {kind}" for column, kind in columns)
        reader = self._session.read.option("recursiveFileLookup", "true").option("mergeSchema", "false").schema(schema)
        with listed_by_driver(self._session, paths):
            reader.parquet(*paths).createOrReplaceTempView(name)


def _plain_name(table: str, blocks: Blocks) -> str:
    return f"_lapwing_{table}_{blocks.first}_{blocks.last}"
