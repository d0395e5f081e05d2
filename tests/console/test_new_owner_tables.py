"""Somebody new with several tables that are as tables are found: three CSV files by keys alone, and the same tables in PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.library import BRANCHES, ROWS_MAX, Library, messy_library
from tests.console.starting import SECONDS_MAX, started_in
from tests.ledger.cluster import Cluster

pytestmark = pytest.mark.xdist_group("console: browser")
TABS_MAX = 150
OWNER, READER = "town_keeper", "town_reader"


@pytest.fixture(scope="module")
def library() -> Library:
    return messy_library(readers=4_000)


class Keys:
    """Somebody who uses keys alone."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def go_to(self, selector: str, *, called: str = "") -> None:
        """Press Tab until this is where one is."""
        for _ in range(TABS_MAX):
            self._page.keyboard.press("Tab")
            if self._page.evaluate(
                "([one, called]) => document.activeElement.matches(one) && (document.activeElement.innerText || '').includes(called)",
                [selector, called],
            ):
                return
        raise AssertionError(f"no key leads to {selector} {called}")

    def fill(self, name: str, text: str) -> None:
        """Write into a field."""
        self.go_to(f"[name='{name}']")
        self._page.keyboard.type(text)

    def choose(self, name: str, beginning: str) -> None:
        """Choose from a list with the arrows; letters would have to follow each other quickly."""
        self.go_to(f"select[name='{name}']")
        self._page.keyboard.press("Home")
        for _ in range(TABS_MAX):
            if str(self._page.evaluate("document.activeElement.selectedOptions[0].text")).startswith(beginning):
                return
            self._page.keyboard.press("ArrowDown")
        raise AssertionError(f"{name} has no {beginning}")

    def press(self, button: str) -> None:
        """Go to a button and press it; the next page is waited for."""
        self.go_to("button", called=button)
        with self._page.expect_navigation():
            self._page.keyboard.press("Enter")

    def follow(self, link: str) -> None:
        """Go to a link and follow it."""
        self.go_to("a", called=link)
        with self._page.expect_navigation():
            self._page.keyboard.press("Enter")


def _shown_by_branch(page: Page) -> dict[str, tuple[float, float, float]]:
    """What the numbers below the chart say: the value of each branch, and how far its error bar reaches down and up."""
    shown = {}
    for row in page.locator("table.answer tbody tr").all():
        branch, value, bar = (cell.replace(",", "") for cell in row.locator("td").all_inner_texts())
        ends = [float(part) for part in re.findall(r"\d+", bar)]
        if branch in BRANCHES:
            shown[branch] = float(re.findall(r"-?\d+", value)[0]), ends[0], ends[-1]
    return shown


def _compared(page: Page, library: Library, how: str, seconds: float) -> None:
    """The first chart against the raw rows."""
    shown, kept, raw = _shown_by_branch(page), library.loans_of_known_readers(), library.loans_by_branch()
    for branch in BRANCHES:
        value, down, up = shown[branch]
        told = f"{how}: {branch}: shown {value:.0f} -{down:.0f} +{up:.0f}, after the declared rules {kept[branch]}, raw {raw[branch]}"
        print(told)
        assert value - 3 * down <= kept[branch] <= value + 3 * up, told
    print(f"{how}: from `lapwing serve` to the first chart: {seconds:.1f} s")
    assert seconds < SECONDS_MAX


def test_three_files_by_keys_alone(library: Library, tmp_path: Path, browser: Browser) -> None:
    library.write(tmp_path)
    with started_in(tmp_path) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 860})
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(server.url)
        keys = Keys(page)
        page.keyboard.type(server.key)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        keys.follow("Declare a first data set")
        for file in ("fines.csv", "loans.csv", "readers.csv"):
            keys.go_to(f"[name='take:file:{file}']")
            page.keyboard.press("Space")
        keys.press("Continue")
        keys.choose("whose", "readers: R")
        keys.fill("unit", "reader")
        keys.fill("most", "1")
        keys.press("Continue")
        expect(page.get_by_role("heading", level=2)).to_have_text("How do the other tables link to a reader?")
        expect(page.get_by_text("A guess: both columns have the same name")).to_have_count(2)
        assert page.locator("[name=link-fines]").input_value() == "loan"
        keys.choose("to-fines", "loans: L")
        keys.fill("rows-loans", str(ROWS_MAX))
        keys.press("Continue")
        keys.choose("kind-fines-cents", "a whole")
        keys.fill("least-fines-cents", "0")
        keys.fill("most-of-fines-cents", "1000")
        keys.choose("kind-loans-branch_where", "one of")
        keys.fill("words-loans-branch_where", "\n".join(BRANCHES))
        keys.fill("least-loans-day", "2025-01-01")
        keys.fill("most-of-loans-day", "2025-12-31")
        keys.fill("least-loans-days_kept", "0")
        keys.fill("most-of-loans-days_kept", "120")
        keys.choose("kind-readers-district", "one of")
        keys.fill("words-readers-district", "north\nsouth")
        keys.fill("least-readers-year_of_birth", "1920")
        keys.fill("most-of-readers-year_of_birth", "2025")
        keys.press("Continue")
        keys.press("Continue")
        written = page.locator("pre.written")
        expect(written).to_contain_text('unit = "loan -> loans.loan"')
        expect(written).to_contain_text('unit = "reader_no -> readers.reader_no"')
        expect(written).to_contain_text('from = "Branch \\"where\\""')
        keys.press("Write the catalogue")
        keys.go_to("button", called="Prepare")
        page.keyboard.press("Enter")
        expect(page.locator("#version-1")).to_be_visible(timeout=120_000)
        expect(page.get_by_role("region", name="What version 1 left out")).to_contain_text("that link to nobody")
        keys.follow("How many rows of loans for each branch_where?")
        page.wait_for_selector("#price:not([aria-busy]) .priced")
        keys.press("Ask for")
        expect(page.get_by_role("img", name="n by branch_where").first).to_be_visible(timeout=60_000)
        _compared(page, library, "three CSV files", server.seconds)
        context.close()


@pytest.fixture
def town(shared_cluster: Cluster, library: Library) -> Iterator[str]:
    """The library in a database of its own; how it is reached by the role that answers."""
    with shared_cluster.superuser() as connection:
        connection.execute(f"CREATE ROLE {OWNER} LOGIN".encode())
        connection.execute(f"CREATE ROLE {READER} LOGIN".encode())
        connection.execute(f"CREATE DATABASE town OWNER {OWNER} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0".encode())
        connection.execute(b"REVOKE ALL ON DATABASE town FROM PUBLIC")
        connection.execute(f"GRANT CONNECT ON DATABASE town TO {READER}".encode())
    with shared_cluster.superuser("town") as connection:
        connection.execute(f"SET ROLE {OWNER}".encode())
        library.write_to(connection)
    yield shared_cluster.dsn("town", role=READER)
    shared_cluster.drop_database("town")
    with shared_cluster.superuser() as connection:
        connection.execute(f"DROP ROLE {OWNER}, {READER}".encode())


def test_tables_of_postgresql(town: str, library: Library, tmp_path: Path, browser: Browser) -> None:
    configured = f'[[database]]\nname = "town"\nconnection = "{town}"\n[[database]]\nname = "gone"\nconnection = "host=nowhere.invalid"\n'
    with started_in(tmp_path, environment={"LAPWING_POSTGRES_OWNER": f"user={OWNER}"}, configured=configured) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 860})
        page = context.new_page()
        page.set_default_timeout(60_000)
        seen: list[str] = []
        page.on("response", lambda reply: seen.append(reply.text()) if "text/html" in reply.headers.get("content-type", "") else None)
        page.goto(server.url)
        page.get_by_label("API key").fill(server.key)
        page.keyboard.press("Enter")
        page.click("text=Declare a first data set")
        expect(page.get_by_role("group", name="Tables of the database gone")).to_contain_text("cannot be reached")
        for table in ("library.loans", "library.readers"):
            page.get_by_label(table).check()
        page.get_by_role("button", name="Continue").click()
        page.select_option("#whose", "readers.reader_no")
        page.get_by_label("What do you call one of them?").fill("reader")
        page.get_by_label("How many rows can one of them have").fill("1")
        page.get_by_role("button", name="Continue").click()
        page.fill("[name=rows-loans]", str(ROWS_MAX))
        page.get_by_role("button", name="Continue").click()
        page.select_option("[name=kind-loans-branch_where]", "list")
        page.fill("[name=words-loans-branch_where]", "\n".join(BRANCHES))
        for column, least, most in (("day", "2025-01-01", "2025-12-31"), ("days_kept", "0", "120")):
            page.fill(f"[name=least-loans-{column}]", least)
            page.fill(f"[name=most-of-loans-{column}]", most)
        page.select_option("[name=kind-loans-loan]", "skip")
        page.select_option("[name=kind-readers-year_of_birth]", "skip")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("pre.written")).to_contain_text("the operator's connection to town")
        page.get_by_role("button", name="Write the catalogue").click()
        page.get_by_role("button", name="Prepare").click()
        expect(page.locator("#version-1")).to_be_visible(timeout=120_000)
        page.get_by_role("link", name="How many rows of loans for each branch_where?").click()
        page.wait_for_selector("#price:not([aria-busy]) .priced")
        page.get_by_role("button", name="Ask for").click()
        expect(page.get_by_role("img", name="n by branch_where").first).to_be_visible(timeout=60_000)
        _compared(page, library, "tables of PostgreSQL", server.seconds)
        context.close()
    assert seen
    assert not [text for text in seen for word in (READER, OWNER, "nowhere.invalid", "lapwing-pg") if word in text]
