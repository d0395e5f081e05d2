"""The tests of versions that grow can fail: each deliberate bug is seen by one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.properties.growth_mutants import BY_NAME, closed_days_stay_closed, of_shop, retired_rows_stay_away


@pytest.mark.parametrize("name", BY_NAME)
def test_the_bug_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BY_NAME[name]
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        mutant.seen_by(tmp_path, monkeypatch)


@pytest.mark.parametrize("test", [retired_rows_stay_away, closed_days_stay_closed])
def test_without_a_bug_it_holds(test: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_shop(test)(tmp_path, monkeypatch)  # type: ignore[arg-type]


def test_there_are_at_least_sixteen_bugs() -> None:
    assert len(BY_NAME) >= 16
