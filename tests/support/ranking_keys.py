"""The ranking key of a data set that a test prepares, made from a name: which rows of a unit survive a cap repeats too."""

from __future__ import annotations

import hashlib
from pathlib import Path

from lapwing.engines.state import STATE_DIRECTORY
from tests.support.repeatable_draws import RUN


def write_ranking_key(directory: Path, name: str) -> None:
    """Beside the catalogue in this directory, before it is prepared."""
    state = directory / STATE_DIRECTORY
    state.mkdir(mode=0o700)
    key = state / "ranking.key"
    key.touch(mode=0o600)
    key.write_bytes(hashlib.sha256(f"{RUN}\nranking key of {name}".encode()).digest())
