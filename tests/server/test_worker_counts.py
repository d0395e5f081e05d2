"""Counts that several processes keep together: nobody's are lost, and nobody's are counted twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lapwing.data_set import open as open_data_set
from lapwing.demo import write_demo
from lapwing.interfaces.http.operation import worker_counts
from lapwing.interfaces.http.operation.metrics import Metrics
from lapwing.interfaces.http.operation.worker_counts import LEFT_OUT, SAMPLES_MAX, WorkerCounts, begin_anew
from lapwing.interfaces.http.release_schedule import PublicMoments
from lapwing.ledger.glance import local_balance
from tests.server.under_test import ServerUnderTest

WORKER = """
import sys, time
from pathlib import Path
from lapwing.interfaces.http.operation.worker_counts import WorkerCounts
counts = WorkerCounts(Path(sys.argv[1]))
for _ in range(5):
    counts.add("a_total", 1)
counts.add("lapwing_connections{}", 3)
print("counted", flush=True)
time.sleep(600)
"""


def killed_worker(directory: Path) -> None:
    """A process that counts, and is killed."""
    process = subprocess.Popen([sys.executable, "-c", WORKER, str(directory)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"counted\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_what_a_killed_process_counted_is_counted_once(tmp_path: Path) -> None:
    own = WorkerCounts(tmp_path)
    own.add("a_total", 1)
    own.add("lapwing_connections{}", 2)
    killed_worker(tmp_path)
    kept = tmp_path.parent / f"{tmp_path.name}-copy"
    shutil.copytree(tmp_path, kept)
    for _ in range(3):
        totals = own.totals()
        assert (totals.counts["a_total"], totals.counts["lapwing_connections{}"], totals.alive, totals.lost) == (6, 2, 1, 1)
    assert len(list(tmp_path.glob("*.counts"))) == 1
    # As if whoever added up had died before the file was removed.
    [added] = json.loads((tmp_path / "gone.json").read_text())["added"]
    shutil.copy(kept / added, tmp_path / added)
    assert (own.totals().counts["a_total"], own.totals().lost) == (6, 1)


def test_who_ends_as_told_is_not_lost(tmp_path: Path) -> None:
    first, second = WorkerCounts(tmp_path), WorkerCounts(tmp_path)
    first.add("a_total", 2)
    first.close()
    first.add("a_total", 1)  # a connection that is heard of late
    totals = second.totals()
    assert (totals.counts["a_total"] >= 2, totals.alive, totals.lost) == (True, 1, 0)


def test_a_server_that_starts_leaves_the_counts_of_the_living(tmp_path: Path) -> None:
    directory = tmp_path / "counts"
    directory.mkdir(mode=0o755)
    living = WorkerCounts(directory)
    living.add("a_total", 1)
    killed_worker(directory)
    begin_anew(directory)
    totals = living.totals()
    assert (totals.counts["a_total"], totals.alive, totals.lost) == (1, 1, 0)
    assert directory.stat().st_mode & 0o777 == 0o700


def test_counts_of_a_worker_are_bounded_and_say_so(tmp_path: Path) -> None:
    counts = WorkerCounts(tmp_path)
    for number in range(SAMPLES_MAX + 10):
        counts.add(f"a_total{{number={number}}}", 1)
    totals = counts.totals()
    assert totals.counts[LEFT_OUT] == 12
    assert len(totals.counts) == SAMPLES_MAX - 1
    assert totals.counts.total() == SAMPLES_MAX + 10


def test_a_worker_that_cannot_write_counts_for_itself(tmp_path: Path) -> None:
    (tmp_path / "counts").write_text("")
    begin_anew(tmp_path / "counts")
    counts = WorkerCounts(tmp_path / "counts")
    counts.add("a_total", 1)
    assert counts.totals().counts["a_total"] == 1


def test_a_full_disk_ends_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = WorkerCounts(tmp_path)
    counts.add("a_total", 1)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    counts.add("b_total", 1)
    counts.add("a_total", 1)
    assert (counts.totals().counts["a_total"], counts.totals().counts[LEFT_OUT]) == (2, 1)


def test_sums_never_go_down_while_others_count(tmp_path: Path) -> None:
    counts, stopped = [WorkerCounts(tmp_path) for _ in range(3)], threading.Event()

    def count(one: WorkerCounts) -> None:
        while not stopped.is_set():
            one.add("a_total", 255)

    threads = [threading.Thread(target=count, args=(one,)) for one in counts]
    for thread in threads:
        thread.start()
    sums = []
    for _ in range(50):
        sums.append(counts[0].totals().counts["a_total"])
        killed_worker(tmp_path) if len(sums) == 20 else time.sleep(0.001)
    stopped.set()
    for thread in threads:
        thread.join()
    assert sums == sorted(sums) and sums[-1] > sums[0]
    assert counts[0].totals().counts["a_total"] % 255 == 5


def test_a_sum_that_another_holds_up_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_counts, "LOCK_SECONDS", 0.1)
    counts = WorkerCounts(tmp_path)
    with worker_counts._alone(tmp_path), pytest.raises(Exception) as refused:
        counts.totals()
    assert getattr(refused.value, "code", "") == "busy"


def test_a_histogram_is_written_as_prometheus_reads_it() -> None:
    metrics = Metrics()
    for due in (0.25, 0.25, 8.0, 5_000.0):
        metrics.answered('a "set"', due, missed=due == 8.0)
    metrics.answered("b", None, missed=False)
    lines = metrics.text([], {}).splitlines()
    buckets = [line for line in lines if line.startswith("lapwing_answer_moment_seconds_bucket")]
    assert buckets[0].endswith('{data_set="a \\"set\\"",le="0.0625"} 0')
    assert [int(line.rpartition(" ")[2]) for line in buckets] == [0, 0, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4]
    assert 'lapwing_answer_moment_seconds_sum{data_set="a \\"set\\""} 5008.5' in lines
    assert 'lapwing_answer_moment_seconds_count{data_set="a \\"set\\""} 4' in lines
    assert 'lapwing_moments_missed_total{data_set="a \\"set\\""} 1' in lines
    assert 'lapwing_answers_total{data_set="b"} 1' in lines
    assert not any("lapwing_answer_moment" in line and '"b"' in line for line in lines)


def test_an_answer_is_not_counted_before_its_moment(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads counts often would else see when rows had been read."""
    sample = f'lapwing_answers_total{{data_set="{server.data_set}"}} '

    def counted() -> int:
        [line] = [line for line in server.call("GET", "/metrics", by="ops").text.splitlines() if line.startswith(sample)]
        return int(line.removeprefix(sample))

    server.ask("SELECT COUNT(*) AS n FROM patients WHERE smoker", epsilon="0.01")  # from here on everything is loaded
    monkeypatch.setattr(server.app_state.desk.served[server.data_set], "moments", PublicMoments(4.0, fixed=True))
    before = counted()
    asked = threading.Thread(target=lambda: server.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.01"))
    asked.start()
    time.sleep(2.5)
    assert counted() == before
    asked.join()
    assert counted() == before + 1


def test_the_balance_of_a_file_is_that_of_its_ledger(tmp_path: Path) -> None:
    write_demo(tmp_path / "clinic", patients=200)
    with open_data_set(tmp_path / "clinic", home=tmp_path / "home") as data_set:
        data_set.prepare()
        data_set.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
        path = data_set.curator.state.ledger_path
        assert local_balance(path) == data_set.curator.ledger.balance()
        data_set.curator.ledger.close("an incident")
        seen = local_balance(path)
        assert seen is not None and seen.closed
