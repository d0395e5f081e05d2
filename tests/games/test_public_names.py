"""What `lapwing.games` exports exists, is documented, and loads nothing heavy."""

from __future__ import annotations

import re
import subprocess
import sys

import lapwing.games
from tests.meta.tree import DOCS


def test_every_exported_name_exists_and_is_in_the_reference() -> None:
    exported = lapwing.games.__all__
    assert len(set(exported)) == len(exported) and [name for name in exported if not hasattr(lapwing.games, name)] == []
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"`lapwing\.games\.(\w+)`", page)) == sorted(exported)


def test_importing_the_games_loads_nothing_heavy() -> None:
    heavy = ("matplotlib", "numpy", "scipy", "duckdb", "pandas", "opendp", "lapwing.theory", "lapwing.mechanisms")
    code = f"import sys, lapwing.games\nprint([name for name in {heavy!r} if name in sys.modules])\n"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
