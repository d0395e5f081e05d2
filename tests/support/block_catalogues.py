"""Blocks of time for tests on engines that read a version's own catalogue: a catalogue cannot declare blocks yet."""

from __future__ import annotations

from typing import Any

import pytest

from lapwing.audit.block_worlds import with_blocks


def read_with_blocks(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
    """Catalogues that these modules read have the blocks of the oracle's worlds."""
    for module in modules:
        read = module.parse
        monkeypatch.setattr(module, "parse", lambda *of, _read=read, **settings: with_blocks(_read(*of, **settings)))
