"""Which process made a reservation, and whether it is certainly gone.

Privacy never depends on this. If a live process is taken for dead, its charge is forfeited (it stays spent) and its late commit is refused;
if a dead process is taken for live, its charge stays reserved, which counts as spent too. It only affects how soon a request ends.
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
    """One use of a ledger by one process. Each has a new epoch, so no two workers are ever confused."""

    epoch: str
    boot: str
    """Identifies one boot of one machine."""
    namespace: str
    """The namespace of process ids; a container has its own."""
    pid: int
    started: str
    """When the process started, in clock ticks of the operating system; empty if unknown."""


def current_worker() -> Worker:
    """This process, with a new epoch."""
    pid = os.getpid()
    return Worker(epoch=secrets.token_hex(16), boot=_boot(), namespace=_namespace(), pid=pid, started=_started(pid) or "")


def is_dead(worker: Worker) -> bool:
    """Whether the process of this worker has certainly ended.

    A process from another boot of the machine has ended. One in a process namespace that is not visible here has not *certainly* ended.
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
    """Whether the machine was rebooted since this worker began."""
    return worker.boot != _boot()


def host_name() -> str:
    """The name of this machine for operators. No decision depends on it: machines from one image have the same name."""
    try:
        machine = _MACHINE_ID.read_text(encoding="ascii").strip()
    except OSError:
        machine = ""
    return f"{machine}/{platform.node()}"


def is_dead_here(worker: Worker) -> bool:
    """Whether the process of this worker, of a ledger that several machines use, has certainly ended.

    :func:`is_dead` takes another boot id for an earlier boot, because its ledger stays on one machine. Here it may be another machine, even
    one with the same name and machine id, made from the same image: then only its lease tells when the worker has ended.
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
    """Start time of a running process from ``/proc``; None if that cannot be read. A zombie has ended: "ended"."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the command in brackets and may itself contain spaces and brackets, so fields are counted after the last bracket.
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
