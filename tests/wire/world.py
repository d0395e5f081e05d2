"""A server with the wire, in this process, over the demonstration with a large budget; and the truth that its answers are compared with."""

from __future__ import annotations

import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import psycopg
from psycopg.conninfo import conninfo_to_dict

from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.configuration import ListenTo, NewDataSettings, WireSettings
from lapwing.interfaces.wire.declared import declared_tables
from lapwing.interfaces.wire.run import shadow_password, wired
from lapwing.interfaces.wire.shadow.database import make_shadow
from tests.ledger.cluster import Cluster
from tests.server.under_test import ServerUnderTest
from tests.support.rich_clinic import write_rich_clinic

TABLES = ("patients", "visits", "diagnoses", "prescriptions", "clinics")


@dataclass
class WireUnderTest:
    """The server, where its wire listens, and the shadow's database."""

    server: ServerUnderTest
    port: int
    cluster: Cluster

    def dsn(self, who: str = "ada", *, password: str | None = None, **other: str) -> str:
        """How this person connects."""
        key = self.server.keys[who] if password is None else password
        parts = {"host": "127.0.0.1", "port": str(self.port), "user": who, "password": key, "dbname": self.server.data_set, **other}
        return " ".join(f"{name}='{value}'" for name, value in parts.items())

    def url(self, who: str = "ada", scheme: str = "postgresql") -> str:
        """The same as an address."""
        return f"{scheme}://{who}:{self.server.keys[who]}@127.0.0.1:{self.port}/{self.server.data_set}"

    def connect(self, who: str = "ada", **other: Any) -> psycopg.Connection:
        """A connection of psycopg, outside of transactions."""
        return psycopg.connect(self.dsn(who), autocommit=True, **other)

    def psql(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        """What psql prints."""
        return subprocess.run(
            ["psql", "-X", "-v", "VERBOSITY=verbose", *options, self.dsn()], input=script, capture_output=True, text=True, timeout=120
        )

    def truth(self, sql: str) -> list[tuple[Any, ...]]:
        """What is really there."""
        with duckdb.connect() as exact:
            for table in TABLES:
                exact.execute(f"CREATE VIEW {table} AS FROM '{self.server.home / 'clinic' / table}.parquet'")
            return exact.execute(sql).fetchall()

    def spent(self) -> float:
        """The share of the budget that is spent."""
        with self.server.app_state.desk.served[self.server.data_set].opened() as opened:
            return opened.budget.share_spent


def write_rich_demo(directory: Path, *, patients: int = 400) -> None:
    """The demonstration, with so much budget that tests do not run out of it."""
    catalogue = write_rich_clinic(directory, patients=patients, epsilon=400)
    text = catalogue.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^epsilon = 0\.1 .*$", "epsilon = 2", text, count=1)
    catalogue.write_text(text, encoding="utf-8")


def shadow_url(cluster: Cluster, maker: str) -> str:
    """The address of the server of the shadows, as it is configured."""
    parts = conninfo_to_dict(cluster.dsn("postgres", role=maker))
    return f"postgresql://{maker}@/postgres?host={quote(str(parts['host']), safe='')}"


@contextmanager
def wire_over(
    cluster: Cluster,
    home: Path,
    write: Callable[[Path], object] = write_rich_demo,
    *,
    listen: ListenTo | None = None,
    new_data: NewDataSettings | None = None,
    maker: str = "postgres",
    **settings: Any,
) -> Iterator[WireUnderTest]:
    """A server with the wire, over what ``write`` writes to a directory; ``maker`` makes the shadows."""
    shadow = shadow_url(cluster, maker)
    wire = WireSettings(shadow=shadow, port=0, role=f"wire_{abs(hash(home)) % 10**8}", **settings)
    ports: list[int] = []

    @asynccontextmanager
    async def beside(app_state: AppState) -> AsyncIterator[None]:
        for name, served in app_state.desk.served.items():
            with served.opened() as opened:
                tables = declared_tables(opened)
            password = shadow_password(app_state.identities.wire_secret())
            make_shadow(shadow, database=name, role=wire.role, password=password, tables=tables)
        async with wired(app_state, home) as port:
            ports.append(port)
            yield

    with ServerUnderTest.over(write, home, listen=listen, wire=wire, new_data=new_data, beside=beside) as server:
        yield WireUnderTest(server, ports[0], cluster)
