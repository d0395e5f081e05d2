"""The blind run over blocks of time: worlds whose rows have other days, late rows or none are told the same while they grow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.blocks import PreparedBlocks
from lapwing.curator import block_life
from lapwing.kernel.calendar import to_days
from tests.blind.blocks import KINDS, WORLDS, conversation, write_world
from tests.blind.conversation import Transcript, differences
from tests.blind.doors import Size, blind
from tests.blind.worlds import signing_keys

FIRST, *OTHERS = WORLDS
SHORT = {"unbounded, approximate": OTHERS[:2], "blocks that run out": OTHERS[2:3]}


def heard(place: Path, world: str, kind: str, size: Size) -> Transcript:
    """What a world is told, and how often each door was used for it."""
    write_world(place / "shop", world, KINDS[kind], place.parent / "keys")
    with blind(size) as draws:
        told = conversation(place / "shop", world)
    told.put("doors", "used", draws.used)
    return told


def compared(directory: Path, kind: str, worlds: list[str], size: Size) -> Transcript:
    """What the first world is told, the same as each of the others."""
    signing_keys(directory / "keys")
    first = heard(directory / "first", FIRST, kind, size)
    for number, world in enumerate(worlds):
        assert differences(first, heard(directory / str(number), world, kind, size)) == [], world
    assert '"noise"' in first.told[-1].text
    return first


@pytest.mark.parametrize("kind", SHORT)
def test_worlds_of_other_days_are_told_the_same_in_short(tmp_path: Path, kind: str) -> None:
    told = compared(tmp_path, kind, SHORT[kind], Size.MIXED).told
    assert len(told) > 400
    refused = {part.text.split('"')[3] for part in told if part.what == "refusal"}
    assert {"blocks-open", "block-budget"} <= refused if kind == "blocks that run out" else "blocks-open" in refused


@pytest.mark.parametrize("size", [Size.SMALL, Size.MIXED])
@pytest.mark.parametrize("kind", KINDS)
def test_worlds_of_other_days_are_told_the_same(tmp_path: Path, kind: str, size: Size) -> None:
    assert len(compared(tmp_path, kind, OTHERS, size).told) > 400


def test_blocks_that_are_closed_by_the_rows_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watermark in the place of the calendar: the last day that has rows is the last closed one."""
    closed = block_life.closed_blocks

    def by_the_rows(declaration: Any, declared: Any, held: PreparedBlocks | None = None) -> PreparedBlocks:
        by_the_clock = closed(declaration, declared, held)
        days = pq.read_table(declaration.source_path(declaration.table("events")))["day"]
        last = pc.max(days).as_py()
        return by_the_clock if last is None else PreparedBlocks(by_the_clock.first, min(by_the_clock.last, to_days(last)))

    monkeypatch.setattr(block_life, "closed_blocks", by_the_rows)
    signing_keys(tmp_path / "keys")
    first, other = (heard(tmp_path / world, world, "unbounded, approximate", Size.MIXED) for world in (FIRST, "of one day"))
    assert differences(first, other) != []
