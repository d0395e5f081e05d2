"""The tests of answers by block can fail: each deliberate bug is seen by one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.properties.block_sum_mutants import BY_NAME


@pytest.mark.parametrize("name", BY_NAME)
def test_the_bug_is_seen(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BY_NAME[name]
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        mutant.seen_by(tmp_path, monkeypatch)


def test_there_are_at_least_sixteen_bugs() -> None:
    assert len(BY_NAME) >= 16
