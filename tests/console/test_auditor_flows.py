"""What an auditor does in the console: the ledger, receipts and whether they are genuine, the report; and what an auditor cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.console.browser import PHONE, Visited

pytestmark = pytest.mark.xdist_group("console: browser")

STATEMENT = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture(scope="module", autouse=True)
def charged(visited: Visited) -> int:
    """The number of a charge of an analyst."""
    assert visited.under_test.ask(STATEMENT, epsilon="0.2").status_code == 200
    entries = visited.under_test.call("GET", "/v1/data-sets/{d}/history").json()["entries"]
    return int(entries[0]["charge"])


def test_the_ledger_shows_every_entry(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "aude") as page:
        page.goto(visited.url)
        page.click(".card h2 a")
        page.click("nav >> text=Ledger")
        table = page.get_by_role("region", name="Entries of the ledger")
        expect(table).to_contain_text("statistics: rows per unit of visits")
        expect(table.get_by_role("row", name=STATEMENT)).to_contain_text("ada")
        expect(table.locator("tbody tr").last).to_contain_text("ledger created")


def test_an_auditor_sees_no_editor_and_cannot_ask(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "aude") as page:
        page.goto(visited.path())
        assert page.locator("nav a").all_inner_texts()[:5] == ["Tables", "Budget", "Ledger", "Receipts", "Report"]
        reply = page.goto(visited.path("ask"))
        assert reply is not None and reply.status == 403
        expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")


def test_an_owner_sees_prices_and_cannot_pay(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("ask"))
        page.locator(".cm-content").click()
        page.keyboard.insert_text(STATEMENT)
        page.wait_for_selector("#price:not([aria-busy]) .priced")
        expect(page.locator("#price")).to_contain_text("Only analysts can ask")
        assert page.locator(".pay button").count() == 0


def test_a_receipt_is_found_from_the_ledger_and_is_genuine(visited: Visited, browser: Browser, charged: int) -> None:
    with visited.page(browser, "aude") as page:
        page.goto(visited.path("ledger"))
        page.get_by_role("link", name=f"Receipt of charge {charged}").click()
        expect(page.get_by_role("status")).to_contain_text("Genuine. Signed with a key of this data set")
        expect(page.locator(".pairs")).to_contain_text(f"{charged}, paid by ada")


def test_a_receipt_that_was_changed_is_not_genuine(visited: Visited, browser: Browser, charged: int) -> None:
    with visited.page(browser, "aude") as page:
        page.goto(visited.path(f"receipts/{charged}"))
        receipt = json.loads(page.input_value("#receipt"))
        page.fill("#receipt", json.dumps(receipt | {"analyst": "nobody"}))
        page.click("text=Check it")
        expect(page.get_by_role("alert")).to_contain_text("The signature is not that of this receipt")
        assert page.get_by_role("status").count() == 0
        page.fill("#receipt", "this is no receipt")
        page.click("text=Check it")
        expect(page.get_by_role("alert")).to_contain_text("This is no receipt")
        page.fill("#receipt", json.dumps(receipt))
        page.click("text=Check it")
        expect(page.get_by_role("status")).to_contain_text("Genuine")


def test_an_analyst_checks_the_receipt_of_an_own_answer(visited: Visited, browser: Browser, charged: int) -> None:
    with visited.page(browser, "ada") as page:
        page.goto(visited.path("history"))
        page.get_by_role("link", name=f"Receipt of charge {charged}").click()
        expect(page.get_by_role("status")).to_contain_text("Genuine")
        reply = page.goto(visited.path("receipts/1"))
        assert reply is not None and reply.status == 404, "of the owner's charge"


def test_the_report_adds_up(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "aude") as page:
        page.goto(visited.path("report"))
        expect(page.get_by_role("heading", name="The entries add up")).to_be_visible()
        expect(page.get_by_role("row", name="ada")).to_contain_text("%")
        said = visited.under_test.call("GET", "/v1/data-sets/{d}/report", by="aude").json()
        expect(page.locator("main")).to_contain_text(said["entries_sha256"])
        expect(page.locator("main")).to_contain_text(said["spent_by_the_ledger"]["rho"])


def test_with_keys_alone_to_the_report_and_the_ledger(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "aude") as page:
        page.goto(visited.path())
        page.keyboard.press("Tab")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Report":
                break
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Report", level=1)).to_be_visible()
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "ledger":
                break
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Ledger", level=1)).to_be_visible()


def test_reading_needs_no_scripts_and_fits_a_phone(visited: Visited, browser: Browser, charged: int) -> None:
    with visited.page(browser, "aude", size=PHONE, script=False) as page:
        for where, words in (
            ("ledger", "Every entry"),
            ("report", "By whom"),
            (f"receipts/{charged}", "Genuine"),
            ("history", "Nothing yet"),
        ):
            page.goto(visited.path(where))
            expect(page.locator("main")).to_contain_text(words)
    with visited.page(browser, "aude", size=PHONE, dark=True) as page:
        for where in ("ledger", "report", f"receipts/{charged}", "history", "budget"):
            page.goto(visited.path(where))
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), where


def test_keys_of_receipts_are_not_served(visited: Visited) -> None:
    private = next((visited.under_test.home / "clinic" / "keys").glob("*.private.pem"))
    assert isinstance(private, Path)
    for who in ("aude", "olga"):
        text = visited.under_test.call("GET", "/v1/data-sets/{d}/receipts/1", by=who).text
        assert "PRIVATE" not in text
        assert str(private.parent) not in text
