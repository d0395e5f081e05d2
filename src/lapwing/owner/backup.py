"""Backup and restore of a data set in one file: the catalogue, the state directory, the local ledger and the keys.

Two things are left out on purpose. Prepared versions hold rows; they are prepared again. The registry and the anchors detect that
an older state was restored, so they are never part of a backup nor restored with one: a restored ledger is compared with the
existing ones or, if these are lost too, is refused until the owner accepts it with a reason.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias

from lapwing.catalog import load
from lapwing.engines.state import KEPT_FILES, LOCK_FILE, StateDirectory
from lapwing.errors import PreparationError
from lapwing.ledger.connect import place_of
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import database_bytes

_CATALOGUE, _LEDGER, _STATE, _KEYS = "lapwing.toml", "ledger.sqlite", "state", "keys"
_KEY_FILE = re.compile(r"[A-Za-z0-9_-]+\.(?:private|public)\.pem")
_MEMBER_BYTES_MAX = 1 << 34


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup."""

    files: tuple[str, ...]
    ledger_is_elsewhere: bool
    """The ledger is in a database, and is backed up there."""


def back_up(catalogue: Path, to: Path) -> Backup:
    """Write a backup atomically, readable by its owner only. The ledger is copied as of one moment, even while it is in use."""
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
    """Write a file atomically, readable by its owner only."""
    partial = to.with_name(f"{to.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        write_new(partial, content)
        os.replace(partial, to)
    except OSError as error:
        raise PreparationError("backup-failed", "the backup cannot be written", hint="choose a place that can be written") from error


Write: TypeAlias = Callable[[Path, bytes], None]
"""Writes a new file."""


@contextmanager
def whole_or_not_at_all() -> Iterator[Write]:
    """Files that are all written or, on a refusal or failure, all removed."""
    written: list[Path] = []

    def write(path: Path, content: bytes) -> None:
        if not path.exists():
            written.append(path)
        write_new(path, content)

    try:
        yield write
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise


def put_back(backup: Path | BinaryIO, directory: Path) -> Backup:
    """Write the files of a backup into a directory that has no state of a data set. Overwrites nothing, opens nothing.

    A catalogue of the same data set that already exists is kept: the state belongs to it, and without its ledger it would get another
    budget. Keys go to where the catalogue says, unless there are some already.
    """
    with whole_or_not_at_all() as write:
        return put_back_by(write, members_in(backup), directory)


def members_in(backup: Path | BinaryIO) -> dict[str, bytes]:
    """What a backup of a data set holds, by name."""
    members = read_archive(backup, _is_ours)
    if _CATALOGUE not in members:
        raise PreparationError("backup-invalid", "the file is no backup of a data set")
    return members


def put_back_by(write: Write, members: Mapping[str, bytes], directory: Path) -> Backup:
    """The same with what a backup holds."""
    state, catalogue = StateDirectory(directory.resolve()), directory / _CATALOGUE
    there = sorted({path.name for path in state.directory.iterdir()} - {LOCK_FILE}) if state.directory.exists() else []
    if there:
        message = f"{directory} has a state of a data set already: {', '.join(there)}"
        raise PreparationError("restore-target", message, hint="move .lapwing away first: it may be newer than the backup")
    if catalogue.exists() and _id(catalogue.read_bytes()) != _id(members[_CATALOGUE]):
        message = f"the catalogue in {directory} is of another data set than the backup"
        raise PreparationError("restore-target", message, hint="move it away first, or restore into another directory")
    wanted = {state.directory / name.removeprefix(f"{_STATE}/"): name for name in members if name.startswith(f"{_STATE}/")}
    wanted |= {state.ledger_path: _LEDGER} if _LEDGER in members else {}
    wanted |= {} if catalogue.exists() else {catalogue: _CATALOGUE}
    if not wanted:
        message = f"{directory} has a catalogue, and the backup has nothing else"
        raise PreparationError("restore-target", message, hint="move it away first: it may be newer than the backup")
    state.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, name in wanted.items():
        write(path, members[name])
    place = place_of(load(catalogue), local=state.ledger_path, home=None, query_timeout_seconds=1)
    if place.keys is not None and not place.keys.exists():
        place.keys.mkdir(mode=0o700, parents=True)
        keys = {place.keys / name.removeprefix(f"{_KEYS}/"): name for name in members if name.startswith(f"{_KEYS}/")}
        for path, name in keys.items():
            write(path, members[name])
        wanted |= keys
    return Backup(tuple(name for name in members if name in wanted.values()), place.server is not None)


def is_there(members: Mapping[str, bytes], directory: Path) -> bool:
    """Whether the data set of a backup still exists: the catalogue, and the ledger or another part of the state."""
    state = StateDirectory(directory.resolve())
    kept = [state.directory / name for name in KEPT_FILES if f"{_STATE}/{name}" in members]
    needed = [state.ledger_path] if _LEDGER in members else kept
    return (directory / _CATALOGUE).exists() and (not needed or any(path.exists() for path in needed))


def _id(catalogue: bytes) -> object:
    """The id that a catalogue gives its data set; if that cannot be read, the text itself."""
    try:
        return tomllib.loads(catalogue.decode())["dataset"]["id"]
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError):
        return catalogue


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
    """Write a new file to the disk, readable by its owner only."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
