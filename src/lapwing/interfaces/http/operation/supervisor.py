"""The supervisor of several workers: it replaces a lost worker, and logs which one and why.

Once a worker has started, the server ends only on a signal. A worker that cannot start, for example because the database of identities
is unreachable, is retried; the log reports the problem once, and once more when it is over. If no worker can start at first, the server
reports why and exits with a status other than 0.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import uvicorn

from lapwing.errors import LapwingError

_log = logging.getLogger("lapwing.server")
_spawn = multiprocessing.get_context("spawn")
LOOK_SECONDS = 0.5
"""Interval in seconds between checks of the workers."""
RETRY_SECONDS_MAX = 16.0
"""A lost worker is replaced at once, its replacement after 1, 2, 4, ... seconds up to this, until one has lasted this long."""
FIRST_SECONDS = 120.0
"""A new worker must respond within these seconds: Python has to start and to load the program."""
START_FAILED = 1
"""The exit status of a worker that reports why it cannot start, and then of the server."""


def _work(config: uvicorn.Config, listening: socket.socket, supervisor: Connection) -> None:
    """The main function of a worker process."""
    config.configure_logging()
    server = uvicorn.Server(config)
    threading.Thread(target=_answer, args=(server, supervisor), daemon=True).start()
    try:
        server.run([listening])
    except LapwingError as error:
        supervisor.send(str(error))
        sys.exit(START_FAILED)
    except KeyboardInterrupt:
        pass  # Ctrl-C reaches all processes of a terminal


def _answer(server: uvicorn.Server, supervisor: Connection) -> None:
    """Report when this process begins to serve, and reply when asked whether it is alive."""
    has_started = False
    try:
        while True:
            if supervisor.poll(None if has_started else LOOK_SECONDS / 10):
                supervisor.recv()
            elif not server.started:
                continue
            has_started = server.started
            supervisor.send(has_started)
    except (EOFError, OSError):  # the supervisor was killed: otherwise this process would never stop nor free its port
        os.kill(os.getpid(), signal.SIGTERM)


class WorkerProcess:
    """A worker, as the supervisor sees it."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket) -> None:
        self._pipe, other_end = _spawn.Pipe()
        self._process = _spawn.Process(target=_work, args=(config, listening, other_end))
        self._process.start()
        other_end.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.began = self._looked = time.monotonic()
        self.has_started = False
        self.cannot_start = ""
        """The reason that the worker gave."""
        self.was_heard = False
        self._is_asked = False
        self._silent = 0.0

    def look(self) -> float:
        """Ask whether it is alive; returns for how many seconds it has not replied.

        Time in which this process itself did not run is not counted: after a pause of the whole machine, no worker could have replied.
        """
        now = time.monotonic()
        self._silent += min(now - self._looked, 2 * LOOK_SECONDS)
        self._looked = now
        with suppress(EOFError, OSError):  # it is gone, and its exit status will show that
            while self._pipe.poll():
                told: bool | str = self._pipe.recv()
                self.was_heard, self._is_asked, self._silent = True, False, 0.0
                if isinstance(told, str):
                    self.cannot_start = told
                else:
                    self.has_started = told
            if not self._is_asked:
                self._pipe.send(None)
                self._is_asked = True
        return self._silent

    def ended(self) -> str:
        """How it has ended; empty while it runs."""
        status = self._process.exitcode
        if status is None:
            return ""
        if status >= 0:
            return f"ended with status {status}"
        try:
            return f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"was ended by signal {-status}"

    def ended_in_order(self) -> bool:
        """Whether it ended after a stop signal, or had nothing to finish."""
        return not self.has_started or self._process.exitcode in (0, -signal.SIGTERM)

    def kill(self) -> None:
        """Kill it now."""
        self._process.kill()
        self._process.join()

    def stop(self) -> None:
        """Let running requests finish; a worker that serves nothing yet is killed."""
        if self.has_started:
            self._process.terminate()
        else:
            self.kill()


@dataclass(slots=True)
class _Place:
    """A slot for one worker: the current one, how many were lost in a row, why none can start, and when the next one is due."""

    worker: WorkerProcess | None = None
    lost: int = 0
    trouble: str = ""
    due: float = 0.0

    def retry_seconds(self) -> float:
        return 0.0 if self.lost <= 1 else min(2.0 ** (self.lost - 2), RETRY_SECONDS_MAX)


class Supervisor:
    """Keeps the configured number of workers; one that is silent for ``silent_seconds`` is considered dead."""

    def __init__(self, config: uvicorn.Config, *, silent_seconds: float) -> None:
        self._config = config
        self._silent_seconds = silent_seconds
        self._listening = config.bind_socket()
        self._places = [_Place() for _ in range(config.workers)]
        self._has_started = False
        self._is_told_to_stop = False

    def run(self) -> None:
        """Run until a stop signal; running requests are completed."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._told_to_stop)
        try:
            while not self._is_told_to_stop:
                for place in self._places:
                    self._look_after(place)
                time.sleep(LOOK_SECONDS)
        finally:
            self._stop([place.worker for place in self._places if place.worker is not None])

    def _told_to_stop(self, _number: int, _frame: object) -> None:
        self._is_told_to_stop = True

    def _look_after(self, place: _Place) -> None:
        now, worker = time.monotonic(), place.worker
        if worker is None:
            if now >= place.due:
                place.worker = self._new()
            return
        why = self._why_lost(worker)
        if self._is_told_to_stop:
            return
        if why:
            self._replace(place, worker, why)
        elif worker.has_started:
            self._has_started = True
            if place.trouble:
                _log.warning("worker %d has started: the problem is over", worker.pid)
                place.trouble = ""
            if now - worker.began > RETRY_SECONDS_MAX:
                place.lost = 0

    def _new(self) -> WorkerProcess:
        return WorkerProcess(self._config, self._listening)

    def _why_lost(self, worker: WorkerProcess) -> str:
        """The reason why a worker was lost, as text. Empty for a healthy one."""
        ended, silent = worker.ended(), worker.look()
        if ended or silent < (self._silent_seconds if worker.was_heard else FIRST_SECONDS):
            return ended
        worker.kill()
        return f"did not respond for {silent:.0f} seconds and was killed"

    def _replace(self, place: _Place, worker: WorkerProcess, why: str) -> None:
        place.worker, place.lost = None, place.lost + 1
        after = place.retry_seconds()
        place.due = time.monotonic() + after
        if worker.has_started:
            if not after:
                place.worker = self._new()
            then = f"is replaced after {after:.0f} seconds" if place.worker is None else f"is replaced by worker {place.worker.pid}"
            _log.warning("worker %d %s; it %s", worker.pid, why, then)
            return
        trouble = worker.cannot_start or f"a worker {why} before it served anything"
        if not self._has_started:
            _log.error("no worker can start: %s", trouble)
            sys.exit(START_FAILED)
        if all(other.trouble != trouble for other in self._places):
            _log.error("lost workers cannot be replaced: %s; retrying at least every %.0f seconds", trouble, RETRY_SECONDS_MAX)
        place.trouble = trouble

    def _stop(self, workers: list[WorkerProcess]) -> None:
        for worker in workers:
            worker.stop()
        while workers:
            for worker in list(workers):
                if why := self._why_lost(worker):
                    workers.remove(worker)
                    if not worker.ended_in_order():
                        _log.warning("worker %d %s while the server stopped", worker.pid, why)
            time.sleep(LOOK_SECONDS)
