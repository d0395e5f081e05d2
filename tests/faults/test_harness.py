"""Rounds that pass say something only if they can fail: here the ledger is spoilt first, in the database, and the same rounds see it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.rounds import EXPECTED_CODES, SERVER_CODES, Bench, new_bench, nursery
from tests.faults.server import kill_postmasters
from tests.ledger.cluster import Cluster


def spoil(bench: Bench, function: str, text: str, replacement: str) -> None:
    """Replace a text of a function of the database; it must be there once."""
    with bench.cluster.superuser(bench.database) as connection:
        [(shipped,)] = connection.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'lapwing'::regnamespace AND proname = %s", [function]
        ).fetchall()
        assert str(shipped).count(text) == 1
        connection.execute(str(shipped).replace(text, replacement).encode())


@pytest.mark.slow
def test_a_server_that_does_not_wait_for_its_disk_is_seen(fault_cluster: Cluster, tmp_path: Path) -> None:
    bench = new_bench(fault_cluster, tmp_path, data_sets=1)
    spoil(bench, "wait_for_disk", "PERFORM pg_logical_emit_message(true, 'lapwing', '');", "")
    with nursery() as one:
        kill_postmasters(bench, one, random.Random(0), kills=12, clients=4)
    bench.settle(EXPECTED_CODES | SERVER_CODES)
    # A charge that somebody had a permit for, or a commit that an answer was sent after, is gone. (Which of them is up to chance.)
    lost = ("permit without its charge", "sent without a committed charge")
    assert any(one in text for text in bench.found for one in lost), bench.found


@pytest.mark.slow
def test_a_recovery_that_leaves_something_is_seen(fault_cluster: Cluster, tmp_path: Path) -> None:
    bench = new_bench(fault_cluster, tmp_path, data_sets=1)
    spoil(
        bench,
        "end_worker",
        "state = 'reserved' ORDER BY charge_id LOOP",
        "state = 'reserved' AND charge_id % 2 = 0 ORDER BY charge_id LOOP",
    )
    with nursery() as one:
        one.order(bench, "run", clients=4, kills=20, seed=1, steps=["engine: running"], outside_share=0.0)
        one.answer(bench)
    bench.settle()
    assert any(text.endswith("is still reserved") for text in bench.found), bench.found
