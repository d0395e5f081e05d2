"""Lines that say how far a command is, on a real terminal: they are drawn and taken away, and what came from outside is spelt."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapwing.audit import report
from lapwing.audit.lists import conformance
from lapwing.curator.curator import Curator, Progress
from lapwing.interfaces.cli.terminal import EscapingStream
from lapwing.interfaces.python.waiting import on_terminal
from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import run_on_terminal, screen_after

ERASES_A_LINE = "\x1b[2K"
SPELT = "\\u001b"
SETS_THE_TITLE = "\x1b]0;mine\x07"


def test_the_bar_of_a_preparation_is_drawn_and_taken_away(own_clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a name in it nor what is printed beside it acts. No catalogue lets such a name in; the bar does not rely on that."""
    made = Curator.prepare

    def of_hostile_names(curator: Curator, *, progress: Progress, **rest: Any) -> int:
        progress(f"a[red]{SETS_THE_TITLE}", 1, 2)
        print("beside", SETS_THE_TITLE)
        return made(curator, progress=progress, **rest)

    monkeypatch.setattr(Curator, "prepare", of_hostile_names)
    ran = run_on_terminal("-C", own_clinic.directory, "prepare", home=own_clinic.home, monkeypatch=monkeypatch)
    assert ran.status == 0 and "\x1b]" not in ran.out and "\x07" not in ran.out
    assert f"preparing a[red]{SPELT}]0;mine\\u0007" in ran.out and f"beside {SPELT}]0;mine\\u0007" in ran.out
    assert ran.out.count(SPELT) == ran.out.count(f"{SPELT}]0;mine"), "nothing else is spelt"
    assert "preparing visits" in ran.out and "━" in ran.out and ERASES_A_LINE in ran.out
    shown = screen_after(ran.out)
    assert "preparing visits" not in shown and "Version 1 of clinic-" in shown


def test_the_line_of_the_list_of_statements_is_drawn_and_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is cut off before its first statement, which takes long; it ends with 1, since statements are missing."""

    def cut_off(_directory: Path) -> Iterator[conformance.Outcome]:
        time.sleep(0.3)  # so that the line is drawn more than once
        yield from ()

    monkeypatch.setattr(conformance, "run_list", cut_off)
    ran = run_on_terminal("conformance", home=tmp_path, monkeypatch=monkeypatch)
    assert ran.status == 1 and SPELT not in ran.out
    assert "writing made-up data" in ran.out and ERASES_A_LINE in ran.out
    shown = screen_after(ran.out)
    assert "writing made-up data" not in shown and "0 answered, 0 refused" in shown


def test_the_line_of_an_audit_is_drawn_and_what_it_is_about_cannot_act(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One mechanism is audited, under a hostile name, as a statement that is audited could have."""
    hostile, spelt = f"{SETS_THE_TITLE}[red]", f"{SPELT}]0;mine\\u0007[red]"
    first = report.mechanism_items()[0]
    monkeypatch.setattr(report, "mechanism_items", lambda: [replace(first, name=hostile)])
    ran = run_on_terminal("audit", "--mechanisms", "--samples", "100", home=tmp_path, monkeypatch=monkeypatch)
    assert ran.status == 0 and "\x1b]" not in ran.out and "\x07" not in ran.out
    drawn, _, printed = ran.out.rpartition(ERASES_A_LINE)
    assert f"1 of 1: {spelt}" in drawn and spelt in printed
    assert ran.out.count(SPELT) == ran.out.count(spelt), "nothing else is spelt"
    assert "The claim is not refuted" in screen_after(ran.out) and "1 of 1" not in screen_after(ran.out)


def test_the_line_of_a_long_answer_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys, "stderr", EscapingStream(stream))
    with on_terminal() as show:
        show(2)
        time.sleep(0.3)
    assert "waiting for the answer, 2 s" in stream.getvalue() and ERASES_A_LINE in stream.getvalue() and SPELT not in stream.getvalue()
