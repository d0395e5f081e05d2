"""Threads that parse do not wait for one another, and leave the process as it was."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.sql.text.parse import OwnFunctions, deep_recursion, parse

LEVELS = Settings().expression_depth_max


def test_a_long_statement_of_one_thread_does_not_hold_up_another() -> None:
    usual, inside, leave = sys.getrecursionlimit(), threading.Event(), threading.Event()

    def long() -> None:
        with deep_recursion(LEVELS):
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=long)
    thread.start()
    assert inside.wait(10)
    raised = sys.getrecursionlimit()
    other = threading.Thread(target=_parsed, args=("SELECT 1",))
    other.start()
    other.join(10)
    assert not other.is_alive()
    assert sys.getrecursionlimit() == raised > usual  # the other did not lower it under the first
    leave.set()
    thread.join(10)
    assert sys.getrecursionlimit() == usual


def test_texts_of_analysts_are_kept_from_the_log_and_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="sqlglot"):
        with pytest.raises(Refused):
            _parsed("CREATE FUNCTION secret_name() AS whatever it is")
        logging.getLogger("sqlglot").warning("of somebody else")
    assert [record.getMessage() for record in caplog.records] == ["of somebody else"]


def _parsed(text: str) -> None:
    with deep_recursion(LEVELS):
        parse(text, settings=Settings(), dialect="duckdb", own=OwnFunctions())
