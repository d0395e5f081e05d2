"""A statement that never comes back ends all the same."""

from __future__ import annotations

import threading

import pytest

from lapwing.engines.spark.sessions import awaited


def test_a_call_that_does_not_come_back_is_given_up() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError):
        awaited(never.wait, 0.05)
    never.set()


def test_what_comes_back_is_handed_on() -> None:
    def fails() -> int:
        raise ValueError("no")

    assert awaited(lambda: 3, 10) == 3
    with pytest.raises(ValueError, match="no"):
        awaited(fails, 10)
