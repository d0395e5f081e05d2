"""``lapwing prepare`` on a data set with blocks of time: what it says when blocks close, are corrected, or rows come late."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from tests.support.shop_of_events import START, Shop
from tests.unit.cli.support import run


def day(number: int) -> datetime.date:
    return START + datetime.timedelta(days=number)


def test_prepare_says_which_blocks_are_new_and_how_many_rows_came_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path, monkeypatch)
    shop.declare(epsilon="3")
    shop.users()
    shop.days(6)
    shop.today(day(5))
    home = tmp_path / "home"

    def prepared(*words: str) -> str:
        ran = run("-C", shop.directory, "prepare", *words, home=home)
        assert ran.status == 0, ran.err
        return ran.out + ran.err

    assert "Version 1 of shop is prepared: 3 tables" in prepared() and "Closed: 2026-03-01 to 2026-03-04." in prepared()
    assert "Version 1 of shop stays: no day has closed since." in prepared()
    shop.today(day(6))
    shop.day(day(1), rows=9, file="late")
    late = sum(event["day"] is not None for event in shop.events[-9:])
    said = prepared()
    assert "Version 1 of shop stays: new blocks up to 2026-03-05" in said
    assert f"events: {late} rows came after their block was prepared" in said
    assert "of the budget is spent in the newest block" in said
    corrected = prepared("--correct", "2026-03-02/2026-03-02")
    assert "The blocks of 2026-03-02/2026-03-02 are corrected" in corrected and "came after" not in corrected
    wrong = run("-C", shop.directory, "prepare", "--correct", "yesterday", home=home)
    assert wrong.status != 0 and "[days-unreadable]" in wrong.err and "--correct 2026-11-01/2026-11-03" in wrong.err
