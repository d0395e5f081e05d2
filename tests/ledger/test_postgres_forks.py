"""A process that forks at a bad moment: the child neither waits for locks of threads it does not have, nor keeps its parent's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lapwing.ledger.postgres.anchors import FileAnchors
from tests.ledger.pg import Place

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "scenario",
    [
        "while_a_thread_holds_the_gate",
        "while_a_thread_waits_for_the_server",
        "while_a_thread_writes_the_anchor",
        "while_threads_send_together",
    ],
)
def test_forks(place: Place, scenario: str) -> None:
    place.create().disconnect()
    assert isinstance(place.anchors, FileAnchors)
    script = str(ROOT / "tests" / "ledger" / "forking_postgres.py")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script, scenario, place.dsn, place.source_id, str(place.anchors.directory)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
    )
    assert ran.stdout == "passed\n", ran.stderr
