"""Spark sessions: which one is used, and a session of our own beside it whose settings are pinned.

Only what can change the meaning of a statement is pinned; how it is carried out (partitions, adaptive execution, memory) stays the owner's.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from lapwing.errors import PreparationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = TypeVar("Found")

PINNED: dict[str, str] = {
    # An error that depends on a row is a leak. With ANSI mode off arithmetic and casts never raise; certificates bound what they compute.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    # Files: the dates that are in them, types that no value decides, and no file silently left out.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Time is limited: a task that is cancelled stops at once.
    "spark.sql.execution.interruptOnCancel": "true",
    # Prepared tables are bucketed by unit; a plan that bounds units then moves no row.
    "spark.sql.sources.bucketing.enabled": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # The ranking key and the group salt are 64 hexadecimal digits: no plan shown or logged by Spark has them.
    "spark.sql.redaction.string.regex": "[0-9a-f]{64}",
}
"""Settings of every session that reads or writes rows, whatever the owner's session has."""

LOCAL: dict[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Plans are trees that Spark walks recursively, in threads whose errors it loses.
    "spark.driver.extraJavaOptions": "-Xss16m",
    "spark.sql.shuffle.partitions": "4",
    # What pages about past statements would show, if there were pages, fills the memory of a session that lives long.
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.sql.maxPlanStringLength": "10000",
}
"""Settings of a local session, which is started where there is no other."""

_PATHS_MAX = 1_000_000
"""Most paths that the driver lists one after the other."""
_given: SparkSession | None = None


def use_session(session: SparkSession | None) -> None:
    """Use this session, classic or Connect, for every data set that is opened from now on; None: find one again."""
    global _given
    _given = session


def base_session() -> SparkSession:
    """The session given by ``use_session``; else the active one; else the server that SPARK_REMOTE names; else a local one, started now."""
    if _given is not None:
        return _given
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise PreparationError("engine-missing", "the engine 'spark' needs PySpark", hint="install lapwing[spark]") from error
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if os.environ.get("SPARK_REMOTE"):
        return SparkSession.builder.getOrCreate()
    builder = SparkSession.builder.master(os.environ.get("MASTER", "local[*]")).appName("lapwing")
    for name, value in LOCAL.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    # Spark's own words about a failed task can hold a value, and this process has a console that an analyst may see.
    session.sparkContext.setLogLevel("OFF")
    return session


def own_session(base: SparkSession) -> SparkSession:
    """A session beside ``base`` on the same Spark: same catalogue of tables, own temporary views, pinned settings."""
    session = base.newSession()
    session.conf.set("spark.sql.shuffle.partitions", base.conf.get("spark.sql.shuffle.partitions") or "200")
    for name, value in PINNED.items():
        session.conf.set(name, value)
    return session


@contextmanager
def listed_by_driver(session: SparkSession, paths: Sequence[str]) -> Iterator[None]:
    """A read inside lists its files without a job if they are in the driver's file system: a task takes longer than to list a folder.

    Elsewhere, a store answers slowly, and jobs that ask it at the same time are faster. The session has no other users.
    """
    setting = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    before = session.conf.get(setting)
    if before is not None and all("://" not in path or path.startswith("file:") for path in paths):
        session.conf.set(setting, str(_PATHS_MAX))
    try:
        yield
    finally:
        if before is not None:
            session.conf.set(setting, before)


@contextmanager
def limited(session: SparkSession, timeout_seconds: float) -> Iterator[None]:
    """Interrupt all work of this session when the time is over, repeatedly until it has ended. The session has no other users.

    Tags would be finer, but a classic session collects in a thread of Spark's that does not have the tags of ours.
    """
    ended = threading.Event()

    def watch() -> None:
        if ended.wait(timeout_seconds):
            return
        while not ended.wait(0.5):
            session.interruptAll()

    watcher = threading.Thread(target=watch, name="lapwing time limit", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def awaited(call: Callable[[], Found], timeout_seconds: float) -> Found:
    """The result of ``call``, or TimeoutError if it does not return: a thread of Spark that overflows its stack reports nothing."""
    outcome: list[Found] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:  # raised again by whoever waits
            failure.append(error)

    worker = threading.Thread(target=run, name="lapwing statement", daemon=True)
    worker.start()
    worker.join(timeout_seconds)
    if failure:
        raise failure[0]
    if not outcome:
        raise TimeoutError("Spark did not come back")
    return outcome[0]


class _Silence(logging.Filter):
    """A log filter that drops every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        return False


@contextmanager
def unlogged() -> Iterator[None]:
    """PySpark logs an engine's error, with its text, before it raises it: here the record is dropped."""
    from pyspark.logger import PySparkLogger

    silence = _Silence()
    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    for logger in loggers:
        logger.addFilter(silence)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(silence)
