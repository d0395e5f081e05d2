"""The how-to from nothing to a first answer runs, step by step, on a real server with the roles it makes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from lapwing.engines.postgres.session import ask, connect
from tests.ledger.cluster import Cluster
from tests.meta.tree import DOCS, ROOT

PAGE = DOCS / "how-to" / "postgresql.md"
_BLOCK = re.compile(r"^```(sql|toml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WHO = re.compile(r"-- as (\w+) in (\w+)\n")


def test_every_step_of_the_page(cluster: Cluster, tmp_path: Path) -> None:
    directory, home = tmp_path / "here", tmp_path / "home"
    directory.mkdir()
    program = tmp_path / "bin" / "lapwing"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lapwing.cli "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PGHOST": str(cluster.home),
        "LAPWING_HOME": str(home),
    }
    answers: list[str] = []
    blocks = _BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert [kind for kind, _ in blocks].count("sh") == 3
    for kind, text in blocks:
        match kind:
            case "sql":
                who = _WHO.match(text)
                assert who is not None, "a block of SQL says who runs it"
                _run_sql(cluster.dsn(who[2], role=who[1]), text)
            case "toml":
                (directory / "lapwing.toml").write_text(text, encoding="utf-8")
            case _:
                ran = subprocess.run(["sh", "-e", "-c", text], cwd=directory, env=environment, capture_output=True, text=True, check=False)
                assert ran.returncode == 0, ran.stdout + ran.stderr
                answers.append(ran.stdout)
    assert all(ward in answers[0] for ward in ("north", "south", "west"))
    assert "Version 2" in answers[1]
    assert "Version 3" in answers[2]
    with connect(cluster.dsn("clinic", role="postgres")) as connection:
        # version 1 became version 2; the virtual version 3 holds no rows
        found = ask(connection, "SELECT nspname::text FROM pg_namespace WHERE nspname ~ '^lapwing_' ORDER BY 1")
        assert [name[-2:] for (name,) in found] == ["02", "03"]
        assert ask(connection, f"SELECT COUNT(*) FROM {found[0][0]}.visits") == [(4040,)]
        assert ask(connection, f"SELECT to_regclass('{found[1][0]}.visits')") == [(None,)]


def _run_sql(dsn: str, text: str) -> None:
    with connect(dsn) as connection:
        for statement in text.split(";\n"):
            if _WHO.sub("", statement).strip():
                ask(connection, statement)
