"""A data set from one file: the words given once are its catalogue, and other words are refused."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import lapwing
from lapwing.errors import CatalogueError
from lapwing.owner.catalogue_text import id_of_place
from lapwing.owner.quick_catalogue import quick_catalogue


def test_the_text_is_the_same_in_every_release(tmp_path: Path) -> None:
    """It is compared with the one that an earlier release wrote."""
    columns = {"age": {"type": "integer", "min": 0, "max": 120}, "town": {"type": "text", "values": ['a "b" \\ c', "é\n"], "null": False}}
    source, name = tmp_path / "Our people.csv", id_of_place("our-people", tmp_path)
    path = quick_catalogue(source, unit="id", columns=columns, epsilon=1.5, delta="2^-40", rows_max=100)
    text = path.read_text(encoding="utf-8")
    assert text.splitlines() == [
        *["format = 1", "[dataset]", f'id = "{name}"', 'unit = "id"', "[budget]", 'epsilon = "1.5"', 'delta = "2^-40"'],
        *["[tables.our_people]", 'source = "../Our people.csv"', 'unit = "id"', "rows_max = 100", "[tables.our_people.columns]"],
        *['id = { type = "key" }', 'age = { type = "integer", min = 0, max = 120 }'],
        r'town = { type = "text", values = ["a \"b\" \\ c", "é\n"], null = false }',
    ]
    # Earlier releases took the name of the file alone for the id: the data set, and with it the ledger, stays the one it was.
    earlier = text.replace(name, "our-people")
    path.write_text(earlier, encoding="utf-8")
    assert quick_catalogue(source, unit="id", columns=columns, epsilon=1.5, delta="2^-40", rows_max=100) == path
    assert path.read_text(encoding="utf-8") == earlier


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


def _people(folder: Path, ages: list[int]) -> Path:
    folder.mkdir()
    lines = [f"{person},{age}" for person, age in enumerate(ages)]
    (folder / "people.csv").write_text("\n".join(["id,age", *lines]) + "\n")
    return folder / "people.csv"


def test_files_of_one_name_in_two_folders_are_two_data_sets(tmp_path: Path) -> None:
    """With a ledger each. The registry is given as a text and as a path."""
    homes: list[str | Path] = [str(tmp_path / "home"), tmp_path / "home"]
    sources = [_people(tmp_path / "a", [30, 40, 50]), _people(tmp_path / "b", [20, 60])]
    words: dict[str, Any] = {"unit": "id", "columns": {"age": {"type": "integer", "min": 0, "max": 120}}, "rows_max": 100}
    ids = []
    for source, home in zip(sources, homes, strict=True):
        with lapwing.open(source, **words, home=home) as opened:
            opened.ask("SELECT COUNT(*) AS n FROM people", epsilon=0.1)
            ids.append(opened.curator.declaration.dataset.id)
    assert len(set(ids)) == 2
    with lapwing.open(sources[0], **words, home=homes[1]) as again:
        assert again.curator.declaration.dataset.id == ids[0]
        assert again.ask("SELECT COUNT(*) AS n FROM people", epsilon=0.1).cost.free  # paid for in its own ledger


def test_whatever_takes_a_path_takes_a_text() -> None:
    """Of the names that the package offers."""
    for name in lapwing.__all__:
        offered = getattr(lapwing, name)
        functions = [offered] if inspect.isfunction(offered) else [item for _, item in inspect.getmembers(offered, inspect.isfunction)]
        for function in functions:
            public = not function.__name__.startswith("_")
            for parameter, kind in function.__annotations__.items():
                if public and parameter != "return" and "Path" in str(kind):
                    assert "str | Path" in str(kind), f"{name}: {function.__name__}({parameter})"
