"""Whatever people wrote stays text: in descriptions, declared values, names of analysts, statements, names of columns and reasons."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from lapwing.catalog import load
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.console.browser import Visited, reachable, settled, typed
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: browser")

EVIL = "<b data-evil>x</b><script>window.pwned=1</script>'><img src=x onerror=window.pwned=1>{{7777*7777}}${7777*7777}</textarea></form>"
MALLORY = "<b data-evil onclick=window.pwned=1>mallory</b>"


def _hostile(directory: Path) -> None:
    """The demonstration, with words of an owner who means no good."""
    write_demo(directory, patients=400)
    catalogue = directory / "lapwing.toml"
    text, quoted = catalogue.read_text(), f'"{EVIL}"'
    for before, after in (
        ('description = "Patients, visits and prescriptions of a made-up health service, 2024 and 2025"', f"description = {quoted}"),
        ('description = "NULL when the patient was not asked"', f"description = {quoted}"),
        ('values = ["f", "m", "x"]', f'values = ["f", "m", "x", {quoted}]'),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    catalogue.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A server whose every text is an attack."""
    with ServerUnderTest.over(_hostile, tmp_path_factory.mktemp("hostile")) as under_test, reachable(under_test) as found:
        identities = under_test.app_state.identities
        identities.grant(MALLORY, Grant(Role.ANALYST, "*"))
        under_test.keys[MALLORY], _ = identities.new_key(MALLORY)
        yield found


def _is_harmless(page: Page) -> None:
    assert page.evaluate("document.querySelector('[data-evil]') === null && window.pwned === undefined"), page.url
    assert page.locator("script:not([src])").count() == 0
    assert str(7777 * 7777) not in page.content(), "no template is filled from it"


def test_words_of_the_owner_are_text(hostile: Visited, browser: Browser) -> None:
    with hostile.page(browser) as page:
        for address in (hostile.url, hostile.path()):
            page.goto(address)
            _is_harmless(page)
            expect(page.locator("main")).to_contain_text(EVIL)
        page.goto(hostile.path("ask"))
        _is_harmless(page)


def test_names_of_tables_are_identifiers(tmp_path: Path) -> None:
    write_demo(tmp_path / "clinic", patients=50)
    catalogue = tmp_path / "clinic" / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace("[tables.patients", f"[tables.'{EVIL.replace(chr(39), '')}'"), encoding="utf-8")
    with pytest.raises(LapwingError):
        load(catalogue)


def test_names_of_analysts_are_text(hostile: Visited, browser: Browser) -> None:
    with hostile.page(browser, MALLORY) as page:
        page.goto(hostile.url)
        _is_harmless(page)
        expect(page.locator(".who")).to_have_text(MALLORY)
    hostile.under_test.ask("SELECT COUNT(*) AS n FROM patients", by=MALLORY, epsilon="0.05")
    for auditor, where in (("aude", "ledger"), ("aude", "report"), ("olga", "ledger")):
        with hostile.page(browser, auditor) as page:
            page.goto(hostile.path(where))
            _is_harmless(page)
            expect(page.locator("main")).to_contain_text(MALLORY)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS n FROM patients WHERE sex = '{EVIL.replace(chr(39), chr(39) * 2)}'",
        'SELECT COUNT(*) AS "<b data-evil>n</b><script>window.pwned=1</script>" FROM patients',
        f"{EVIL}",
        f'SELECT "{EVIL.replace(chr(34), "")}" FROM patients',
    ],
    ids=["a constant", "an alias", "no SQL at all", "a column"],
)
def test_statements_are_text(hostile: Visited, browser: Browser, sql: str) -> None:
    with hostile.page(browser) as page:
        page.goto(hostile.path("ask"))
        typed(page, sql, epsilon="0.05")
        _is_harmless(page)
        if page.locator(".pay button:enabled").count():
            page.click(".pay button")
            page.wait_for_selector("table.answer")
            _is_harmless(page)
            for who, where in (("ada", "history"), ("aude", "ledger")):
                with hostile.page(browser, who) as other:
                    other.goto(hostile.path(where))
                    _is_harmless(other)
        page.goto(hostile.path(f"ask?q={PageQuestion(sql, '0.05').token()}"))
        settled(page)
        _is_harmless(page)
        assert page.locator("#sql").input_value() == sql


def test_fields_of_addresses_and_forms_are_text(hostile: Visited, browser: Browser) -> None:
    with hostile.page(browser) as page:
        for address in (f"{hostile.url}/console/{EVIL}", hostile.path(EVIL), f"{hostile.url}/console/d/{EVIL}"):
            page.goto(address)
            _is_harmless(page)
        page.goto(hostile.path("budget"))
        page.click("text=Ask the owners for more")
        page.fill("#percent", EVIL)
        page.fill("#reason", EVIL)
        page.click("text=Ask the owners >> nth=-1")
        _is_harmless(page)
        page.goto(hostile.path("receipts"))
        page.fill("#receipt", EVIL)
        page.click("text=Check it")
        _is_harmless(page)
    with hostile.page(browser, None) as page:
        page.goto(f"{hostile.url}/console/sign-in?next={EVIL}")
        _is_harmless(page)
        page.fill("#key", EVIL)
        page.click("button[type=submit]")
        _is_harmless(page)


def test_a_page_in_a_frame_is_not_shown(hostile: Visited, browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    try:
        page = context.new_page()
        page.route(
            "http://elsewhere.test/",
            lambda route: route.fulfill(content_type="text/html", body=f"<iframe src='{hostile.url}/console/sign-in'>"),
        )
        page.goto("http://elsewhere.test/")
        page.wait_for_timeout(500)
        assert "Sign in" not in [frame.title() for frame in page.frames]
        assert all("API key" not in (frame.content()) for frame in page.frames)
    finally:
        context.close()


@pytest.mark.parametrize("token", ["", "x", "AAAA", "eJw", "%", "eJyrVkrLz1eyUkpKLFKqBQAdegQ0", "a" * 30_000])
def test_addresses_that_are_not_complete_are_told(hostile: Visited, token: str) -> None:
    ada = Visitor(hostile.under_test)
    ada.sign_in("ada")
    reply = ada.get("/console/d/{d}/answer", params={"q": token})
    assert reply.status_code == 422
    assert "body-invalid" in reply.text


def test_an_address_cannot_hold_more_than_a_statement() -> None:
    with pytest.raises(LapwingError) as long:
        PageQuestion("".join(hashlib.sha256(str(place).encode()).hexdigest() for place in range(1_000))).token()
    assert long.value.code == "body-too-large"
    bomb = PageQuestion("SELECT " + "1" * 3_000_000).token()
    with pytest.raises(LapwingError) as refused:
        PageQuestion.of_token(bomb)
    assert refused.value.code == "body-invalid"
