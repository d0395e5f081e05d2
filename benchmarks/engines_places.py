"""Where both sides of a comparison live: an ordinary table of an engine, and versions prepared from it by that engine.

CPU time is that of this process and of the processes the engine works in: the server and all that it started, or the JVM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from benchmarks.engines_data import World, catalogue
from benchmarks.files import RANKING_KEY
from benchmarks.spent import Spent, spent

from lapwing.catalog import Declaration, Settings, parse
from lapwing.engines.base import Engine, Snapshot, silent
from lapwing.engines.postgres.prepare import schema_name
from lapwing.engines.postgres.session import ask, connect, transaction
from lapwing.engines.registry import engine_of

if TYPE_CHECKING:
    from tests.ledger.cluster import Cluster

_TICKS = os.sysconf("SC_CLK_TCK")
_OWNER, _READER, _SOURCE_READER, _DATABASE = "shop_owner", "shop_reader", "shop_source_reader", "shop"
_TYPES = "visit_id bigint, user_id bigint, item integer, day date, region text, product integer, amount double precision, duration integer"


@dataclass(frozen=True, slots=True)
class Place:
    """An engine with an ordinary copy of both tables."""

    name: str
    world: World
    rows: int
    settings: Settings
    visits: str
    """Name of the ordinary table."""
    members: str
    sources: tuple[str, str]
    """What a catalogue says where the rows are."""
    connections: Mapping[str, str]
    """Of the role that answers, by kind of preparation."""
    run_bare: Callable[[str], object]
    engine_cpu_seconds: Callable[[], float]
    """CPU time so far of the engine's own processes."""
    engine_peak_bytes: Callable[[], int]
    """Largest resident size of one of the engine's processes so far; 0 where the engine is in this process."""
    load_more: Callable[[Path], None]
    """Put the rows of one more Parquet file into the owner's table."""
    bytes_of: Callable[[Declaration, int], int]
    """Size of a version."""

    def bare(self, sql: str) -> object:
        """Run SQL that names {visits} and {members}."""
        return self.run_bare(sql.format(visits=self.visits, members=self.members))

    def text(self, preparation: str) -> str:
        """The catalogue."""
        visits, members = self.sources
        return catalogue(
            engine=self.name,
            connection=self.connections.get(preparation, ""),
            preparation=preparation,
            visits=visits,
            members=members,
            rows=self.rows,
        )

    def state(self, preparation: str) -> Path:
        """Where the engine may keep versions."""
        return self.world.directory / f"{self.name}-{preparation}"

    def engine(self, preparation: str) -> Engine:
        """The engine as the catalogue names it."""
        return engine_of(parse(self.text(preparation)), self.state(preparation), self.settings)

    def prepare(self, version: int, *, preparation: str = "stored", append_to: int | None = None) -> Spent:
        """The owner's act."""
        text, engine = self.text(preparation), self.engine(preparation)
        self.state(preparation).mkdir(exist_ok=True)
        try:
            return self.spent(
                lambda: engine.prepare(parse(text), text, version=version, ranking_key=RANKING_KEY, progress=silent, append_to=append_to)
            )
        finally:
            engine.close()

    @contextmanager
    def opened(self, version: int, *, preparation: str = "stored") -> Iterator[Snapshot]:
        """A version, open for reading."""
        engine = self.engine(preparation)
        snapshot = engine.open(version, ranking_key=RANKING_KEY)
        try:
            yield snapshot
        finally:
            snapshot.close()
            engine.close()

    def bytes(self, version: int) -> int:
        """Size of a stored version."""
        return self.bytes_of(parse(self.text("stored")), version)

    def spent(self, action: Callable[[], object]) -> Spent:
        """Run an action once; CPU time of this process and of the engine's."""
        before = self.engine_cpu_seconds()
        found = spent(action)
        return Spent(found.cpu_seconds + self.engine_cpu_seconds() - before, found.wall_seconds, found.peak_bytes)


@contextmanager
def on_duckdb(world: World, *, rows: int, settings: Settings) -> Iterator[Place]:
    """An ordinary table in a file of DuckDB's own, in the order of the source."""
    path = world.directory / "bare.duckdb"
    if not path.exists():
        with duckdb.connect(str(path), config={"memory_limit": f"{settings.memory_limit_bytes}B"}) as connection:
            connection.execute(f"CREATE TABLE visits AS SELECT * FROM {world.reader}")
            connection.execute(f"CREATE TABLE members AS SELECT * FROM read_parquet('{world.members}'); CHECKPOINT")
    bare = duckdb.connect(str(path), read_only=True, config={"memory_limit": f"{settings.memory_limit_bytes}B"})

    def version_bytes(_declaration: Declaration, version: int) -> int:
        return (world.directory / "duckdb-stored" / f"v{version:06d}.duckdb").stat().st_size

    try:
        yield Place(
            name="duckdb",
            world=world,
            rows=rows,
            settings=settings,
            visits="visits",
            members="members",
            sources=(f"{world.visits}/*.parquet", str(world.members)),
            connections={},
            run_bare=lambda sql: bare.sql(sql).to_arrow_table(),
            engine_cpu_seconds=lambda: 0.0,
            engine_peak_bytes=lambda: 0,
            load_more=lambda _path: None,
            bytes_of=version_bytes,
        )
    finally:
        bare.close()


@contextmanager
def on_postgres(world: World, *, rows: int, settings: Settings) -> Iterator[Place]:
    """Ordinary tables of a temporary server on disk, loaded in the order of the source and vacuumed; a role prepares, another answers."""
    from tests.ledger.cluster import Cluster

    options = ("shared_buffers=1GB", "max_wal_size=16GB", "autovacuum=off", "checkpoint_timeout=1h", "synchronous_commit=off")
    world.directory.chmod(0o755)
    cluster = Cluster(options, within=world.directory)
    before = os.environ.get("LAPWING_POSTGRES_OWNER")
    os.environ["LAPWING_POSTGRES_OWNER"] = f"user={_OWNER}"
    try:
        _create(cluster, world)
        owner = connect(cluster.dsn(_DATABASE, role=_OWNER))

        def run_bare(sql: str) -> object:
            with transaction(owner, settings, read_only=True) as connection:
                return ask(connection, sql)

        def load_more(path: Path) -> None:
            _load(owner, "shop.visits", path)

        def version_bytes(declaration: Declaration, version: int) -> int:
            schema = schema_name(declaration.dataset.id, version)
            sizes = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            return int(ask(owner, f"{sizes} WHERE c.relkind = 'r' AND n.nspname = $1", [schema])[0][0])

        yield Place(
            name="postgres",
            world=world,
            rows=rows,
            settings=settings,
            visits="shop.visits",
            members="shop.members",
            sources=("shop.visits", "shop.members"),
            connections={"stored": cluster.dsn(_DATABASE, role=_READER), "virtual": cluster.dsn(_DATABASE, role=_SOURCE_READER)},
            run_bare=run_bare,
            engine_cpu_seconds=lambda: _server_cpu_seconds(cluster),
            engine_peak_bytes=lambda: max(map(_peak_bytes, cluster.children()), default=0),
            load_more=load_more,
            bytes_of=version_bytes,
        )
        owner.close()
    finally:
        if before is None:
            del os.environ["LAPWING_POSTGRES_OWNER"]
        else:
            os.environ["LAPWING_POSTGRES_OWNER"] = before
        cluster.close()


def _create(cluster: Cluster, world: World) -> None:
    with cluster.superuser() as connection:
        for role in (_OWNER, _READER, _SOURCE_READER):
            connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"CREATE DATABASE {_DATABASE} OWNER {_OWNER}".encode())
    with connect(cluster.dsn(_DATABASE, role=_OWNER)) as owner:
        ask(owner, "CREATE SCHEMA shop")
        ask(owner, f"CREATE TABLE shop.visits ({_TYPES})")
        ask(owner, "CREATE TABLE shop.members (user_id bigint, tier text)")
        for path in sorted(world.visits.iterdir()):
            _load(owner, "shop.visits", path)
        _load(owner, "shop.members", world.members)
        ask(owner, "VACUUM (FREEZE, ANALYZE) shop.visits")
        ask(owner, "VACUUM (FREEZE, ANALYZE) shop.members")
        ask(owner, f"GRANT USAGE ON SCHEMA shop TO {_SOURCE_READER}")
        ask(owner, f"GRANT SELECT ON ALL TABLES IN SCHEMA shop TO {_SOURCE_READER}")


def _load(owner: Any, table: str, path: Path) -> None:
    """Rows of a Parquet file, as CSV through the client's own COPY."""
    text = path.with_suffix(".csv")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT * FROM read_parquet('{path}')) TO '{text}' (FORMAT csv, HEADER false)")
    try:
        with text.open("rb") as lines, owner.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
            while block := lines.read(2**20):
                copy.write(block)
    finally:
        text.unlink()


def _server_cpu_seconds(cluster: Cluster) -> float:
    """All that the server and its children took; those that ended (parallel workers) are counted by the server that waited for them.

    A child ends after its connection: read again until none was waited for meanwhile. It then counts once, here or there.
    """
    assert cluster.server is not None
    server, waited, running = cluster.server.pid, -1.0, 0.0
    while True:
        own, ended = _cpu_seconds(server)
        if ended == waited:
            return own + ended + running
        waited, running = ended, sum(sum(_cpu_seconds(child)) for child in _children(server))


def _children(process: int) -> list[int]:
    """Children that nobody waited for yet, those that ended included."""
    listed = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return [child for child in listed if (fields := _stat(child)) and int(fields[1]) == process]


def _cpu_seconds(process: int) -> tuple[float, float]:
    """Its own, and of its children that it waited for."""
    fields = _stat(process)
    return (sum(map(int, fields[11:13])) / _TICKS, sum(map(int, fields[13:15])) / _TICKS) if fields else (0.0, 0.0)


def _stat(process: int) -> list[str]:
    """What the system says of a process, from its state on; nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _peak_bytes(process: int) -> int:
    """Largest resident size, memory shared with other processes of the server included."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


@contextmanager
def on_spark(world: World, *, rows: int, settings: Settings) -> Iterator[Place]:
    """The owner's Parquet files as they are, in a session with the settings of ours."""
    from pyspark.sql import SparkSession

    from lapwing.engines.spark.sessions import LOCAL, own_session, use_session

    builder = SparkSession.builder.master("local[2]").appName("lapwing benchmark")
    warehouse = {"spark.sql.warehouse.dir": str(world.directory / "warehouse"), "spark.sql.catalogImplementation": "in-memory"}
    for name, value in {**LOCAL, **warehouse, "spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "8"}.items():
        builder = builder.config(name, value)
    base = builder.getOrCreate()
    base.sparkContext.setLogLevel("OFF")
    use_session(base)
    session = own_session(base)
    java = base.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    session.read.parquet(str(world.visits)).createOrReplaceTempView("visits")
    session.read.parquet(str(world.members)).createOrReplaceTempView("members")

    def version_bytes(_declaration: Declaration, version: int) -> int:
        directory = world.directory / "spark-stored" / f"v{version:06d}.spark"
        return sum(path.stat().st_size for path in directory.rglob("*.parquet"))

    try:
        yield Place(
            name="spark",
            world=world,
            rows=rows,
            settings=settings,
            visits="visits",
            members="members",
            sources=(f"{world.visits}/*.parquet", str(world.members)),
            connections={},
            run_bare=lambda sql: session.sql(sql).toArrow(),
            engine_cpu_seconds=lambda: _cpu_seconds(java)[0],
            engine_peak_bytes=lambda: _peak_bytes(java),
            load_more=lambda _path: None,
            bytes_of=version_bytes,
        )
    finally:
        use_session(None)
        base.stop()


PLACES = {"duckdb": on_duckdb, "postgres": on_postgres, "spark": on_spark}
