"""Sixty statements about the shop that were written down before decimals, quotients and sums of nothing were mended: none is wrong."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

from lapwing.audit.lists.third_list import shop_worlds
from lapwing.audit.lists.written_lists import ANSWERED, DIFFERENT, ListedStatement, run_written
from tests.ledger.cluster import Cluster

FILE = Path(__file__).with_name("held_out.sql")


def held_out() -> list[ListedStatement]:
    """The statements, each in the dialect of its part of the file."""
    found: list[ListedStatement] = []
    for dialect, part in re.findall(r"^--# (\w+)\n((?:(?!--#).*\n?)*)", FILE.read_text(encoding="utf-8"), re.MULTILINE):
        found += [
            ListedStatement(dialect, f"{dialect}-{number}", ANSWERED, sql, dialect)
            for number, sql in enumerate(part.strip().split("\n\n"), 1)
        ]
    return found


def test_none_of_those_that_are_answered_is_wrong(tmp_path: Path, shared_cluster: Cluster) -> None:
    statements = held_out()
    assert [item.dialect for item in statements] == ["duckdb"] * 30 + ["postgres"] * 30
    with closing(shop_worlds(tmp_path / "shop")) as worlds:
        outcomes = [*run_written(worlds, statements, postgres=shared_cluster.dsn("postgres", role="postgres"))]
    assert [(outcome.listed.sql, outcome.detail) for outcome in outcomes if outcome.found == DIFFERENT] == []
    answered = [outcome for outcome in outcomes if outcome.found == ANSWERED]
    assert len(answered) >= 59 and all(outcome.uncompared is None for outcome in answered)
