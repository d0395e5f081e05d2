"""Spark Connect: the same engine over a session that is only a client, in a process of its own."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from tests.engines.comparison import comparable
from tests.meta.tree import ROOT

NAMES = ["ranked, by clinic", "clipped", "discovered, grouped", "join along a key"]


def test_connect_gives_the_integers_that_duckdb_gives(tmp_path: Path) -> None:
    declaration = declare(random_world(random.Random(8)), tmp_path, neighbours="unbounded", delta='"2^-30"')
    snapshot, listed = prepare_in_duckdb(declaration), shapes(Account.APPROXIMATE)
    expected = {name: repr(comparable(snapshot.run(certify(listed[name](snapshot.facts), snapshot.facts)))) for name in NAMES}
    snapshot.close()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-W", "ignore", "-m", "tests.engines.spark.connect_client", str(tmp_path), *NAMES]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr[-3000:]
    answered = json.loads(run.stdout.strip().splitlines()[-1])
    assert answered == {"connect": True, "found": expected}
