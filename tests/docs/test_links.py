"""Links of the files that are read outside the built documentation lead somewhere; Sphinx sees to the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _broken(text: str, base: Path) -> list[str]:
    targets = [target.partition("#")[0] for target in _LINK.findall(text) if "://" not in target]
    return [target for target in targets if target and not (base / target).is_file()]


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_relative_links_lead_to_files(name: str) -> None:
    assert _broken((ROOT / name).read_text(encoding="utf-8"), ROOT) == []


def test_a_broken_link_is_found() -> None:
    text = "[a](README.md) [b](docs/nowhere.md#part) ![c](docs/images/terminal.png) [d](https://example.invalid/x) [e](#here)"
    assert _broken(text, ROOT) == ["docs/nowhere.md"]
