"""The blind run: where no number that leaves depends on rows, nothing else does either, however different two worlds are.

Each world hears the same conversation. Every released number is replaced by one that forgets the rows (``doors.py``), and all that is told
(answers, bars, marks, notes, groups, prices, refusals, receipts, entries, files, pages, charts) must be equal to the byte. A difference is
something that nobody paid for. What preparation tells the owner is not compared: it is the owner's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import lapwing as lw
from tests.blind.conversation import Transcript, differences, long_conversation, short_conversation
from tests.blind.doors import Size, blind
from tests.blind.worlds import KINDS, WORLDS, Kind, open_world, signing_keys, write_world

FIRST, DIFFERENT, EMPTY, HOSTILE, WITHOUT = WORLDS
Conversation = Callable[[lw.DataSet], Transcript]


@dataclass(frozen=True, slots=True)
class Run:
    """Worlds of a kind that are compared with the first, and how large the numbers are that they are told."""

    kind: str
    size: Size
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}, {self.size}"


SHORT = (Run("unbounded, approximate", Size.MIXED, (DIFFERENT, HOSTILE)), Run("bounded, pure", Size.SMALL, (EMPTY,)))
LONG = (
    Run("unbounded, approximate", Size.MIXED, (DIFFERENT, EMPTY, HOSTILE, WITHOUT)),
    Run("bounded, pure", Size.MIXED, (DIFFERENT, WITHOUT)),
    Run("unbounded, pure", Size.MIXED, (HOSTILE,)),
    Run("bounded, approximate", Size.MIXED, (EMPTY,)),
    Run("unbounded, union of filters", Size.MIXED, (DIFFERENT,)),
    Run("unbounded, approximate", Size.SMALL, (WITHOUT,)),
    Run("unbounded, approximate", Size.MEDIUM, (DIFFERENT,)),
    Run("bounded, pure", Size.LARGE, (HOSTILE,)),
    Run("a budget that runs out", Size.MIXED, (DIFFERENT,)),
)


def heard(place: Path, world: str, kind: Kind, size: Size, talk: Conversation) -> Transcript:
    """What a world is told in a conversation, and how often each door was used for it."""
    write_world(place / "clinic", world, kind, place.parent / "keys")
    with blind(size) as draws, open_world(place / "clinic") as data:
        told = talk(data)
    told.put("doors", "used", draws.used)
    return told


def compared(directory: Path, run: Run, talk: Conversation) -> int:
    """How many things were told, each the same in every world."""
    signing_keys(directory / "keys")
    kind = KINDS[run.kind]
    first = heard(directory / "first", FIRST, kind, run.size, talk)
    for number, world in enumerate(run.others):
        assert differences(first, heard(directory / str(number), world, kind, run.size, talk)) == [], world
    assert '"noise"' in first.told[-1].text and '"quantiles"' in first.told[-1].text
    return len(first.told)


@pytest.mark.parametrize("run", SHORT, ids=str)
def test_worlds_are_told_the_same_in_short(tmp_path: Path, run: Run) -> None:
    assert compared(tmp_path, run, short_conversation) > 250


@pytest.mark.parametrize("run", LONG, ids=str)
def test_worlds_are_told_the_same(tmp_path: Path, run: Run) -> None:
    assert compared(tmp_path, run, long_conversation) > 900
