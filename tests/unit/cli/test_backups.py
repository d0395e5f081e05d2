"""Backup and restore: what is kept, who may read it, and that an older ledger is never served because it was restored."""

from __future__ import annotations

import shutil
import tarfile
import tomllib
from pathlib import Path

import pytest

from lapwing.demo import write_demo
from lapwing.errors import LapwingError, PreparationError
from lapwing.owner.backup import back_up, put_back
from tests.unit.cli.support import Ran, run

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    write_demo(tmp_path / "clinic", patients=100)
    assert _run(tmp_path, "prepare").status == 0
    return tmp_path / "clinic"


def _run(base: Path, *arguments: str | Path) -> Ran:
    return run("-C", base / "clinic", *arguments, home=base / "home")


def _lose(clinic: Path) -> None:
    shutil.rmtree(clinic / ".lapwing")
    (clinic / "lapwing.toml").unlink()


def test_a_backup_of_today_goes_on_after_the_directory_was_lost(clinic: Path, tmp_path: Path) -> None:
    asked = _run(tmp_path, "ask", BY_SEX, "--epsilon", "0.2", "--format", "csv")
    done = _run(tmp_path, "backup", tmp_path / "today")
    assert done.status == 0 and "registry" in done.out and (tmp_path / "today").stat().st_mode & 0o077 == 0
    _lose(clinic)
    back = _run(tmp_path, "restore", tmp_path / "today")
    assert back.status == 0 and "matches the one last seen here" in back.out and "differs" not in back.out
    assert all(path.stat().st_mode & 0o077 == 0 for path in (clinic / ".lapwing").iterdir())
    prepared = _run(tmp_path, "prepare")
    assert prepared.status == 0, prepared.err
    assert "Version 2" in prepared.out and asked.status == 0
    history = _run(tmp_path, "history").out
    assert history.count(BY_SEX) == 1  # the charge is there


def test_an_older_backup_is_put_back_and_not_served_until_the_owner_accepts_it(clinic: Path, tmp_path: Path) -> None:
    assert _run(tmp_path, "backup", tmp_path / "old").status == 0
    assert _run(tmp_path, "ask", BY_SEX, "--epsilon", "0.2").status == 0
    before = _run(tmp_path, "budget").out
    _lose(clinic)
    back = _run(tmp_path, "restore", tmp_path / "old")
    assert back.status == 0 and "[ledger-rolled-back]" in back.out and f"lapwing -C {clinic} ledger accept" in back.out
    assert "[ledger-rolled-back]" in _run(tmp_path, "prepare").err
    assert _run(tmp_path, "ledger", "accept", "the disk failed").status == 0
    assert _run(tmp_path, "prepare").status == 0
    assert _run(tmp_path, "budget").out == before  # charged again


@pytest.mark.parametrize("machine", ["the same", "another"])
def test_a_lost_state_beside_its_catalogue_comes_back_with_what_was_spent(clinic: Path, tmp_path: Path, machine: str) -> None:
    """Another machine has no registry, and knows what the backup says; the same one knows what was charged since."""
    assert _run(tmp_path, "ask", BY_SEX, "--epsilon", "0.2").status == 0
    at_backup = _run(tmp_path, "budget").out
    assert _run(tmp_path, "backup", tmp_path / "backup").status == 0
    assert _run(tmp_path, "ask", BY_SEX, "--epsilon", "0.3").status == 0
    at_last = _run(tmp_path, "budget").out
    catalogue = clinic / "lapwing.toml"
    catalogue.write_text(catalogue.read_text() + "\n# edited since\n")
    edited = catalogue.read_text()
    shutil.rmtree(clinic / ".lapwing")
    if machine == "another":
        shutil.rmtree(tmp_path / "home")
    else:
        for command in (("prepare",), ("prepare", "--override", "begin anew")):  # nothing begins anew meanwhile
            refused = _run(tmp_path, *command)
            assert refused.status != 0
            assert "[ledger-missing]" in refused.err
            assert "lapwing restore FILE" in refused.err
    back = _run(tmp_path, "restore", tmp_path / "backup")
    assert back.status == 0, back.err
    assert catalogue.read_text() == edited
    assert "Restored into" in back.out and "lapwing.toml" not in back.out.split("Restored into")[1].splitlines()[0]
    code = "ledger-unregistered" if machine == "another" else "ledger-rolled-back"
    assert f"[{code}]" in back.out
    assert f"lapwing -C {clinic} ledger accept" in back.out
    assert f"[{code}]" in _run(tmp_path, "prepare").err
    assert _run(tmp_path, "ledger", "accept", "the disk failed").status == 0
    assert _run(tmp_path, "prepare").status == 0
    assert _run(tmp_path, "budget").out == (at_backup if machine == "another" else at_last)


def test_another_machine_does_not_begin_anew_without_the_ledger(clinic: Path, tmp_path: Path) -> None:
    (clinic / ".lapwing" / "ledger.sqlite").unlink()
    shutil.rmtree(tmp_path / "home")
    for command in (("prepare",), ("prepare", "--override", "begin anew"), ("ledger", "accept", "begin anew"), ("budget",)):
        refused = _run(tmp_path, *command)
        assert refused.status != 0
        assert "[ledger-missing]" in refused.err
    assert not (clinic / ".lapwing" / "ledger.sqlite").exists()


def test_a_restore_that_is_refused_or_fails_leaves_nothing_behind(clinic: Path, tmp_path: Path) -> None:
    back_up(clinic / "lapwing.toml", tmp_path / "backup")
    other, broken = tmp_path / "other", tmp_path / "broken"
    text = (clinic / "lapwing.toml").read_text()
    name = tomllib.loads(text)["dataset"]["id"]
    for directory, there in ((other, text.replace(name, "another")), (broken, text.replace("format = 1", "format = 1000"))):
        directory.mkdir()
        (directory / "lapwing.toml").write_text(there)
        with pytest.raises(LapwingError):
            put_back(tmp_path / "backup", directory)
        assert [path.name for path in directory.rglob("*") if path.is_file()] == ["lapwing.toml"]
        assert (directory / "lapwing.toml").read_text() == there
    (clinic / ".lapwing" / "ledger.sqlite").unlink()
    with pytest.raises(PreparationError, match="restore-target"):  # half a state: nobody knows which half is newer
        put_back(tmp_path / "backup", clinic)
    assert not (clinic / ".lapwing" / "ledger.sqlite").exists()


def test_nothing_is_overwritten_and_nothing_else_is_unpacked(clinic: Path, tmp_path: Path) -> None:
    back_up(clinic / "lapwing.toml", tmp_path / "backup")
    with pytest.raises(PreparationError, match="restore-target"):
        put_back(tmp_path / "backup", clinic)
    for name in ("../escaped", "state/../../escaped", "state/v000001.duckdb", "keys/.profile"):
        with tarfile.open(tmp_path / "hostile", "w") as archive:
            archive.add(clinic / "lapwing.toml", "lapwing.toml")
            archive.add(clinic / "lapwing.toml", name)
        with pytest.raises(PreparationError, match="backup-invalid"):
            put_back(tmp_path / "hostile", tmp_path / "fresh")
        assert not (tmp_path / "fresh").exists()
    (tmp_path / "noise").write_bytes(b"no archive")
    with pytest.raises(PreparationError, match="backup-invalid"):
        put_back(tmp_path / "noise", tmp_path / "fresh")
    with pytest.raises(PreparationError, match="backup-failed"):
        back_up(clinic / "lapwing.toml", tmp_path / "no such folder" / "backup")
