"""A database as the first version of the schema left it, with its functions and its rights, is brought to this version.

``landed_0001.sql`` is what ``pg_dump`` wrote of a ledger that was made and used with that version: groups, analysts, a budget that two
people raised, a proposal that was still open, an answer, a forfeited charge, and a reservation of a worker that was still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.errors import CatalogueError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy, rows
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.install import SCHEMA_VERSION, install
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import StoredAnswer
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, OWNER_ROLE, ROLES, Cluster
from tests.ledger.pg import Place
from tests.ledger.support import pure_budget, request

LANDED = Path(__file__).with_name("landed_0001.sql")


@pytest.fixture
def landed(cluster: Cluster, tmp_path: Path) -> Iterator[Place]:
    """The database, and the anchor as that version kept it: without a name."""
    cluster._create_database("landed", "template0")
    anchors = FileAnchors(tmp_path / "anchors")
    try:
        with cluster.superuser("landed") as superuser:
            superuser.execute(LANDED.read_bytes())
            [row] = superuser.execute(f"SELECT {rows.STATE} FROM lapwing.data_set".encode()).fetchall()
            anchors.advance(rows.state_of(row), holds=lambda point: True)
        yield Place(cluster, "landed", anchors, "clinic")
    finally:
        cluster.drop_database("landed")


def test_what_the_first_version_left_goes_on(landed: Place) -> None:
    assert not (landed.anchors.directory / "name").exists()  # type: ignore[attr-defined]
    with landed.cluster.superuser("landed") as superuser:
        before = superuser.execute("SELECT entries, loss_spent, budget, ceiling FROM lapwing.data_set").fetchone()
    with pytest.raises(LedgerError) as refusal:
        landed.open()
    assert refusal.value.code == "ledger-format"
    owner_dsn = landed.cluster.dsn("landed", role=OWNER_ROLE)
    for _ in range(2):
        assert install(owner_dsn, roles=ROLES) == SCHEMA_VERSION
    with landed.cluster.superuser("landed") as superuser:
        after = superuser.execute("SELECT entries, loss_spent, budget, ceiling FROM lapwing.data_set").fetchone()
        assert before is not None and after is not None and before[1:] == after[1:]
        # The worker of that version is ended, and what it had reserved is forfeited: its nonce could be read.
        assert superuser.execute("SELECT count(*) FROM lapwing.worker WHERE ended_at IS NULL").fetchone() == (0,)
        states = superuser.execute("SELECT request_id, state::text FROM lapwing.charge ORDER BY charge_id").fetchall()
        assert states == [("paid", "committed"), ("lost", "forfeited"), ("open", "forfeited")]
        for role in (APP_ROLE, CURATOR_ROLE):
            given = superuser.execute(
                "SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee WHERE r.rolname = %s", [role]
            )
            assert given.fetchone() == (0,), "what a role was given before, it has only as a member now"
    # Nobody is served until the owner has registered the anchors there are.
    with pytest.raises(LedgerError) as refusal:
        landed.open()
    assert refusal.value.code == "ledger-unregistered"
    with landed.open(override=True, reason="upgraded; these are all the anchors") as ledger:
        assert ledger.balance().spent == Cost(loss=9, delta=0) and ledger.balance().budget == pure_budget(25)
        assert ledger.reserve(request("paid", loss=3)) == StoredAnswer(charge_id=1, payload=b"answer")
        assert isinstance(ledger.reserve(request("new", loss=16)), Permit)
        report = verify(ledger.connection, "clinic", anchors=landed.anchors)
        assert [problem for problem in report.problems if "newest day" not in problem] == []
        # A proposal of the first version does not say in whose session it was made: it cannot be approved any more, only denied.
        [open_one] = [one for one in policy.proposals(ledger) if one.state == "open"]
        with landed.in_another_role(ledger) as second:
            with pytest.raises(CatalogueError) as one_person:
                policy.approve(second, open_one.proposal_id, by="piet")
            assert one_person.value.code == "second-person"
            policy.deny(second, open_one.proposal_id, by="piet")
    with landed.open() as again:
        assert again.balance().spent == Cost(loss=25, delta=0)


def test_the_upgraded_schema_is_the_installed_one(landed: Place) -> None:
    """Tables, columns, rules, triggers and routines are the same, however the database came to them."""
    install(landed.cluster.dsn("landed", role=OWNER_ROLE), roles=ROLES)
    fresh = landed.cluster.new_database()
    try:
        assert _described(landed.cluster, "landed") == _described(landed.cluster, fresh)
    finally:
        landed.cluster.drop_database(fresh)


def _described(cluster: Cluster, database: str) -> list[list[tuple[object, ...]]]:
    queries = (
        "SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid"
        " WHERE relnamespace = 'lapwing'::regnamespace AND attnum > 0 AND relkind = 'r' ORDER BY 1, attnum",
        "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'lapwing'::regnamespace ORDER BY 1, 2",
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indrelid"
        " WHERE relnamespace = 'lapwing'::regnamespace ORDER BY 1",
        "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid"
        " WHERE relnamespace = 'lapwing'::regnamespace AND NOT tgisinternal ORDER BY 1",
        "SELECT pg_get_functiondef(oid), proacl::text FROM pg_proc WHERE pronamespace = 'lapwing'::regnamespace ORDER BY 1",
    )
    with cluster.superuser(database) as superuser:
        return [superuser.execute(query.encode()).fetchall() for query in queries]
