"""A process with a Spark Connect session: it prepares a data set, runs plans and prints the exact integers. Test data only.

A process has either a classic Spark or a Connect one, so this is a process of its own (see test_spark_connect).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Settings, load
from lapwing.engines.base import silent
from lapwing.engines.spark import SparkEngine, use_session
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from tests.engines.comparison import comparable
from tests.support.spark_worlds import SMALL


def main(directory: Path, names: list[str]) -> None:
    """Print what Spark Connect answers to the shapes of these names."""
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    builder = SparkSession.builder.remote("local[2]")
    for name, value in SMALL.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    use_session(session)
    declaration = load(directory / "lapwing.toml")
    engine = SparkEngine(directory / ".connect", Settings())
    text = (directory / "lapwing.toml").read_text(encoding="utf-8")
    engine.prepare(declaration, text, version=1, ranking_key=RANKING_KEY, progress=silent)
    snapshot = engine.open(1, ranking_key=RANKING_KEY)
    listed = shapes(Account.APPROXIMATE)
    found = {name: repr(comparable(snapshot.run(certify(listed[name](snapshot.facts), snapshot.facts)))) for name in names}
    print(json.dumps({"connect": isinstance(session, ConnectSession), "found": found}))
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
