"""The shell on a real pseudo-terminal, with real keys; what is asserted stands on its screen."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Clinic
from tests.unit.cli.screen import Screen

UP, ENTER, TAB = "\x1b[A", "\r", "\t"


@pytest.fixture
def screen(clinic: Clinic) -> Iterator[Screen]:
    """The shell, at its first prompt."""
    opened = Screen("shell", clinic.directory, home=clinic.home)
    try:
        opened.wait_for("lapwing>")
        yield opened
    finally:
        opened.close()


def test_the_price_is_on_the_screen_before_enter_pays(screen: Screen, clinic: Clinic) -> None:
    screen.type("SELECT sex, COUNT(*) AS n FROM pat")
    screen.wait_for("patients  table")
    screen.type(TAB)
    screen.wait_for("FROM patients")
    screen.type(ENTER)  # takes the completion
    screen.type(ENTER)  # a new line: nothing is finished
    screen.type(" GROUP BY sex")
    shown = screen.wait_for("n: gaussian, ±")
    assert "epsilon 0.1, 0.14% of the budget" in shown and "-> " in shown, "the price, before the semicolon is typed"
    assert "cost epsilon" not in shown
    screen.type(";" + ENTER)
    shown = screen.wait_for("cost epsilon 0.1")
    assert "± 95%" in shown and "Pay?" not in shown, "a price that was seen is paid by Enter"
    screen.wait_for("lapwing>", times=2)
    screen.type(UP)
    assert "free: answered before" in screen.wait_for("free: answered before")
    screen.interrupt()
    screen.type("SELECT COUNT(*) FROM patients WHERE incom > 3")
    assert "did you mean 'income'?" in screen.wait_for("[unknown-column]")
    screen.interrupt()
    screen.type("\\q" + ENTER)
    assert screen.ended() == 0
    kept = clinic.home / "shell_history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "GROUP BY sex" in kept.read_text(encoding="utf-8") and "incom" not in kept.read_text(encoding="utf-8")


def test_a_price_that_was_not_seen_is_confirmed(screen: Screen) -> None:
    screen.type("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1990;" + ENTER)
    shown = screen.wait_for("Pay? [y/N]")
    assert "price: epsilon 0.1" in shown
    screen.type(ENTER)
    screen.wait_for("lapwing>", times=2)
    assert "cost epsilon" not in screen.shown(), "Enter alone does not pay"
    screen.type("\\set confirm never" + ENTER)
    screen.wait_for("lapwing>", times=3)
    screen.type("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1991;" + ENTER)
    screen.wait_for("cost epsilon 0.1")
    screen.type("\\set confirm always" + ENTER)
    screen.wait_for("lapwing>", times=5)
    screen.type("\\budget" + ENTER)
    screen.wait_for("% spent")
    screen.wait_for("lapwing>", times=6)
    screen.type("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1992")
    screen.wait_for("epsilon 0.1, 0.14% of the budget")
    screen.type(";" + ENTER)
    screen.wait_for("Pay? [y/N]", times=2)
    screen.type("y" + ENTER)
    screen.wait_for("cost epsilon 0.1", times=2)
    screen.wait_for("lapwing>", times=7)
    screen.type("\x04")  # Ctrl-D
    assert screen.ended() == 0


def test_a_large_part_of_the_budget_is_asked_about_though_its_price_was_seen(screen: Screen) -> None:
    screen.type("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1993 WITH PRIVACY (epsilon = 0.7)")
    screen.wait_for("6.02% of the budget")
    screen.type(";" + ENTER)
    screen.wait_for("Pay? [y/N]")
    screen.type(ENTER)
    screen.wait_for("lapwing>", times=2)
    assert "cost epsilon" not in screen.shown()
    screen.type("\\q" + ENTER)
    assert screen.ended() == 0


def test_asking_for_a_large_part_of_the_budget_on_a_terminal_is_confirmed(clinic: Clinic) -> None:
    def entries() -> str:
        return clinic.run("history", "--format", "json").out

    before = entries()
    large = ("-C", clinic.directory, "ask", "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1994", "--epsilon", "0.7")
    for reply, status in (("", 3), ("no", 3), ("y", 0)):
        asked = Screen(*large, home=clinic.home)
        try:
            asked.wait_for("This costs 6.02% of the whole budget. Ask? [y/N]")
            assert entries() == before, "nothing is charged before the reply"
            asked.type(reply + ENTER)
            asked.wait_for("cost epsilon 0.7" if status == 0 else "Nothing was asked")
            assert asked.ended() == status
        finally:
            asked.close()
    assert entries() != before
    for arguments in (large, (*large[:-1], "0.71", "--yes"), (*large[:-1], "0.1")):  # paid for already; told not to ask; little
        unasked = Screen(*arguments, home=clinic.home)
        try:
            shown = unasked.wait_for("of the budget is left")
            assert "ask it?" not in shown and unasked.ended() == 0
        finally:
            unasked.close()


def test_what_cannot_be_opened_ends_as_asking_would(clinic: Clinic, tmp_path: Path) -> None:
    nowhere = Screen("shell", tmp_path, home=clinic.home)
    try:
        nowhere.wait_for("[catalogue")
        assert nowhere.ended() == 5
    finally:
        nowhere.close()
