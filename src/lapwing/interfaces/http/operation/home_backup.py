"""A backup of a server: its configuration, keys, grants and audit log, and the `lapwing backup` of every data set it serves.

A restore returns no budget. As after any restore, a ledger that is older than its registry or its anchor is refused until what it lacks
is charged again. API keys are revoked, since one may have been revoked after the backup was made; and restored roles admit nobody until
the owner has reviewed them (``Identities.require_accepted``).
"""

from __future__ import annotations

import io
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from lapwing.curator.catalogue_name import catalogue_directory
from lapwing.curator.curator import CATALOGUE_FILE
from lapwing.errors import PreparationError
from lapwing.interfaces.http.configuration import CONFIGURATION_FILE, IDENTITIES_FILE, ServerConfiguration, read_configuration
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.owner.backup import (
    Backup,
    Write,
    archive,
    is_there,
    members_in,
    members_of,
    put_back_by,
    read_archive,
    whole_or_not_at_all,
    write_whole,
)

_CONFIGURATION, _IDENTITIES, _AUDIT = "server/configuration", "server/identities", "server/audit"
_DATA_SET = re.compile(r"data-sets/\d{1,6}")


@dataclass(frozen=True, slots=True)
class ServerBackup:
    """What a backup of a server holds, or what was restored from it."""

    data_sets: dict[Path, Backup]
    """The backup of each data set, by the directory of its catalogue."""
    there_already: tuple[Path, ...]
    """Directories of existing data sets with their ledgers, which were left unchanged."""
    identities_are_elsewhere: bool
    """Keys and grants are in a database, and are backed up there."""
    keys_ended: int


def back_up_server(home: Path, to: Path) -> ServerBackup:
    """Write the backup, whole or not at all, readable by its owner only. The server may run meanwhile.

    Keys and grants are copied before the ledgers, and the audit log after them: the log covers at least what was charged.
    """
    configuration = read_configuration(home / CONFIGURATION_FILE)
    members = {_CONFIGURATION: (home / CONFIGURATION_FILE).read_bytes()}
    identities = home / IDENTITIES_FILE
    if configuration.server.identities is None and identities.exists():
        members[_IDENTITIES] = _database(identities)
    kept: dict[Path, Backup] = {}
    for number, directory in enumerate(_directories(configuration, home)):
        files, ledger_is_elsewhere = members_of(directory / CATALOGUE_FILE)
        members[f"data-sets/{number}"] = archive(files)
        kept[directory] = Backup(tuple(files), ledger_is_elsewhere)
    if configuration.audit_path(home).exists():
        members[_AUDIT] = configuration.audit_path(home).read_bytes()
    write_whole(to, archive(members))
    return ServerBackup(kept, (), configuration.server.identities is not None, 0)


def put_back_server(backup: Path, home: Path) -> ServerBackup:
    """Write the files of a backup into a home that has none of them, and data sets where the configuration names them. Overwrites nothing.

    An existing data set is left unchanged; one that has lost its state, and so its ledger, is restored. If neither is possible for one of
    them, nothing is written at all: a catalogue without its ledger would begin another budget.
    """
    members = read_archive(backup, _is_ours)
    if _CONFIGURATION not in members:
        raise PreparationError("backup-invalid", "the file is not a backup of a server")
    if any((home / name).exists() for name in (CONFIGURATION_FILE, IDENTITIES_FILE)):
        message = "the directory already has a server's configuration, or keys and grants"
        raise PreparationError("restore-target", message, hint="move them away first: they may be newer than the backup")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    written: dict[Path, Backup] = {}
    there_already: list[Path] = []
    with whole_or_not_at_all() as write:
        write(home / CONFIGURATION_FILE, members[_CONFIGURATION])
        configuration = read_configuration(home / CONFIGURATION_FILE)
        for number, directory in enumerate(_directories(configuration, home)):
            content = members.get(f"data-sets/{number}")
            if content is None:
                raise PreparationError("backup-invalid", "the backup lacks a data set that its configuration names")
            data_set = members_in(io.BytesIO(content))
            if is_there(data_set, directory):
                there_already.append(directory)
            else:
                written[directory] = put_back_by(write, data_set, directory)
        if _AUDIT in members and not configuration.audit_path(home).exists():
            write(configuration.audit_path(home), members[_AUDIT])
        ended = _put_back_identities(write, members, configuration, home)
    return ServerBackup(written, tuple(there_already), configuration.server.identities is not None, ended)


def _put_back_identities(write: Write, members: dict[str, bytes], configuration: ServerConfiguration, home: Path) -> int:
    """Restore keys and grants; returns how many API keys were revoked. A database of identities is restored by its own tools."""
    if configuration.server.identities is not None:
        return 0
    if _IDENTITIES in members:
        write(home / IDENTITIES_FILE, members[_IDENTITIES])
    identities = Identities(configuration.identities_url(home))
    try:
        return identities.mark_restored()
    finally:
        identities.close()


def _directories(configuration: ServerConfiguration, home: Path) -> list[Path]:
    """The directories of the catalogues, in the order of the configuration; a path may name a catalogue or its directory."""
    return [catalogue_directory(home / item.catalogue) for item in configuration.data_set]


def _database(file: Path) -> bytes:
    """A consistent copy, even while others write."""
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        copy = sqlite3.connect(":memory:")
        connection.backup(copy)
        content = copy.serialize()
        copy.close()
        return content
    finally:
        connection.close()


def _is_ours(member: str) -> bool:
    return member in (_CONFIGURATION, _IDENTITIES, _AUDIT) or _DATA_SET.fullmatch(member) is not None
