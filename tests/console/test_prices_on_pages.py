"""Prices on the pages: the one before asking is the one that is paid, a large one is meant, and every ± is the bar of 95 %."""

from __future__ import annotations

import html
import re

import pytest

from lapwing.interfaces.console.questions import PageQuestion
from tests.console.visitor import Visitor, forms_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: prices")

WITH_NORMS = "SELECT clinic_id, SUM(cost) AS cost FROM visits GROUP BY clinic_id"
"""Part of its price first buys what its bounds are chosen from."""
COUNTED = "SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex"
ASK = "/console/d/{d}/ask"


@pytest.fixture(scope="module")
def ada(server: ServerUnderTest) -> Visitor:
    visitor = Visitor(server)
    visitor.sign_in("ada")
    return visitor


def _spent(server: ServerUnderTest) -> float:
    view = server.call("GET", "/v1/data-sets/{d}/budget").json()
    return float(view["loss"]["spent"]) / float(view["loss"]["total"])


def _form(ada: Visitor, sql: str, epsilon: str) -> tuple[str, dict[str, str]]:
    """The page with the price of a question, and the fields of its form."""
    page = ada.get(f"{ASK}?q={PageQuestion(sql, epsilon).token()}")
    assert page.status_code == 200
    [fields] = [found for action, found in forms_of(page.text).items() if action.endswith("/ask")]
    return html.unescape(page.text), fields | {"sql": sql, "epsilon": epsilon}


def test_a_price_beside_a_statement_holds_unless_the_statement_says_one() -> None:
    other_terms = "SELECT COUNT(*) FROM patients WITH PRIVACY (reuse = never, confidence = 0.9)"
    in_text = "SELECT COUNT(*) FROM patients WHERE region = 'with privacy'"
    for sql in (in_text, "SELECT COUNT(*) -- with privacy\nFROM patients", other_terms):
        assert PageQuestion(sql, "0.3").body().epsilon == "0.3"
    for terms in ("(epsilon = 0.1)", "(error = 5)", "(nonsense)"):
        assert PageQuestion(f"SELECT COUNT(*) FROM patients WITH PRIVACY {terms}", "0.3").body().epsilon is None


@pytest.mark.parametrize("sql", [WITH_NORMS, COUNTED])
def test_the_price_before_is_what_is_paid_and_what_the_answer_says(server: ServerUnderTest, ada: Visitor, sql: str) -> None:
    page, fields = _form(ada, sql, "0.1")
    [shown] = re.findall(r"Ask for (\d+\.\d\d%)", page)
    before = _spent(server)
    asked = ada.post(ASK, fields)
    assert asked.status_code == 303
    assert f"{_spent(server) - before:.2%}" == shown
    answer = html.unescape(ada.get(asked.headers["location"]).text)
    assert re.findall(r"Its price: epsilon ([0-9.]+), (\d+\.\d\d%) of the whole budget", answer) == [("0.1", shown)]


def test_the_suggestion_says_what_twice_the_epsilon_costs(ada: Visitor) -> None:
    _, fields = _form(ada, COUNTED, "0.03")
    answer = html.unescape(ada.get(ada.post(ASK, fields).headers["location"]).text)
    bars, costs = r"error bars of ±([0-9,.]+) instead of ±([0-9,.]+) at 95%", r"costs ([0-9.]+)% of the budget instead of ([0-9.]+)%"
    [(bar, bar_now, cost, cost_now)] = re.findall(rf"Twice the epsilon, 0\.06: {bars}; {costs}", answer)
    assert float(bar) == pytest.approx(float(bar_now) / 2, rel=0.05)
    assert float(cost) > 3 * float(cost_now), "twice the epsilon is not twice the cost"
    assert f"Ask for {cost}%" in _form(ada, COUNTED, "0.06")[0]


def test_a_large_part_of_the_budget_is_spent_only_where_it_is_meant(server: ServerUnderTest, ada: Visitor) -> None:
    sql = "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1990"
    assert 'name="meant"' not in _form(ada, sql, "0.6")[0], "4.5% is not large"
    page, fields = _form(ada, sql, "0.7")
    assert "I mean to spend 6.02% of the whole budget at once" in page
    meant, before = fields.pop("meant"), _spent(server)
    for wrong in ({}, {"meant": "free"}, {"meant": ""}):
        refused = ada.post(ASK, fields | wrong)
        assert refused.status_code == 409 and "Nothing was spent" in refused.text and "Tick the box" in refused.text
    assert _spent(server) == before
    assert ada.post(ASK, fields | {"meant": meant}).status_code == 303 and _spent(server) > before


def test_more_than_one_statement_may_cost_is_said_before(ada: Visitor) -> None:
    page, fields = _form(ada, "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1991", "1.5")
    assert "More than one statement may cost." in page and re.search(r"<button type=\"submit\" disabled>Ask for", page)
    refused = ada.post(ASK, fields)
    assert refused.status_code != 303


def test_the_page_of_spending_shows_bars_of_95_percent(server: ServerUnderTest) -> None:
    olga = Visitor(server)
    olga.sign_in("olga")
    page = html.unescape(olga.get("/console/d/{d}/spending").text)
    [shown] = re.findall(r'<th scope="row">0\.1</th><td class="number">± ([0-9.]+)</td>', page)
    asked = {"sql": "SELECT COUNT(*) AS n FROM patients", "epsilon": "0.1"}
    explained = server.call("POST", "/v1/data-sets/{d}/explain", json=asked).json()
    [bar] = re.findall(r"±([0-9.]+) at 95%", str(explained["lines"]))
    assert float(shown) == pytest.approx(float(bar), rel=0.02) and "Error bar, 95%" in page
