"""The limits: each documented, each with a sensible value."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from lapwing.catalog import Settings
from lapwing.catalog.settings import LIMIT_MAX
from lapwing.errors import LapwingError

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| (.+) \|$", re.MULTILINE)


def test_every_limit_is_documented_with_its_default_and_no_other() -> None:
    documented = {name: int(default.replace(",", "")) for name, default, _ in ROW.findall(PAGE)}
    assert documented == {item.name: item.default for item in fields(Settings)}


@pytest.mark.parametrize("name", [item.name for item in fields(Settings)])
def test_edges_of_every_limit(name: str) -> None:
    for accepted in (1, LIMIT_MAX):
        assert getattr(replace(Settings(), **_one(name, accepted)), name) == accepted
    for refused in (0, -1, LIMIT_MAX + 1, 1.5, True, "10"):
        with pytest.raises(LapwingError, match=name) as caught:
            replace(Settings(), **_one(name, refused))
        assert caught.value.code == "setting-invalid"


def _one(name: str, value: Any) -> dict[str, Any]:
    return {name: value}
