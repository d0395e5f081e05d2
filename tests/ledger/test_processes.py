"""Processes: forks, and who is alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.ledger.workers import Worker, current_worker, is_dead
from tests.ledger.crashes import ROOT
from tests.ledger.support import new_ledger, open_ledger, pure_budget


@pytest.mark.parametrize(
    "scenario",
    ["child_has_its_own_identity", "child_may_let_go_without_harm", "grandchildren_too", "forks_in_the_middle_of_transactions"],
)
def test_forking(scenario: str, tmp_path: Path) -> None:
    new_ledger(tmp_path, budget=pure_budget(100_000)).disconnect()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    # Later Pythons warn about any fork of a process with threads; one of the scenarios is about exactly that.
    options = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
    script = [sys.executable, *options, str(ROOT / "tests" / "ledger" / "forking.py"), scenario, str(tmp_path)]
    with subprocess.Popen(
        script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            outcome = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the children it may be waiting for
            raise
    assert outcome == ("passed\n", "")
    open_ledger(tmp_path).disconnect()


def worker_of(process: subprocess.Popen[str]) -> Worker:
    """What a process says about itself."""
    assert process.stdout is not None
    epoch, boot, namespace, pid, started = process.stdout.readline().rstrip("\n").split("|")
    return Worker(epoch=epoch, boot=boot, namespace=namespace, pid=int(pid), started=started)


@pytest.fixture
def other_process() -> subprocess.Popen[str]:
    """A process that says who it is and waits for the end of its input."""
    program = (
        "import sys; from lapwing.ledger.workers import current_worker as c; w = c();"
        "print(w.epoch, w.boot, w.namespace, w.pid, w.started, sep='|', flush=True); sys.stdin.read()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


def test_a_process_is_dead_when_it_has_ended(other_process: subprocess.Popen[str]) -> None:
    with other_process:
        worker = worker_of(other_process)
        assert not is_dead(worker)
        assert is_dead(replace(worker, started=worker.started + "0"))
        other_process.kill()
        # Nobody has asked for its exit status yet: it is a zombie, which is in the process table and runs nothing.
        os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(worker)
    assert is_dead(worker)


def test_only_certain_death_counts() -> None:
    here = current_worker()
    assert not is_dead(here)
    assert is_dead(replace(here, boot="another run of the machine"))
    assert not is_dead(replace(here, namespace="a container", pid=2**22 + 1))
    assert not is_dead(replace(here, started=""))
    assert is_dead(replace(here, started="", pid=2**22 + 1))


def test_no_two_workers_are_confused() -> None:
    assert len({current_worker().epoch for _ in range(100)}) == 100
