"""From released tables to a synthetic one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from lapwing.kernel.domains import BooleanDomain, IntegerDomain, TextDomain
from lapwing.releases.marginals.axes import axis_of
from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.synthetic.table import model_of, synthetic_table

AXES = (
    axis_of("region", TextDomain(("n", "s", "w"))),
    axis_of("ill", BooleanDomain(False)),
    axis_of("age", IntegerDomain(0, 99, False), bins=5),
)
SIZES = tuple(axis.size for axis in AXES)
ROWS = 8_000


@pytest.fixture(scope="module")
def cube() -> npt.NDArray[np.float64]:
    """True counts: the old are ill, more so in the north; a few regions are NULL."""
    generator = np.random.default_rng(1)
    law = generator.dirichlet(np.ones(20), 2).T.reshape(4, 5, 2).transpose(0, 2, 1)
    return np.asarray(np.rint(ROWS * law / law.sum()), dtype=np.float64)


def _measured(cube: npt.NDArray[np.float64], ways: int, deviation: float = 4.0) -> list[MeasuredMarginal]:
    generator = np.random.default_rng(2)
    tables = []
    for axes in combinations(range(3), ways):
        counts = cube.sum(axis=tuple(axis for axis in range(3) if axis not in axes))
        tables.append(MeasuredMarginal(axes, np.rint(counts + generator.normal(0, deviation, counts.shape)).astype(np.int64), deviation**2))
    return tables


@pytest.mark.parametrize(("ways", "far"), [(2, 0.03), (3, 0.03)])
def test_pairs_are_kept_also_where_they_are_part_of_larger_tables(cube: npt.NDArray[np.float64], ways: int, far: float) -> None:
    model = model_of(SIZES, _measured(cube, ways), b"digest")
    assert model.fit is not None
    for a, b in combinations(range(3), 2):
        truth = cube.sum(axis=3 - a - b) / cube.sum()
        assert np.abs(model.pair(a, b) - truth).sum() / 2 < far


def test_without_pairs_columns_are_independent(cube: npt.NDArray[np.float64]) -> None:
    model = model_of(SIZES, _measured(cube, 1), b"digest")
    assert model.fit is None and model.components == 1
    assert model.pair(0, 1) == pytest.approx(np.outer(model.chances[0][0], model.chances[1][0]))


def test_the_table_has_the_columns_types_and_as_many_rows_as_the_release_says(cube: npt.NDArray[np.float64]) -> None:
    measured = _measured(cube, 2)
    table = synthetic_table(AXES, measured, b"digest")
    assert table.schema.names == ["region", "ill", "age"] and table.schema.types == [pa.string(), pa.bool_(), pa.int64()]
    assert table.num_rows == pytest.approx(cube.sum(), abs=60)
    assert table.column("region").null_count == pytest.approx(cube[3].sum(), abs=0.02 * ROWS)
    assert table.column("ill").null_count == 0
    assert synthetic_table(AXES, measured, b"digest", rows=17).num_rows == 17


def test_the_same_release_makes_the_same_table_and_a_release_below_nothing_an_empty_one(cube: npt.NDArray[np.float64]) -> None:
    measured = _measured(cube, 2)
    assert synthetic_table(AXES, measured, b"digest").equals(synthetic_table(AXES, measured, b"digest"))
    assert not synthetic_table(AXES, measured, b"digest").equals(synthetic_table(AXES, measured, b"other"))
    below = [MeasuredMarginal((axis,), np.full(size, -3.0), 1.0) for axis, size in enumerate(SIZES)]
    assert synthetic_table(AXES, below, b"digest").num_rows == 0
