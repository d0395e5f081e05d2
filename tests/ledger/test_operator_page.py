"""The commands and the SQL of the operator's page, as they stand there, in their order, on a real server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.ledger import PostgresLedger
from tests.ledger.cluster import ROLES, Cluster
from tests.ledger.support import pure_budget, request

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "operate-a-postgres-ledger.md"
BLOCKS = re.compile(r"^ *```(sh|sql)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
FIRST_SQL_BY_SUPERUSER = "CREATE ROLE ledger_schema"
MADE_WITH_THE_SERVER = {f"CREATE ROLE {role} NOLOGIN" for role in (ROLES.curators, ROLES.owners, ROLES.monitors)}
"""The tests' server has these already."""


@pytest.mark.slow
def test_the_page_works_from_nothing(cluster: Cluster, tmp_path: Path) -> None:
    services = tmp_path / "services.conf"
    roles = {"privacy-schema": "ledger_schema", "privacy": "curator", "privacy-monitor": "monitor"}
    services.write_text("".join(f"[{name}]\nhost={cluster.home}\ndbname=privacy\nuser={role}\n" for name, role in roles.items()))
    environment = {**os.environ, "PGSERVICEFILE": str(services), "PYTHONPATH": str(ROOT / "src")}
    blocks = BLOCKS.findall(PAGE.read_text(encoding="utf-8"))
    assert [language for language, _ in blocks].count("sql") == 4 and len(blocks) == 8
    said: list[str] = []
    try:
        for language, text in blocks:
            if language == "sh":
                for line in text.split("\n"):
                    said.append(_run(shlex.split(line), tmp_path, environment) if line.strip() else "")
                if "mkdir" in text:
                    _use(cluster, tmp_path)
            else:
                by_superuser = text.startswith(FIRST_SQL_BY_SUPERUSER)
                dsn = cluster.dsn("postgres", role="postgres") if by_superuser else cluster.dsn("privacy", role="monitor")
                with psycopg.connect(dsn, autocommit=True) as connection:
                    for statement in filter(str.strip, text.split(";\n")):
                        if statement not in MADE_WITH_THE_SERVER:
                            connection.execute(statement.encode())
    finally:
        with cluster.superuser() as connection:
            connection.execute("DROP DATABASE IF EXISTS privacy WITH (FORCE)")
            connection.execute("DROP ROLE IF EXISTS ledger_schema, curator, olga, piet, monitor")
    assert sum("chain, sums, charges, answers, sub-budgets and anchor agree" in text for text in said) == 2
    assert sum(text.startswith("New receipts are signed with") for text in said) == 2
    assert len(list((tmp_path / "keys").glob("*.public.pem"))) == 2 and len(list((tmp_path / "keys").glob("*.private.pem"))) == 1


def _run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "lapwing.interfaces.cli", *command[1:]] if command[0] == "lapwing" else command
    return subprocess.run(command, cwd=directory, env=environment, check=True, capture_output=True, text=True, timeout=300).stdout


def _use(cluster: Cluster, directory: Path) -> None:
    """Something to look after: a ledger with an answer."""
    with PostgresLedger.create(
        cluster.dsn("privacy", role="olga"),
        source_id="clinic",
        source_fingerprint="files",
        budget=pure_budget(10),
        ceiling=pure_budget(10),
        anchors=FileAnchors(directory / "anchors"),
    ) as ledger:
        policy.admit(ledger, "ana")
        permit = ledger.reserve(request("one"))
        assert isinstance(permit, Permit)
        ledger.commit(permit, b"answer")
