"""TLS: a server with a certificate of its own, and clients that trust it, or do not; two worker processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing
from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.server.certificate import write_certificate
from tests.server.process import START_SECONDS, free_port, lapwing_in

pytestmark = pytest.mark.xdist_group("server: encryption")


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path, int]]:
    """Address, key, directory and process of a server with two workers."""
    directory, port = tmp_path_factory.mktemp("encrypted"), free_port()
    lapwing_in(directory, "demo", "clinic", "--patients", "300")
    lapwing_in(directory, "-C", "clinic", "prepare")
    home = directory / "lapwing-server"
    home.mkdir(mode=0o700)
    write_certificate(home)
    said = ["[server]", f"port = {port}", 'certificate = "server.pem"', 'key = "server.key"', "workers = 2"]
    (home / "lapwing-server.toml").write_text("\n".join([*said, "[[data_set]]", f'catalogue = "{directory / "clinic"}"']) + "\n")
    identities = Identities(f"sqlite:///{home / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    key, _ = identities.new_key("ada")
    identities.close()
    process = subprocess.Popen([sys.executable, "-m", "lapwing.interfaces.cli", "serve"], cwd=directory)
    try:
        yield f"https://127.0.0.1:{port}", key, home, process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def _connected(url: str, key: str, home: Path) -> lapwing.RemoteDataSet:
    context = ssl.create_default_context(cafile=str(home / "server.pem"))
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return lapwing.connect(url, token=key, context=context)
        except LapwingError as error:
            if error.code != "server-unreachable" or time.monotonic() > until:
                raise


def _workers(parent: int) -> list[int]:
    """Child processes that serve: those of the parent with the most threads."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "multiprocessing.spawn" in line]


def test_what_is_sent_is_encrypted_and_a_dead_worker_is_replaced(encrypted: tuple[str, str, Path, int]) -> None:
    url, key, home, parent = encrypted
    data_set = _connected(url, key, home)
    first = data_set.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1").to_dict()["rows"]
    with pytest.raises(LapwingError) as untrusted:
        lapwing.connect(url, token=key)
    assert untrusted.value.code == "server-unreachable"
    with pytest.raises(LapwingError) as plain:
        lapwing.connect(url.replace("https", "http"), token=key)
    assert plain.value.code == "server-unreachable"
    workers = _workers(parent)
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    for _ in range(10):
        assert data_set.replay("SELECT COUNT(*) AS n FROM patients", epsilon="0.1").to_dict()["rows"] == first
    until = time.monotonic() + START_SECONDS
    while len(_workers(parent)) < 2 and time.monotonic() < until:
        time.sleep(0.2)
    assert len(_workers(parent)) == 2
    assert not data_set.budget.closed
