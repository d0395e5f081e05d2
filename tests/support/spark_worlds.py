"""Worlds prepared on Spark, for the oracle and the suite that compares engines.

One Spark serves a whole process. It is small: two threads, a task is tried up to four times, two buckets, no adaptive execution (tables
here have a few rows, and planning again while a statement runs costs more than it saves).
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Declaration, Settings
from lapwing.engines.base import Snapshot, silent
from lapwing.engines.spark import SparkEngine
from lapwing.engines.spark.sessions import LOCAL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SMALL: dict[str, str] = {
    **LOCAL,
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-Xss16m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""For tables of a few rows: translating a plan, or compiling it well, costs more than it saves."""


@cache
def spark_session() -> SparkSession:
    """The Spark of this process's tests, started the first time."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").appName("lapwing tests")
    settings = {**SMALL, "spark.driver.memory": "3g", "spark.sql.catalogImplementation": "in-memory"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    # an example that ran before in this process may have started another one
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    _end_java()
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _end_java() -> None:
    """End the Java of an earlier session: its memory and its options would be ours."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.terminate()
    gateway.proc.wait(timeout=300)
    SparkContext._gateway, SparkContext._jvm = None, None


def spark_engine(directory: Path, settings: Settings | None = None) -> SparkEngine:
    """An engine whose versions are in ``directory``."""
    return SparkEngine(directory, settings or Settings(), session=spark_session())


def prepare_in_spark(declaration: Declaration, *, version: int = 1, ranking_key: bytes = RANKING_KEY) -> Snapshot:
    """Prepare on Spark, beside the sources, and open. The catalogue's engine need not say Spark: sources are read as Parquet files."""
    assert declaration.directory is not None
    directory = declaration.directory / ".lapwing"
    shutil.rmtree(directory, ignore_errors=True)
    engine = spark_engine(directory)
    text = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8")
    engine.prepare(declaration, text, version=version, ranking_key=ranking_key, progress=silent)
    return engine.open(version, ranking_key=ranking_key)
