"""`lapwing serve --wire` as a process with two workers, from an empty directory; and many who come and go."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.ledger.cluster import Cluster
from tests.server.process import START_SECONDS, free_port, lapwing_in
from tests.support.sizes import size
from tests.wire.world import WireUnderTest

COUNT = "SELECT COUNT(*) AS n FROM patients"


def test_the_wire_wants_to_know_where_its_shadows_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "serve", "clinic", "--wire"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--wire needs --shadow" in done.stderr
    assert not (tmp_path / "lapwing-server").exists()


@pytest.mark.soak("every other test of the wire runs the same worker in its own process, with shadows made in the same way")
def test_the_page_from_an_empty_directory(shared_cluster: Cluster, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    port, wire_port = free_port(), free_port()
    lapwing_in(tmp_path, "demo", "clinic", "--patients", "300")
    lapwing_in(tmp_path, "-C", "clinic", "prepare")
    shadow = f"postgresql://postgres@/postgres?host={shared_cluster.home}"
    options = ["--port", str(port), "--wire", "--shadow", shadow, "--wire-port", str(wire_port)]
    environment = {**os.environ, "LAPWING_SERVER_WORKERS": "2", "LAPWING_WIRE_ROLE": "wire_process"}
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "serve", "clinic", *options]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        data_set = re.search(r'(?m)^id = "([^"]+)"', (tmp_path / "clinic" / "lapwing.toml").read_text())
        assert data_set is not None
        while not (tmp_path / "lapwing-server" / "identities.db").exists():
            assert process.poll() is None
            time.sleep(0.2)
        lapwing_in(tmp_path, "access", "grant", "ada", "analyst", "*")
        key = lapwing_in(tmp_path, "access", "key", "ada").strip()
        dsn = f"host=127.0.0.1 port={wire_port} user=ada dbname={data_set[1]} password={key}"
        answers = {_asked(dsn, process) for _ in range(6)}  # whichever of the workers answers
        assert len(answers) == 1
    finally:
        process.terminate()
        process.wait(timeout=60)
        assert process.stderr is not None
        process.stderr.close()


def _asked(dsn: str, process: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                row = connection.execute(COUNT).fetchone()
                assert row is not None
                return int(row[0])
        except psycopg.OperationalError:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.3)


def test_many_come_and_go_and_nothing_is_left(wire: WireUnderTest) -> None:
    asyncpg = pytest.importorskip("asyncpg")
    with wire.connect() as connection:
        once = connection.execute(COUNT).fetchone()
    spent = wire.spent()

    async def visit(number: int, gate: asyncio.Semaphore) -> None:
        async with gate:
            connection = await asyncpg.connect(wire.url(), timeout=60)
            assert await connection.fetchval("SELECT relname FROM pg_class WHERE relname = $1", "visits") == "visits"
            assert (await connection.fetchval(COUNT),) == once
            if number % 3:
                await connection.close()
            else:
                connection.terminate()  # some go without a word

    async def crowd() -> None:
        gate = asyncio.Semaphore(50)
        await asyncio.gather(*(visit(number, gate) for number in range(size("visitors of the wire"))))

    asyncio.run(crowd())
    assert wire.spent() == spent
    settings = wire.server.app_state.configuration.wire
    assert settings is not None
    with psycopg.connect(wire.cluster.dsn("postgres", role="postgres")) as shadow:
        query = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
        (open_links,) = shadow.execute(query, (settings.role,)).fetchone() or (99,)
    assert open_links <= settings.shadow_connections
