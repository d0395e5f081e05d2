"""A database of an owner: real roles, a source of a few hundred rows, and a catalogue."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

from lapwing.audit.plan_shapes import grid_sum
from lapwing.catalog import Declaration, Settings, parse
from lapwing.engines.base import Snapshot, silent
from lapwing.engines.postgres import PostgresEngine
from lapwing.engines.postgres.session import Connection, ask, connect
from lapwing.kernel.certify import certify
from lapwing.kernel.exact import ExactTable
from lapwing.kernel.expressions import Column
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, UnitCount, Vector
from lapwing.kernel.laws import DiscreteGaussian
from tests.ledger.cluster import Cluster

KEY = b"p" * 32
ROWS = 400
_numbers = itertools.count(1)
CATALOGUE = """
format = 1
[dataset]
id = "visits.{number}"
engine = "postgres"
connection = "{connection}"
preparation = "{preparation}"
unit = "person"
[budget]
epsilon = 10
[tables.visits]
source = "clinic.visits"
unit = "person_id"
rows_per_unit_max = 5
rows_max = 1_000_000
appended_by = "id"
[tables.visits.columns]
person_id = {{ type = "key" }}
ward = {{ type = "integer", min = 0, max = 4 }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-31 }}
cost = {{ type = "real", min = 0, max = 500, steps = 100 }}
note = {{ type = "text" }}
"""
VISITS = (
    "SELECT CAST(i AS bigint) AS id, CAST(i * 7919 % {units} AS bigint) AS person_id, i % 5 AS ward, DATE '2024-01-01' + i % 366 AS day,"
    " CAST(i * 37 % 50000 AS double precision) / 100 AS cost, 'note ' || i % 11 AS note, 'secret' AS undeclared"
    " FROM generate_series({first}, {last}) i"
)


@dataclass
class Place:
    """Where an owner keeps visits, and what a test does with them."""

    cluster: Cluster
    number: int
    database: str
    units: int = 90
    engines: list[PostgresEngine] = field(default_factory=list)

    @property
    def owner(self) -> str:
        return f"owner_{self.number}"

    @property
    def reader(self) -> str:
        return f"reader_{self.number}"

    def text(self, *, preparation: str = "stored", role: str = "") -> str:
        connection = self.cluster.dsn(self.database, role=role or self.reader)
        return CATALOGUE.format(number=self.number, connection=connection, preparation=preparation)

    def declaration(self, *, preparation: str = "stored", role: str = "") -> Declaration:
        return parse(self.text(preparation=preparation, role=role))

    def as_owner(self) -> Connection:
        return connect(self.cluster.dsn(self.database, role=self.owner))

    def as_superuser(self) -> Connection:
        return connect(self.cluster.dsn(self.database, role="postgres"))

    def engine(
        self, *, preparation: str = "stored", role: str = "", any_reader: bool = False, settings: Settings | None = None
    ) -> PostgresEngine:
        """The engine as the catalogue names it, with the owner's role for preparing."""
        declaration = self.declaration(preparation=preparation, role=role)
        made = PostgresEngine(declaration, settings or Settings(), owner=f"user={self.owner}", any_reader=any_reader)
        self.engines.append(made)
        return made

    def prepare(self, *, version: int = 1, preparation: str = "stored", append_to: int | None = None) -> PostgresEngine:
        engine = self.engine(preparation=preparation)
        engine.prepare(
            self.declaration(preparation=preparation),
            self.text(preparation=preparation),
            version=version,
            ranking_key=KEY,
            progress=silent,
            append_to=append_to,
        )
        return engine

    def add_visits(self, first: int, last: int) -> None:
        with self.as_owner() as connection:
            ask(connection, f"INSERT INTO clinic.visits {VISITS.format(units=self.units, first=first, last=last)}")

    def close(self) -> None:
        for engine in self.engines:
            engine.close()
        with self.cluster.superuser() as connection:
            connection.execute(f"DROP DATABASE {self.database} WITH (FORCE)".encode())


def new_place(cluster: Cluster) -> Place:
    """A new database with ``clinic.visits``."""
    number = next(_numbers)
    place = Place(cluster, number, f"clinic_{number}")
    with cluster.superuser() as connection:
        for role in (place.owner, place.reader):
            connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"CREATE DATABASE {place.database} OWNER {place.owner}".encode())
        connection.execute(f"ALTER DATABASE {place.database} SET log_statement = 'all'".encode())
    with place.as_owner() as connection:
        ask(connection, "CREATE SCHEMA clinic")
        ask(connection, f"CREATE TABLE clinic.visits AS {VISITS.format(units=place.units, first=1, last=ROWS)}")
    return place


def by_ward(snapshot: Snapshot, *, rows_per_unit: int = 5) -> ExactTable:
    """Rows, cost and persons by ward."""
    law = DiscreteGaussian(Fraction(4))
    vectors = (Vector("n", RowCount(), law), Vector("s", grid_sum("cost", 0, 500, 100), law), Vector("u", UnitCount(), law))
    groups = KnownGroups(tuple((ward,) for ward in (0, 1, 2, 3, 4, None)))
    query = Query(Scan("visits", rows_per_unit), (("ward", Column("ward")),), groups, Ranked(), vectors)
    (table,) = snapshot.run(certify(Plan((query,)), snapshot.facts))._tables
    return table


def totals(table: ExactTable) -> list[int]:
    """The sum of each vector."""
    return [sum(vector) for vector in table._vectors]
