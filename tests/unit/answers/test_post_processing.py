"""Expressions over noisy tables: what the scratch database cannot compute is a refusal of ours, without its words."""

from __future__ import annotations

import threading
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from lapwing.answers import post_processing
from lapwing.answers.post_processing import RUN, post_process, post_process_runs, query_public
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


def test_many_threads_share_few_connections_and_none_after_a_failure() -> None:
    public = pa.table({"x": [1, 2, 3]})
    opened: list[object] = []
    plain = post_processing._connection

    def counted() -> duckdb.DuckDBPyConnection:
        opened.append(connection := plain())
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(post_processing, "_connection", counted)
        patch.setattr(post_processing, "_idle", [])
        for _ in range(40):  # one after the other, each in a thread of its own
            thread = threading.Thread(target=lambda: query_public({"t": public}, "SELECT SUM(x) AS s FROM t"))
            thread.start()
            thread.join()
        assert (len(opened), len(post_processing._idle)) == (1, 1)
        with pytest.raises(Refused):
            query_public({"t": public}, "SELECT nothing FROM t")
        assert post_processing._idle == [], "it is not used again"
        gate = threading.Barrier(12)

        def at_once() -> None:
            gate.wait()
            for _ in range(5):
                assert query_public({"t": public}, "SELECT SUM(x) AS s FROM t").column(0).to_pylist() == [6]

        threads = [threading.Thread(target=at_once) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(post_processing._idle) <= post_processing.IDLE_MAX
