"""One key, one charge, one answer: whatever is sent again, by how many, when, and in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.ledger.postgres.verify import verify
from tests.faults import history
from tests.faults.history import What
from tests.faults.retries import duplicates_at_once, reordered
from tests.ledger.cluster import Cluster
from tests.ledger.pg import new_place
from tests.ledger.support import pure_budget

KEYS = 28


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


@pytest.mark.slow
def test_a_key_that_several_send_at_once_is_charged_and_answered_once(cluster: Cluster, tmp_path: Path) -> None:
    outcome = duplicates_at_once(cluster, cluster.new_database(), tmp_path, seed=1, keys=KEYS)
    assert outcome.violations == []
    assert outcome.counts["duplicate retry"] >= 20 and outcome.counts["late retry"] >= 20
    # The oracle says that there is at most one; here there is exactly one, and whoever meant it got it in the end.
    by_key = defaultdict(list)
    for event in history.read(outcome.histories[0]):
        by_key[event.key].append(event)
    assert len(by_key) == KEYS
    for key, events in by_key.items():
        seen = Counter(event.what for event in events)
        assert seen[What.PERMIT] == seen[What.RUNNING] == seen[What.RAN] == 1, key
        assert seen[What.ASKED] == seen[What.SENT] + seen[What.REFUSED], key
        (paid,) = {event.digest for event in events if event.what == What.SENT}
        for event in events:
            if event.what == What.REFUSED:
                assert event.code == ("request-in-progress" if event.digest == paid else "request-mismatch"), key
        last_asked = [event for event in events if event.what == What.ASKED and event.digest == paid][-1]
        assert events.index(last_asked) < max(events.index(event) for event in events if event.what == What.SENT), key


@pytest.mark.slow
def test_messages_in_any_order_are_answered_as_the_protocol_says(cluster: Cluster, tmp_path: Path) -> None:
    place = new_place(cluster, cluster.new_database(), tmp_path)
    with place.create(pure_budget(1000)) as ledger:
        outcome, expected = reordered(ledger, seed=1, keys=60, messages=10)
        assert outcome.violations == []
        assert outcome.counts["reordered retry"] == 600
        assert ledger.balance().spent.loss == expected
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()
