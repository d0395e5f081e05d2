"""Mistakes in what decides about blocks of time: the comparison with arrays, or ``verify``, sees each of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.verify import verify
from tests.ledger.cluster import Cluster
from tests.ledger.test_postgres_blocks import ACCOUNTS, walk
from tests.schedules.subject import SQL, Patch, subject_of

MUTANTS = {
    "the most of a part forgets what the part owns": (
        "pure",
        None,
        Patch(SQL, "node.loss_most[part] := node.loss_own[part] + lapwing.most_of(", "node.loss_most[part] := lapwing.most_of("),
    ),
    "a part at the end of a range is not in it": (
        "approximate",
        None,
        Patch(
            SQL,
            "IF low <= begins + (part - 1) * size AND begins + part * size - 1 <= high THEN",
            "IF low <= begins + (part - 1) * size AND begins + part * size - 1 <= high - (n = 1)::integer THEN",
        ),
    ),
    "each of two sums has its most in another block": (
        "union",
        None,
        Patch(SQL, "AND (p_pure_total IS NULL OR (p_delta", "AND (true OR (p_delta"),
    ),
    "what was charged above a node does not count below": (
        "union",
        None,
        Patch(
            SQL,
            "p_loss + node.loss_own[part], p_delta + node.delta_own[part], p_pure + node.pure_own[part], p_loss_total,",
            "p_loss, p_delta, p_pure, p_loss_total,",
        ),
    ),
    "a delta is not compared": (
        "approximate",
        None,
        Patch(SQL, "AND (t.delta_most + p_delta > p_delta_total) IS NOT TRUE THEN\n        RETURN false;", "THEN\n        RETURN false;"),
    ),
    "a missing pure amount is none": (
        "union",
        None,
        Patch(SQL, "SELECT CASE WHEN count(amount) = count(*) THEN max(amount) END", "SELECT max(amount)"),
    ),
    "a year is a block too short": ("pure", Fraction(3), Patch(SQL, "WHEN 'week' THEN 52 ELSE 11 END", "WHEN 'week' THEN 52 ELSE 10 END")),
    "tables without time concern no other year": (
        "pure",
        Fraction(3),
        Patch(SQL, "years := CASE WHEN parts.without_time > 0 OR parts.of_time = 0 THEN", "years := CASE WHEN parts.of_time = 0 THEN"),
    ),
    "what a person loses is not charged": (
        "pure",
        Fraction(3),
        Patch(
            SQL,
            "raise_tree(ds.ledger_id, 2, one.first_block, one.last_block, person_loss,",
            "raise_tree(ds.ledger_id, 2, one.first_block, one.last_block, 0,",
        ),
    ),
    "the tables without time pay for blocks too": (
        "pure",
        None,
        Patch(SQL, "p_loss := standing.loss; p_delta := standing.delta; p_pure := standing.pure;", "NULL;"),
    ),
    "a restored database would not know a block": (
        "pure",
        None,
        Patch(SQL, "blocks_last = greatest(blocks_last, p_last)", "blocks_last = greatest(blocks_last, p_first)"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MUTANTS)
def test_a_mistake_is_seen(cluster: Cluster, tmp_path: Path, mistake: str) -> None:
    account, cap, patch = MUTANTS[mistake]
    with subject_of(cluster, f"blocks {list(MUTANTS).index(mistake)}", [patch], tmp_path / "package") as subject:
        anchors = subject.module("postgres.anchors").FileAnchors(tmp_path / "anchors")
        budget = ACCOUNTS[account]
        with subject.module("postgres.ledger").PostgresLedger.create(
            subject.dsn, source_id="clinic", source_fingerprint="files", budget=budget, ceiling=budget, anchors=anchors
        ) as ledger:
            subject.module("postgres.policy").admit(ledger, "ana")
            try:
                walk(ledger, account, cap, steps=400)
            except (AssertionError, LapwingError):
                return
            report = verify(ledger.connection, "clinic", anchors=FileAnchors(tmp_path / "anchors"))
            assert report.problems != (), "nothing saw it"
