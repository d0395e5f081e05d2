"""A database of this version, with charges in it, is brought to the next version of the schema without losing any.

The test makes that version: a copy of the package with one migration and one function more, as the next release would be. A database as
the first version left it is brought to this one by another test.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres.install import SCHEMA_VERSION, install
from lapwing.ledger.postgres.rows import digest_of
from tests.ledger.cluster import OWNER_ROLE, ROLES, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request
from tests.schedules.subject import package_files

NEXT = "9999"
PACKAGE = "ledger_of_the_next_release"
MIGRATION = f'''
from alembic import op

revision, down_revision, branch_labels, depends_on = "{NEXT}", "{SCHEMA_VERSION}", None, None


def upgrade() -> None:
    for statement in (
        "ALTER TABLE lapwing.charge ADD COLUMN engine text NOT NULL DEFAULT 'unknown'",
        "CREATE TABLE lapwing.remark (ledger_id text NOT NULL REFERENCES lapwing.data_set, remark text NOT NULL)",
        *MORE,
    ):
        op.get_bind().exec_driver_sql(statement)


MORE: list[str] = []
'''

FUNCTION = """
CREATE FUNCTION lapwing.add_remark(p_ledger_id text, p_remark text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO lapwing.remark VALUES (p_ledger_id, p_remark)
$$;
"""


@pytest.fixture
def next_release(tmp_path: Path) -> Iterator[Path]:
    """The directory of the copy, which can be imported as ``PACKAGE`` meanwhile."""
    directory = tmp_path / PACKAGE
    files = {**package_files(), "postgres/migrations/versions/v9999_next.py": MIGRATION}
    files["postgres/sql/policy.sql"] += FUNCTION
    files["postgres/routines.py"] = files["postgres/routines.py"].replace('"accept_override",', '"accept_override", "add_remark",')
    for path, text in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = text if path.endswith(".sql") else text.replace("lapwing.ledger", PACKAGE)
        target.write_text(text.replace(f'SCHEMA_VERSION = "{SCHEMA_VERSION}"', f'SCHEMA_VERSION = "{NEXT}"'), encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    yield directory
    sys.path.remove(str(tmp_path))
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == PACKAGE]:
        del sys.modules[loaded]


def module(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{name}")


@pytest.fixture
def own_place(cluster: Cluster, tmp_path: Path) -> Iterator[Place]:
    """A source in a database that nobody else uses."""
    place = new_place(cluster, cluster.new_database(), tmp_path)
    yield place
    cluster.drop_database(place.database)


def versions(place: Place) -> list[tuple[object, ...]]:
    with place.cluster.superuser(place.database) as connection:
        return connection.execute("SELECT version_num FROM lapwing.alembic_version").fetchall()


def test_an_upgrade_keeps_every_charge_and_answer(own_place: Place, next_release: Path) -> None:
    place = own_place
    owner_dsn = place.cluster.dsn(place.database, role=OWNER_ROLE)
    ledger = place.create(pure_budget(20))
    paid, still_open = ledger.reserve(request("paid", loss=3)), ledger.reserve(request("open", loss=4))
    assert isinstance(paid, Permit) and isinstance(still_open, Permit)
    ledger.commit(paid, b"answer")
    before = ledger.state()

    assert module("postgres.install").install(owner_dsn, roles=ROLES) == NEXT
    assert module("postgres.install").install(owner_dsn, roles=ROLES) == NEXT  # again: nothing to do
    assert ledger.state() == before
    # A worker of the old release that is connected may finish what it has; no other of that release may begin.
    ledger.commit(still_open, b"late answer")
    ledger.disconnect()
    with pytest.raises(LedgerError) as refusal:
        place.open()
    assert refusal.value.code == "ledger-format"
    # Nor does installing with the old release take anything back.
    with pytest.raises(LedgerError) as refusal:
        install(owner_dsn, roles=ROLES)
    assert refusal.value.code == "ledger-format"
    assert versions(place) == [(NEXT,)]

    anchors = module("postgres.anchors").FileAnchors(place.anchors.directory)  # type: ignore[attr-defined]
    opened = module("postgres.ledger").PostgresLedger.open(place.dsn, source_id=place.source_id, anchors=anchors)
    with opened as new:
        assert new.balance().spent == Cost(loss=7, delta=0)
        assert new.reserve(request("paid", loss=3)).payload == b"answer"
        assert new.reserve(request("open", loss=4)).payload == b"late answer"
        new.commit(new.reserve(request("after", loss=13)), b"the last of the budget")
        assert module("postgres.verify").verify(new.connection, place.source_id, anchors=anchors).problems == ()
        new.connection.ask("SELECT lapwing.add_remark(%s, 'the new function may be called')", [new.ledger_id], again=False)
    with place.cluster.superuser(place.database) as connection:
        assert connection.execute("SELECT engine, count(*) FROM lapwing.charge GROUP BY engine").fetchall() == [("unknown", 3)]
    with psycopg.connect(place.dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("INSERT INTO lapwing.remark SELECT ledger_id, '' FROM lapwing.data_set")


def test_an_upgrade_that_fails_leaves_what_was_there(own_place: Place, next_release: Path) -> None:
    place = own_place
    migration = next_release / "postgres/migrations/versions/v9999_next.py"
    migration.write_text(migration.read_text(encoding="utf-8").replace("= []", '= ["SELECT 1 / 0"]'), encoding="utf-8")
    with place.create(pure_budget(20)) as ledger:
        assert isinstance(ledger.reserve(request("one", loss=3)), Permit)
        with pytest.raises(LedgerError):
            module("postgres.install").install(place.cluster.dsn(place.database, role=OWNER_ROLE), roles=ROLES)
        assert versions(place) == [(SCHEMA_VERSION,)]
        with place.open() as other:
            assert other.balance().spent == Cost(loss=3, delta=0)
        with place.cluster.superuser(place.database) as connection:
            assert connection.execute("SELECT to_regclass('lapwing.remark')").fetchall() == [(None,)]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@settings(max_examples=200, deadline=None)
@given(fields=st.lists(st.none() | texts, min_size=1, max_size=5))
def test_the_database_hashes_as_python_does(superuser: psycopg.Connection[tuple[object, ...]], fields: list[str | None]) -> None:
    assert superuser.execute("SELECT lapwing.digest(VARIADIC %s::text[])", [fields]).fetchall() == [(digest_of(*fields),)]


@pytest.fixture(scope="module")
def superuser(cluster: Cluster, database: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with cluster.superuser(database) as connection:
        yield connection
