"""One prepared hostile table, with its rows as the reference prepares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path

from lapwing.catalog import Declaration, Settings, load
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot, prepare_snapshot
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import Domain
from lapwing.kernel.exact import ExactTable
from lapwing.kernel.expressions import Column, Expression
from lapwing.kernel.ir import KnownGroups, Measure, Plan, Query, Ranked, Relation, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from tests.support.hostile import CATALOGUE, CATALOGUE_SOURCES, PLACES_SOURCES, hostile_rows, write_rows
from tests.support.reference import Row, prepared_rows

ROWS = 80
LAW = DiscreteGaussian(Fraction(4))
SCAN = Scan("hostile", 1000)


class HostileWorld:
    """The table ``hostile`` of the hostile catalogue: prepared by the engine, and again in Python."""

    def __init__(self, directory: Path, *, seed: int, prepare: Callable[[Declaration], Snapshot] | None = None) -> None:
        catalogue = directory / "lapwing.toml"
        catalogue.write_text(CATALOGUE, encoding="utf-8")
        declaration = load(catalogue)
        table, places = declaration.table("hostile"), declaration.public_table("places")
        raw = hostile_rows(table, rows=ROWS, seed=seed, sources=CATALOGUE_SOURCES, numbered="row_id")
        write_rows(directory / "hostile.parquet", raw, CATALOGUE_SOURCES)
        write_rows(directory / "places.parquet", hostile_rows(places, rows=40, seed=seed, sources=PLACES_SOURCES), PLACES_SOURCES)
        self.snapshot = (prepare or _prepare_in_duckdb)(declaration)
        self.facts = self.snapshot.facts
        self.columns: Mapping[str, Domain] = self.facts.table("hostile").columns
        self.rows: list[Row] = [*prepared_rows(table, self.columns, raw)]

    def certified(self, source: Relation, measures: list[Measure], *, key: Expression | None = None) -> Certified:
        """A certified query of these measures, by row unless another key is given; its groups are all row numbers."""
        vectors = tuple(Vector(f"v{i}", measure, LAW) for i, measure in enumerate(measures))
        groups = KnownGroups(tuple((number,) for number in range(ROWS)))
        query = Query(source, (("k", key or Column("row_id")),), groups, Ranked(), vectors)
        return certify(Plan((query,)), self.facts)

    def by_row(self, source: Relation, measures: list[Measure]) -> dict[int, list[int]]:
        """What the engine gives for every row: one exact integer per measure."""
        table = self.run(self.certified(source, measures))
        return {
            int(group[0]): [int(vector[position]) for vector in table._vectors]
            for position, group in enumerate(table._groups)
            if isinstance(group[0], int)
        }

    def run(self, certified: Certified) -> ExactTable:
        """The exact table of a plan with one query."""
        (table,) = self.snapshot.run(certified)._tables
        return table


def _prepare_in_duckdb(declaration: Declaration) -> Snapshot:
    assert declaration.directory is not None
    key, target = b"k" * 32, declaration.directory / "v1.duckdb"
    prepare_snapshot(declaration, CATALOGUE, target, version=1, ranking_key=key, settings=Settings())
    return DuckDBSnapshot(target, ranking_key=key)
