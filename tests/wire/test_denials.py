"""The denials of service of ``benchmarks.denials`` in small: meanwhile others are answered, nobody is refused, and nothing is left behind.

The bound on times is loose: at night other tests share the processors, and a denial of seconds has few samples. Real figures come from
``python -m benchmarks.denials --check``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from benchmarks.denial_attacks import DENIALS, NOBODY
from benchmarks.denials import ACTS, Denials

from tests.ledger.cluster import Cluster
from tests.support.sizes import size

RATIO_MAX = 5.0


@pytest.fixture(scope="module")
def denials(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Denials]:
    """With a PostgreSQL server of its own; not without that of the other tests."""
    del shared_cluster
    made = Denials(tmp_path_factory.mktemp("denials"))
    yield made
    made.close()


@pytest.mark.second_look("it compares times of a few seconds while other tests share the processors")
@pytest.mark.parametrize("name", [name for name in DENIALS if name != NOBODY])
def test_others_are_answered_meanwhile(denials: Denials, name: str) -> None:
    figures = denials.measured(name, size("a denial, seconds"))
    assert sum(figures.attack.values()) > 0, "nothing was denied"
    assert all(figures.during[act] is not None for act in ACTS), figures
    assert figures.complaints(ratio_max=RATIO_MAX) == [], figures
