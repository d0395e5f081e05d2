"""Time and memory of one action."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class Spent:
    """What an action took."""

    cpu_seconds: float
    """CPU time of the process, user and system, all threads: DuckDB's own included."""
    wall_seconds: float
    peak_bytes: int
    """Largest resident size of the process so far; the action's own only in a process that did nothing else. 0 where unknown."""


def spent(action: Callable[[], object]) -> Spent:
    """Run an action once and say what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Spent(cpu, wall, _peak_bytes())


def _peak_bytes() -> int:
    """Linux's VmHWM and not ``ru_maxrss``: a child inherits the latter from its parent, whatever the child itself uses."""
    if not _STATUS.exists():
        return 0
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="ascii").splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024
