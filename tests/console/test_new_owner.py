"""Somebody new, from `lapwing serve` with nothing configured to a private chart of an own CSV file: by clicks, in real time."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.starting import SECONDS_MAX, Started, said_on_a_terminal, started_in

pytestmark = pytest.mark.xdist_group("console: browser")


def write_loans(target: Path, *, readers: int) -> None:
    """Loans of a town library, as in the tutorial for owners."""
    rng = random.Random(2025)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Reader", "Branch", "Kind", "Day", "Days kept"])
        for reader in range(readers):
            for _ in range(min(int(rng.paretovariate(1.5) * 2), 90)):
                branch = rng.choices(["central", "harbour", "hill", "station"], [5, 3, 2, 1])[0]
                day = date(2025, 1, 1) + timedelta(rng.randrange(365))
                writer.writerow([f"R{reader:05}", branch, rng.choice(["book", "film"]), day, min(int(rng.gammavariate(2, 9)), 120)])


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """`lapwing serve`, in a directory that holds nothing but a CSV file."""
    write_loans(tmp_path / "loans.csv", readers=12_000)
    with started_in(tmp_path) as server:
        yield server


def _declare(page: Page) -> None:
    """The five questions, with what everybody may know about the library."""
    page.click("text=Declare a first data set")
    page.get_by_label("loans.csv").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Reader").check()
    page.get_by_label("What do you call one of them?").fill("reader")
    page.get_by_label("How many rows can one of them have at most?").fill("60")
    page.get_by_role("button", name="Continue").click()
    for column, words in {"branch": "central\nharbour\nhill\nstation", "kind": "book\nfilm"}.items():
        page.select_option(f"[name=kind-loans-{column}]", "list")
        page.fill(f"[name=words-loans-{column}]", words)
    for column, least, most in (("day", "2025-01-01", "2025-12-31"), ("days_kept", "0", "120")):
        page.fill(f"[name=least-loans-{column}]", least)
        page.fill(f"[name=most-of-loans-{column}]", most)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("About how many readers are there").fill("12,000")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("pre.written")).to_contain_text('values = ["central", "harbour", "hill", "station"]')
    page.get_by_role("button", name="Write the catalogue").click()


def test_from_nothing_to_a_private_chart_of_an_own_file(started: Started, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(started.url)
    page.get_by_label("API key").fill(started.key)
    page.keyboard.press("Enter")
    _declare(page)
    page.get_by_role("button", name="Prepare").click()
    expect(page.locator("#version-1")).to_be_visible(timeout=120_000)
    expect(page.get_by_role("region", name="What version 1 left out")).to_contain_text("beyond the cap of one unit")
    page.get_by_role("link", name="How many for each branch?").click()
    page.wait_for_selector("#price:not([aria-busy]) .priced")
    page.get_by_role("button", name="Ask for").click()
    chart = page.get_by_role("img", name="n by branch").first
    expect(chart).to_be_visible(timeout=60_000)
    for branch in ("central", "harbour", "hill", "station"):
        expect(chart).to_contain_text(branch)
    took = started.seconds
    context.close()
    print(f"from `lapwing serve` to the first chart: {took:.1f} s")
    assert took < SECONDS_MAX


def test_what_is_wrong_is_said_where_it_was_answered(started: Started, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(started.url)
    page.get_by_label("API key").fill(started.key)
    page.keyboard.press("Enter")
    page.click("text=Declare a first data set")
    page.get_by_label("loans.csv").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Reader").check()
    page.get_by_label("What do you call one of them?").fill("reader")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("give the smallest and the largest value that day can have", ignore_case=True)
    page.select_option("[name=kind-loans-day]", "skip")
    page.select_option("[name=kind-loans-days_kept]", "whole")
    page.fill("[name=least-loans-days_kept]", "120")
    page.fill("[name=most-of-loans-days_kept]", "0")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("catalogue-bad-bounds")
    expect(page.locator("[name=least-loans-days_kept]")).to_have_value("120")
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_label("Reader")).to_be_checked()
    context.close()


def test_the_first_key_is_printed_to_a_terminal_and_to_nothing_else(started: Started, tmp_path: Path) -> None:
    assert "lw_" not in started.said
    assert "first-key" in started.said
    assert started.key.startswith("lw_")
    other = tmp_path / "other"
    other.mkdir()
    said = said_on_a_terminal(other, until="can be declared")
    assert len(re.findall(r"\blw_\S+", said)) == 1
    assert not (other / "lapwing-server" / "first-key").exists()
