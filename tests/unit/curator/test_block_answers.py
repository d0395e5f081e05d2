"""Answers by block of time: each block is paid once, windows that slide pay for what is new, and numbers are those of the closed days."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused, LapwingError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.calendar import to_days
from lapwing.ledger.protocol import EntryKind
from tests.support.shop_of_events import START, Shop
from tests.unit.curator.test_blocks_of_time import EXACT, rows_of

BY_DEVICE = "SELECT device, COUNT(*) AS n FROM events WHERE day BETWEEN DATE '{}' AND DATE '{}' GROUP BY device ORDER BY device"


def day(number: int) -> datetime.date:
    """The day with this number, from 0."""
    return START + datetime.timedelta(days=number)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(tmp_path, monkeypatch)
    made.declare(epsilon="10")
    made.users()
    made.days(12)
    made.today(day(11))  # the days 0 to 9 are closed
    return made


def charged_days(data_set: DataSet) -> list[datetime.date]:
    """The day of each charge, in order, from the entries."""
    entries = [entry for entry in reversed(data_set.history(limit=1_000)) if entry.kind is EntryKind.RESERVE]
    assert all(len(entry.ranges) == 1 and entry.ranges[0].first == entry.ranges[0].last for entry in entries)
    return [START + datetime.timedelta(days=(entry.ranges[0].first or 0) - to_days(START)) for entry in entries]


def is_by_block(data_set: DataSet, sql: str) -> bool:
    return "by_block" in data_set.explain(sql, epsilon=1).to_dict()["blocks"]


ONCE = "SELECT day, device, COUNT(*) AS c FROM events GROUP BY user_id, day, device"
SUMS = (
    "SELECT COUNT(*) AS n FROM events",
    "SELECT COUNT(*) AS n, COUNT(device) AS d, SUM(amount) AS s FROM events WHERE day > DATE '2026-03-03'",
    "SELECT device, AVG(amount) AS m, COUNT(*) AS n FROM events GROUP BY device ORDER BY device",
    "SELECT device, SUM(amount) AS s FROM events WHERE day >= DATE '2026-03-04' AND amount > 3 GROUP BY device ORDER BY s DESC LIMIT 2",
    "SELECT SUM(amount) * 1.0 / COUNT(*) AS m FROM events WHERE amount < 18",
    "SELECT VAR_POP(amount) AS v, STDDEV_SAMP(amount) AS s FROM events WHERE day > DATE '2026-03-02'",
    "SELECT day, COUNT(DISTINCT user_id) AS n FROM events WHERE day > DATE '2026-03-02' GROUP BY day ORDER BY day",
    "SELECT day, device, COUNT(*) AS n, COUNT(DISTINCT user_id) AS u FROM events GROUP BY day, device ORDER BY day, device",
    "SELECT EXTRACT(HOUR FROM seen) AS h, COUNT(*) AS n FROM events GROUP BY h HAVING n > 0 ORDER BY h",
    "SELECT CAST(DATE_TRUNC('month', day) AS DATE) AS m, COUNT(*) AS n FROM events GROUP BY m HAVING n > 0",
    "SELECT device, day, COUNT(*) AS n FROM events GROUP BY ROLLUP(device, day) HAVING n > 0 ORDER BY ALL",
    f"SELECT device, COUNT(*) AS n FROM ({ONCE}) WHERE c > 1 GROUP BY device ORDER BY device",
    "SELECT COUNT(*) AS n FROM events e JOIN orders o ON e.user_id = o.user_id AND e.day = o.paid WHERE e.day > DATE '2026-03-04'",
    "SELECT COUNT(*) AS n FROM events e WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = e.user_id AND o.paid = e.day)",
    "SELECT COUNT(*) AS n FROM (SELECT day, ROW_NUMBER() OVER (PARTITION BY user_id, day ORDER BY seen, device, amount) AS r FROM events)"
    " WHERE r = 1",
    "SELECT COUNT(*) AS n FROM (SELECT day AS d FROM events UNION ALL SELECT paid FROM orders) WHERE d >= DATE '2026-03-05'",
    "SELECT COUNT(*) AS n FROM events WHERE day < DATE '2026-03-03' OR day > DATE '2026-03-08'",
    "SELECT COUNT(*) AS n FROM events WHERE EXTRACT(DOW FROM day) = 1 OR day = DATE '2026-03-04'",
    "SELECT COUNT(*) AS n FROM events WHERE seen >= TIMESTAMP '2026-03-04 11:00:00'",
    "SELECT a.n - b.n AS more FROM (SELECT COUNT(*) AS n FROM events WHERE day > DATE '2026-03-05') a,"
    " (SELECT COUNT(*) AS n FROM events WHERE day < DATE '2026-03-05') b",
)
RANGES = (
    "SELECT COUNT(DISTINCT user_id) AS n FROM events",
    "SELECT MAX(amount) AS m FROM events",
    "SELECT device, COUNT(DISTINCT user_id) AS n FROM events GROUP BY device ORDER BY device",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, COUNT(*) AS c FROM events GROUP BY user_id) WHERE c > 6",
    "SELECT COUNT(*) AS n FROM events e JOIN orders o ON e.user_id = o.user_id",
    "SELECT COUNT(*) AS n FROM events e WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = e.user_id AND o.paid > DATE '2026-03-06')",
    "SELECT COUNT(*) AS n FROM events JOIN users USING (user_id) WHERE country = 'de'",
    "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY seen, day, device, amount) AS r FROM events)"
    " WHERE r = 1",
    "SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-04'",
)


@pytest.mark.parametrize(("sql", "by_block"), [*((sql, True) for sql in SUMS), *((sql, False) for sql in RANGES)])
def test_without_noise_the_sum_of_blocks_is_the_answer_of_bare_duckdb(shop: Shop, sql: str, by_block: bool) -> None:
    shop.declare()
    with shop.open() as data_set:
        data_set.prepare()
        assert is_by_block(data_set, sql) == by_block
        answer = data_set.ask(sql, epsilon=EXACT)
        again = data_set.ask(sql, epsilon=EXACT)
    found, truth = rows_of(answer), shop.truth(sql, day(9))
    assert [[pytest.approx(value, abs=1e-4) if isinstance(value, float) else value for value in row] for row in truth] == [
        list(row) for row in found
    ]
    assert again.cost.free and again.table == answer.table and again.intervals == answer.intervals


def test_a_window_that_slides_pays_each_day_once(shop: Shop) -> None:
    shop.days(8, day(12))
    with shop.open() as data_set:
        for last in range(6, 16):
            shop.today(day(last + 2))
            data_set.prepare()
            answer = data_set.ask(BY_DEVICE.format(day(last - 6), day(last)), epsilon="0.5")
            assert ("1 day paid" in answer.notes[0]) == (last > 6), answer.notes
        answers = charged_days(data_set)
        spending = data_set.curator.ledger.blocks()
        assert spending is not None
    per_day = {one: answers.count(one) for one in answers}
    assert set(per_day.values()) == {2} and len(per_day) == 16, "the histogram and the answer of each day"
    assert len({each.cost for each in spending.ranges}) == 1, "every day paid the same"


def test_a_correction_is_measured_anew_and_nothing_else(shop: Shop) -> None:
    sql = BY_DEVICE.format(day(0), day(9))
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(sql, epsilon="0.5")
        before = len(charged_days(data_set))
        shop.day(day(4), file="more")
        data_set.prepare(correct=(day(4), day(4)))
        assert data_set.explain(sql, epsilon="0.5").to_dict()["blocks"]["by_block"] == {"blocks": 10, "new": 1}
        answer = data_set.ask(sql, epsilon="0.5")
        assert charged_days(data_set)[before:] == [day(4), day(4)] and "1 day paid" in answer.notes[0]


def test_options_and_prices_are_other_questions(shop: Shop) -> None:
    sql = BY_DEVICE.format(day(0), day(9))
    with shop.open() as data_set:
        data_set.prepare()
        first = data_set.ask(sql, epsilon="0.5")
        assert not data_set.ask(sql, epsilon="0.6").cost.free
        assert not data_set.ask(sql.replace("COUNT(*)", "COUNT(amount)"), epsilon="0.5").cost.free
        assert not data_set.ask(sql.replace("events WHERE", "events WHERE amount > 3 AND"), epsilon="0.5").cost.free
        wider = data_set.ask(sql, epsilon="0.5", confidence="0.99")
        assert wider.cost.free, "the confidence of bars is computed from what was bought"
        pairs = zip(first.intervals["n"], wider.intervals["n"], strict=True)
        assert all(b.lo <= a.lo and a.hi <= b.hi for a, b in pairs if a is not None and b is not None)


def test_a_window_that_one_block_cannot_pay_is_refused_before_any_is_charged(shop: Shop) -> None:
    shop.declare(epsilon="2")
    count = "SELECT COUNT(*) AS n FROM events WHERE day BETWEEN DATE '{}' AND DATE '{}'"
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(count.format(day(2), day(4)) + " AND device = 'web'", epsilon="1.9")
        before = len(charged_days(data_set))
        with pytest.raises(BudgetRefused) as refusal:
            data_set.ask(count.format(day(0), day(9)), epsilon="1")
        assert refusal.value.code == "block-budget" and len(charged_days(data_set)) == before
        assert refusal.value.hint == f"ask for {day(5)} to {day(9)}: their blocks can pay it"
        data_set.ask(count.format(day(5), day(9)), epsilon="1")
        later = data_set.explain(count.format(day(5), day(9)), epsilon="1")
        assert "free" in dict(later.lines)["price"]


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize(("delta", "budget"), [("0", ""), ('"2^-40"', ""), ('"2^-40"', "order = 32")])
def test_the_quoted_price_is_paid_by_every_block_and_the_person_pays_for_all(shop: Shop, neighbours: str, delta: str, budget: str) -> None:
    shop.declare(neighbours=neighbours, delta=delta, epsilon="10", budget=budget)
    sql = BY_DEVICE.format(day(2), day(5))
    with shop.open() as data_set:
        data_set.prepare()
        quoted = data_set.explain(sql, epsilon="0.5").to_dict()
        data_set.ask(sql, epsilon="0.5")
        spending = data_set.curator.ledger.blocks()
        assert spending is not None
        (paid,) = spending.ranges
        assert (paid.first, paid.last) == (to_days(day(2)), to_days(day(5)))
        assert paid.cost.loss <= quoted["cost"]["loss"] * 10**15 * (1 + 1e-12)
        assert paid.cost.loss >= 0.99 * quoted["cost"]["loss"] * 10**15
        assert data_set.curator.balance().spent == Cost.zero(), "it reads no table without time"
        assert spending.person.loss == 4 * paid.cost.loss, "four draws, one for each day"


def test_what_was_bought_as_a_whole_stays_free(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = BY_DEVICE.format(day(0), day(9))
    with shop.open() as data_set:
        data_set.prepare()
        with monkeypatch.context() as before:
            before.setattr("lapwing.asking.ask.block_answers", lambda whole: None)
            whole = data_set.ask(sql, epsilon="0.5")
        again = data_set.ask(sql, epsilon="0.5")
        assert again.cost.free and again.table == whole.table


def test_a_window_over_a_union_that_slides_pays_each_day_once(shop: Shop) -> None:
    union = "SELECT d, COUNT(*) AS n FROM (SELECT day AS d FROM events UNION ALL SELECT paid FROM orders) WHERE d >= DATE '{}' GROUP BY d"
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(union.format(day(0)), epsilon="0.5")
        assert data_set.ask(union.format(day(3)), epsilon="0.5").cost.free


def test_a_closed_data_set_gives_nothing_that_it_knows(shop: Shop) -> None:
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(BY_DEVICE.format(day(0), day(5)), epsilon="0.5")
        data_set.curator.ledger.close("an audit")
        with pytest.raises(LapwingError) as refusal:
            data_set.ask(BY_DEVICE.format(day(0), day(5)), epsilon="0.5")
        assert refusal.value.code == "data-set-closed"
        data_set.curator.reopen("done")
        assert data_set.ask(BY_DEVICE.format(day(0), day(5)), epsilon="0.5").cost.free


def test_replay_gives_what_is_known_and_charges_nothing_else(shop: Shop) -> None:
    with shop.open() as data_set:
        data_set.prepare()
        first = data_set.ask(BY_DEVICE.format(day(0), day(5)), epsilon="0.5")
        assert data_set.replay(BY_DEVICE.format(day(0), day(5)), epsilon="0.5").table == first.table
        assert data_set.replay(BY_DEVICE.format(day(1), day(3)), epsilon="0.5").cost.free, "a part of what is known"
        before = len(charged_days(data_set))
        with pytest.raises(LapwingError) as refusal:
            data_set.replay(BY_DEVICE.format(day(0), day(6)), epsilon="0.5")
        assert refusal.value.code == "not-answered-before" and len(charged_days(data_set)) == before


def test_this_year_against_last_pays_each_day_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = (
        "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) AS n FROM events"
        " WHERE EXTRACT(DOY FROM day) <= EXTRACT(DOY FROM DATE '{}') GROUP BY y HAVING COUNT(*) > 0 ORDER BY y"
    )
    shop = Shop(tmp_path, monkeypatch)
    shop.declare()
    shop.users()
    shop.days(6)
    shop.days(6, datetime.date(2027, 3, 1))
    with shop.open() as data_set:
        for number in (3, 4, 5):
            last = datetime.date(2027, 3, 1) + datetime.timedelta(days=number)
            shop.today(last + datetime.timedelta(days=2))
            data_set.prepare()
            answer = data_set.ask(sql.format(last), epsilon=EXACT)
            assert rows_of(answer) == shop.truth(sql.format(last), last)
        days = charged_days(data_set)
        assert max(days.count(one) for one in days) == 1, "nothing is clipped without noise, so there are no histograms"
