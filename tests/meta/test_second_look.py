"""A second look is for tests that ask for it with a reason; it shows what failed, and some kinds of tests never have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meta.small_runs import run
from tests.support.second_look import CHANCE_MAX

FAILS_ONCE = """
import pathlib, pytest
{mark}
@pytest.mark.parametrize("number", range({times}))
def test_it(number):
    mark = pathlib.Path(__file__).with_suffix(f".{{number}}")
    if not mark.exists():
        mark.touch()
        raise AssertionError("what was wrong then")
"""
MARK = "@pytest.mark.second_look('a browser paints late')"


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_marked_test_that_fails_once_passes_and_is_counted(tmp_path: Path, options: tuple[str, ...]) -> None:
    status, text = run(tmp_path, "tests/console/test_one.py", FAILS_ONCE.format(mark=MARK, times=CHANCE_MAX), *options)
    assert status == 0 and f"{CHANCE_MAX} passed, {CHANCE_MAX} rerun" in text
    assert text.count("failed at the first look") == CHANCE_MAX and "what was wrong then" in text
    assert f"{CHANCE_MAX} tests needed a second look" in text


@pytest.mark.slow
def test_a_run_with_more_than_a_few_second_looks_fails(tmp_path: Path) -> None:
    status, text = run(tmp_path, "tests/console/test_one.py", FAILS_ONCE.format(mark=MARK, times=CHANCE_MAX + 1), "-n", "2")
    assert status == 1 and f"second look: more than {CHANCE_MAX}" in text


@pytest.mark.slow
def test_a_marked_test_that_fails_twice_fails(tmp_path: Path) -> None:
    text = f"import pytest\n{MARK}\ndef test_it():\n    assert False, 'always'\n"
    status, said = run(tmp_path, "tests/console/test_one.py", text)
    assert status == 1 and "1 failed, 1 rerun" in said


@pytest.mark.slow
def test_a_test_without_the_mark_has_one_look(tmp_path: Path) -> None:
    status, said = run(tmp_path, "tests/console/test_one.py", FAILS_ONCE.format(mark="", times=1))
    assert status == 1 and "1 failed" in said and "rerun" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "mark"),
    [
        ("tests/ledger/test_one.py", MARK),
        ("tests/unit/kernel/test_one.py", MARK),
        ("tests/server/test_two_worlds.py", MARK),
        ("tests/server/test_tokens.py", MARK),
        ("tests/console/test_one.py", "@pytest.mark.second_look"),
    ],
)
def test_a_mark_where_one_failure_is_enough_or_without_a_reason_stops_the_run(tmp_path: Path, file: str, mark: str) -> None:
    status, said = run(tmp_path, file, FAILS_ONCE.format(mark=mark, times=1))
    assert status == pytest.ExitCode.USAGE_ERROR and "a second look needs a reason" in said
