"""A second look forgives what chance may do, shows it, and forgives nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.tree import ROOT
from tests.support.second_look import CHANCE_MAX, LOOKED_AT_AGAIN, NEVER_AGAIN, is_looked_at_again

CONFTEST = """
from tests.support.second_look import SecondLook
def pytest_configure(config):
    config.pluginmanager.register(SecondLook())
"""
FAILS_ONCE = """
import pathlib, pytest
@pytest.mark.parametrize("number", range({times}))
def test_it(number):
    mark = pathlib.Path(__file__).with_suffix(f".{{number}}")
    if not mark.exists():
        mark.touch()
        raise AssertionError("what was wrong then")
"""


def run(directory: Path, file: str, text: str, *options: str) -> tuple[int, str]:
    """How pytest ends for this file, and what it says."""
    (directory / file).parent.mkdir(parents=True)
    (directory / file).write_text(text, encoding="utf-8")
    (directory / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        str(directory),
        "--import-mode=importlib",
        *options,
        file,
    ]
    paths = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    ended = subprocess.run(command, cwd=directory, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_what_fails_once_is_forgiven_and_shown(tmp_path: Path, options: tuple[str, ...]) -> None:
    status, text = run(tmp_path, "tests/console/test_one.py", FAILS_ONCE.format(times=CHANCE_MAX), *options)
    assert status == 0 and f"{CHANCE_MAX} passed, {CHANCE_MAX} rerun" in text
    assert text.count("failed at the first look") == CHANCE_MAX and "what was wrong then" in text


@pytest.mark.slow
def test_more_than_chance_is_not_forgiven(tmp_path: Path) -> None:
    status, text = run(tmp_path, "tests/console/test_one.py", FAILS_ONCE.format(times=CHANCE_MAX + 1), "-n", "2")
    assert status == 1 and "are not chance" in text


@pytest.mark.slow
def test_what_fails_twice_fails(tmp_path: Path) -> None:
    status, text = run(tmp_path, "tests/unit/test_one.py", "def test_it():\n    assert False, 'always'\n")
    assert status == 1 and "1 failed, 1 rerun" in text


@pytest.mark.slow
@pytest.mark.parametrize("file", ["tests/ledger/test_one.py", "tests/unit/kernel/test_one.py", "tests/server/test_two_worlds.py"])
def test_what_chance_may_not_fail_has_one_look(tmp_path: Path, file: str) -> None:
    status, text = run(tmp_path, file, FAILS_ONCE.format(times=1))
    assert status == 1 and "1 failed" in text and "rerun" not in text


def test_names_are_of_tests_that_there_are() -> None:
    names = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    for start in LOOKED_AT_AGAIN:
        assert any(name.startswith(start) and is_looked_at_again(name) for name in names), start
    for part in NEVER_AGAIN:
        assert any(name.startswith(LOOKED_AT_AGAIN) and part in name for name in names), part
    for folder in ("attacks", "faults", "games", "ledger", "meta", "properties", "schedules", "theory"):
        assert not any(is_looked_at_again(name) for name in names if name.startswith(f"tests/{folder}/")), folder
