"""The state directory: a damaged key, another user's files, and versions of another format are refused before anything is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lapwing.engines.spark.stored import marker_path, read_marker
from lapwing.engines.state import StateDirectory
from lapwing.errors import PreparationError


def test_the_ranking_key_is_made_once_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    key = state.ranking_key()
    assert len(key) == 32 and state.ranking_key() == key
    path = state.directory / "ranking.key"
    assert path.stat().st_mode & 0o777 == 0o600
    for damaged in (b"", key[:31], key + b"x"):
        path.write_bytes(damaged)
        with pytest.raises(PreparationError) as error:
            state.ranking_key()
        assert error.value.code == "ranking-key"


def test_what_is_another_users_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions do not stop the superuser, so the operating system's answer is put in its place here; two users of a machine are real in
    the test of the operators' pages."""
    state = StateDirectory(tmp_path)
    state.require_usable(writing=True)  # there is none yet
    state.ranking_key()
    state.require_usable(writing=True)
    asked: list[int] = []

    def access(path: Any, mode: int) -> bool:
        asked.append(mode)
        return not mode & os.W_OK

    monkeypatch.setattr(os, "access", access)
    state.require_usable()
    with pytest.raises(PreparationError) as error:
        state.require_usable(writing=True)
    assert error.value.code == "state-private"
    with pytest.raises(PreparationError) as error, state.preparing():
        pass
    assert error.value.code == "state-private"
    assert asked == [os.R_OK | os.X_OK, *[os.R_OK | os.X_OK | os.W_OK] * 2]


@pytest.mark.parametrize(("marker", "code"), [({"format": 0}, "snapshot-format"), ({}, "snapshot-format"), (None, "snapshot-unreadable")])
def test_a_version_of_another_format_is_not_opened(tmp_path: Path, marker: object, code: str) -> None:
    if marker is not None:
        path = marker_path(tmp_path, 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(marker))
    with pytest.raises(PreparationError) as error:
        read_marker(tmp_path, 1)
    assert error.value.code == code
