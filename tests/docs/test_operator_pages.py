"""The two pages for those who operate on PostgreSQL, typed word for word on an empty server by the users of the machine they tell of.

The blocks of a page are typed in their order: ``# as olga`` into her shell, ``-- as ROLE in DATABASE`` into psql, and TOML is put at the
end of the file that its first line names. Then: what the other user must not be able to do.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.people import Person, install_for_everybody, public_directory
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, MONITOR_ROLE, OWNER_ROLE, ROLES, SECOND_ROLE, Cluster
from tests.meta.tree import DOCS

_BLOCK = re.compile(r"^```(sql|toml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TYPED_BY, _SQL_BY, _FILE = re.compile(r"# as (\w+)\n"), re.compile(r"-- as (\w+) in (\w+)\n"), re.compile(r"# in (\S+)\n")
_OWNER = "olga"
_UMASKS = {"olga": 0o022, "piet": 0o077, "ana": 0o022}
_MADE_BY_THE_PAGES = ("olga", "piet", "ana")
_SHARED = Path("/srv/lapwing")
_LOCK = Path("/run/lapwing-operator-pages.lock")
"""One run on a machine at a time. It holds a word while users exist that a run has made: one that was killed leaves it."""


class Machine:
    """An empty server, ``lapwing`` for everybody, and whoever the pages make."""

    def __init__(self, cluster: Cluster, programs: Path) -> None:
        self.environment = {"PATH": f"{programs}:{cluster.programs}:/usr/bin:/bin:/usr/sbin:/sbin", "PGHOST": str(cluster.home)}
        self._people: dict[str, Person] = {}

    def person(self, user: str) -> Person:
        """Who sits at a terminal from the first time they are named."""
        if user not in self._people:
            self._people[user] = Person(user, _UMASKS.get(user, 0o022), self.environment)
        return self._people[user]

    def follow(self, page: Path) -> list[str]:
        """Type the blocks of a page; what each block for a shell printed."""
        said = []
        for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind == "sql":
                said_by = _SQL_BY.match(text)
                assert said_by is not None, f"a block does not say who types it:\n{text}"
                role, database = said_by.groups()
                typed = f"psql -X -q -v ON_ERROR_STOP=1 -U {role} -d {database} <<'END-OF-SQL'\n{text}END-OF-SQL"
                self.person("postgres" if role == "postgres" else _OWNER).types(typed)
            elif kind == "toml":
                file = _FILE.match(text)
                assert file is not None, f"a block does not say what file it is in:\n{text}"
                self.person(_OWNER).types(f"cat >> {file[1]} <<'END-OF-FILE'\n\n{text}END-OF-FILE")
            else:
                typed_by = _TYPED_BY.match(text)
                assert typed_by is not None, f"a block does not say who types it:\n{text}"
                said.append(self.person(typed_by[1]).types(text))
        return said

    def close(self) -> None:
        for person in self._people.values():
            person.leaves()


def _remove_what_pages_made() -> None:
    for user in _MADE_BY_THE_PAGES:
        subprocess.run(["userdel", "--remove", user], capture_output=True, check=False)
    subprocess.run(["groupdel", "lapwing"], capture_output=True, check=False)
    shutil.rmtree(_SHARED, ignore_errors=True)
    assert not _what_is_there(), "what the pages made could not be removed"


def _what_is_there() -> list[str]:
    users = [f"the user {name}" for name in _MADE_BY_THE_PAGES if _is_known("passwd", name)]
    return users + ["the group lapwing"] * _is_known("group", "lapwing") + [f"the directory {_SHARED}"] * _SHARED.exists()


def _is_known(database: str, name: str) -> bool:
    return subprocess.run(["getent", database, name], capture_output=True, check=False).returncode == 0


@pytest.fixture
def empty_machine() -> Iterator[None]:
    """This machine, on which the pages make users and a directory; they are gone afterwards. Never anybody's who was there before."""
    assert os.geteuid() == 0, "the pages make users of the operating system: run this test as root, as CI does"
    with _LOCK.open("a+", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if lock.read():
            _remove_what_pages_made()
        there = _what_is_there()
        assert not there, f"the pages can only be followed on a machine without {', '.join(there)}"
        lock.write("made")
        lock.flush()
        try:
            yield
        finally:
            _remove_what_pages_made()
            lock.truncate(0)


@pytest.fixture
def machine(empty_machine: None) -> Iterator[Machine]:
    """With a server that has no roles but the administrator's, whose encoding is no help, and that wants passwords."""
    public = public_directory()
    cluster = Cluster(within=public, initdb=("-E", "SQL_ASCII"))
    machine = None
    try:
        with cluster.superuser() as connection:
            roles = (OWNER_ROLE, APP_ROLE, SECOND_ROLE, CURATOR_ROLE, MONITOR_ROLE, ROLES.curators, ROLES.owners, ROLES.monitors)
            connection.execute(f"DROP ROLE {', '.join(roles)}".encode())
            (cluster.data / "pg_hba.conf").write_text("local all postgres peer\nlocal all all scram-sha-256\n", encoding="ascii")
            connection.execute("SELECT pg_reload_conf()")
        cluster.home.chmod(0o711)  # the way to its socket; the data stay its own
        machine = Machine(cluster, install_for_everybody(public))
        yield machine
    finally:
        if machine is not None:
            machine.close()
        cluster.close()
        shutil.rmtree(public)


@pytest.mark.slow
def test_a_ledger_is_shared_by_two_people(machine: Machine) -> None:
    said = "\n".join(machine.follow(DOCS / "how-to" / "shared-ledger.md"))
    assert said.count("is carried out.") == 2
    assert "valid: charge" in said
    assert said.count("chain, sums, charges, answers, sub-budgets and anchor agree") == 2
    olga, piet = machine.person("olga"), machine.person("piet")

    for secret in ("clinic/.lapwing/ranking.key", "clinic/patients.parquet", "trial/patients.parquet", "keys/*.pem", "~olga/.pgpass"):
        olga.types(f"cat {secret} > /dev/null")
        piet.cannot(f"cat {secret}")
    for secret in ("clinic.backup", "privacy.dump"):
        olga.types(f"test -s {secret}")
        piet.cannot(f"cat {secret}")
    for closed in ("clinic/.lapwing", "keys", "~olga/.local/state/lapwing"):
        olga.types(f"ls {closed}")
        piet.cannot(f"ls {closed}")
    for command in ("echo >> clinic/lapwing.toml", "touch clinic/new", "touch new", "mv anchors elsewhere"):
        piet.cannot(command)
    for role in ("olga", "curator", "lapwing_schema"):
        piet.cannot(f"psql -w -U {role} -d privacy -c 'SELECT 1'", "no password supplied")
    piet.cannot("psql -w -U postgres -d privacy -c 'SELECT 1'", "Peer authentication failed")
    piet.cannot("psql -w -U piet -d privacy -c 'UPDATE lapwing.data_set SET loss_spent = 0'", "permission denied for table")

    asking = 'lapwing -C clinic ask "SELECT COUNT(*) FROM patients"'
    piet.types("lapwing receipt key --keys ~/own")
    for keys in ("", "LAPWING_KEYS=~/own "):
        piet.cannot(f"{keys}{asking} --analyst ana", "[state-private]")
        piet.cannot(f"{keys}lapwing -C clinic prepare", "[state-private]")

    piet.types('lapwing -C clinic ledger propose budget --epsilon 5 --reason "mine"')
    piet.cannot("lapwing -C clinic ledger approve 3", "[second-person]")
    piet.cannot("lapwing -C clinic ledger approve 3 --by olga", "[second-person]")
    olga.cannot("lapwing -C clinic ledger approve 3", "[ledger-role]")
    olga.cannot("lapwing -C clinic ledger admit eve", "[ledger-role]")

    administrator = machine.person("postgres")
    for place in ("/srv/lapwing", "/srv/lapwing/anchors", "/srv/lapwing/keys"):
        administrator.cannot(f"ls {place}")


@pytest.mark.slow
def test_tables_on_postgresql_are_asked_about(machine: Machine) -> None:
    said = machine.follow(DOCS / "how-to" / "postgresql.md")
    first, appended, virtual = said[-3:]
    assert all(ward in first for ward in ("north", "south", "west"))
    assert "Version 2" in appended and "Version 3" in virtual
    # version 1 became version 2; the virtual version 3 holds no rows
    administrator = machine.person("postgres")
    schemas = administrator.types("psql -d clinic -Atc \"SELECT nspname FROM pg_namespace WHERE nspname ~ '^lapwing_' ORDER BY 1\"").split()
    assert [name[-2:] for name in schemas] == ["02", "03"]
    assert administrator.types(f"psql -d clinic -Atc 'SELECT COUNT(*) FROM {schemas[0]}.visits'").split() == ["4040"]
    assert administrator.types(f"psql -d clinic -Atc \"SELECT to_regclass('{schemas[1]}.visits') IS NULL\"").split() == ["t"]

    olga, ana = machine.person("olga"), machine.person("ana")
    reading = "psql -w -U lapwing_reader -d clinic -c 'SELECT remarks FROM clinic.visits'"
    olga.cannot(reading, "permission denied for table visits")
    for role in ("clinic_owner", "lapwing_reader"):
        olga.types(f"psql -w -U {role} -d clinic -c 'SELECT 1'")
        ana.cannot(f"psql -w -U {role} -d clinic -c 'SELECT 1'", "no password supplied")
    ana.cannot("psql -w -U postgres -d clinic -c 'SELECT 1'", "Peer authentication failed")
    for secret in ("~olga/.pgpass", "~olga/clinic/lapwing.toml", "~olga/clinic/.lapwing/ranking.key"):
        olga.types(f"cat {secret} > /dev/null")
        ana.cannot(f"cat {secret}")
    for closed in ("~olga/clinic", "~olga/clinic/.lapwing", "~olga/.local/state/lapwing"):
        olga.types(f"ls {closed}")
        ana.cannot(f"ls {closed}")
    ana.cannot('lapwing -C ~olga/clinic ask "SELECT COUNT(*) FROM visits"', "is not readable")
