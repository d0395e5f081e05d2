"""The ledger that is put to the test: the shipped one, or a copy with deliberate mistakes, with a database of its own.

A copy is the whole package ``lapwing.ledger`` under another name with texts replaced, in Python or in the SQL it installs. A text to be
replaced must occur exactly as often as is said, so that a mistake that no longer fits the code fails loudly instead of testing nothing.
Everything that judges (the oracle, ``verify``, the model) is the shipped code.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import lapwing.ledger
from tests.ledger.cluster import APP_ROLE, OWNER_ROLE, ROLES, Cluster
from tests.schedules.gates import GATE_FUNCTION, with_gates

SQL, PYTHON = "sql", "py"
"""All files of SQL together, and all of Python: in which of them a text is does not matter to a mistake in it."""
_SQL_DIRECTORY = "postgres/sql/"
_FIRST_WITH_FUNCTIONS = "protocol.sql"


@dataclass(frozen=True)
class Patch:
    """Replace ``text`` by ``replacement`` in ``SQL`` or in ``PYTHON``."""

    where: str
    text: str
    replacement: str
    times: int = 1


@dataclass(frozen=True)
class Subject:
    """A ledger as its users have it: the modules of its package, and a database in which that package installed its schema."""

    name: str
    cluster: Cluster
    database: str
    package: str

    def module(self, name: str) -> ModuleType:
        """A module of the package, such as ``postgres.ledger``."""
        return importlib.import_module(f"{self.package}.{name}")

    @property
    def dsn(self) -> str:
        return self.cluster.dsn(self.database)


def package_files() -> dict[str, str]:
    """The shipped files by their paths within the package."""
    source = Path(next(iter(lapwing.ledger.__path__)))
    paths = sorted(path for path in source.rglob("*") if path.suffix in {".py", ".sql"})
    return {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def patched(files: dict[str, str], patches: Sequence[Patch]) -> dict[str, str]:
    """The files with every patch in it."""
    changed = dict(files)
    for patch in patches:
        places = [path for path in changed if path.endswith(f".{patch.where}")]
        found = sum(changed[path].count(patch.text) for path in places)
        assert found == patch.times, f"{patch.text!r} is {found} times in {patch.where}, not {patch.times}"
        for path in places:
            changed[path] = changed[path].replace(patch.text, patch.replacement)
    return changed


@contextmanager
def subject_of(cluster: Cluster, name: str, patches: Sequence[Patch], directory: Path, *, gates: bool = False) -> Iterator[Subject]:
    """A copy with these patches, loaded for a while, in a database of its own that is dropped afterwards."""
    package = "subject_" + "".join(letter if letter.isalnum() else "_" for letter in name)
    files = patched(package_files(), patches)
    if gates:
        files = {path: with_gates(text) if path.startswith(_SQL_DIRECTORY) else text for path, text in files.items()}
        files[_SQL_DIRECTORY + _FIRST_WITH_FUNCTIONS] = GATE_FUNCTION + files[_SQL_DIRECTORY + _FIRST_WITH_FUNCTIONS]
    for path, text in files.items():
        target = directory / package / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text if path.endswith(".sql") else text.replace("lapwing.ledger", package), encoding="utf-8")
    database = package.lower()[:60]
    with cluster.superuser() as connection:
        connection.execute(f"CREATE DATABASE {database} OWNER {OWNER_ROLE} TEMPLATE template0".encode())
    sys.path.insert(0, str(directory))
    try:
        importlib.invalidate_caches()
        subject = Subject(name, cluster, database, package)
        subject.module("postgres.install").install(cluster.dsn(database, role=OWNER_ROLE), roles=ROLES)
        if gates:
            with cluster.superuser(database) as connection:
                connection.execute(f"GRANT EXECUTE ON FUNCTION lapwing.gate TO {APP_ROLE}".encode())
        yield subject
    finally:
        sys.path.remove(str(directory))
        for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == package]:
            del sys.modules[loaded]
        cluster.drop_database(database)
