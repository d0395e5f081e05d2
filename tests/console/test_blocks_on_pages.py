"""Blocks of time on the page of the budget: what is left in each, when the next one closes, and the same as text; over HTTP too."""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from lapwing.curator.newest_blocks import NEWEST_MAX, newest_blocks
from lapwing.interfaces.console.charts.block_strip import block_strip, left_text, runs_of
from tests.console.browser import DESKTOP, PHONE, axe_source, reachable
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest
from tests.support.shop_of_events import START, Shop

pytestmark = pytest.mark.xdist_group("console: blocks")

BUDGET = "/console/d/{d}/budget"
DAYS = 70


def day(number: int) -> datetime.date:
    """The day with this number, from 0."""
    return START + datetime.timedelta(days=number)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerUnderTest, Shop]]:
    """A server over 70 closed days; two of the last ten have spent, and one of those more."""
    home = tmp_path_factory.mktemp("grown")
    with pytest.MonkeyPatch.context() as patch:
        shop = Shop(home, patch)
        shop.declare(epsilon="3")
        shop.users()
        shop.days(DAYS)
        shop.today(day(DAYS + 1))
        with ServerUnderTest.over(shop.directory.rename, home) as server:
            count = "SELECT COUNT(*) AS n FROM events WHERE day BETWEEN DATE '{}' AND DATE '{}'"
            assert server.ask(count.format(day(65), day(66)), epsilon="2").status_code == 200
            assert server.ask(count.format(day(66), day(66)), epsilon="1").status_code == 200
            yield server, shop


def told(server: ServerUnderTest) -> dict[str, Any]:
    """The blocks over HTTP."""
    blocks: dict[str, Any] = server.call("GET", "/v1/data-sets/{d}/budget").json()["blocks"]
    return blocks


def page_of(server: ServerUnderTest) -> str:
    """The text of the page, in one line."""
    visitor = Visitor(server)
    visitor.sign_in("ada")
    reply = visitor.get(BUDGET)
    assert reply.status_code == 200, reply.text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", reply.text)).split())


def test_a_program_gets_what_is_left_in_the_newest_blocks_and_when_the_next_closes(grown: tuple[ServerUnderTest, Shop]) -> None:
    server, _ = grown
    blocks = told(server)
    newest = blocks["newest"]
    assert [block["first"] for block in newest] == [str(day(number)) for number in range(DAYS - NEWEST_MAX, DAYS)]
    left = {block["first"]: block["left"] for block in newest}
    spent = {first: share for first, share in left.items() if share < 1}
    assert list(spent) == [str(day(65)), str(day(66))] and 0 <= left[str(day(66))] < left[str(day(65))] < 0.7
    assert min(left.values()) == pytest.approx(1 - blocks["most_spent"])
    # The last closed day is 69; the next one ends on the day after, and closes a day of grace later.
    assert blocks["next"] == {"first": str(day(70)), "last": str(day(70)), "closes": str(day(72))}
    assert blocks["waiting"] == 0


def test_the_page_shows_it_and_says_it_as_text(grown: tuple[ServerUnderTest, Shop]) -> None:
    server, _ = grown
    page, newest = page_of(server), told(server)["newest"]
    left = [left_text(block["left"]) for block in newest]
    assert f"Each day has this budget. {day(0)} to {day(69)} are closed; the last 60 days are shown." in page
    assert page.count(f"From {day(10)} to {day(69)}. The least is {min(left, key=lambda text: float(text[:-1]))}, in {day(66)}.") == 2
    assert f"{day(10)} to {day(64)} 100.0% {day(65)} {left[-5]} {day(66)} {left[-4]} {day(67)} to {day(69)} 100.0%" in page
    assert f"New budget comes on {day(72)} (UTC), when {day(70)} closes, for questions about that day" in page
    assert "is the most that one user has lost over a year; no cap" in page and "Waiting" not in page


def test_closed_days_that_are_not_prepared_are_said_to_wait(grown: tuple[ServerUnderTest, Shop]) -> None:
    server, shop = grown
    try:
        shop.today(day(DAYS + 2))
        assert "Waiting 1 closed day waits for the owner to prepare it" in page_of(server)
        shop.today(day(DAYS + 4))
        assert "Waiting 3 closed days wait for the owner to prepare them" in page_of(server)
        shop.today(datetime.date(2028, 2, 1))
        assert "New budget does not come: the declared days are over" in page_of(server)
        assert told(server)["next"] is None
    finally:
        shop.today(day(DAYS + 1))


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (PHONE, True)], ids=["desktop light", "phone dark"])
def test_the_strip_keeps_nobody_out_and_fits(
    grown: tuple[ServerUnderTest, Shop], browser: Browser, tmp_path: Path, size: tuple[int, int], dark: bool
) -> None:
    with reachable(grown[0]) as visited, visited.page(browser, "ada", size=size, dark=dark) as page:
        page.goto(visited.path("budget"))
        page.get_by_text("As a table").click()
        shown = page.get_by_role("img", name="What is left in each of the last 60 days")
        assert shown.count() == 1 and shown.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        page.evaluate(axe_source(tmp_path))
        assert page.evaluate("async () => (await axe.run()).violations.map(item => item.id)") == []


@pytest.mark.parametrize(
    ("every", "today", "number", "coming"),
    [
        ("week", datetime.date(2026, 3, 4), 1, ("2026-03-02", "2026-03-08", "2026-03-10")),
        ("month", datetime.date(2026, 4, 1), 0, ("2026-03-01", "2026-03-31", "2026-04-02")),
        ("month", datetime.date(2026, 4, 2), 1, ("2026-04-01", "2026-04-30", "2026-05-02")),
        ("day", datetime.date(2026, 2, 1), 0, ("2026-03-01", "2026-03-01", "2026-03-03")),
    ],
)
def test_the_next_block_closes_by_the_calendar(
    every: str, today: datetime.date, number: int, coming: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path, monkeypatch)
    shop.declare(every=every, epsilon="3")
    shop.users()
    shop.days(3)
    shop.today(today)
    with shop.open() as data_set:
        data_set.prepare()
        blocks = newest_blocks(data_set.curator)
        assert [each["left"] for each in blocks["newest"]] == [1.0] * number
        assert tuple(blocks["next"].values()) == coming
        # Preparing on that day, and not before, adds the block.
        shop.today(datetime.date.fromisoformat(coming[2]) - datetime.timedelta(days=1))
        assert newest_blocks(data_set.curator)["waiting"] == 0
        shop.today(datetime.date.fromisoformat(coming[2]))
        assert newest_blocks(data_set.curator)["waiting"] == 1
        data_set.prepare()
        after = newest_blocks(data_set.curator)
        assert len(after["newest"]) == number + 1 and after["newest"][-1]["first"] == coming[0] and after["waiting"] == 0


def test_a_data_set_without_blocks_shows_none(server: ServerUnderTest) -> None:
    assert "What is left in each" not in page_of(server)
    assert "blocks" not in server.call("GET", "/v1/data-sets/{d}/budget").json()


def test_a_share_is_all_only_where_nothing_is_spent() -> None:
    assert [left_text(left) for left in (1, 0.99999, 0.9995, 0.9994, 0.5, 0.0001, 0)] == [
        "100.0%",
        "over 99.9%",
        "over 99.9%",
        "99.9%",
        "50.0%",
        "0.0%",
        "0.0%",
    ]


def test_blocks_of_weeks_are_named_by_their_days() -> None:
    weeks = [
        {"first": f"2026-03-{2 + 7 * n:02}", "last": f"2026-03-{8 + 7 * n:02}", "left": left} for n, left in enumerate((1.0, 1.0, 0.25))
    ]
    assert [(run.days, run.number, run.left) for run in runs_of(weeks)] == [
        ("2026-03-02 to 2026-03-15", 2, "100.0%"),
        ("2026-03-16 to 2026-03-22", 1, "25.0%"),
    ]
    drawn = block_strip(weeks, every="week", name="of-weeks")
    assert drawn.count("<title>2026-03-16 to 2026-03-22: 25.0% is left</title>") == 2, "in each of the two widths"
    assert "What is left in the last week" in block_strip(weeks[:1], every="week", name="one")
