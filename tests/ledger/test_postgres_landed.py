"""A database as the first version of the schema left it, with its functions and its rights, is brought to this version.

``landed_0001.sql`` is what ``pg_dump`` wrote of a ledger that was made and used with that version: groups, analysts, a budget that two
people raised, a proposal that was still open, an answer, a forfeited charge, and a reservation of a worker that was still there.
``landed_0002.sql`` is the same of the second version, for an approximate account and without the functions and rights, which are made anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from lapwing.errors import CatalogueError, LedgerError, Refused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.postgres import policy, rows
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.install import SCHEMA_VERSION, install
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import StoredAnswer
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, MONITOR_ROLE, OWNER_ROLE, ROLES, Cluster
from tests.ledger.pg import Place
from tests.ledger.support import approximate_budget, pure_budget, request, union_budget
from tests.unit.cli.support import run

LANDED = Path(__file__).with_name("landed_0001.sql")


@pytest.fixture
def landed(cluster: Cluster, tmp_path: Path) -> Iterator[Place]:
    """The database, and the anchor as that version kept it: without a name."""
    cluster._create_database("landed", "template0")
    anchors = FileAnchors(tmp_path / "anchors")
    try:
        with cluster.superuser("landed") as superuser:
            superuser.execute(LANDED.read_bytes())
            keep(anchors, superuser)
        yield Place(cluster, "landed", anchors, "clinic")
    finally:
        cluster.drop_database("landed")


@pytest.fixture
def landed_second(cluster: Cluster, tmp_path: Path) -> Iterator[Place]:
    """The same of the second version, whose anchor had a name."""
    cluster._create_database("landed_second", "template0")
    anchors = FileAnchors(tmp_path / "anchors")
    try:
        with cluster.superuser("landed_second") as superuser:
            superuser.execute(LANDED.with_name("landed_0002.sql").read_bytes())
            keep(anchors, superuser)
            [(name,)] = superuser.execute("SELECT anchors[1] FROM lapwing.data_set").fetchall()
            (anchors.directory / "name").write_text(f"{name}\n", encoding="ascii")
        yield Place(cluster, "landed_second", anchors, "clinic")
    finally:
        cluster.drop_database("landed_second")


def keep(anchors: FileAnchors, superuser: psycopg.Connection[tuple[object, ...]]) -> None:
    """What is in the database, as the anchor of a version that knew no pure amounts and no blocks kept it."""
    columns = ", ".join("NULL" if "pure" in column or column in rows.BLOCKS else column for column in rows.STATE.split(", "))
    [row] = superuser.execute(f"SELECT {columns} FROM lapwing.data_set".encode()).fetchall()
    anchors.advance(rows.state_of(row), holds=lambda point: True)


def test_what_the_second_version_left_goes_on(landed_second: Place) -> None:
    place = landed_second
    assert install(place.cluster.dsn(place.database, role=OWNER_ROLE), roles=ROLES) == SCHEMA_VERSION
    with place.open() as ledger:
        # All of it was charged without a pure amount, and stays so: there is no order to charge it in.
        assert ledger.balance().spent == Cost(loss=351, delta=8)
        assert ledger.balance().budget == approximate_budget(2)
        assert [entry.cost.pure for entry in ledger.history() if entry.cost.loss] == [None] * 4
        assert ledger.reserve(request("paid", loss=300, delta=7)) == StoredAnswer(charge_id=1, payload=b"answer")
        for key in ("open", "open too"):  # of a worker of that version, which was ended
            with pytest.raises(Refused) as forfeited:
                ledger.reserve(request(key, loss=5, analyst="ana" if key == "open" else "bo"))
            assert forfeited.value.code == "request-forfeited"
        assert isinstance(ledger.reserve(request("new", loss=16, pure=3)), Permit)
        assert ledger.balance().spent == Cost(loss=367, delta=8)
        share = policy.analyst_share(ledger, "bo")
        assert share is not None and (share.spent, share.pure_total) == (Cost(loss=46, delta=1), None)
        assert verify(ledger.connection, "clinic", anchors=place.anchors).problems == ()
        [waiting] = [one for one in policy.proposals(ledger) if one.state == "open"]
        with place.in_another_role(ledger) as second:
            policy.approve(second, waiting.proposal_id, by="another")
        # The account cannot be given an order: what was charged has no amounts on the other side.
        with pytest.raises(CatalogueError) as no_order:
            policy.propose_ceiling(ledger, union_budget(4), by="one", reason="more")
        assert no_order.value.code == "budget-account"
        ordered = budget_text(union_budget(4))
        with pytest.raises(psycopg.Error):
            place.execute(f"UPDATE lapwing.data_set SET ceiling = '{ordered}', pure_ceiling = 4, budget = '{ordered}', pure_total = 4")


def test_blocks_of_time_are_declared_in_what_the_second_version_left(landed_second: Place) -> None:
    place = landed_second
    install(place.cluster.dsn(place.database, role=OWNER_ROLE), roles=ROLES)
    with place.open() as ledger:
        before = ledger.state()
        ledger.declare_blocks(BlockTerms("day", None), read=(0, 9), units=1, reason="the sources grow")
        spending = ledger.blocks()
        assert spending is not None and spending.most(0, 9) == spending.person == before.spent == ledger.balance().spent
        new = replace(request("new", loss=5), ranges=(BlockCost(5, 20, Cost(loss=5, delta=0)),), person=Cost(loss=5, delta=0))
        assert isinstance(ledger.reserve(new), Permit)
        assert ledger.reserve(request("paid", loss=300, delta=7)) == StoredAnswer(charge_id=1, payload=b"answer")
        assert verify(ledger.connection, "clinic", anchors=place.anchors).problems == ()


def _compared_as_promised(landed: Place, home: Path) -> None:
    """That version recorded no anchors: whoever gives some promises them, and where nobody does, nothing else was compared."""
    where = ("ledger", "verify", "--database", landed.cluster.dsn("landed", role=MONITOR_ROLE))
    alone = run(*where, home=home)
    assert "nothing outside the database was compared" in alone.out and "anchor-missing" not in alone.out
    given = run(*where, "--anchors", landed.anchors.directory, home=home)  # type: ignore[attr-defined]
    assert "compared with anchor" in given.out and "anchor-missing" not in given.out and "nothing outside" not in given.out
    assert not (landed.anchors.directory / "name").exists(), "a check names nothing"  # type: ignore[attr-defined]
    empty = run(*where, "--anchors", home, home=home)
    assert empty.status == 1 and "[anchor-missing]" in empty.out


def test_what_the_first_version_left_goes_on(landed: Place, tmp_path: Path) -> None:
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
    _compared_as_promised(landed, tmp_path)
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
