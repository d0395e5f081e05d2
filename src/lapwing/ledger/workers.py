"""Which process made a reservation, and whether it is certainly gone.

Privacy never rests on this. If a live process is taken for dead, its charge is forfeited (it stays spent) and its late commit is refused;
if a dead one is taken for live, its charge stays reserved, which counts as spent too. Only how soon a request ends depends on it.
"""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_PID_NAMESPACE = "/proc/self/ns/pid"


@dataclass(frozen=True, slots=True)
class Worker:
    """One use of a ledger by one process. The epoch is fresh each time, so no two workers are ever confused."""

    epoch: str
    boot: str
    """One run of one machine's kernel."""
    namespace: str
    """Within which process numbers have a meaning; a container has its own."""
    pid: int
    started: str
    """When the process started, in the kernel's own count; empty where the system does not tell."""


def current_worker() -> Worker:
    """This process, with a new epoch."""
    pid = os.getpid()
    return Worker(epoch=secrets.token_hex(16), boot=_boot(), namespace=_namespace(), pid=pid, started=_started(pid) or "")


def is_dead(worker: Worker) -> bool:
    """Whether the process of this worker is certainly gone.

    A process of another run of the machine is gone. One in a process namespace that cannot be seen from here is not *certainly* gone.
    """
    if worker.boot != _boot():
        return True
    if worker.namespace != _namespace():
        return False
    started = _started(worker.pid)
    if started is not None and worker.started:
        return started != worker.started
    return not _exists(worker.pid)


def went_with_its_machine(worker: Worker) -> bool:
    """Whether the machine was started anew since this worker began."""
    return worker.boot != _boot()


def host_name() -> str:
    """What an operator knows this machine by. Nothing is decided by it: machines made from one image have the same."""
    try:
        machine = _MACHINE_ID.read_text(encoding="ascii").strip()
    except OSError:
        machine = ""
    return f"{machine}/{platform.node()}"


def is_dead_here(worker: Worker) -> bool:
    """Whether the process of this worker of a ledger that several machines use is certainly gone.

    :func:`is_dead` may take another run of the kernel for an earlier one, because its ledger stays on one machine. Here it may be another
    machine, even one with the same name and the same machine id, made from the same image: then only its lease says when it is gone.
    """
    return worker.boot == _boot() and is_dead(worker)


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()


def _namespace() -> str:
    try:
        return os.readlink(_PID_NAMESPACE)
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """Start time of a running process from ``/proc``; None where that cannot be read. A zombie runs nothing any more: "ended"."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the command in brackets and may itself hold spaces and brackets, so fields are counted from the last one.
    fields = text.rpartition(")")[2].split()
    return "ended" if fields[0] in "ZXx" else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
