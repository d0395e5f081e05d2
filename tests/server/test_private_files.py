"""Secrets in files that others can read stop the start, and secrets that are typed are refused: everybody sees a list of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import read_configuration
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.private_files import require_private
from lapwing.interfaces.http.run import serve
from tests.server.certificate import write_certificate

pytestmark = pytest.mark.xdist_group("server: configuration")
FILES = ("lapwing-server.toml", "identities.db", "server.key")
OTHER_GROUP = 54_321


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A server's directory that others may enter, with everything in it as it should be."""
    home = tmp_path / "server"
    home.mkdir()
    home.chmod(0o755)
    write_certificate(home)
    (home / "lapwing-server.toml").write_text("[server]\ncertificate = 'server.pem'\nkey = 'server.key'\n")
    Identities(f"sqlite:///{home / 'identities.db'}").close()
    for name in FILES:
        (home / name).chmod(0o600)
    return home


def _required(home: Path) -> None:
    require_private(read_configuration(home / "lapwing-server.toml").secret_files(home))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o666])
def test_a_secret_that_others_can_use_stops_the_start(home: Path, name: str, mode: int) -> None:
    (home / name).chmod(mode)
    with pytest.raises(LapwingError) as refused:
        serve(home, "no.such:factory")
    assert refused.value.code == "server-configuration"
    assert str(home / name) in refused.value.message
    assert refused.value.hint is not None
    subprocess.run(refused.value.hint, shell=True, check=True)  # what it says to do helps
    _required(home)


@pytest.mark.parametrize("name", FILES)
def test_a_group_of_the_server_may_read_and_no_other(home: Path, name: str) -> None:
    for mode in (0o640, 0o440, 0o660):
        (home / name).chmod(mode)
        _required(home)
    os.chown(home / name, -1, OTHER_GROUP)
    with pytest.raises(LapwingError):
        _required(home)


@pytest.mark.parametrize("name", FILES)
def test_a_directory_that_nobody_else_enters_is_enough(home: Path, name: str) -> None:
    (home / name).chmod(0o644)
    home.chmod(0o700)
    _required(home)


def test_what_the_server_writes_is_private_whatever_the_umask(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "access", "key", "ada"]
    home = tmp_path / "lapwing-server"
    home.mkdir()
    (home / "lapwing-server.toml").write_text("")
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, umask=0)
    assert (home / "identities.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--shadow"),
        ("ledger", "install", "--database"),
        ("init", "--engine", "postgres", "--connection"),
        ("conformance", "--postgres"),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("address", ["postgresql://ada:hunter2@db.invalid/x", "host=db.invalid password=hunter2"])
def test_a_password_that_is_typed_is_refused(tmp_path: Path, arguments: tuple[str, ...], address: str) -> None:
    command = [sys.executable, "-m", "lapwing.interfaces.cli", *arguments, address]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2 and "other users of this machine can see" in refused.stderr.replace("\n", " ")
    assert "hunter2" not in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_password_in_a_variable_is_taken(tmp_path: Path) -> None:
    environment = os.environ | {"LAPWING_DATABASE": "host=127.0.0.1 port=1 password=hunter2"}
    command = [sys.executable, "-m", "lapwing.interfaces.cli", "ledger", "install"]
    tried = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment)
    assert tried.returncode != 2 and "everybody" not in tried.stderr
