"""What an analyst does in the console, step by step, in a browser: with a mouse, with keys alone, and without scripts."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, Route, expect

from lapwing.asking.vocabulary import KEYWORDS, TYPES, function_names
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.console.browser import PHONE, Visited, settled, typed

pytestmark = pytest.mark.xdist_group("console: browser")

BY_REGION = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


def _spent(visited: Visited) -> str:
    return str(visited.under_test.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"])


def test_signing_in_with_a_key_and_leaving(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, None) as page:
        page.goto(visited.url)
        expect(page).to_have_title("Sign in · Lapwing")
        page.fill("#key", "lw_not-a-key")
        page.click("button[type=submit]")
        expect(page.get_by_role("alert")).to_contain_text("This key is not valid")
        page.fill("#key", visited.under_test.keys["ada"])
        page.click("button[type=submit]")
        expect(page.get_by_role("heading", name="Data sets")).to_be_visible()
        page.get_by_role("link", name=visited.under_test.data_set).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(visited.under_test.data_set)
        page.click("text=Sign out")
        page.goto(visited.path())
        expect(page).to_have_title("Sign in · Lapwing")


def test_signing_in_leads_to_the_page_that_was_wanted(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, None) as page:
        page.goto(visited.path("budget"))
        page.fill("#key", visited.under_test.keys["ada"])
        page.keyboard.press("Enter")
        expect(page).to_have_url(visited.path("budget"))


def test_tables_show_domains_and_descriptions(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path())
        patients = page.get_by_role("region", name="Columns of patients")
        expect(patients.get_by_role("row", name="birth_year")).to_contain_text("1920 to 2020")
        expect(patients.get_by_role("row", name="smoker")).to_contain_text("NULL when the patient was not asked")
        page.click(".jump >> text=clinics")
        expect(page.locator("h2:has-text('clinics')")).to_be_in_viewport()


def test_the_price_is_there_while_one_types(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION)
        cheap = page.locator(".amount").inner_text()
        assert re.fullmatch(r"\d+\.\d\d%", cheap)
        expect(page.locator(".pairs").first).to_contain_text("±")
        page.fill("#epsilon", "0.5")
        page.wait_for_function("before => document.querySelector('.amount')?.textContent !== before", arg=cheap)
        settled(page)
        expect(page.locator(".share")).to_contain_text("epsilon 0.5")


def test_a_refusal_points_at_its_place_and_a_click_mends_it(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION.replace("patients", "patientz"))
        expect(page.locator(".refused")).to_contain_text("There is no table 'patientz'")
        assert "^^^^^^^^" in page.locator(".refused .excerpt").first.inner_text()
        expect(page.locator(".refused-place")).to_have_text("patientz")
        expect(page.locator(".refused .code")).to_have_text("unknown-table")
        page.click(".rewrite a")
        page.wait_for_selector(".priced")
        expect(page.locator(".cm-content")).to_contain_text(BY_REGION)


@pytest.mark.parametrize(
    ("asked", "instead"),
    [
        ("SELECT region FROM patients", "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"),
        ("SELECT * FROM visits WHERE minutes > 30", "SELECT COUNT(*) AS n FROM visits WHERE minutes > 30"),
        (
            "SELECT sex, region, COUNT(*) AS n FROM patients GROUP BY region",
            "SELECT sex, region, COUNT(*) AS n FROM patients GROUP BY sex, region",
        ),
    ],
    ids=["rows", "all rows", "a column that is not grouped by"],
)
def test_what_can_be_rewritten_is(visited: Visited, browser: Browser, asked: str, instead: str) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, asked)
        expect(page.locator(".rewrite + .excerpt").first).to_have_text(instead)
        page.click(".rewrite a >> nth=0")
        page.wait_for_selector(".priced")


def test_the_slider_of_prices_moves_the_error(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION, epsilon="0.1")
        before = float(page.locator(".priced").get_attribute("data-half") or 0)
        page.locator("#epsilon-slider").focus()
        for _ in range(30):
            page.keyboard.press("ArrowRight")
        page.wait_for_function("half => Number(document.querySelector('.priced')?.dataset.half) < half", arg=before)
        settled(page)
        after = float(page.locator(".priced").get_attribute("data-half") or 0)
        paid = float(page.input_value("#epsilon"))
        assert paid == pytest.approx(0.2, rel=0.02)
        assert after == pytest.approx(before / 2, rel=0.05)


def test_the_slider_of_errors_finds_the_price(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION, epsilon="0.1")
        before = float(page.locator(".priced").get_attribute("data-half") or 0)
        page.locator("#error-slider").focus()
        for _ in range(20):
            page.keyboard.press("ArrowLeft")
        page.wait_for_function("half => Number(document.querySelector('.priced')?.dataset.half) < half", arg=before)
        page.wait_for_timeout(1_500)
        settled(page)
        wanted = float((page.locator("#error-value").inner_text()).strip("±").replace(",", ""))
        found = float(page.locator(".priced").get_attribute("data-half") or 0)
        assert found == pytest.approx(wanted, rel=0.05)
        assert float(page.input_value("#epsilon")) > 0.1


def test_paying_with_a_click_gives_an_answer_with_error_bars(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION, epsilon="0.3")
        before = _spent(visited)
        page.click(".pay button")
        expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
        assert _spent(visited) != before
        table = page.get_by_role("region", name="The answer as a table")
        expect(table.locator("tbody tr")).to_have_count(20)
        expect(table.locator("tbody tr").first).to_contain_text("±")
        expect(page.locator("main")).to_contain_text("Seeing it again is free")


def test_what_was_answered_is_free_and_says_so(visited: Visited, browser: Browser) -> None:
    visited.under_test.ask("SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex", epsilon="0.2")
    before = _spent(visited)
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex", epsilon="0.2")
        expect(page.locator(".amount")).to_have_text("Free")
        page.click(".pay button")
        expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    assert _spent(visited) == before


def test_a_price_that_was_not_on_the_screen_is_not_paid(visited: Visited, browser: Browser) -> None:
    before = _spent(visited)
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) AS n FROM visits", epsilon="0.01")
        # As if the price had changed between looking and pressing.
        page.evaluate("document.querySelector('#epsilon').value = '2'")
        page.click(".pay button")
        expect(page.get_by_role("alert")).to_contain_text("Nothing was spent")
        expect(page.locator(".share")).to_contain_text("epsilon 2")
    assert _spent(visited) == before


def test_more_than_one_statement_may_cost_cannot_be_paid(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) AS n FROM visits", epsilon="50")
        expect(page.locator(".alarm")).to_have_text("More than one statement may cost.")
        expect(page.locator(".pay button")).to_be_disabled()
        page.locator(".cm-content").focus()
        page.keyboard.press("Control+Enter")
        expect(page).to_have_url(visited.path("ask"))


def test_while_a_price_is_looked_for_there_is_nothing_to_press(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) AS n FROM visits", epsilon="0.02")
        page.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.insert_text(" WHERE minutes > 5")
        expect(page.locator(".pay button")).to_be_disabled()
        settled(page)
        expect(page.locator(".pay button")).to_be_enabled()


def test_a_price_that_comes_late_is_not_shown_beside_another_text(visited: Visited, browser: Browser) -> None:
    held: list[Route] = []
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        page.evaluate(
            """() => {
                window.everShown = "";
                const panel = document.getElementById("price");
                new MutationObserver(() => (window.everShown += panel.textContent)).observe(panel, { childList: true, subtree: true });
            }"""
        )
        address = str(page.locator("#ask").get_attribute("data-price"))
        page.route(f"**{address}", lambda route: held.append(route), times=1)
        with page.expect_request(f"**{address}"):
            page.locator(".cm-content").click()
            page.keyboard.insert_text("SELECT COUNT(*) AS n FROM visits")
        page.fill("#epsilon", "0.02")
        held[0].fulfill(body="<p class=priced>a price of another text</p>", content_type="text/html")
        settled(page)
        expect(page.locator(".share")).to_contain_text("epsilon 0.02")
        assert "a price of another text" not in page.evaluate("window.everShown")


def test_with_keys_alone_from_signing_in_to_an_answer(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, None) as page:
        page.goto(visited.path("ask"))
        page.wait_for_selector("input:focus")
        page.keyboard.insert_text(visited.under_test.keys["ada"])
        page.keyboard.press("Enter")
        page.wait_for_selector(".cm-content:focus")
        page.keyboard.type("SELECT vaccinated, COUNT(*) AS n FROM patients GROUP BY vaccinated", delay=1)
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        expect(page.locator("#epsilon")).to_be_focused()
        page.keyboard.type("0.2")
        settled(page)
        expect(page.locator(".share")).to_contain_text("epsilon 0.2")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()


def test_keys_reach_the_content_past_the_navigation(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path())
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.goto(visited.path())
        seen = []
        for _ in range(8):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.textContent.trim()"))
        assert seen[:7] == ["Skip to the content", "Lapwing", visited.under_test.data_set, "Sign out", "Tables", "Ask", "History"]


def test_names_are_completed(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        page.locator(".cm-content").click()
        page.keyboard.type("SELECT COUNT(*) AS n FROM prescr", delay=20)
        page.wait_for_selector(".cm-tooltip-autocomplete li[aria-selected]:has-text('prescriptions')")
        page.wait_for_timeout(150)
        page.keyboard.press("Enter")
        expect(page.locator(".cm-content")).to_contain_text("FROM prescriptions")


@pytest.mark.parametrize(
    ("typed_so_far", "offered"), [("SELECT MEDI", ["MEDIAN"]), ("SELECT region FROM patients ORDER BY region DESC", None)]
)
def test_words_that_are_offered_are_words_that_are_known(
    visited: Visited, browser: Browser, typed_so_far: str, offered: list[str] | None
) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        page.locator(".cm-content").click()
        page.keyboard.type(typed_so_far, delay=1)
        page.wait_for_selector(".cm-tooltip-autocomplete li[aria-selected]")
        found = page.locator(".cm-tooltip-autocomplete li").all_inner_texts()
        known = {*KEYWORDS, *TYPES, *function_names()}
        assert {word for word in found if word.isupper()} <= known, "PostgreSQL has keywords that nobody here would type"
        assert offered is None or found[: len(offered)] == offered


def test_files_hold_what_the_page_shows(visited: Visited, browser: Browser, tmp_path: Path) -> None:
    visited.under_test.ask(BY_REGION, epsilon="0.25")
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION, epsilon="0.25")
        page.click(".pay button")
        shown = page.locator("table.answer tbody tr").first.locator("td").all_inner_texts()
        with page.expect_download() as table:
            page.click("text=CSV")
        rows = list(csv.DictReader(io.StringIO(Path(table.value.path()).read_text())))
        assert len(rows) == 20
        assert [rows[0]["region"], f"{int(rows[0]['n']):,}"] == [shown[0], shown[1].strip(" ~")]
        assert float(rows[0]["n_lo"]) < float(rows[0]["n"]) < float(rows[0]["n_hi"])
        with page.expect_download() as notebook:
            page.click("text=Notebook")
        found = nbformat.reads(Path(notebook.value.path()).read_text(), as_version=4)
        nbformat.validate(found)
        code = [cell.source for cell in found.cells if cell.cell_type == "code"]
        for cell in code:
            compile(cell, "cell", "exec")
        assert f"data.replay({BY_REGION!r}, epsilon='0.25')" in "\n".join(code)
        assert [cell for cell in found.cells if cell.get("outputs")] == []
        # Not the numbers: the address of this machine has a 127, and its port may be any.
        assert [row["region"] for row in rows if row["region"] in json.dumps(found)] == [], "nothing of the answer is in the file"


def test_what_would_make_it_better_leads_to_the_editor(visited: Visited, browser: Browser) -> None:
    visited.under_test.ask("SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex", epsilon="0.03")
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex", epsilon="0.03")
        page.click(".pay button")
        better = page.locator("section[aria-labelledby=better]")
        expect(better).to_contain_text("Twice the epsilon, 0.06:")
        expect(better).to_contain_text("fewer groups")
        page.click("section[aria-labelledby=better] >> text=See its price")
        settled(page)
        assert page.input_value("#epsilon") == "0.06"
        expect(page.locator(".share")).to_contain_text("epsilon 0.06")


def test_history_leads_back_to_answers_for_nothing(visited: Visited, browser: Browser) -> None:
    by_month = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month"
    # The second buys norms first, the third finds them bought: each is charged another part of its price.
    asked = (("SELECT COUNT(*) AS n FROM patients WHERE smoker", "0.123"), (by_month, "0.2"), (by_month, "0.25"))
    for sql, epsilon in asked:
        assert visited.under_test.ask(sql, epsilon=epsilon).status_code == 200
    before = _spent(visited)
    with visited.page(browser) as page:
        for place, (sql, _) in enumerate(reversed(asked)):
            page.goto(visited.path("history"))
            links = page.locator(".asked a")
            assert links.nth(place).inner_text() == sql
            links.nth(place).click()
            expect(page.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
        page.get_by_role("link", name="Change the question").click()
        settled(page)
        expect(page.locator(".amount")).to_have_text("Free")
    assert _spent(visited) == before


def test_an_answer_can_be_sent_to_a_colleague(visited: Visited, browser: Browser) -> None:
    identities = visited.under_test.app_state.identities
    identities.grant("bo", Grant(Role.ANALYST, "*"))
    visited.under_test.keys["bo"], _ = identities.new_key("bo")
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION, epsilon="0.21")
        page.click(".pay button")
        page.wait_for_selector("table.answer")
        address, seen = page.url, page.locator("table.answer").inner_text()
    before = _spent(visited)
    with visited.page(browser, "bo") as page:
        page.goto(address)
        assert page.locator("table.answer").inner_text() == seen
    assert _spent(visited) == before


def test_what_was_never_answered_is_not_asked_by_a_link(visited: Visited, browser: Browser) -> None:
    before = _spent(visited)
    with visited.page(browser) as page:
        page.goto(visited.path(f"answer?q={PageQuestion('SELECT COUNT(*) AS n FROM visits WHERE minutes > 77', '0.5').token()}"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Not answered yet")
        page.click("text=See what it would cost")
        settled(page)
        expect(page.locator(".share")).to_contain_text("epsilon 0.5")
    assert _spent(visited) == before


def test_a_form_that_is_sent_twice_is_charged_once(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) AS n FROM visits WHERE minutes > 31", epsilon="0.05")
        fields = page.evaluate("new URLSearchParams(new FormData(document.querySelector('#ask'))).toString()")
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        first = page.request.post(visited.path("ask"), data=fields, headers=kind)
        spent = _spent(visited)
        assert first.ok
        page.request.post(visited.path("ask"), data=fields, headers=kind)
        assert _spent(visited) == spent


def test_the_budget_is_a_gauge_and_more_can_be_asked_for(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("budget"))
        expect(page.locator(".gauge figcaption").first).to_contain_text("of the budget is spent")
        page.click("text=Ask the owners for more")
        page.fill("#percent", "lots")
        page.click("text=Ask the owners >> nth=-1")
        expect(page.get_by_role("alert")).to_contain_text("The share must be above 0")
        page.fill("#percent", "40")
        page.fill("#reason", "a study of regions")
        page.click("text=Ask the owners >> nth=-1")
        # A local ledger knows no analysts; on one in a database the owners are asked (tests/server/test_shared_ledger.py).
        expect(page.get_by_role("alert")).to_be_visible()
        assert page.input_value("#reason") == "a study of regions"


def test_a_session_that_is_over_asks_to_sign_in_again(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) AS n FROM visits", epsilon="0.02")
        page.context.clear_cookies()
        page.locator(".cm-content").focus()
        page.keyboard.insert_text(" WHERE minutes > 6")
        expect(page.get_by_role("alert")).to_contain_text("You are not signed in, or the session has ended")
        expect(page.locator(".cm-content")).to_contain_text("WHERE minutes > 6")  # what was typed is not lost
        page.get_by_role("link", name="Sign in again").click()
        page.fill("#key", visited.under_test.keys["ada"])
        page.keyboard.press("Enter")
        expect(page).to_have_url(visited.path("ask"))
        settled(page)
        expect(page.locator(".cm-content")).to_contain_text("WHERE minutes > 6")
        expect(page.locator("#epsilon")).to_have_value("0.02")


def test_a_draft_outlives_back_and_reload_and_ends_with_the_session(visited: Visited, browser: Browser) -> None:
    draft, linked = "SELECT COUNT(*) AS n FROM visits WHERE minutes > 61", f"ask?q={PageQuestion(BY_REGION).token()}"
    text = ".cm-content .cm-line"
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, draft)
        page.reload()
        settled(page)
        expect(page.locator(text)).to_have_text(draft)
        page.click("nav >> text=Budget")
        page.go_back()
        settled(page)
        expect(page.locator(text)).to_have_text(draft)
        page.goto(visited.path(linked))  # somebody follows a link to another question: it is not hidden behind the draft
        settled(page)
        expect(page.locator(text)).to_have_text(BY_REGION)
        typed(page, f"{BY_REGION} LIMIT 3")
        page.reload()
        settled(page)
        expect(page.locator(text)).to_have_text(f"{BY_REGION} LIMIT 3")
        other = page.context.new_page()
        other.goto(visited.path("ask"))
        expect(other.locator(".cm-content")).to_be_visible()
        assert other.evaluate("sessionStorage.length") == 0  # a draft is of one tab
        other.close()
        assert page.evaluate("sessionStorage.length") == 1
        page.click("text=Sign out")
        expect(page).to_have_title("Sign in · Lapwing")
        assert page.evaluate("sessionStorage.length + localStorage.length") == 0


def test_a_draft_of_somebody_else_is_forgotten(visited: Visited, browser: Browser) -> None:
    with visited.page(browser) as page:
        page.goto(visited.path("ask"))
        typed(page, "SELECT COUNT(*) AS n FROM visits WHERE minutes > 62")
        page.context.clear_cookies()
        page.context.add_cookies([{"name": "lapwing", "value": visited.session_of("olga"), "url": visited.url}])
        page.goto(visited.path("ask"))
        expect(page.locator(".cm-content")).to_be_visible()
        assert "minutes > 62" not in page.content()
        page.goto(visited.path())
        assert "minutes > 62" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_without_scripts_one_reads_prices_and_asks(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, script=False) as page:
        page.goto(visited.path())
        expect(page.get_by_role("region", name="Columns of visits")).to_be_visible()
        page.click("nav >> text=Ask")
        page.fill("#sql", "SELECT smoker, COUNT(*) AS n\nFROM patientz GROUP BY smoker")
        page.click("text=See the price")
        expect(page.locator(".refused")).to_contain_text("There is no table 'patientz'")
        page.click(".rewrite a")
        page.fill("#epsilon", "0.2")
        page.click("text=See the price")
        page.click(".pay button")
        expect(page.locator("table.answer tbody tr")).to_have_count(3)


def test_on_a_phone_nothing_is_wider_than_the_screen(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, size=PHONE, dark=True) as page:
        page.goto(visited.path("ask"))
        typed(page, BY_REGION, epsilon="0.3")
        page.click(".pay button")
        page.wait_for_selector("table.answer")
        answer = page.url
        for address in (visited.url, visited.path(), visited.path("ask"), visited.path("history"), visited.path("budget"), answer):
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), address
