"""Physical plans: bucketed by unit, bounding moves no row by unit; without buckets it does."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import RANKING_KEY
from lapwing.audit.worlds import declare, random_world
from lapwing.engines.spark import SparkSnapshot
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from tests.support.spark_worlds import prepare_in_spark

SHAPES = {**shapes(Account.APPROXIMATE)}
BOUNDING = (
    "ranked, by clinic",
    "clipped",
    "clipped mean",
    "grouped",
    "discovered, grouped",
    "join along a key",
    "left join on the unit",
    "self join on the unit",
    "semi-join",
    "anti-join",
    "per unit",
    "per unit, joined",
)
"""COUNT(DISTINCT unit), clipping, choice of groups, joins on the unit and totals per unit."""


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSnapshot]:
    declaration = declare(random_world(random.Random(3)), tmp_path_factory.mktemp("plans"), neighbours="unbounded", delta='"2^-30"')
    made = prepare_in_spark(declaration)
    assert isinstance(made, SparkSnapshot)
    # tables of a few rows would be sent to every executor instead of being joined bucket by bucket
    made._session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield made
    made.close()


def _moved_by_unit(snapshot: SparkSnapshot, name: str) -> list[str]:
    """Exchanges of rows by a hash in which the unit occurs."""
    plans = "\n".join(snapshot.explain(certify(SHAPES[name](snapshot.facts), snapshot.facts)))
    assert "Scan parquet" in plans or "FileScan" in plans
    return [found for found in re.findall(r"hashpartitioning\(([^)]*)\)", plans) if "_unit#" in found]


@pytest.mark.parametrize("name", BOUNDING)
def test_bounding_moves_rows_by_unit_only_where_there_are_no_buckets(snapshot: SparkSnapshot, name: str) -> None:
    assert _moved_by_unit(snapshot, name) == []
    snapshot._session.conf.set("spark.sql.sources.bucketing.enabled", "false")
    try:
        assert _moved_by_unit(snapshot, name) != []
    finally:
        snapshot._session.conf.set("spark.sql.sources.bucketing.enabled", "true")


def test_a_plan_shows_no_secret(snapshot: SparkSnapshot) -> None:
    plans = "\n".join(snapshot.explain(certify(SHAPES["discovered, grouped"](snapshot.facts), snapshot.facts)))
    assert "sha2" in plans
    assert snapshot._arguments["salt"] not in plans
    assert RANKING_KEY.hex() not in plans
