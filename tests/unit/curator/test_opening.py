"""Threads that ask a data set which nobody has opened yet."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import lapwing
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.demo import write_demo

THREADS, TIMES = 6, 4
STATEMENT = "SELECT COUNT(*) AS n FROM patients"


def test_threads_open_a_data_set_once_and_versions_of_it_side_by_side(tmp_path: Path) -> None:
    """An engine's settings are locked when it is opened: a second thread found them half made."""
    write_demo(tmp_path / "clinic", patients=300)
    with lapwing.open(tmp_path / "clinic", home=tmp_path / "home") as data_set:
        data_set.prepare()
        expected = str(data_set.explain(STATEMENT))
    for _ in range(TIMES):
        one, other = (DataSet(Curator(tmp_path / "clinic", home=tmp_path / "home", shared=True)) for _ in range(2))
        together = Barrier(THREADS)

        def explained(number: int, one: DataSet = one, other: DataSet = other, together: Barrier = together) -> tuple[str, int]:
            data_set = one if number % 2 else other
            together.wait()
            return str(data_set.explain(STATEMENT)), id(data_set.curator.snapshot)

        with one, other, ThreadPoolExecutor(THREADS) as threads:
            found = list(threads.map(explained, range(THREADS)))
        assert {text for text, _ in found} == {expected}
        assert len({snapshot for _, snapshot in found}) == 2


def test_a_process_that_has_asked_can_still_fork(tmp_path: Path) -> None:
    """What an engine keeps open is not closed in the child, where its threads are not: that ended the child at once."""
    write_demo(tmp_path / "clinic", patients=300)
    with lapwing.open(tmp_path / "clinic", home=tmp_path / "home") as data_set:
        data_set.prepare()
        data_set.ask(STATEMENT)
        child = os.fork()
        if child == 0:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
