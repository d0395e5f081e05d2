"""Between any two statements inside a function of the database: whoever comes meanwhile waits, or comes wholly before or after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.schedules.fine import PAIRS, Operation, Pair, reserve_elsewhere
from tests.schedules.gates import gates_in, with_gates, without_gates
from tests.schedules.subject import Subject, package_files
from tests.schedules.world import Pool

SQL_FILES = {path: text for path, text in package_files().items() if path.endswith(".sql")}


@pytest.mark.parametrize("path", SQL_FILES)
def test_without_its_gates_the_text_is_the_shipped_one(path: str) -> None:
    gated = with_gates(SQL_FILES[path])
    assert without_gates(gated) == SQL_FILES[path]
    assert len(gated.splitlines()) == len(SQL_FILES[path].splitlines()) + len(gates_in(gated))


def test_every_statement_of_the_protocol_has_a_gate() -> None:
    gates = [gate for text in SQL_FILES.values() for gate in gates_in(with_gates(text))]
    assert len(gates) == len(set(gates)) > 150
    functions = {gate.partition(".")[0] for gate in gates}
    assert {"locked", "reserve", "commit", "forfeit", "end_worker", "register_worker", "append", "decide", "commit_many"} <= functions


@pytest.fixture(scope="module")
def pool(gated: Subject) -> Iterator[Pool]:
    made = Pool(gated)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda operation: operation.__name__)
def test_at_every_gate_the_other_waits_or_comes_before_or_after(first: Operation, second: Operation, pool: Pool, tmp_path: Path) -> None:
    pair = Pair(pool, tmp_path, first, second)
    pair.check()
    assert pair.tries == len(pair.gates) >= 10
    # At so many gates the first held the row, and the second was seen waiting for it.
    assert pair.waited == 0 if second is reserve_elsewhere else pair.waited >= 6
