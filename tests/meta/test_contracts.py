"""Each import contract bites: with one violation planted in a copy of the source, the linter names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

CONTRACTS = [
    contract["id"] for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
]

# Contract to (where the violation goes, what it says). Two names for one contract: the part after "/" only tells them apart.
VIOLATIONS = {
    "layers": ("kernel/planted.py", "import lapwing.catalog\n"),
    "layers/siblings": ("ledger/planted.py", "import lapwing.engines\n"),
    "layers/exhaustive": ("planted.py", ""),
    "kernel-libraries": ("kernel/planted.py", "def f() -> None:\n    import pydantic\n"),
    "duckdb-fence": ("ledger/planted.py", "import duckdb\n"),
    "sqlglot-fence": ("engines/planted.py", "from sqlglot import exp\n"),
    "psycopg-fence": ("ledger/planted.py", "import psycopg\n"),
    "psycopg-fence/engines": ("engines/planted.py", "import psycopg\n"),
    "psycopg-fence/alembic": ("engines/postgres/planted.py", "import alembic\n"),
    "pyspark-fence": ("engines/planted.py", "from pyspark.sql import SparkSession\n"),
    "opendp-fence": ("kernel/planted.py", "import opendp.prelude\n"),
    "noise-protected": ("kernel/planted.py", "from lapwing.kernel import noise\n"),
    "noise-protected/module": ("theory/planted.py", "from lapwing.kernel.noise import additive\n"),
    "permit-protected": ("curator/planted.py", "from lapwing.kernel.permit import issue\n"),
    "permit-protected/kernel": ("kernel/planted.py", "from lapwing.kernel import permit\n"),
    "mechanisms-protected": ("planning/planted.py", "from lapwing.mechanisms import draw\n"),
    "answers-see-noise": ("answers/planted.py", "import lapwing.ledger.protocol\n"),
    "faces": ("cli/planted.py", "def f() -> None:\n    from lapwing.ledger.connect import open_ledger\n"),
    "faces/client": ("client/planted.py", "from lapwing.sql import bind\n"),
    "audit-protected": ("engines/planted.py", "import lapwing.audit\n"),
    "sql-rooms": ("sql/text/planted.py", "from lapwing.sql.scalars import handlers\n"),
    "sql-rooms/answers": ("sql/rows/planted.py", "from lapwing.sql.over_answers import select\n"),
    "sql-rooms/binder": ("sql/over_answers/planted.py", "import lapwing.sql.queries\n"),
    "sql-rooms/exhaustive": ("sql/planted.py", ""),
    "ledger-rooms": ("ledger/local/planted.py", "from lapwing.ledger.postgres import rows\n"),
    "ledger-rooms/postgres": ("ledger/postgres/planted.py", "from lapwing.ledger.local import rows\n"),
    "ledger-rooms/shared": ("ledger/planted.py", ""),
    "no-circles": ("ledger/local/planted.py", "import lapwing.ledger.connect\n"),
}

# What the linter says where it does not name the planted module.
SAID = {"no-circles": ".local -> .connect"}


def test_every_contract_has_a_violation_to_catch() -> None:
    assert {name.partition("/")[0] for name in VIOLATIONS} == set(CONTRACTS)


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_planted_violation_is_caught(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "src" / "lapwing"
    place, text = VIOLATIONS[name]
    (package / place).write_text(text, encoding="utf-8")

    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    contract = name.partition("/")[0]
    run = subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--contract", contract],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 broken" in run.stdout, run.stdout + run.stderr
    assert SAID.get(name, "lapwing." + place.removesuffix(".py").replace("/", ".")) in run.stdout
    assert run.returncode != 0
