"""`lapwing serve` as somebody types it: a process of its own, in a directory of its own."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 60
SECONDS_MAX = 300
"""From `lapwing serve` to a first chart."""


@dataclass
class Started:
    """A server that was started a moment ago, what it printed, and a key of whoever started it."""

    url: str
    said: str
    key: str
    at: float

    @property
    def seconds(self) -> float:
        """How long ago that was."""
        return time.monotonic() - self.at


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def started_in(directory: Path, *, environment: Mapping[str, str] | None = None, configured: str | None = None) -> Iterator[Started]:
    """`lapwing serve` in a directory: with nothing configured, or with what an operator wrote and a key that was made before."""
    port, at = free_port(), time.monotonic()
    variables = os.environ | {"HOME": str(directory / "home"), "PYTHONUNBUFFERED": "1", **(environment or {})}
    said = key = ""
    if configured is not None:
        (directory / "lapwing-server").mkdir(mode=0o700)
        (directory / "lapwing-server" / "lapwing-server.toml").write_text(f"[server]\nport = {port}\n{configured}", encoding="utf-8")
        for role in ("owner", "analyst"):
            _lapwing(directory, variables, "access", "grant", "olga", role, "*")
        found = re.search(r"\blw_\S+", _lapwing(directory, variables, "access", "key", "olga"))
        assert found is not None
        key = found[0]
    process = subprocess.Popen(
        [sys.executable, "-m", "lapwing.interfaces.cli", "serve", *([] if configured is not None else ["--port", str(port)])],
        cwd=directory,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        while configured is None and "can be declared" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        _wait_until_live(f"http://127.0.0.1:{port}/health/live")
        yield Started(f"http://127.0.0.1:{port}", said, key or first_key(directory), at)
    finally:
        process.terminate()
        process.communicate(timeout=START_SECONDS)


def said_on_a_terminal(directory: Path, *, until: str) -> str:
    """What `lapwing serve` prints up to these words to somebody before a terminal; then it is stopped."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "serve", "--port", str(free_port())]
    process = subprocess.Popen(command, cwd=directory, env=os.environ | {"HOME": str(directory)}, stdout=its, stderr=its, stdin=its)
    os.close(its)
    said, end = "", time.monotonic() + START_SECONDS
    try:
        while until not in said:
            assert time.monotonic() < end, said
            said += os.read(ours, 4_096).decode()
    finally:
        process.terminate()
        process.wait(START_SECONDS)
        os.close(ours)
    return said


def first_key(directory: Path) -> str:
    """The key that the server wrote for whoever started it, since no terminal was there to show it."""
    file = directory / "lapwing-server" / "first-key"
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_text(encoding="ascii").strip()


def _lapwing(directory: Path, variables: Mapping[str, str], *words: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "lapwing.interfaces.cli", *words],
        cwd=directory,
        env=dict(variables),
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout


def _wait_until_live(address: str) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.1)
