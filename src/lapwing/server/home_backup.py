"""A backup of a server: its configuration, its keys and grants, its audit log, and of every data set it serves what `lapwing backup` keeps.

Putting it back gives nothing back. A ledger that is older than its registry or its anchor remembers is refused until what it lacks is
charged again, as after any restore. API keys are ended, since one may have been revoked after the backup was made; and roles that were
granted then let nobody in until the owner has looked through them (``Identities.require_accepted``).
"""

from __future__ import annotations

import io
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from lapwing.curator.backup import Backup, archive, members_of, put_back, read_archive, write_new, write_whole
from lapwing.curator.catalogue_name import catalogue_directory
from lapwing.curator.life import CATALOGUE_FILE
from lapwing.errors import PreparationError
from lapwing.server.configuration import CONFIGURATION_FILE, IDENTITIES_FILE, ServerConfiguration, read_configuration
from lapwing.server.identities import Identities

_CONFIGURATION, _IDENTITIES, _AUDIT = "server/configuration", "server/identities", "server/audit"
_DATA_SET = re.compile(r"data-sets/\d{1,6}")


@dataclass(frozen=True, slots=True)
class ServerBackup:
    """What a backup of a server holds, or what was put back."""

    data_sets: dict[Path, Backup]
    """Of each data set, by the directory of its catalogue."""
    there_already: tuple[Path, ...]
    """Directories with a catalogue or a state: they were left as they are."""
    identities_are_elsewhere: bool
    """Keys and grants are in a database, and are backed up there."""
    keys_ended: int


def back_up_server(home: Path, to: Path) -> ServerBackup:
    """Write the backup, whole or not at all, readable by its owner only. The server may run meanwhile.

    Keys and grants are copied before the ledgers, and the audit log after them: what the log tells is at least what was charged.
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
    """Write the files of a backup into a home that has none of them, and data sets to where the configuration says. Overwrites nothing."""
    members = read_archive(backup, _is_ours)
    if _CONFIGURATION not in members:
        raise PreparationError("backup-invalid", "the file is no backup of a server")
    if any((home / name).exists() for name in (CONFIGURATION_FILE, IDENTITIES_FILE)):
        message = "the directory has a configuration of a server, or keys and grants, already"
        raise PreparationError("restore-target", message, hint="move them away first: they may be newer than the backup")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_new(home / CONFIGURATION_FILE, members[_CONFIGURATION])
    configuration = read_configuration(home / CONFIGURATION_FILE)
    ended = _put_back_identities(members, configuration, home)
    log = configuration.audit_path(home)
    if _AUDIT in members and not log.exists():
        write_new(log, members[_AUDIT])
    written: dict[Path, Backup] = {}
    there_already: list[Path] = []
    for number, directory in enumerate(_directories(configuration, home)):
        content = members.get(f"data-sets/{number}")
        if content is None:
            raise PreparationError("backup-invalid", "the backup lacks a data set that its configuration names")
        try:
            written[directory] = put_back(io.BytesIO(content), directory)
        except PreparationError as error:
            if error.code != "restore-target":
                raise
            there_already.append(directory)
    return ServerBackup(written, tuple(there_already), configuration.server.identities is not None, ended)


def _put_back_identities(members: dict[str, bytes], configuration: ServerConfiguration, home: Path) -> int:
    """How many API keys were ended. Those in a database are not part of this: it is there, or is restored as databases are."""
    if configuration.server.identities is not None:
        return 0
    if _IDENTITIES in members:
        write_new(home / IDENTITIES_FILE, members[_IDENTITIES])
    identities = Identities(configuration.identities_url(home))
    try:
        return identities.mark_restored()
    finally:
        identities.close()


def _directories(configuration: ServerConfiguration, home: Path) -> list[Path]:
    """Where the catalogues are, in the order of the configuration. A path that ends in the name of a catalogue is one."""
    return [catalogue_directory(home / item.catalogue) for item in configuration.data_set]


def _database(file: Path) -> bytes:
    """A copy as of one moment, also while others write."""
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
