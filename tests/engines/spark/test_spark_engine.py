"""Spark: the same exact integers as DuckDB for every shape of plan, prepared and stored there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from tests.engines.comparison import comparable
from tests.support.spark_worlds import prepare_in_spark

SHAPES = {**shapes(Account.APPROXIMATE), **quantile_shapes(Account.APPROXIMATE)}


@pytest.mark.soak("`engines/suite/test_equal_answers.py` compares the same shapes, on other rows")
def test_every_shape_gives_the_integers_that_duckdb_gives(tmp_path: Path) -> None:
    declaration = declare(random_world(random.Random(7)), tmp_path, neighbours="unbounded", delta='"2^-30"')
    duckdb, spark = prepare_in_duckdb(declaration), prepare_in_spark(declaration)
    assert duckdb.facts == spark.facts
    different = []
    for name, shape in SHAPES.items():
        certified = certify(shape(duckdb.facts), duckdb.facts)
        if comparable(duckdb.run(certified)) != comparable(spark.run(certified)):
            different.append(name)
    assert different == []
    assert len(SHAPES) > 40
    duckdb.close()
    spark.close()
