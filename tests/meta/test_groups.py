"""Tests of one group run in one process: the runner and what distributes its tests must fit each other, or groups are left out silently."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MODULE = """
import os
import pathlib

import pytest

pytestmark = pytest.mark.xdist_group("a group: of tests")


@pytest.mark.parametrize("number", range(8))
def test_it(number):
    pathlib.Path(f"{number}.pid").write_text(str(os.getpid()))
"""


def test_a_group_stays_together(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MODULE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "test_it.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert len({path.read_text() for path in tmp_path.glob("*.pid")}) == 1
    assert len([*tmp_path.glob("*.pid")]) == 8
