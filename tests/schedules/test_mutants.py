"""The schedules, the gates, the model and the oracle can fail: every deliberate mistake in the protocol is seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster
from tests.schedules.checks import needs_gates, run_check
from tests.schedules.mutants import MUTANTS, Mutant, sql
from tests.schedules.mutants_two_sums import TWO_SUMS
from tests.schedules.scenarios import Violated
from tests.schedules.subject import Subject, package_files, patched, subject_of


@pytest.fixture(scope="module")
def lazy_cluster() -> Iterator[Cluster]:
    """A server that puts nothing on its disk unless somebody waits for it, and that may be killed."""
    running = Cluster(["wal_writer_delay=10s"])
    yield running
    running.close()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [*MUTANTS, *TWO_SUMS], ids=lambda mutant: mutant.name)
def test_a_mistake_is_seen(mutant: Mutant, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    cluster: Cluster = request.getfixturevalue("lazy_cluster" if mutant.by == "crash" else "cluster")
    patches = (*mutant.patches, *mutant.second)
    with (
        subject_of(cluster, mutant.name, patches, tmp_path / "code", gates=needs_gates(mutant.by)) as subject,
        pytest.raises(Violated) as violated,
    ):
        for _ in range(5 if mutant.by == "crash" else 1):  # every ten seconds the server writes on its own, and then forgets nothing
            run_check(mutant.by, subject, tmp_path, use=mutant.use)
    assert mutant.seen in str(violated.value)


@pytest.mark.slow
@pytest.mark.parametrize("check", ["model", "schedule dies before commit"])
def test_what_sees_mistakes_sees_none_in_the_shipped_ledger(check: str, shipped: Subject, tmp_path: Path) -> None:
    """The other checks are tests of their own: the interleavings and the gates."""
    assert run_check(check, shipped, tmp_path) > 0


@pytest.mark.slow
def test_the_shipped_ledger_remembers_when_its_server_is_killed(lazy_cluster: Cluster, tmp_path: Path) -> None:
    with subject_of(lazy_cluster, "shipped and killed", (), tmp_path / "code") as subject:
        assert run_check("crash", subject, tmp_path) == 2


def test_there_are_as_many_mistakes_as_we_say() -> None:
    mutants = [*MUTANTS, *TWO_SUMS]
    assert len(mutants) == len({mutant.name for mutant in mutants}) >= 62


def test_a_mistake_that_does_not_fit_the_code_fails() -> None:
    with pytest.raises(AssertionError, match="0 times in sql, not 1"):
        patched(package_files(), [sql("this text is nowhere", "")])
