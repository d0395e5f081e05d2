"""A backup of a data set in one file, and putting it back: the catalogue, the state directory, the local ledger and the keys.

Two things are left out on purpose. Prepared versions hold rows; they are prepared again. The registry and the anchors are what notices that
an older state was put back, so they are never part of a backup and never restored with one: a ledger that comes back meets the memory it
left behind, or, where that is lost too, is refused until the owner accepts it with a reason.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lapwing.catalog import load
from lapwing.engines.state import KEPT_FILES, StateDirectory
from lapwing.errors import PreparationError
from lapwing.ledger.connect import place_of
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import database_bytes

_CATALOGUE, _LEDGER, _STATE, _KEYS = "lapwing.toml", "ledger.sqlite", "state", "keys"
_KEY_FILE = re.compile(r"[A-Za-z0-9_-]+\.(?:private|public)\.pem")
_MEMBER_BYTES_MAX = 1 << 34


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds."""

    files: tuple[str, ...]
    ledger_is_elsewhere: bool
    """The ledger is in a database, and is backed up there."""


def back_up(catalogue: Path, to: Path) -> Backup:
    """Write a backup, whole or not at all, readable by its owner only. The ledger is copied as of one moment, also while it is in use."""
    members, ledger_is_elsewhere = members_of(catalogue)
    write_whole(to, archive(members))
    return Backup(tuple(members), ledger_is_elsewhere)


def members_of(catalogue: Path) -> tuple[dict[str, bytes], bool]:
    """What a backup of this data set holds, by name, and whether its ledger is elsewhere."""
    directory = catalogue.resolve().parent
    declaration, state = load(catalogue), StateDirectory(directory)
    place = place_of(declaration, local=state.ledger_path, home=None, query_timeout_seconds=1)
    members = {_CATALOGUE: catalogue.read_bytes()}
    members |= {f"{_STATE}/{name}": (state.directory / name).read_bytes() for name in KEPT_FILES if (state.directory / name).exists()}
    if place.server is None and state.ledger_path.exists():
        members[_LEDGER] = database_bytes(state.ledger_path, LEDGER_FORMAT)
    if place.keys is not None and place.keys.is_dir():
        members |= {f"{_KEYS}/{path.name}": path.read_bytes() for path in place.keys.iterdir() if _KEY_FILE.fullmatch(path.name)}
    return members, place.server is not None


def archive(members: dict[str, bytes]) -> bytes:
    """Files as one."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as written:
        for name, content in members.items():
            written.addfile(_member(name, len(content)), io.BytesIO(content))
    return target.getvalue()


def write_whole(to: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, readable by its owner only."""
    partial = to.with_name(f"{to.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        write_new(partial, content)
        os.replace(partial, to)
    except OSError as error:
        raise PreparationError("backup-failed", "the backup cannot be written", hint="choose a place that can be written") from error


def put_back(backup: Path | BinaryIO, directory: Path) -> Backup:
    """Write the files of a backup into a directory that has neither a catalogue nor a state directory. Overwrites nothing, opens nothing.

    Keys go to where the catalogue says, unless there are some already.
    """
    state = StateDirectory(directory.resolve())
    if (directory / _CATALOGUE).exists() or state.directory.exists():
        message = "the directory has a catalogue or a state directory already"
        raise PreparationError("restore-target", message, hint="move them away first: they may be newer than the backup")
    members = read_archive(backup, _is_ours)
    if _CATALOGUE not in members:
        raise PreparationError("backup-invalid", "the file is no backup of a data set")
    directory.mkdir(parents=True, exist_ok=True)
    state.directory.mkdir(mode=0o700)
    catalogue = directory / _CATALOGUE
    write_new(catalogue, members[_CATALOGUE])
    for name, content in members.items():
        if name.startswith(f"{_STATE}/"):
            write_new(state.directory / name.removeprefix(f"{_STATE}/"), content)
    if _LEDGER in members:
        write_new(state.ledger_path, members[_LEDGER])
    place = place_of(load(catalogue), local=state.ledger_path, home=None, query_timeout_seconds=1)
    if place.keys is not None and not place.keys.exists():
        place.keys.mkdir(mode=0o700, parents=True)
        for name, content in members.items():
            if name.startswith(f"{_KEYS}/"):
                write_new(place.keys / name.removeprefix(f"{_KEYS}/"), content)
    return Backup(tuple(members), place.server is not None)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(time.time())
    return member


def read_archive(backup: Path | BinaryIO, is_ours: Callable[[str], bool]) -> dict[str, bytes]:
    """The files in a backup, by name. Only what a backup of ours can hold: no links, no folders, no other names."""
    members = {}
    try:
        with tarfile.open(backup, mode="r:") if isinstance(backup, Path) else tarfile.open(fileobj=backup, mode="r:") as opened:
            for member in opened:
                handle = opened.extractfile(member) if member.isreg() and member.size <= _MEMBER_BYTES_MAX else None
                if handle is None or not is_ours(member.name):
                    raise PreparationError("backup-invalid", "the file is no backup of this kind")
                members[member.name] = handle.read()
    except (OSError, tarfile.TarError) as error:
        raise PreparationError("backup-invalid", "the backup cannot be read") from error
    return members


def _is_ours(member: str) -> bool:
    folder, _, name = member.rpartition("/")
    is_key = folder == _KEYS and _KEY_FILE.fullmatch(name) is not None
    return member in (_CATALOGUE, _LEDGER) or (folder == _STATE and name in KEPT_FILES) or is_key


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, readable by its owner only, to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
