"""Runs of pytest on one small file, with the plugins of the tests: how each of these behaves is seen from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.meta.tree import ROOT

CONFTEST = """
from tests.support.repeatable_draws import RepeatableDraws
from tests.support.second_look import SecondLook
def pytest_configure(config):
    for mark in ("second_look", "unseeded"):
        config.addinivalue_line("markers", mark)
    config.pluginmanager.register(RepeatableDraws())
    config.pluginmanager.register(SecondLook())
"""


def run(directory: Path, file: str, text: str, *options: str, seed: str | None = None) -> tuple[int, str]:
    """The exit status of pytest for this file, and its output."""
    path = directory / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    (directory / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(directory), "--import-mode=importlib"]
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    kept = {name: value for name, value in os.environ.items() if name != "LAPWING_SEED"}
    variables = {**kept, "PYTHONPATH": paths} | ({} if seed is None else {"LAPWING_SEED": seed})
    ended = subprocess.run([*command, *options, file], cwd=directory, env=variables, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr
