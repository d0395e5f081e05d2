"""A server that runs answers over a block of time that closed after it started, once another process has prepared it."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import lapwing
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.server.calendar_day import CalendarDay
from tests.server.process import lapwing_in, started
from tests.support.shop_of_events import START, Shop

COUNT = "SELECT COUNT(*) AS n FROM events"
EXACT = "100000000"
"""An epsilon at which noise rounds away."""


def day(number: int) -> datetime.date:
    return START + datetime.timedelta(days=number)


def key_of_an_analyst(server: Path) -> str:
    """Of the data set that is served from here. Two commands would do the same, and take as long as this test."""
    identities = Identities(f"sqlite:///{server / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "shop"))
    key, _ = identities.new_key("ada")
    identities.close()
    return key


def test_a_running_server_answers_over_a_block_that_closed_since(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_HOME", str(tmp_path / "home"))
    calendar = CalendarDay(tmp_path / "calendar", monkeypatch)
    shop = Shop(tmp_path, monkeypatch)
    shop.declare()
    shop.users()
    shop.days(7)
    calendar.set(day(5))
    shop.today(day(5))
    with shop.open() as owner:
        owner.prepare()
    with (
        started(tmp_path, ("serve", "shop")) as (process, url),
        lapwing.connect(url, token=key_of_an_analyst(tmp_path / "lapwing-server")) as remote,
    ):

        def is_free_up_to(last: datetime.date) -> bool:
            """The answer is that of the days up to this one; gives whether it was free."""
            answer = remote.ask(COUNT, epsilon=EXACT)
            assert [tuple(row.values()) for row in answer.table.to_pylist()] == shop.truth(COUNT, last)
            assert any(str(last) in note for note in answer.to_dict()["notes"])
            return bool(answer.cost.free)

        assert not is_free_up_to(day(3))
        calendar.set(day(6))
        assert is_free_up_to(day(3)), "what closes a block is its preparation"
        assert f"new blocks up to {day(4)}" in lapwing_in(tmp_path, "-C", "shop", "prepare")
        assert not is_free_up_to(day(4))
        assert process.poll() is None
