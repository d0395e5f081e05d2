"""The blind run through the faces: what a server replies and what the command line prints is the same in every world, to the byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.blind import statements as asked
from tests.blind.conversation import Transcript, differences
from tests.blind.doors import Size, blind
from tests.blind.test_blind import DIFFERENT, EMPTY, WITHOUT
from tests.blind.worlds import KINDS, open_world, signing_keys, write_world
from tests.server.under_test import ServerUnderTest
from tests.server.worlds import PATIENT
from tests.unit.cli.support import run

KIND = KINDS["unbounded, approximate"]
STATEMENTS = (*asked.FEW[:3], asked.TARGETS[0], *asked.REFUSED[:3], asked.OWN_WORDS[0])
MARGINALS = {"kind": "marginals", "columns": ["kind", "place"]}
CALLS: tuple[tuple[str, str, Any], ...] = (
    *(("POST", act, {"sql": sql}) for sql in STATEMENTS for act in ("explain", "ask", "replay")),
    *(
        ("POST", act, {"name": "m", "wanted": [MARGINALS], "table": "visits", "epsilon": "0.5"})
        for act in ("releases/plan", "releases", "releases")
    ),
    ("POST", "releases/m/query", {"sql": asked.REUSED[0]}),
    *(
        ("GET", path, None)
        for path in ("", "budget", "history?limit=1000", "releases", "versions", "terms", "receipts/3", "tables/visits", "tables/nowhere")
    ),
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    *((act, sql, "--format", form) for sql in STATEMENTS[:3] for act, form in (("explain", "json"), ("ask", "json"), ("ask", "table"))),
    *(("ask", sql) for sql in asked.REFUSED[:3]),
    ("release", "plan", "m", "kind", "place", "--table", "visits"),
    ("release", "run", "m", "kind", "place", "--table", "visits"),
    ("release", "list"),
    ("ask", asked.REUSED[0], "--reuse", "only", "--format", "csv"),
    ("describe", "visits"),
    ("budget", "--format", "json"),
    ("history", "--limit", "1000", "--format", "json"),
)
DATE = "date"
"""The one thing that a reply says and that is left out: when it was sent."""


def _replies(place: Path, world: str) -> Transcript:
    transcript = Transcript()

    def write(directory: Path) -> None:
        write_world(directory, world, KIND, place.parent / "keys")

    with blind(Size.MIXED), ServerUnderTest.over(write, place, limits=PATIENT) as server:
        for method, path, body in CALLS:
            reply = server.call(method, f"/v1/data-sets/{{d}}/{path}".rstrip("/"), json=body)
            headers = [(name, value) for name, value in reply.headers.items() if name != DATE]
            transcript.put(f"{method} {path} {body}", "reply", [reply.status_code, headers, reply.text])
    return transcript


def _printed(place: Path, world: str) -> Transcript:
    transcript, directory = Transcript(), place / "clinic"
    write_world(directory, world, KIND, place.parent / "keys")
    with blind(Size.MIXED):
        open_world(directory).close()
        for words in COMMANDS:
            ran = run("-C", directory, *words, home=place / "home")
            transcript.put(" ".join(words), "printed", [ran.status, ran.out, ran.err])
    return transcript


@pytest.mark.parametrize(("hear", "other"), [(_replies, DIFFERENT), (_printed, EMPTY)], ids=["server", "command line"])
def test_faces_tell_every_world_the_same(tmp_path: Path, hear: Callable[[Path, str], Transcript], other: str) -> None:
    signing_keys(tmp_path / "keys")
    first, second = hear(tmp_path / "first", WITHOUT), hear(tmp_path / "second", other)
    assert differences(first, second) == []
    assert len(first.told) == len(CALLS if hear is _replies else COMMANDS)
    assert {told.text[:4] for told in first.told} >= ({"[200", "[422"} if hear is _replies else {"[0, "})
