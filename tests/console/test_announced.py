"""What a screen reader is told, by the accessibility tree of chromium: names, roles, and what is announced when it changes."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browser import Visited, typed

pytestmark = pytest.mark.xdist_group("console: browser")
STATEMENT = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


def _announced(page: Page) -> dict[str, str]:
    """Parts of a page that are read aloud when they change: the name or role of each, and how urgently."""
    session = page.context.new_cdp_session(page)
    nodes: list[dict[str, Any]] = session.send("Accessibility.getFullAXTree")["nodes"]
    found = {}
    for node in nodes:
        said = {item["name"]: item["value"].get("value") for item in node.get("properties", ())}
        if not node["ignored"] and said.get("live") not in (None, "off") and said.get("root") is None:
            name = node.get("name", {}).get("value") or node["role"]["value"]
            found[name] = str(said["live"])
    return found


def test_the_editor_its_price_and_a_refusal(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, STATEMENT, epsilon="0.3")
        told = page.locator("main").aria_snapshot()
        for part in ('textbox "Statement"', 'textbox "Price (epsilon)"', 'slider "Pay more or less"', 'region "Price and accuracy"'):
            assert part in told, told
        assert 'button "Ask for ' in told
        assert 'heading "How accurate"' in told
        assert _announced(page)["Price and accuracy"] == "polite"
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) FROM patientz")
        refused = page.get_by_role("region", name="Price and accuracy").aria_snapshot()
        assert 'heading "This would be refused"' in refused
        assert "There is no table" in refused
        assert 'link "Use patients"' in refused


def test_an_answer_is_a_picture_with_words_and_a_table_with_headers(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, STATEMENT, epsilon="0.3")
        page.get_by_role("button", name="Ask for").click()
        page.wait_for_selector("table.answer")
        told = page.locator("main").aria_snapshot()
        assert 'img "n by sex' in told
        for part in ('heading "Numbers"', 'region "The answer as a table"', 'columnheader "sex"', 'columnheader "± 95%"', 'link "CSV"'):
            assert part in told, told


def test_choices_of_an_owner_have_names_and_mistakes_are_announced(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("versions"))
        told = page.locator("main").aria_snapshot()
        assert 'checkbox "Continue even if much is left out: more than a tenth of a table, or half of the values of a column"' in told
        assert 'button "Prepare"' in told
    with visited.page(browser, None) as page:
        page.goto(f"{visited.url}/console/sign-in")
        page.get_by_label("API key").fill("lw_nothing")
        page.keyboard.press("Enter")
        page.wait_for_selector("[role=alert]")
        assert "assertive" in _announced(page).values()
