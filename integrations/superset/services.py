"""The programs that the trial needs, started in a temporary directory and stopped at its end."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("apache-superset==6.1.0", "psycopg2-binary", "rich", "flask-caching==2.3.1", "cachetools", "selenium")
START_SECONDS_MAX = 300
LAPWING = (sys.executable, "-c", "import sys; from lapwing.interfaces.cli import main; sys.exit(main())")
_CONFIGURATION = """
SECRET_KEY = {key!r}
SQLALCHEMY_DATABASE_URI = "sqlite:///{home}/superset.db?check_same_thread=false"
WTF_CSRF_ENABLED = False  # the scripts log in without a page; leave it on in an installation
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
SUPERSET_WEBSERVER_TIMEOUT = 300
"""


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(command: Sequence[str | Path], log: Path, **other: object) -> Iterator[subprocess.Popen[bytes]]:
    """A program, which is stopped at the end."""
    with log.open("ab") as out:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=out, **other)  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(port: int, process: subprocess.Popen[bytes], path: str | None = None) -> None:
    """Until it answers: by HTTP where a path is given."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        if process.poll() is not None:
            break
        try:
            if path is None:
                socket.create_connection(("127.0.0.1", port), 1).close()
            else:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).close()
            return
        except (OSError, urllib.error.URLError):
            time.sleep(0.3)
    raise SystemExit(f"{process.args!r} did not start; see its log")


# -- PostgreSQL ------------------------------------------------------------------------------------------------------------------------


@contextmanager
def postgres(directory: Path) -> Iterator[str]:
    """A PostgreSQL server of our own, on a socket; gives the directory of the socket."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin")]
    programs = Path(shutil.which("initdb") or max(found) / "initdb").resolve().parent
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    rights: dict[str, object] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    directory.mkdir()
    if user is not None:
        os.chown(directory, user.pw_uid, user.pw_gid)
    data = directory / "data"
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL, **rights
    )  # type: ignore[call-overload]
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={directory}", "-c", "fsync=off"]
    with running([programs / "postgres", "-D", data, *options], directory.parent / "postgres.log", cwd="/", **rights) as process:
        until = time.monotonic() + START_SECONDS_MAX
        while subprocess.run([programs / "pg_isready", "-q", "-h", directory]).returncode:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("PostgreSQL did not start")
            time.sleep(0.2)
        yield str(directory)


# -- Lapwing ---------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Served:
    """A server with the wire over the demonstration."""

    directory: Path
    data_set: str
    key: str
    wire: int

    def address(self, port: int | None = None) -> str:
        """As SQLAlchemy writes it."""
        return f"postgresql://ada:{self.key}@127.0.0.1:{port or self.wire}/{self.data_set}"


def lapwing(directory: Path, *words: str) -> str:
    """What the command line prints."""
    return subprocess.run([*LAPWING, *words], cwd=directory, check=True, capture_output=True, text=True).stdout


@contextmanager
def served(directory: Path, socket_directory: str, patients: int) -> Iterator[Served]:
    """The demonstration, prepared and served."""
    directory.mkdir()
    lapwing(directory, "demo", "clinic", "--patients", str(patients))
    lapwing(directory, "-C", "clinic", "prepare")
    found = re.search(r'(?m)^id = "([^"]+)"', (directory / "clinic" / "lapwing.toml").read_text())
    assert found is not None
    http, wire = free_port(), free_port()
    shadow = f"postgresql://postgres@/postgres?host={socket_directory}"
    command = [*LAPWING, "serve", "clinic", "--port", str(http), "--wire", "--wire-port", str(wire), "--shadow", shadow]
    with running(command, directory.parent / "lapwing.log", cwd=directory) as process:
        wait_for(wire, process)
        lapwing(directory, "access", "grant", "ada", "analyst", "*")
        key = re.search(r"lw_\S+", lapwing(directory, "access", "key", "ada"))
        assert key is not None
        yield Served(directory, found[1], key[0], wire)


# -- Superset --------------------------------------------------------------------------------------------------------------------------


def superset_python(named: str | None, directory: Path) -> Path:
    """The python of an environment with Superset: the named one, or one that is made now."""
    if named:
        return Path(named)
    print("making an environment with Superset (some minutes)", flush=True)
    venv.create(directory / "venv", with_pip=True)
    python = directory / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


@dataclass(frozen=True)
class Superset:
    """A Superset that runs."""

    python: Path
    port: int
    password: str


@contextmanager
def superset(python: Path, home: Path) -> Iterator[Superset]:
    """Superset with its own data in SQLite in ``home``; one that is there already is used again."""
    home.mkdir(exist_ok=True)
    program, password, port = python.parent / "superset", "admin", free_port()
    if not (home / "superset_config.py").exists():
        (home / "superset_config.py").write_text(_CONFIGURATION.format(key=secrets.token_hex(24), home=home))
    environment: Mapping[str, str] = {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")},
        "SUPERSET_CONFIG_PATH": str(home / "superset_config.py"),
        "FLASK_APP": "superset",
    }
    if not (home / "made").exists():
        user = ["--username", "admin", "--firstname", "A", "--lastname", "A", "--email", "admin@localhost", "--password", password]
        for words in (["db", "upgrade"], ["fab", "create-admin", *user], ["init"]):
            with (home / "set-up.log").open("ab") as out:
                subprocess.run([program, *words], check=True, env=environment, stdout=out, stderr=out)
        (home / "made").touch()
    with running([program, "run", "-p", str(port), "--with-threads"], home / "superset.log", env=environment) as process:
        wait_for(port, process, "/health")
        yield Superset(python, port, password)
