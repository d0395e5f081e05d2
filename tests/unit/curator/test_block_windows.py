"""Windows over blocks of time that are not one range, or whose conditions on time differ from block to block."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.shop_of_events import Shop
from tests.unit.curator.test_block_answers import charged_days, day
from tests.unit.curator.test_blocks_of_time import EXACT, rows_of

BY_DEVICE = "SELECT device, COUNT(*) AS n FROM events WHERE {} GROUP BY device ORDER BY device"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(tmp_path, monkeypatch)
    made.declare(epsilon="10")
    made.users()
    made.days(12)
    made.today(day(11))  # the days 0 to 9 are closed
    return made


def test_bounds_chosen_for_one_part_of_a_window_hold_for_a_window_of_the_other(shop: Shop) -> None:
    mostly = f"(day > DATE '{day(4)}' OR NOT (day = DATE '{day(2)}')) AND day BETWEEN DATE '{{}}' AND DATE '{{}}'"
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(BY_DEVICE.format(mostly.format(day(3), day(9))), epsilon="0.5")
        before = len(charged_days(data_set))
        answer = data_set.ask(BY_DEVICE.format(mostly.format(day(0), day(5))), epsilon="0.5")
        assert not answer.cost.free and set(charged_days(data_set)[before:]) <= {day(0), day(1), day(2)}
        assert data_set.ask(BY_DEVICE.format(mostly.format(day(0), day(4))), epsilon="0.5").cost.free


def test_bars_follow_from_the_blocks_of_their_window_alone(shop: Shop) -> None:
    windows = [BY_DEVICE.format(f"day IN (DATE '{day(0)}', DATE '{day(between)}', DATE '{day(9)}')") for between in (2, 5)]
    with shop.open() as data_set:
        data_set.prepare()
        for sql in windows:
            data_set.ask(sql, epsilon="0.25")
        told = [data_set.ask(sql, epsilon="0.25").intervals for sql in windows]
    with shop.open() as data_set:
        assert [data_set.ask(sql, epsilon="0.25").intervals for sql in reversed(windows)] == told[::-1]


@pytest.mark.parametrize(
    "source",
    [
        f"(SELECT day FROM events UNION ALL SELECT paid FROM orders WHERE paid < DATE '{day(3)}') t WHERE",
        "events t JOIN orders o ON t.user_id = o.user_id AND t.day = o.paid AND",
    ],
)
def test_days_that_meet_no_condition_of_a_union_or_a_join_do_not_hide_those_before(shop: Shop, source: str) -> None:
    shop.declare()
    sql = f"SELECT t.day, COUNT(*) AS n FROM {source} NOT (t.day >= DATE '{day(6)}') GROUP BY t.day ORDER BY t.day"
    with shop.open() as data_set:
        data_set.prepare()
        answer = data_set.ask(sql, epsilon=EXACT)
    assert "measured by day" in answer.notes[0]
    assert rows_of(answer) == shop.truth(sql, day(9))


def test_windows_that_slide_are_each_the_answer_of_bare_duckdb(shop: Shop) -> None:
    shop.declare(delta="0")
    sql = BY_DEVICE.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(amount) AS s").format("day BETWEEN DATE '{}' AND DATE '{}'")
    with shop.open() as data_set:
        data_set.prepare()
        for first, last in ((0, 4), (1, 5), (3, 8), (0, 9)):
            asked = sql.format(day(first), day(last))
            assert rows_of(data_set.ask(asked, epsilon=EXACT)) == shop.truth(asked, day(9))


def test_conditions_are_part_of_what_was_bought(shop: Shop) -> None:
    shop.declare(delta="0")
    with shop.open() as data_set:
        data_set.prepare()
        for column in ("COUNT(*)", *(f"COUNT(*) FILTER (WHERE device = '{device}')" for device in ("web", "app"))):
            for condition in ("TRUE", "device = 'web'", "device = 'app'"):
                sql = f"SELECT {column} AS n FROM events WHERE {condition}"
                assert rows_of(data_set.ask(sql, epsilon=EXACT)) == shop.truth(sql, day(9)), sql


def test_a_new_version_is_measured_anew(shop: Shop) -> None:
    shop.declare(delta="0")
    sql = BY_DEVICE.format("TRUE")
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(sql, epsilon=EXACT)
        shop.day(day(4), file="more")
        data_set.prepare(new_version=True)
        answer = data_set.ask(sql, epsilon=EXACT)
        assert not answer.cost.free and rows_of(answer) == shop.truth(sql, day(9))


def test_noise_grows_with_the_number_of_blocks(shop: Shop) -> None:
    shop.declare()
    sql = "SELECT SUM(amount) AS n FROM events WHERE day BETWEEN DATE '{}' AND DATE '{}'"
    with shop.open() as data_set:
        data_set.prepare()
        bars = [data_set.ask(sql.format(day(0), day(last)), epsilon="1_000_000").intervals["n"][0] for last in (7, 1)]
    widths = [bar.hi - bar.lo for bar in bars if bar is not None]
    assert 1.6 <= widths[0] / widths[1] <= 2.5, "four times as many blocks, twice as much noise, and nothing is cut off"


def test_bars_after_a_correction_are_those_of_another_process(shop: Shop) -> None:
    sql = BY_DEVICE.format("TRUE")
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(sql, epsilon="0.25")
        shop.day(day(4), rows=400, file="more")
        data_set.prepare(correct=(day(4), day(4)))
        told = [data_set.ask(sql, epsilon="0.25").intervals for _ in range(2)]
    with shop.open() as data_set:
        told.append(data_set.ask(sql, epsilon="0.25").intervals)
    assert told[0] == told[1] == told[2]


def test_bars_of_a_window_over_two_evidences_are_about_as_long_as_those_of_one(shop: Shop) -> None:
    """The older share was bounded by the histograms of two days, the newer by those of all eight: what each cut off is its own."""
    shop.declare()
    total = "SELECT SUM(amount) AS n FROM events WHERE day <= DATE '{}'"
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(total.format(day(1)), epsilon="1000")
        (slid,) = data_set.ask(total.format(day(7)), epsilon="1000").intervals["n"]
        (fresh,) = data_set.ask(total.format(day(7)) + " AND amount >= 0", epsilon="1000").intervals["n"]
    assert slid is not None and fresh is not None
    assert slid.hi - slid.lo < 3 * (fresh.hi - fresh.lo)
