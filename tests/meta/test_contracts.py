"""Each import contract bites: with one violation planted in a copy of the source, the linter names it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.meta.tree import ROOT

CONTRACTS = [
    contract["id"] for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
]

# Contract to (where the violation goes, what it says). Two names for one contract: the part after "/" only tells them apart.
VIOLATIONS = {
    "layers": ("kernel/planted.py", "import lapwing.catalog\n"),
    "layers/siblings": ("ledger/planted.py", "import lapwing.engines\n"),
    "layers/contribution": ("contribution/planted.py", "import lapwing.planning\n"),
    "layers/curator": ("curator/planted.py", "import lapwing.asking\n"),
    "layers/audit": ("audit/planted.py", "import lapwing.interfaces.python\n"),
    "layers/exhaustive": ("planted.py", ""),
    "kernel-libraries": ("kernel/planted.py", "def f() -> None:\n    import pydantic\n"),
    "duckdb-fence": ("ledger/planted.py", "import duckdb\n"),
    "sqlglot-fence": ("engines/planted.py", "from sqlglot import exp\n"),
    "psycopg-fence": ("ledger/planted.py", "import psycopg\n"),
    "psycopg-fence/engines": ("engines/planted.py", "import psycopg\n"),
    "psycopg-fence/alembic": ("engines/postgres/planted.py", "import alembic\n"),
    "pyspark-fence": ("engines/planted.py", "from pyspark.sql import SparkSession\n"),
    "opentelemetry-fence": ("interfaces/http/planted.py", "from opentelemetry import trace\n"),
    "opendp-fence": ("kernel/planted.py", "import opendp.prelude\n"),
    "opendp-fence/mechanisms": ("mechanisms/sampling/planted.py", "import opendp.prelude\n"),
    "noise-protected": ("kernel/planted.py", "from lapwing.kernel import noise\n"),
    "noise-protected/module": ("theory/planted.py", "from lapwing.kernel.noise import additive\n"),
    "permit-protected": ("curator/planted.py", "from lapwing.kernel.permit import issue\n"),
    "permit-protected/kernel": ("kernel/planted.py", "from lapwing.kernel import permit\n"),
    "mechanisms-protected": ("planning/planted.py", "from lapwing.mechanisms import draw\n"),
    "answers-see-noise": ("answers/planted.py", "import lapwing.ledger.protocol\n"),
    "interfaces-reach": ("interfaces/cli/planted.py", "def f() -> None:\n    from lapwing.ledger.connect import open_ledger\n"),
    "interfaces-reach/python": ("interfaces/python/planted.py", "from lapwing.sql import bind\n"),
    "interfaces-reach/console": ("interfaces/console/planted.py", "from lapwing.kernel import accounting\n"),
    "console": ("interfaces/console/planted.py", "from lapwing.curator.curator import Curator\n"),
    "interfaces/exhaustive": ("interfaces/planted.py", ""),
    "interfaces": ("interfaces/console/planted.py", "import lapwing.interfaces.wire\n"),
    "games-alone": ("games/planted.py", "from lapwing.mechanisms import selection\n"),
    "games-alone/libraries": ("games/planted.py", "import numpy\n"),
    "games-protected": ("planning/planted.py", "import lapwing.games\n"),
    "audit-protected": ("engines/planted.py", "import lapwing.audit\n"),
    "sql-packages": ("sql/text/planted.py", "from lapwing.sql.scalars import handlers\n"),
    "sql-packages/answers": ("sql/rows/planted.py", "from lapwing.sql.over_answers import select\n"),
    "sql-packages/binder": ("sql/over_answers/planted.py", "import lapwing.sql.queries\n"),
    "sql-packages/exhaustive": ("sql/planted.py", ""),
    "ledger-packages": ("ledger/local/planted.py", "from lapwing.ledger.postgres import rows\n"),
    "ledger-packages/postgres": ("ledger/postgres/planted.py", "from lapwing.ledger.local import rows\n"),
    "ledger-packages/shared": ("ledger/planted.py", ""),
    "no-circles": ("ledger/local/planted.py", "import lapwing.ledger.connect\n"),
}

# What the linter says where it does not name the planted module.
SAID = {"no-circles": ".local -> .connect"}


def test_every_contract_has_a_violation_to_catch() -> None:
    assert {name.partition("/")[0] for name in VIOLATIONS} == set(CONTRACTS)


# Runs in the copy: one violation after the other, each alone, and what the linter says to it.
LINT_EACH = """
import contextlib, io, json, pathlib, sys
from importlinter.cli import lint_imports

found = {}
for name, (place, text) in json.load(sys.stdin).items():
    file = pathlib.Path("src/lapwing") / place
    assert not file.exists(), f"{file} is there already"
    file.write_text(text, encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = lint_imports(limit_to_contracts=(name.partition("/")[0],), cache_dir=".cache")
    found[name] = status, said.getvalue()
    file.unlink()
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """The linter's exit status and words for every violation: one copy of the source, one process."""
    copy = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    run = subprocess.run(
        [sys.executable, "-c", LINT_EACH],
        input=json.dumps(VIOLATIONS),
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found: dict[str, tuple[int, str]] = json.loads(run.stdout)
    return found


@pytest.mark.xdist_group("contracts")  # the copy is made once
@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_planted_violation_is_caught(name: str, verdicts: dict[str, tuple[int, str]]) -> None:
    status, said = verdicts[name]
    assert "1 broken" in said, said
    assert SAID.get(name, "lapwing." + VIOLATIONS[name][0].removesuffix(".py").replace("/", ".")) in said
    assert status != 0
