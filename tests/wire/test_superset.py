"""Every statement that Apache Superset sent while a dashboard was made and drawn, sent again: the same outcome, and the second time free.

The list is written by ``integrations/superset/run.py``, with the real Superset and a browser.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.cluster import Cluster
from tests.server.worlds import CANARY, CANARY_NUMBER, same_noise, with_one_more
from tests.support.sizes import size
from tests.wire.raw import Message, RawClient, error_fields
from tests.wire.world import WireUnderTest, wire_over, write_rich_demo

pytestmark = pytest.mark.xdist_group("wire: superset")

SENT = [json.loads(line) for line in Path(__file__).with_name("superset_statements.jsonl").read_text(encoding="utf-8").splitlines()]
ASKED = [one for one in SENT if one["by"] == "curator"]
ANSWERED = [one for one in SENT if not one["outcome"][:1].isdigit()]

TWICE = size("Superset in two worlds")


def _outcome(seen: list[Message]) -> str:
    """As the list has it: a command's tag without its number, or SQLSTATE and code."""
    for letter, body in seen:
        if letter == b"E":
            fields = error_fields(body)
            return f"{fields['C']} {fields.get('D', '').removeprefix('lapwing code: ')}".strip()
    return next(body[:-1].decode().rstrip(" 0123456789") for letter, body in seen if letter == b"C")


def _connected(wire: WireUnderTest) -> RawClient:
    return RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set)


def test_the_list_is_of_a_real_session() -> None:
    assert len(SENT) >= 40
    assert len(ANSWERED) >= 0.95 * len(SENT)
    assert len(ASKED) >= 20


def test_outcomes_are_those_of_the_list_and_a_refresh_is_free(wire: WireUnderTest) -> None:
    with _connected(wire) as client:
        first = [client.simple(one["sql"]) for one in SENT]
    assert [_outcome(seen) for seen in first] == [one["outcome"] for one in SENT]
    spent = wire.spent()
    assert spent > 0
    with _connected(wire) as client:
        again = [client.simple(one["sql"]) for one in ASKED]
    assert wire.spent() == spent
    before = [seen for one, seen in zip(SENT, first, strict=True) if one["by"] == "curator"]
    assert [_rows(seen) for seen in again] == [_rows(seen) for seen in before]


def _rows(seen: list[Message]) -> list[Message]:
    return [(letter, body) for letter, body in seen if letter in (b"T", b"D")]


@pytest.fixture(scope="module")
def worlds(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WireUnderTest, WireUnderTest]]:
    """The wire over each of two worlds, of which the second has one patient more. Noise is replaced by the same numbers in both."""
    plain = tmp_path_factory.mktemp("plain") / "clinic"
    write_rich_demo(plain, patients=300)

    def same(directory: Path) -> None:
        shutil.copytree(plain, directory)

    def other(directory: Path) -> None:
        shutil.copytree(plain, directory)
        with_one_more(directory)

    with (
        same_noise(),
        wire_over(shared_cluster, tmp_path_factory.mktemp("w0"), same, session_share=1.0, day_share=1.0) as first,
        wire_over(shared_cluster, tmp_path_factory.mktemp("w1"), other, session_share=1.0, day_share=1.0) as second,
    ):
        yield first, second


def test_two_worlds_look_the_same_to_superset(worlds: tuple[WireUnderTest, WireUnderTest]) -> None:
    with _connected(worlds[0]) as here, _connected(worlds[1]) as there:
        for one in ASKED[:: len(ASKED) // TWICE]:
            first, second = here.simple(one["sql"]), there.simple(one["sql"])
            assert first == second, one["sql"]
            assert _outcome(first) == one["outcome"], one["sql"]
            assert not any(CANARY.encode() in body or str(CANARY_NUMBER).encode() in body for _, body in second)
    assert worlds[0].spent() == worlds[1].spent() > 0
