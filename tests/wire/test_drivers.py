"""Libraries that people use, unchanged: each check compares with the truth, or with what is declared."""

from __future__ import annotations

import asyncio
import datetime
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.docs.pages import ROOT
from tests.wire.world import WireUnderTest

pd = pytest.importorskip("pandas")
asyncpg = pytest.importorskip("asyncpg")
pg8000 = pytest.importorskip("pg8000.native")
adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"
SINCE = "SELECT COUNT(*) AS n FROM patients WHERE birth_year > {}"
LATELY = "SELECT COUNT(DISTINCT patient_id) AS n FROM visits WHERE day >= {}"
FAR = 60
"""Ten times what noise does at this price, and more."""
JAR = Path("/usr/share/java/postgresql.jar")
KEYS = {"clinics": ["clinic_id"], "diagnoses": ["code"], "patients": ["patient_id"], "prescriptions": [], "visits": ["visit_id"]}
COLUMNS = ["visit_id", "patient_id", "day", "started", "clinic_id", "code", "cost", "minutes"]


def _near(wire: WireUnderTest, found: list[tuple[Any, ...]], sql: str = BY_SEX) -> None:
    """Whether an answer has the groups of the truth, and numbers near it."""
    exact = [tuple(row) for row in wire.truth(sql)]
    assert [tuple(row)[:-1] for row in found] == [row[:-1] for row in exact]
    assert all(abs(float(told[-1]) - float(true[-1])) < FAR for told, true in zip(found, exact, strict=True))


def _since(wire: WireUnderTest, found: list[tuple[Any, ...]], year: int = 1980) -> None:
    _near(wire, found, SINCE.format(year))


# -- asyncpg ---------------------------------------------------------------------------------------------------------------------------


async def _fetched(connection: Any, wire: WireUnderTest) -> None:
    _near(wire, [tuple(row) for row in await connection.fetch(BY_SEX)])


async def _with_parameter(connection: Any, wire: WireUnderTest) -> None:
    _since(wire, [tuple(row) for row in await connection.fetch(SINCE.format("$1"), 1980)])


async def _with_date(connection: Any, wire: WireUnderTest) -> None:
    found = await connection.fetch(LATELY.format("$1"), datetime.date(2025, 6, 1))
    _near(wire, [tuple(row) for row in found], LATELY.format("DATE '2025-06-01'"))


async def _described(connection: Any, wire: WireUnderTest) -> None:
    statement = await connection.prepare("SELECT region, AVG(birth_year) AS y, COUNT(*) AS n FROM patients GROUP BY region")
    assert [attribute.type.name for attribute in statement.get_attributes()] == ["text", "float8", "int8"]


async def _by_cursor(connection: Any, wire: WireUnderTest) -> None:
    async with connection.transaction():
        cursor = await connection.cursor(BY_SEX)
        _near(wire, [tuple(row) for row in [*await cursor.fetch(2), *await cursor.fetch(5)]])


async def _reset(connection: Any, wire: WireUnderTest) -> None:
    await connection.execute("SET lapwing.epsilon = 0.5")
    await connection.reset()
    assert await connection.fetchval("SHOW lapwing.epsilon") == ""


async def _copied(connection: Any, wire: WireUnderTest) -> None:
    into = io.BytesIO()
    await connection.copy_from_query(BY_SEX, output=into, format="csv")
    _near(wire, [tuple(line.split(",")) for line in into.getvalue().decode().splitlines()])


async def _refused(connection: Any, wire: WireUnderTest) -> None:
    with pytest.raises(asyncpg.FeatureNotSupportedError):
        await connection.fetch("SELECT * FROM visits")
    assert await connection.fetchval("SELECT 1") == 1


async def _catalogue(connection: Any, wire: WireUnderTest) -> None:
    assert await connection.fetchval("SELECT typname FROM pg_type WHERE oid = $1", 20) == "int8"


async def _pooled(connection: Any, wire: WireUnderTest) -> None:
    """As the tiles of a dashboard do: the same new question at once is charged once."""
    question = "SELECT region, COUNT(*) AS n FROM patients WHERE birth_year > 1937 GROUP BY region ORDER BY region"
    async with asyncpg.create_pool(wire.url(), min_size=6, max_size=6) as pool:
        found = await asyncio.gather(*(pool.fetch(question) for _ in range(6)))
    assert all(rows == found[0] for rows in found)


ASYNCPG: Mapping[str, Callable[[Any, WireUnderTest], Coroutine[Any, Any, None]]] = {
    check.__name__.strip("_"): check
    for check in (*(_fetched, _with_parameter, _with_date, _described, _by_cursor, _reset, _copied, _refused, _catalogue, _pooled),)
}


@pytest.mark.parametrize("check", ASYNCPG.values(), ids=ASYNCPG.keys())
def test_asyncpg(wire: WireUnderTest, check: Callable[[Any, WireUnderTest], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(wire.url())
        try:
            await check(connection, wire)
        finally:
            await connection.close()

    asyncio.run(run())


# -- SQLAlchemy and pandas -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["psycopg", "pg8000"])
def test_sqlalchemy_reflects_and_asks(wire: WireUnderTest, driver: str) -> None:
    engine = sa.create_engine(wire.url(scheme=f"postgresql+{driver}"))
    try:
        about = sa.inspect(engine)
        assert sorted(about.get_table_names()) == sorted(["clinics", "diagnoses", "patients", "prescriptions", "visits"])
        assert [column["name"] for column in about.get_columns("visits")] == COLUMNS
        assert about.get_columns("visits")[5]["comment"] == "NULL while there is no diagnosis"
        assert (about.get_indexes("visits"), about.get_view_names()) == ([], [])
        assert {table: about.get_pk_constraint(table)["constrained_columns"] for table in about.get_table_names()} == KEYS
        found = [(key["constrained_columns"], key["referred_table"], key["referred_columns"]) for key in about.get_foreign_keys("visits")]
        assert sorted(found) == [(["code"], "diagnoses", ["code"]), (["patient_id"], "patients", ["patient_id"])]
        assert "a row belongs to one patient, by patient_id -> patients.patient_id" in str(about.get_table_comment("visits")["text"])
        tables = sa.MetaData()
        tables.reflect(engine)
        patients = tables.tables["patients"]
        query = sa.select(patients.c.sex, sa.func.count().label("n")).where(patients.c.birth_year > 1980).group_by(patients.c.sex)
        with engine.connect() as connection:
            found = [tuple(row) for row in connection.execute(query.order_by(patients.c.sex))]
            _near(wire, found, "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year > 1980 GROUP BY sex ORDER BY sex")
            assert connection.execute(sa.text("SELECT current_schema()")).scalar() == "public"
    finally:
        engine.dispose()


def test_pandas_reads_an_answer(wire: WireUnderTest) -> None:
    engine = sa.create_engine(wire.url(scheme="postgresql+psycopg"))
    try:
        frame = pd.read_sql(BY_SEX, engine)
        assert (list(frame.columns), str(frame.dtypes["n"])) == (["sex", "n"], "int64")
        _near(wire, list(frame.itertuples(index=False, name=None)))
        _since(wire, list(pd.read_sql(sa.text(SINCE.format(":year")), engine, params={"year": 1980}).itertuples(index=False, name=None)))
    finally:
        engine.dispose()


def test_pg8000_asks_with_values(wire: WireUnderTest) -> None:
    connection = pg8000.Connection("ada", host="127.0.0.1", port=wire.port, password=wire.server.keys["ada"], database=wire.server.data_set)
    try:
        _near(wire, connection.run(BY_SEX))
        _since(wire, connection.run(SINCE.format(":year"), year=1980))
        found = connection.run(LATELY.format(":day"), day=datetime.date(2025, 6, 1))
        _near(wire, found, LATELY.format("DATE '2025-06-01'"))
    finally:
        connection.close()


# -- ADBC, ODBC, JDBC, R, pgcli --------------------------------------------------------------------------------------------------------


def test_adbc_gives_arrow_tables(wire: WireUnderTest) -> None:
    with adbc.connect(wire.url()) as connection:
        with connection.cursor() as cursor:
            cursor.execute(BY_SEX)
            _near(wire, [tuple(row.values()) for row in cursor.fetch_arrow_table().to_pylist()])
            cursor.execute("SELECT sex, AVG(birth_year) AS y FROM patients GROUP BY sex")
            assert [str(field.type) for field in cursor.fetch_arrow_table().schema] == ["string", "double"]
            cursor.execute(SINCE.format("$1"), (1980,))
            _since(wire, cursor.fetchall())
            with pytest.raises(adbc.Error):
                cursor.execute("SELECT * FROM visits")
        connection.rollback()
        assert connection.adbc_get_table_schema("visits").names == COLUMNS
        assert connection.adbc_get_objects(depth="tables").read_all().num_rows >= 1


@pytest.mark.parametrize("options", ["", "UseDeclareFetch=1;Fetch=2;", "UseServerSidePrepare=0;"])
def test_odbc_asks_and_lists(wire: WireUnderTest, options: str) -> None:
    pyodbc = pytest.importorskip("pyodbc")
    if not any("PostgreSQL" in driver for driver in pyodbc.drivers()):
        pytest.skip("the ODBC driver of PostgreSQL (odbc-postgresql) is not installed")
    who = f"UID=ada;PWD={wire.server.keys['ada']}"
    login = f"DRIVER=PostgreSQL Unicode;SERVER=127.0.0.1;PORT={wire.port};{who};DATABASE={wire.server.data_set};"
    connection = pyodbc.connect(login + options, autocommit="Declare" not in options)
    try:
        cursor = connection.cursor()
        _near(wire, [tuple(row) for row in cursor.execute(BY_SEX).fetchall()])
        _since(wire, [tuple(row) for row in cursor.execute(SINCE.format("?"), 1980).fetchall()])
        assert [row.column_name for row in cursor.columns(table="visits")] == COLUMNS
        assert "visits" in [row.table_name for row in cursor.tables(schema="public")]
        with pytest.raises(pyodbc.Error):
            cursor.execute("SELECT * FROM visits")
    finally:
        connection.close()


@pytest.fixture(scope="module")
def jdbc(wire: WireUnderTest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What JDBC's checks print."""
    if not JAR.exists() or shutil.which("java") is None:
        pytest.skip("the JDBC driver of PostgreSQL (libpostgresql-jdbc-java) is not installed")
    program = Path(__file__).parent / "clients" / "Jdbc.java"
    (options,) = re.findall("(?m)^options=.*", (ROOT / "docs" / "how-to" / "metabase.md").read_text(encoding="utf-8"))
    arguments = [str(wire.port), wire.server.data_set, "ada", wire.server.keys["ada"], options]
    done = subprocess.run(["java", "-cp", str(JAR), str(program), *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {name: rest for name, _, rest in (line.partition(" ") for line in done.stdout.splitlines())}


JDBC = {
    "tables": "clinics,diagnoses,patients,prescriptions,visits",
    "columns": "int8,int8,date,timestamp,int8,text,float8,int8",
    "remarks": "NULL while there is no diagnosis",
    "schemas": "information_schema,pg_catalog,public",
    "keys": "visits.visit_id",
    "imported": "code.diagnoses.code,patient_id.patients.patient_id",
    "exported": "visit_id.prescriptions.visit_id",
    "described_tables": "public: no secret, free to join on clinic_id",
    "described": "text,float8",
    "fetched": "20",
    "refused": "0A000",
    "valid": "true,public",
    "optioned": "n_lo,n_hi",
}


@pytest.mark.parametrize("check", JDBC)
def test_jdbc_sees_what_is_declared(jdbc: dict[str, str], check: str) -> None:
    assert jdbc[check] == JDBC[check]


def test_jdbc_answers_are_near_the_truth(wire: WireUnderTest, jdbc: dict[str, str]) -> None:
    _near(wire, list(zip("fmx", jdbc["simple"].split(","), strict=True)))
    (once,) = jdbc["prepared"].split(",")
    exact = wire.truth("SELECT COUNT(*), AVG(birth_year) FROM patients WHERE birth_year > 1950 AND sex = 'f'")[0]
    assert abs(float(once.split(":")[0]) - exact[0]) < FAR
    assert abs(float(once.split(":")[1]) - exact[1]) < 20
    _near(wire, [(jdbc["date"],)], LATELY.format("DATE '2025-01-01'"))


def test_jdbc_warns_with_the_error_bar(jdbc: dict[str, str]) -> None:
    assert re.match("n ±[0-9,]+ in every group at 95%; ", jdbc["warned"]), jdbc["warned"]


def test_pgcli_asks(wire: WireUnderTest, tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "pgcli")
    command = [program, "--less-chatty", "-h", "127.0.0.1", "-p", str(wire.port), "-u", "ada", "-d", wire.server.data_set]
    environment = {**os.environ, "PGPASSWORD": wire.server.keys["ada"], "HOME": str(tmp_path)}
    done = subprocess.run([*command, "-c", BY_SEX, "-c", "\\d visits"], env=environment, capture_output=True, text=True, timeout=60)
    rows = [line.split("|")[1:3] for line in done.stdout.splitlines() if line.startswith("| ") and "sex" not in line]
    _near(wire, [(sex.strip(), number.strip()) for sex, number in rows[:3]])
    assert "timestamp without time zone" in done.stdout


def test_r_asks(wire: WireUnderTest) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    library = "RPostgreSQL"
    present = subprocess.run(["Rscript", "-e", f"library({library})"], capture_output=True, timeout=60)
    if present.returncode:
        pytest.skip("R's RPostgreSQL (r-cran-rpostgresql) is not installed")
    login = f"user='ada', password='{wire.server.keys['ada']}', host='127.0.0.1', port={wire.port}, dbname='{wire.server.data_set}'"
    script = (
        f'library({library}); c <- dbConnect(PostgreSQL(), {login}); write.table(dbGetQuery(c, "{BY_SEX}"), col.names=F, row.names=F,'
        ' quote=F); cat(dbListTables(c), "\\n"); cat(dbListFields(c, "visits"), "\\n"); dbDisconnect(c)'
    )
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, timeout=60)
    lines = done.stdout.splitlines()
    _near(wire, [tuple(line.split()) for line in lines[:3]])
    assert {"patients", "visits"} <= set(lines[3].split())
    assert lines[4].split() == COLUMNS
