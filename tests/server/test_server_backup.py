"""A server comes back from a backup with its configuration, roles and log, and gives nothing back: no budget, no key, no role unseen."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

import pytest

from lapwing.demo import write_demo
from lapwing.errors import PreparationError
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.operation.home_backup import back_up_server, put_back_server
from tests.unit.cli.support import Ran, run

pytestmark = pytest.mark.xdist_group("server: backup")
BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


def _run(base: Path, *arguments: str | Path) -> Ran:
    return run(*arguments, home=base / "registry")


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A data set, and beside it the home of a server with one analyst."""
    write_demo(tmp_path / "clinic", patients=100)
    assert _run(tmp_path, "-C", tmp_path / "clinic", "prepare").status == 0
    home = tmp_path / "server"
    home.mkdir(mode=0o700)
    (home / "lapwing-server.toml").write_text("[server]\nport = 1234\n\n[[data_set]]\ncatalogue = '../clinic'\n")
    assert _run(tmp_path, "access", "grant", "ada", "analyst", "*", "--home", home).status == 0
    (home / "audit.jsonl").write_text('{"who": "ada"}\n')
    return home


def _lose(home: Path) -> None:
    shutil.rmtree(home)
    shutil.rmtree(home.parent / "clinic" / ".lapwing")
    (home.parent / "clinic" / "lapwing.toml").unlink()


def test_an_older_backup_gives_back_neither_budget_nor_keys_nor_roles(served: Path, tmp_path: Path) -> None:
    clinic, home = tmp_path / "clinic", served
    key = _run(tmp_path, "access", "key", "ada", "--home", home).out.split()[0]
    done = _run(tmp_path, "backup", tmp_path / "monday", "--home", home)
    assert done.status == 0, done.err
    assert "ledger.sqlite" in done.out
    assert (tmp_path / "monday").stat().st_mode & 0o077 == 0
    # After the backup: a charge, a key revoked, a role withdrawn.
    assert _run(tmp_path, "-C", clinic, "ask", BY_SEX, "--epsilon", "0.2").status == 0
    spent = _run(tmp_path, "-C", clinic, "budget").out
    assert _run(tmp_path, "access", "revoke", key.split("_")[1], "--home", home).status == 0
    assert _run(tmp_path, "access", "withdraw", "ada", "analyst", "*", "--home", home).status == 0
    _lose(home)
    back = _run(tmp_path, "restore", tmp_path / "monday", "--home", home)
    assert back.status == 0, back.err
    assert "[ledger-rolled-back]" in back.out
    assert "1 API keys" in back.out
    assert "lapwing access accept" in back.out
    assert all(path.stat().st_mode & 0o077 == 0 for path in home.iterdir())
    assert (home / "audit.jsonl").read_text() == '{"who": "ada"}\n'
    identities = Identities(f"sqlite:///{home / 'identities.db'}")
    assert identities.of_key(key) is None
    refused = _run(tmp_path, "serve", "--home", home)
    assert "[identities-restored]" in refused.err
    assert _run(tmp_path, "access", "withdraw", "ada", "analyst", "*", "--home", home).status == 0
    assert _run(tmp_path, "access", "accept", " ", "--home", home).status != 0
    assert "in effect again" in _run(tmp_path, "access", "accept", "ada has left", "--home", home).out
    assert "nothing to accept" in _run(tmp_path, "access", "accept", "again", "--home", home).out
    assert "ada has left" in (home / "audit.jsonl").read_text()
    identities.require_accepted()
    assert "[ledger-rolled-back]" in _run(tmp_path, "-C", clinic, "prepare").err
    assert _run(tmp_path, "-C", clinic, "ledger", "accept", "the disk failed").status == 0
    assert _run(tmp_path, "-C", clinic, "prepare").status == 0
    assert _run(tmp_path, "-C", clinic, "budget").out == spent, "what was charged since is charged again"


def test_a_data_set_that_is_still_there_is_left_as_it_is(served: Path, tmp_path: Path) -> None:
    written = back_up_server(served, tmp_path / "backup")
    assert list(written.data_sets) == [(tmp_path / "clinic").resolve()]
    shutil.rmtree(served)
    ledger = (tmp_path / "clinic" / ".lapwing" / "ledger.sqlite").read_bytes()
    back = put_back_server(tmp_path / "backup", served)
    assert back.there_already == ((tmp_path / "clinic").resolve(),)
    assert back.data_sets == {}
    assert (tmp_path / "clinic" / ".lapwing" / "ledger.sqlite").read_bytes() == ledger


@pytest.mark.parametrize("machine", ["the same", "another"])
def test_a_catalogue_that_is_there_without_its_state_gets_its_ledger_back(served: Path, tmp_path: Path, machine: str) -> None:
    clinic = tmp_path / "clinic"
    assert _run(tmp_path, "-C", clinic, "ask", BY_SEX, "--epsilon", "0.2").status == 0
    at_backup = _run(tmp_path, "-C", clinic, "budget").out
    assert _run(tmp_path, "backup", tmp_path / "backup", "--home", served).status == 0
    assert _run(tmp_path, "-C", clinic, "ask", BY_SEX, "--epsilon", "0.3").status == 0
    at_last = _run(tmp_path, "-C", clinic, "budget").out
    shutil.rmtree(served)
    shutil.rmtree(clinic / ".lapwing")
    if machine == "another":
        shutil.rmtree(tmp_path / "registry")
    back = _run(tmp_path, "restore", tmp_path / "backup", "--home", served)
    assert back.status == 0, back.err
    assert "left unchanged" not in back.out
    assert "[ledger-" in _run(tmp_path, "-C", clinic, "prepare").err, "nothing is spent before the owner has accepted the ledger"
    assert _run(tmp_path, "-C", clinic, "ledger", "accept", "the disk failed").status == 0
    assert _run(tmp_path, "-C", clinic, "prepare").status == 0
    assert _run(tmp_path, "-C", clinic, "budget").out == (at_last if machine == "the same" else at_backup)


def test_where_one_data_set_cannot_be_put_back_nothing_is(served: Path, tmp_path: Path) -> None:
    """A catalogue of another data set in its place, or a state that has lost its ledger alone."""
    clinic = tmp_path / "clinic"
    back_up_server(served, tmp_path / "backup")
    shutil.rmtree(served)
    (clinic / ".lapwing" / "ledger.sqlite").unlink()
    refused = _run(tmp_path, "restore", tmp_path / "backup", "--home", served)
    assert refused.status != 0
    assert "[restore-target]" in refused.err
    shutil.rmtree(clinic / ".lapwing")
    text = (clinic / "lapwing.toml").read_text()
    (clinic / "lapwing.toml").write_text(re.sub('(?m)^id = "[^"]*"', 'id = "another"', text))
    assert "[restore-target]" in _run(tmp_path, "restore", tmp_path / "backup", "--home", served).err
    assert not list(served.iterdir())
    assert not (clinic / ".lapwing").exists()
    (clinic / "lapwing.toml").write_text(text)
    assert _run(tmp_path, "restore", tmp_path / "backup", "--home", served).status == 0


def test_identities_in_a_database_are_not_part_of_it(served: Path, tmp_path: Path) -> None:
    text = (served / "lapwing-server.toml").read_text()
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    (served / "lapwing-server.toml").write_text(text.replace("[server]", f"[server]\nidentities = '{elsewhere}'"))
    said = _run(tmp_path, "backup", tmp_path / "backup", "--home", served)
    assert "API keys and grants are in a database" in said.out
    shutil.rmtree(served)
    assert "review `lapwing access list`" in " ".join(_run(tmp_path, "restore", tmp_path / "backup", "--home", served).out.split())


def test_nothing_is_overwritten_and_nothing_else_is_unpacked(served: Path, tmp_path: Path) -> None:
    back_up_server(served, tmp_path / "backup")
    with pytest.raises(PreparationError, match="restore-target"):
        put_back_server(tmp_path / "backup", served)
    for name in ("../escaped", "server/../../escaped", "data-sets/1/..", "data-sets/x"):
        with tarfile.open(tmp_path / "hostile", "w") as archive:
            archive.add(served / "lapwing-server.toml", "server/configuration")
            archive.add(served / "lapwing-server.toml", name)
        with pytest.raises(PreparationError, match="backup-invalid"):
            put_back_server(tmp_path / "hostile", tmp_path / "fresh")
        assert not (tmp_path / "fresh").exists()
    with tarfile.open(tmp_path / "empty", "w") as archive:
        archive.add(served / "audit.jsonl", "server/audit")
    with pytest.raises(PreparationError, match="backup-invalid"):
        put_back_server(tmp_path / "empty", tmp_path / "fresh")
