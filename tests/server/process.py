"""``lapwing serve`` in a process of its own, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 60


@dataclass
class Running:
    """A server, its address, its directory and somebody's key."""

    process: subprocess.Popen[bytes]
    url: str
    directory: Path
    key: str


def lapwing_in(directory: Path, *arguments: str) -> str:
    """What a command prints that does what it should."""
    done = subprocess.run([sys.executable, "-m", "lapwing.interfaces.cli", *arguments], cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return done.stdout


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def started(directory: Path, serve: tuple[str, ...], *, more: str = "") -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server that is ready, and its address; killed at the end. Nobody else can read the directory.

    ``more`` is added to its configuration, which is then written here: under the last data set.
    """
    os.chmod(directory, 0o700)
    port = free_port()
    if more:
        home = directory / "lapwing-server"
        home.mkdir(mode=0o700)
        listed = "".join(f'[[data_set]]\ncatalogue = "{directory / name}"\n' for name in serve[1:])
        (home / "lapwing-server.toml").write_text(f"[server]\nport = {port}\n{listed}{more}", encoding="utf-8")
        serve = serve[:1]
    command = [sys.executable, "-m", "lapwing.interfaces.cli", *serve, "--port", str(port)]
    process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait_for(f"http://127.0.0.1:{port}", process)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read() if process.stderr else b""
        try:
            with urllib.request.urlopen(f"{url}/health/ready", timeout=2) as reply:
                assert reply.status == 200
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not start")
