"""What statements become, and what refusals look like, in files that can be read and reviewed.

Set LAPWING_WRITE_GOLDEN=1 to write the files anew; the difference is then reviewed like any other change.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lapwing.answers.display.refusal_text import render_refusal
from lapwing.errors import Refused
from tests.golden.sql.dump import dump
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import bound
from tests.unit.sql.refused import REFUSED

HERE = Path(__file__).parent


def _compare(path: Path, found: str) -> None:
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found


def _refusal(text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        bound(text)
    return caught.value


def test_accepted_statements() -> None:
    parts = [f"== {name}\n{' '.join(text.split())}\n\n{dump(bound(text))}\n" for name, text in ACCEPTED.items()]
    _compare(HERE / "accepted.txt", "\n".join(parts))


def test_refused_statements() -> None:
    parts = [f"== {name}\n{render_refusal(text, _refusal(text))}\n" for name, (_, text) in REFUSED.items()]
    _compare(HERE / "refused.txt", "\n".join(parts))
