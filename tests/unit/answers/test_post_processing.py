"""Expressions over noisy tables: what the scratch database cannot compute is a refusal of ours, without its words."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lapwing.answers.post_processing import RUN, post_process, post_process_runs
from lapwing.errors import Refused
from lapwing.statements import ROW, ComputedOutput, Output, PostProcess, RowsAtMost

NOISY = pa.table({"n": pa.array([4, 2], pa.int64())})
DOUBLED = PostProcess((Output("doubled", "2 * q0.n", ComputedOutput()),))


def test_what_can_be_computed_is() -> None:
    processed = post_process([NOISY], DOUBLED)
    assert (processed.table.to_pydict(), processed.rows, processed.marks) == ({"doubled": [8, 4]}, [0, 1], {})


@pytest.mark.parametrize("sql", ["q0.nothing", "no_such_function(q0.n)", "error('told by ' || q0.n)"])
def test_what_cannot_be_computed_is_refused_in_our_own_words(sql: str) -> None:
    post = replace(DOUBLED, outputs=(replace(DOUBLED.outputs[0], sql=sql),))
    with pytest.raises(Refused) as error:
        post_process([NOISY], post)
    assert error.value.code == "post-processing"
    assert "4" not in str(error.value) and "nothing" not in str(error.value)
    runs = NOISY.append_column(RUN, pa.array([0, 0], pa.int64())).append_column(ROW, pa.array([0, 1], pa.int64()))
    with pytest.raises(Refused) as error:
        post_process_runs([runs], post, runs=1)
    assert error.value.code == "post-processing"


def test_a_bound_on_pairs_of_rows() -> None:
    pairs = RowsAtMost(2, (0,)) * RowsAtMost(3, (1, 0))
    assert pairs == RowsAtMost(6, (0, 1, 0))
    assert pairs.given([4, 5]) == 6 * 4 * 5 * 4
    assert pairs.given([0, 5]) == 6 * 5, "an answer without a row may still stand beside others"
    assert pairs.given([4, None]) is None and pairs.given([4]) is None
