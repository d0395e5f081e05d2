"""The reference of the SQL names every function there is, and no function that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lapwing.errors import Refused
from lapwing.sql.scalars.dates import COMPUTED_PARTS, PARTS, TRUNCATIONS
from lapwing.sql.scalars.handlers import BY_NAME, HANDLERS
from tests.unit.sql.clinic import bound

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference"
PAGE = "".join((REFERENCE / name).read_text(encoding="utf-8") for name in ("sql.md", "functions.md"))
CODE = " ".join(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))


def test_every_name_of_a_function_is_documented() -> None:
    names = {name for handler in HANDLERS.values() for name in handler.names} | set(BY_NAME)
    assert len(names) > 50
    assert sorted(name for name in names if name != "%" and not re.search(rf"\b{name}\b", CODE)) == []


def test_every_part_of_a_date_is_documented() -> None:
    assert [part for part in (*PARTS, *TRUNCATIONS, *COMPUTED_PARTS) if not re.search(rf"\b{part}\b", CODE)] == []


@pytest.mark.parametrize("function", sorted(set(re.findall(r"\b[A-Z][A-Z_]{2,}(?=\()", CODE)) - {"IN", "FILTER", "USING"}))
def test_a_documented_function_exists(function: str) -> None:
    """Called without arguments it may be refused for that, but not for being unknown."""
    with pytest.raises(Refused) as caught:
        bound(f"SELECT {function}() FROM visits")
    assert caught.value.code != "function-unsupported"
