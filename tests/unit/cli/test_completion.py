"""``lapwing completion``: real shells complete commands, options and tables without starting Python; a catalogue cannot act on them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pexpect
import pytest
from typer.main import get_command

from lapwing.interfaces.cli.app import app
from tests.unit.cli.support import run

CATALOGUE = """\
[tables.patients]
[tables.patients.columns]
[tables."$(touch acted)"]
[tables.`touch acted`]
[public.places]
"""
ASKED = {
    "lapwing ledger s": {"status", "suspend"},
    "lapwing ask --fo": {"--format"},
    "lapwing ask 'SELECT 1' --format ": {"table", "json", "csv"},
    "lapwing budget --format ": {"table", "json"},
    "lapwing -C set describe p": {"patients", "places"},
    "lapwing -C set/lapwing.toml describe ": {"patients", "places"},
    "lapwing --server ask describe --fo": {"--format"},
    "lapwing completion ": {"bash", "zsh", "fish"},
}
"""What stands on the line, and what may follow."""


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Path:
    """A directory with a data set whose catalogue is hostile, and the scripts; on the path is no ``lapwing``."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")
    for shell in ("bash", "zsh", "fish"):
        printed = run("completion", shell, home=tmp_path)
        assert printed.status == 0, printed.err
        (tmp_path / shell).write_text(printed.out, encoding="utf-8")
    return tmp_path


def _in_bash(place: Path, lines: list[str]) -> list[set[str]]:
    """What is offered for each line, by the function that the script gives to bash, in one process."""
    calls = []
    for line in lines:
        words = [*shlex.split(line), *([""] if line.endswith(" ") else [])]
        calls.append(f'COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _lapwing; echo "${{COMPREPLY[*]}}"')
    script = "\n".join(["source ./bash", *calls])
    ran = subprocess.run(["bash", "--norc", "-c", script], cwd=place, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return [set(offered.split()) for offered in ran.stdout.splitlines()]


def test_bash_completes_commands_options_values_and_tables(place: Path) -> None:
    assert dict(zip(ASKED, _in_bash(place, list(ASKED)), strict=True)) == ASKED
    assert not list(place.rglob("acted")), "a catalogue that somebody else wrote runs nothing"


def test_every_command_is_offered(place: Path) -> None:
    commands = get_command(app)
    (first, after) = _in_bash(place, ["lapwing ", "lapwing release "])
    assert first == set(commands.commands)  # type: ignore[attr-defined]  # typer has a copy of click
    assert {"plan", "run", "query"} <= after


def test_where_nothing_is_known_bash_offers_files(place: Path) -> None:
    assert _in_bash(place, ["lapwing init ", "lapwing -C ", "lapwing ask --receipt "]) == [set(), set(), set()]
    assert "complete -o default -F _lapwing lapwing" in (place / "bash").read_text(encoding="utf-8")


def _fish_quoted(line: str) -> str:
    return "'" + line.replace("'", "\\'") + "'"


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_the_same(place: Path) -> None:
    script = "source ./fish; " + "; ".join(f"complete -C {_fish_quoted(line)} | string split -f1 \\t; echo ----" for line in ASKED)
    ran = subprocess.run(["fish", "--no-config", "-c", script], cwd=place, capture_output=True, text=True, check=True)
    offered = [set(part.split()) for part in ran.stdout.split("----\n")[:-1]]
    assert dict(zip(ASKED, offered, strict=True)) == ASKED
    assert not list(place.rglob("acted"))


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_at_its_prompt(place: Path) -> None:
    zsh = pexpect.spawn(
        "zsh", ["-f", "-i"], cwd=str(place), env={"TERM": "dumb", "ZDOTDIR": str(place), "PATH": "/usr/bin:/bin"}, timeout=30
    )
    zsh.sendline("PROMPT='ready> '; source ./zsh")
    zsh.expect_exact("\rready> ")
    for line, whole in (("lapwing -C set describe pat\t", "patients"), ("lapwing ask --form\t", "--format"), ("lapwing hist\t", "history")):
        zsh.send(line)
        zsh.expect_exact(whole)
        zsh.send("\x15")
    zsh.close(force=True)
    assert not list(place.rglob("acted"))
