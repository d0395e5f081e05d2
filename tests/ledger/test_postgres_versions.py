"""Databases of the two versions before are brought to this one in place, under a worker that is connected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.postgres.install import SCHEMA_VERSION, install
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from tests.ledger.cluster import OWNER_ROLE, ROLES, Cluster
from tests.ledger.support import request
from tests.ledger.test_postgres_across import places_of, require_sound, shared, threads_of

WITHOUT_BLOCKS = (
    "DROP TABLE lapwing.block_tree, lapwing.block_node",
    "DROP TRIGGER blocks_only_grow ON lapwing.data_set",
    "DROP TRIGGER blocks_stay ON lapwing.data_set",
    "DROP FUNCTION lapwing.require_block_growth",
    "ALTER TABLE lapwing.data_set DROP COLUMN blocks_every, DROP COLUMN person_budget, DROP COLUMN blocks_first, DROP COLUMN blocks_last,"
    " DROP COLUMN blocks_loss, DROP COLUMN blocks_delta, DROP COLUMN blocks_pure, DROP COLUMN persons_loss, DROP COLUMN persons_delta,"
    " DROP COLUMN persons_pure",
    "ALTER TABLE lapwing.entry DROP COLUMN blocks",
    "DROP DOMAIN lapwing.period, lapwing.tree, lapwing.tree_level",
)
"""What takes the tables of version 0007 back."""
WITHOUT_NAMES = "DROP INDEX lapwing.charge_by_name"
"""What takes version 0008 back."""


def test_a_database_of_version_0007_is_brought_here_in_place(cluster: Cluster, tmp_path: Path) -> None:
    """Its charges and hashes stay; a worker that was connected commits; then what is bought for blocks is found by its name."""
    database = cluster.new_database()
    [place] = places_of(cluster, database, tmp_path, 1)
    with place.create() as ledger:
        permit = ledger.reserve(request("before", loss=2))
        assert isinstance(permit, Permit)
        before = ledger.state()
        place.execute(
            WITHOUT_NAMES,
            "DROP FUNCTION lapwing.named",
            "UPDATE lapwing.alembic_version SET version_num = '0007'",
        )
        with pytest.raises(LapwingError) as refusal:
            place.open()
        assert refusal.value.code == "ledger-format"
        assert install(cluster.dsn(database, role=OWNER_ROLE), roles=ROLES) == SCHEMA_VERSION
        assert ledger.state() == before
        ledger.commit(permit, b"answer")
        part = ledger.reserve(replace(request("part"), purchase=PurchaseRecord(PurchaseKind.BLOCK, name="k/1")))
        assert isinstance(part, Permit)
        ledger.commit(part, b"part")
        assert [(one.name, one.stored.payload) for one in ledger.named("k/", "k0", version=1)] == [("k/1", b"part")]
        require_sound(place, ledger)


def test_a_database_of_version_0006_is_brought_here_in_place(cluster: Cluster, tmp_path: Path) -> None:
    """Its charges and hashes stay; a worker that was connected commits; then blocks of time can be declared."""
    database = cluster.new_database()
    [place] = places_of(cluster, database, tmp_path, 1)
    with place.create() as ledger:
        permit = ledger.reserve(request("before", loss=2))
        assert isinstance(permit, Permit)
        before = ledger.state()
        place.execute(WITHOUT_NAMES, *WITHOUT_BLOCKS, "UPDATE lapwing.alembic_version SET version_num = '0006'")
        assert install(cluster.dsn(database, role=OWNER_ROLE), roles=ROLES) == SCHEMA_VERSION
        assert ledger.state() == before
        ledger.commit(permit, b"answer")
        ledger.declare_blocks(BlockTerms("day", None), read=(1, 9), units=1, reason="the sources grow")
        new = replace(request("after"), ranges=(BlockCost(5, 20, Cost(loss=3, delta=0)),), person=Cost(loss=3, delta=0))
        assert isinstance(ledger.reserve(new), Permit)
        spending = ledger.blocks()
        assert spending is not None and [spending.most(block, block).loss for block in (1, 5, 20)] == [2, 5, 3]
        require_sound(place, ledger)


def test_a_database_of_the_version_before_is_brought_here_under_a_worker(cluster: Cluster, tmp_path: Path) -> None:
    """A version before had no records of purchases and none of these routines. What it had reserved is settled afterwards."""
    database = cluster.new_database()
    places = places_of(cluster, database, tmp_path, 2)
    with places[0].create() as ledger:
        permit = ledger.reserve(request("before", loss=2))
        assert isinstance(permit, Permit)
        places[0].execute(
            "DO $$ DECLARE one text; BEGIN FOR one IN SELECT oid::regprocedure::text FROM pg_proc"
            " WHERE pronamespace = 'lapwing'::regnamespace AND proname ~ '_across|_all$|locked_of'"
            " LOOP EXECUTE 'DROP ROUTINE ' || one; END LOOP; END $$",
            WITHOUT_NAMES,
            "DROP TRIGGER charge_stays ON lapwing.charge",
            "ALTER TABLE lapwing.charge DROP COLUMN purchase",
            "CREATE TRIGGER charge_stays BEFORE UPDATE OF summary ON lapwing.charge FOR EACH ROW EXECUTE FUNCTION lapwing.refuse_change()",
            *WITHOUT_BLOCKS,
            "UPDATE lapwing.alembic_version SET version_num = '0004'",
        )
        with pytest.raises(LapwingError) as refusal:
            places[0].open()
        assert refusal.value.code == "ledger-format"
        assert install(cluster.dsn(database, role=OWNER_ROLE), roles=ROLES) == SCHEMA_VERSION
        ledger.commit(permit, b"answer")
        with (
            shared(places[1:]) as [other],
            SharedPostgresLedger.open(places[0].dsn, source_id=places[0].source_id, anchors=places[0].anchors) as opened,
        ):
            found: list[object] = []
            threads_of([lambda one=one: found.append(one.reserve(request("after"))) for one in (opened, other)])  # type: ignore[misc]
            assert [type(one) for one in found] == [Permit, Permit]
            answer = opened.find("plan of before")
            assert answer is not None and answer.payload == b"answer"
            require_sound(places[0], opened)
