"""In the limit of a huge budget moments are what bare DuckDB says about the same files, and well inside their error bars.

False alarms: 24 values at a confidence of 99.9999 % are below 3e-5 together.
"""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from tests.support.rich_clinic import write_rich_clinic

STATEMENTS = (
    "SELECT VAR_SAMP(cost) AS a, STDDEV(cost) AS b FROM visits",
    "SELECT CORR(minutes, cost) AS a, COVAR_SAMP(minutes, cost) AS b, REGR_SLOPE(cost, minutes) AS c FROM visits",
    "SELECT REGR_INTERCEPT(cost, minutes) AS a, REGR_R2(cost, minutes) AS b, REGR_AVGX(cost, minutes) AS c FROM visits",
    "SELECT VAR_POP(income) FILTER (WHERE smoker) AS a, STDDEV_POP(birth_year) AS b, COVAR_POP(income, birth_year) AS c FROM patients",
    "SELECT sex, VARIANCE(birth_year) AS a, STDDEV_SAMP(income) AS b FROM patients GROUP BY sex ORDER BY sex",
)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> tuple[lw.DataSet, Path]:
    directory = tmp_path_factory.mktemp("clinic")
    catalogue = write_rich_clinic(directory, patients=1_000, epsilon=1_000_000_000)
    text = catalogue.read_text(encoding="utf-8")
    text = re.sub(r"^delta = \S+", "delta = 0", text, flags=re.MULTILINE)  # pure: noise falls with epsilon, not with its root
    catalogue.write_text(text, encoding="utf-8")
    data = lw.open(directory, home=directory / "home")
    data.prepare()
    return data, directory


@pytest.mark.parametrize("sql", STATEMENTS)
def test_moments_in_the_limit(sql: str, clinic: tuple[lw.DataSet, Path]) -> None:
    data, directory = clinic
    found = data.ask(sql, epsilon=100_000_000, confidence=0.999999)
    bare = re.sub(r"FROM (\w+)", lambda table: f"FROM '{directory / table.group(1)}.parquet'", sql)
    relation = duckdb.sql(bare)
    assert relation is not None
    expected = relation.to_arrow_table()
    assert found.table.num_rows == expected.num_rows
    for name in (name for name in expected.column_names if name != "sex"):
        pairs = zip(found.table.column(name).to_pylist(), expected.column(name).to_pylist(), found.intervals[name], strict=True)
        for value, truth, bar in pairs:
            assert value == pytest.approx(truth, rel=1e-4)
            assert bar is not None and bar.lo <= truth <= bar.hi
            assert bar.hi - bar.lo < 0.01 * abs(truth)
