"""Many data sets in one worker: each is opened when it is asked, and so many at most are open."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from lapwing.interfaces.http import data_set_pool as desk
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.configuration import MomentSettings, Served, ServerLimits
from lapwing.interfaces.http.data_set_pool import DataSetPool, ServedDataSet

pytestmark = pytest.mark.xdist_group("server: desk")
NAMES = ("one", "two", "three", "four")


@dataclass
class Prepared:
    """Data sets in a directory, and a desk that may have two of them open."""

    directory: Path
    desk: DataSetPool

    def of(self, name: str) -> ServedDataSet:
        return self.desk.served[f"the-{name}"]

    def open_ones(self) -> set[str]:
        return {name for name in NAMES if self.of(name).is_open}


def _noted() -> CallNotes:
    """Of a call that may be charged."""
    return CallNotes(lambda: None)


def _count(opened: DataSet) -> int:
    return len(opened.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.01").table)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("many")
    for name in NAMES:
        write_demo(directory / name, patients=60)
        catalogue = directory / name / "lapwing.toml"
        lines = [f'id = "the-{name}"' if line.startswith("id = ") else line for line in catalogue.read_text(encoding="utf-8").splitlines()]
        catalogue.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with open_data_set(directory / name, home=directory / "home") as data_set:
            data_set.prepare()
    return directory


@pytest.fixture
def prepared(written: Path) -> Iterator[Prepared]:
    listed = [Served(catalogue=name) for name in NAMES]
    desk = DataSetPool.open(listed, ServerLimits(open_max=2), MomentSettings(public=False), directory=written, home=written / "home")
    yield Prepared(written, desk)
    desk.close()


def _asking_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("lapwing-ask")}


def test_nothing_is_open_before_somebody_asks_and_the_one_used_longest_ago_is_closed(prepared: Prepared) -> None:
    assert prepared.open_ones() == set()
    of_others = _asking_threads()
    for name, left in (("one", {"one"}), ("two", {"one", "two"}), ("one", {"one", "two"}), ("three", {"one", "three"})):
        assert asyncio.run(prepared.of(name).run(_count, _noted())) == 1
        assert prepared.open_ones() == left
    assert len(_asking_threads() - of_others) <= 3, "who is closed has no threads"
    assert asyncio.run(prepared.of("two").run(_count, _noted())) == 1, "who was closed is opened again"
    assert prepared.open_ones() == {"two", "three"}


def test_who_is_asked_now_is_not_closed(prepared: Prepared) -> None:
    with prepared.of("one").opened() as first, prepared.of("two").opened() as second:
        assert asyncio.run(prepared.of("three").run(_count, _noted())) == 1
        assert prepared.open_ones() == {"one", "two", "three"}, "more than the limit, for as long as they are used"
        assert _count(first) == _count(second) == 1
    assert asyncio.run(prepared.of("four").run(_count, _noted())) == 1
    assert prepared.open_ones() == {"three", "four"}


def test_whoever_prepares_here_is_answered_from_the_new_version_at_once(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "LOOK_SECONDS", 1e9)  # longer than any machine runs: the clock begins when it starts
    version = lambda opened: opened.curator.facts.version  # noqa: E731
    before = asyncio.run(prepared.of("four").run(version))
    with prepared.of("four").apart(_noted()) as opened:
        assert opened.prepare() == before + 1
    assert asyncio.run(prepared.of("four").run(version)) == before + 1


def test_many_threads_ask_more_data_sets_than_may_be_open(prepared: Prepared) -> None:
    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(prepared.of(NAMES[number % 4]).run(_count, _noted()) for number in range(24)))

    assert asyncio.run(all_of_them()) == [1] * 24


def test_while_a_data_set_is_opened_requests_are_taken_in(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    opening, go_on = threading.Event(), threading.Event()
    plain = ServedDataSet._open

    def slowly(self: ServedDataSet) -> object:
        opening.set()
        assert go_on.wait(60)
        return plain(self)

    monkeypatch.setattr(ServedDataSet, "_open", slowly)

    async def meanwhile() -> list[int]:
        asked = [asyncio.ensure_future(prepared.of("one").run(_count, _noted()))]
        while not opening.is_set():
            await asyncio.sleep(0.01)
        asked.append(asyncio.ensure_future(prepared.of("one").run(_count, _noted())))
        await asyncio.sleep(0.05)  # the loop goes on: neither has taken hold of it
        go_on.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(asyncio.wait_for(meanwhile(), 120)) == [1, 1]


def test_a_catalogue_that_cannot_be_read_stops_who_starts_and_one_that_is_wrong_stops_who_asks(written: Path, tmp_path: Path) -> None:
    with pytest.raises(LapwingError):
        DataSetPool.open([Served(catalogue="nowhere")], ServerLimits(), MomentSettings(), directory=tmp_path)
    (tmp_path / "lapwing.toml").write_text('format = 1\n[dataset]\nid = "wrong"\n', encoding="utf-8")
    listed = [Served(catalogue=str(tmp_path)), Served(catalogue=str(written / "one"))]
    desk = DataSetPool.open(listed, ServerLimits(), MomentSettings(public=False), directory=tmp_path, home=written / "home")
    with pytest.raises(LapwingError) as refusal:
        asyncio.run(desk.served["wrong"].run(_count, _noted()))
    assert refusal.value.code.startswith("catalogue-")
    assert asyncio.run(desk.served["the-one"].run(_count, _noted())) == 1
    desk.close()


def test_work_of_the_same_name_that_is_under_way_is_not_begun_again(prepared: Prepared) -> None:
    begun: list[str] = []
    go_on = threading.Event()

    def work(_: DataSet) -> int:
        begun.append("once")
        assert go_on.wait(60)
        return len(begun)

    async def several() -> list[int]:
        served = prepared.of("one")
        asked = [asyncio.ensure_future(served.run(work, name=name)) for name in ("a", "a", "b", "a")]
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        go_on.set()
        return [*await asyncio.gather(*asked), await served.run(work, name="a")]

    assert asyncio.run(several()) == [2, 2, 2, 2, 3], "and what is over is not remembered"


def test_one_person_leaves_half_of_the_pool_to_others_and_waits_in_turn(written: Path) -> None:
    """Ada has more under way than all may have; what bo asks goes on at once, and what waits of both is done by turns."""
    limits = ServerLimits(running_max=4, waiting_max=20)
    desk = DataSetPool.open([Served(catalogue="one")], limits, MomentSettings(public=False), directory=written, home=written / "home")
    served, gate, order = desk.served["the-one"], threading.Event(), list[str]()

    def held(_: DataSet) -> None:
        assert gate.wait(30)
        order.append("ada")

    def at_once(_: DataSet) -> None:
        order.append("bo")

    async def asked() -> tuple[int, list[object]]:
        flood = [asyncio.ensure_future(served.run(held, person="ada")) for _ in range(30)]
        await asyncio.sleep(0.2)
        for _ in range(5):
            await asyncio.wait_for(served.run(at_once, person="bo"), 10)
        before = len(order)
        gate.set()
        return before, list(await asyncio.gather(*flood, return_exceptions=True))

    before, outcomes = asyncio.run(asked())
    desk.close()
    assert before == 5 and order[:5] == ["bo"] * 5
    refused = [one for one in outcomes if isinstance(one, LapwingError)]
    assert outcomes.count(None) == 22 and {one.code for one in refused} == {"busy"} and len(refused) == 8
    assert order.count("ada") == 22


def test_what_waits_of_a_person_is_done_when_the_server_stops(written: Path) -> None:
    limits = ServerLimits(running_max=2, waiting_max=20)
    desk = DataSetPool.open([Served(catalogue="one")], limits, MomentSettings(public=False), directory=written, home=written / "home")
    served, gate, done = desk.served["the-one"], threading.Event(), list[int]()

    async def asked() -> None:
        def work(number: int) -> None:
            assert gate.wait(30)
            done.append(number)

        flood = [asyncio.ensure_future(served.run(lambda _, number=number: work(number), person="ada")) for number in range(6)]  # type: ignore[misc]
        await asyncio.sleep(0.2)
        threading.Timer(0.2, gate.set).start()
        desk.close()
        await asyncio.gather(*flood)

    asyncio.run(asked())
    assert done == list(range(6))
