"""A data set from one file: the words given once are its catalogue, and other words are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lapwing.client.from_file import quick_catalogue
from lapwing.errors import CatalogueError


def test_the_text_is_the_same_in_every_release(tmp_path: Path) -> None:
    """It is compared with the one that an earlier release wrote."""
    columns = {"age": {"type": "integer", "min": 0, "max": 120}, "town": {"type": "text", "values": ['a "b" \\ c', "é\n"], "null": False}}
    path = quick_catalogue(tmp_path / "Our people.csv", unit="id", columns=columns, epsilon=1.5, delta="2^-40", rows_max=100)
    assert path.read_text(encoding="utf-8").splitlines() == [
        *["format = 1", "[dataset]", 'id = "our-people"', 'unit = "id"', "[budget]", 'epsilon = "1.5"', 'delta = "2^-40"'],
        *["[tables.our_people]", 'source = "../Our people.csv"', 'unit = "id"', "rows_max = 100", "[tables.our_people.columns]"],
        *['id = { type = "key" }', 'age = { type = "integer", min = 0, max = 120 }'],
        r'town = { type = "text", values = ["a \"b\" \\ c", "é\n"], null = false }',
    ]


def test_the_words_of_the_first_time_stay(tmp_path: Path) -> None:
    words: dict[str, Any] = {"unit": "id", "columns": {"age": {"type": "integer", "min": 0, "max": 120}}, "epsilon": 1, "delta": 0}
    path = quick_catalogue(tmp_path / "people.csv", rows_max=100, **words)
    before = path.read_text()
    assert quick_catalogue(tmp_path / "people.csv", rows_max=100, **words) == path
    others: list[dict[str, Any]] = [{"epsilon": 2}, {"delta": "2^-40"}, {"unit": "age"}, {"columns": {}}]
    for changed in others:
        with pytest.raises(CatalogueError) as error:
            quick_catalogue(tmp_path / "people.csv", rows_max=100, **(words | changed))
        assert error.value.code == "catalogue-differs"
    assert path.read_text() == before
