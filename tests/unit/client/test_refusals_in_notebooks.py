"""What a refusal looks like where people ask: a few lines in a notebook, and an ordinary traceback everywhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import LapwingError

CELL = """first = 1
clinic.ask("SELECT COUNT(*) AS n FROM patients WHERE incom > 50000")
"""
SHELL = """
import sys
import lapwing
from IPython.core.interactiveshell import InteractiveShell
with lapwing.open(sys.argv[1], home=sys.argv[2]) as clinic:
    InteractiveShell(colors="nocolor", user_ns={"clinic": clinic}).run_cell(sys.argv[3])
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small demonstration, prepared."""
    home = tmp_path_factory.mktemp("refusals")
    write_demo(home / "clinic", patients=50)
    with lapwing.open(home / "clinic", home=home / "home") as opened:
        opened.prepare()
    return home


def test_a_refusal_in_a_notebook_is_code_sentence_hint_and_the_line_of_the_cell(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    arguments = [str(home / "clinic"), str(home / "home"), CELL]
    done = subprocess.run(
        [sys.executable, "-c", SHELL, *arguments], capture_output=True, text=True, env={**os.environ, "IPYTHONDIR": str(tmp_path)}
    )
    sentence, hint, line = done.stdout.splitlines()
    assert sentence.startswith("[unknown-column] ") and sentence.endswith(", at line 1, column 42")
    assert hint == "hint: did you mean 'income'?"
    assert line == f"in line 2: {CELL.splitlines()[1]}"


def test_plain_python_shows_its_traceback(home: Path) -> None:
    with lapwing.open(home / "clinic", home=home / "home") as clinic, pytest.raises(lapwing.Refused) as refused:
        exec(CELL, {"clinic": clinic, "__name__": "__main__"})
    shown = traceback.format_exception(refused.value)
    assert shown[0].startswith("Traceback (most recent call last):")
    assert shown[-1].startswith("lapwing.errors.Refused: [unknown-column] ")


def test_an_error_without_hint_and_place_is_one_line() -> None:
    assert LapwingError("busy", "there is much to do")._render_traceback_() == ["[busy] there is much to do"]
