"""What an owner does in the console: spending, access, incidents, versions and words; with a mouse, with keys alone, without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from lapwing.interfaces.console.questions import PageQuestion
from tests.console.browser import PHONE, Visited, reachable
from tests.ledger.cluster import Cluster
from tests.ledger.wired import new_wired
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: browser")
STATEMENT = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture(scope="module", autouse=True)
def charged(visited: Visited) -> None:
    """Something is spent."""
    assert visited.under_test.ask(STATEMENT, epsilon="0.2").status_code == 200


@pytest.fixture(scope="module")
def shared(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A data set whose ledger is in a database, so that it knows analysts and second persons."""
    home, dsn = tmp_path_factory.mktemp("shared"), shared_cluster.dsn(shared_cluster.new_database())
    with ServerUnderTest.over(lambda _: new_wired(home, dsn), home) as under_test, reachable(under_test) as found:
        yield found


def _no_wider_than_the_screen(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_spending_is_shown_by_analyst_and_by_week(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path())
        page.click("nav >> text=Budget")
        page.click("nav >> text=Spending")
        expect(page.get_by_role("heading", level=1)).to_have_text("Spending")
        expect(page.get_by_role("img", name="Spent by each analyst").first).to_contain_text("ada")
        expect(page.get_by_role("img", name="Spent in each week").first).to_contain_text("week")
        expect(page.locator("main")).to_contain_text("they add up to exactly what is spent")


def test_what_is_left_is_said_in_questions_of_a_typical_kind(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("spending"))
        table = page.get_by_role("region", name="Questions that are left")
        counts = [int(text.replace(",", "")) for text in table.locator("tbody td:last-child").all_inner_texts()]
        assert len(counts) == 4
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > counts[-1] >= 1


def test_a_word_opens_in_place_with_its_picture_and_closes_with_escape(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("spending"))
        page.get_by_role("button", name="epsilon", exact=True).first.click()
        card = page.locator("#about-epsilon")
        expect(card).to_be_visible()
        expect(card).to_contain_text("Smaller is more private and noisier")
        expect(card.locator("svg")).to_be_visible()
        page.keyboard.press("Escape")
        expect(card).to_be_hidden()


def test_every_word_of_a_page_has_its_card(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        for address in ("spending", "access", "incidents", "versions"):
            page.goto(visited.path(address))
            wanted = page.eval_on_selector_all("[popovertarget]", "all => all.map(one => one.getAttribute('popovertarget'))")
            assert wanted, address
            assert [name for name in wanted if page.locator(f"#{name}").count() != 1] == []
            ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
            assert len(set(ids)) == len(ids), address


def test_all_words_are_on_one_page_and_an_address_leads_to_each(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "ada") as page:
        page.goto(f"{visited.url}/console/")
        page.click("footer >> text=Words, explained")
        expect(page.locator(".word-entry")).to_have_count(29)
        page.goto(f"{visited.url}/console/words#hidden-groups")
        expect(page.locator("#hidden-groups")).to_be_in_viewport()


def test_a_local_ledger_says_that_it_knows_nobody(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("access"))
        expect(page.locator("main")).to_contain_text("The ledger of this data set is a file")
        assert page.locator("main form").count() == 0


def test_an_analyst_is_admitted_for_a_share_and_suspended(shared: Visited, browser: Browser) -> None:
    with shared.page(browser, "olga") as page:
        page.goto(shared.path("access"))
        expect(page.locator("main")).to_contain_text("Nobody is admitted yet")
        page.click("text=Admit or suspend an analyst")
        page.fill("#analyst", "ada")
        page.fill("#share", "10")
        page.fill("#why", "her project")
        page.get_by_role("button", name="Admit").click()
        row = page.get_by_role("region", name="Terms of analysts").get_by_role("row", name="ada")
        expect(row).to_contain_text("10.00%")
        expect(row).to_contain_text("may ask")
        page.click("text=Admit or suspend an analyst")
        page.fill("#analyst", "ada")
        page.get_by_role("button", name="Suspend").click()
        expect(row).to_contain_text("suspended")


@pytest.mark.parametrize("share", ["0", "101", "ten"])
def test_a_share_that_is_none_is_refused_and_nothing_changes(shared: Visited, browser: Browser, share: str) -> None:
    with shared.page(browser, "olga") as page:
        page.goto(shared.path("access"))
        page.click("text=Admit or suspend an analyst")
        page.fill("#analyst", "nobody")
        page.fill("#share", share)
        page.get_by_role("button", name="Admit").click()
        expect(page.get_by_role("alert")).to_contain_text("percent")
        assert page.get_by_role("row", name="nobody").count() == 0


def test_a_request_of_an_analyst_is_approved_by_an_owner(shared: Visited, browser: Browser) -> None:
    under_test = shared.under_test
    assert under_test.call("PUT", "/v1/data-sets/{d}/analysts/ada", by="olga", json={"share": 0.1}).status_code == 200
    assert (
        under_test.call("POST", "/v1/data-sets/{d}/requests", json={"share": 0.25, "reason": "<b>two</b> tables are left"}).status_code
        == 201
    )
    with shared.page(browser, "otto") as page:
        page.goto(shared.path("access"))
        card = page.locator(".card", has_text="two")
        expect(card).to_contain_text("<b>two</b> tables are left")
        card.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("region", name="Decisions so far")).to_contain_text("approved")
        expect(page.get_by_role("region", name="Terms of analysts").get_by_role("row", name="ada")).to_contain_text("25.00%")


def test_a_request_is_denied(shared: Visited, browser: Browser) -> None:
    assert shared.under_test.call("POST", "/v1/data-sets/{d}/requests", json={"share": 0.9, "reason": "all of it"}).status_code == 201
    with shared.page(browser, "otto") as page:
        page.goto(shared.path("access"))
        page.locator(".card", has_text="all of it").get_by_role("button", name="Deny").click()
        expect(page.get_by_role("region", name="Decisions so far")).to_contain_text("denied")


def test_a_budget_is_proposed_and_not_approved_by_whoever_proposed_it(shared: Visited, browser: Browser) -> None:
    with shared.page(browser, "olga") as page:
        page.goto(shared.path("access"))
        page.click("text=Propose a change")
        page.fill("#epsilon", "2.5")
        page.fill("#because", "be careful")
        page.get_by_role("button", name="Propose").click()
        card = page.locator(".card", has_text="be careful")
        expect(card).to_contain_text("You proposed it, so somebody else must decide.")
        assert card.get_by_role("button").count() == 0
    with shared.page(browser, "otto") as page:
        page.goto(shared.path("access"))
        card = page.locator(".card", has_text="be careful")
        expect(card).to_contain_text("lapwing ledger approve")
        card.get_by_role("button", name="Approve").click()
        expect(page.get_by_role("alert")).to_contain_text("second-person")


def test_an_auditor_sees_what_waits_and_decides_nothing(shared: Visited, browser: Browser) -> None:
    with shared.page(browser, "aude") as page:
        page.goto(shared.path("access"))
        expect(page.locator("#waiting")).to_be_visible()
        assert page.locator("main form").count() == 0


def test_an_open_data_set_has_no_incidents(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "ops") as page:
        page.goto(visited.path("incidents"))
        expect(page.locator("main")).to_contain_text("This data set is open")
        expect(page.locator("main")).to_contain_text("Nothing, so far")


def test_after_an_incident_an_owner_reads_what_to_do_and_opens_again(visited: Visited, browser: Browser) -> None:
    served = visited.under_test.app_state.desk.of(visited.under_test.data_set)
    assert served is not None
    with served.opened() as opened:
        opened.curator.ledger.close("the engine failed")
    with visited.page(browser, "ops") as page:
        page.goto(visited.path("incidents"))
        expect(page.get_by_role("alert")).to_contain_text("This data set is closed")
        assert page.locator("main form").count() == 0
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("incidents"))
        expect(page.locator(".steps li")).to_have_count(4)
        page.fill("#reason", "the disk was full; <i>mended</i>")
        page.get_by_role("button", name="Reopen").click()
        expect(page.locator("main")).to_contain_text("This data set is open")
        expect(page.get_by_role("region", name="Entries about incidents")).to_contain_text("olga: the disk was full; <i>mended</i>")


def test_a_new_version_is_prepared_with_progress_and_its_report(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("versions"))
        before = page.locator("section[aria-labelledby^=version-]").count()
        page.get_by_role("button", name="Prepare").click()
        expect(page.locator(f"#version-{before + 1}")).to_be_visible(timeout=60_000)
        expect(page.locator("section", has_text="in use").first).to_contain_text(f"Version {before + 1}")
        page.get_by_role("button", name="Delete the rows of version 1").click()
        expect(page.locator("#version-1")).to_have_count(0)


def test_a_version_is_prepared_without_scripts(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga", script=False) as page:
        page.goto(visited.path("versions"))
        page.get_by_role("button", name="Prepare").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Versions", timeout=60_000)


def test_an_owner_with_keys_alone(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "olga") as page:
        page.goto(visited.path("spending"))
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('button.word')"):
                break
        page.keyboard.press("Enter")
        expect(page.locator(".word-card:popover-open")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.locator(".word-card:popover-open")).to_have_count(0)
        assert page.evaluate("document.activeElement.matches('button.word')")


def test_an_analyst_sees_no_page_of_owners(visited: Visited, browser: Browser) -> None:
    with visited.page(browser, "ada") as page:
        page.goto(visited.path())
        shown = page.locator("nav a").all_inner_texts()
        assert not {"Spending", "Access", "Versions", "Incidents"} & set(shown)
        for address in ("spending", "access", "incidents"):
            reply = page.goto(visited.path(address))
            assert reply is not None and reply.status == 403


def test_an_answer_has_a_chart_that_can_be_another_and_taken_away(visited: Visited, browser: Browser) -> None:
    assert visited.under_test.ask(STATEMENT, epsilon="0.2").status_code == 200  # of whichever version is the newest by now
    with visited.page(browser, "ada") as page:
        page.goto(visited.path(f"answer?q={PageQuestion(STATEMENT, '0.2').token()}"))
        expect(page.get_by_role("img", name="n by sex").first).to_be_visible()
        page.click(".kinds >> text=Points")
        expect(page.locator(".lw-chart-wide circle")).to_have_count(3)
        with page.expect_download() as saved:
            page.click("text=PNG")
        assert saved.value.path().read_bytes().startswith(b"\x89PNG")
        with page.expect_download() as saved:
            page.click("text=SVG")
        assert "<desc" in saved.value.path().read_text(encoding="utf-8")


@pytest.mark.parametrize("address", ["spending", "access", "incidents", "versions"])
def test_pages_of_owners_fit_a_phone(visited: Visited, browser: Browser, address: str) -> None:
    with visited.page(browser, "olga", size=PHONE, dark=True) as page:
        page.goto(visited.path(address))
        assert _no_wider_than_the_screen(page)
        assert page.locator(".lw-chart-wide:visible").count() == 0
