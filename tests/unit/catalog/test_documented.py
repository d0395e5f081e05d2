"""The reference page of the catalogue against the models: every key, whether it is required, its default, and examples that are read."""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.catalog import parse
from lapwing.catalog.exact import read_exact
from lapwing.catalog.schema import (
    COLUMN_MODELS,
    BudgetModel,
    CatalogueModel,
    CeilingModel,
    ColumnModel,
    DataSetModel,
    DefaultsModel,
    LimitsModel,
    Model,
    PublicModel,
    TableModel,
    keys_of,
)
from tests.unit.catalog.mistakes import CLINIC, read_mistakes

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "reference" / "catalogue.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def section(heading: str) -> str:
    """The text below a heading, up to the next one of any level."""
    found = re.search(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|^\([a-z-]+\)=|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def rows(heading: str, table: int = 0) -> dict[str, str]:
    """Key and default of every row of one of the tables below a heading."""
    tables = re.split(r"^\|---\|---\|---\|$", section(heading), flags=re.MULTILINE)[1:]
    return dict(ROW.findall(re.split(r"\n\n", tables[table])[0])) if tables else {}


SHARED = {info.alias or name for name, info in ColumnModel.model_fields.items()} | {"type"}
PLACES: list[tuple[str, int, type[Model], set[str]]] = [
    ("Top level", 0, CatalogueModel, set()),
    ("`[dataset]`", 0, DataSetModel, set()),
    ("`[budget]`", 0, BudgetModel, set()),
    ("`[budget]`", 1, CeilingModel, set()),
    ("`[defaults]`", 0, DefaultsModel, set()),
    ("`[limits]`", 0, LimitsModel, set()),
    ("`[tables.<name>]`", 0, TableModel, set()),
    ("`[public.<name>]`", 0, PublicModel, set()),
    *((f"Type `{kind}`", 0, model, SHARED) for kind, model in COLUMN_MODELS.items()),
]


@pytest.mark.parametrize(("heading", "table", "model", "elsewhere"), PLACES, ids=[f"{place[0]} {place[1]}" for place in PLACES])
def test_every_key_is_documented_and_no_other(heading: str, table: int, model: type[Model], elsewhere: set[str]) -> None:
    documented = rows(heading, table)
    assert set(documented) == set(keys_of(model)) - elsewhere
    for name, info in model.model_fields.items():
        key = info.alias or name
        if key in documented:
            assert (documented[key] == "required") is info.is_required(), f"{heading}: {key}"


def test_the_keys_all_columns_share() -> None:
    assert set(rows("Columns")) == SHARED


@pytest.mark.parametrize(
    ("heading", "key", "default"),
    [
        (heading, info.alias or name, info.default)
        for heading, _, model, elsewhere in PLACES
        for name, info in model.model_fields.items()
        if (info.alias or name) not in elsewhere and isinstance(info.default, str | bool | Fraction) and info.default != ""
    ],
)
def test_defaults_are_the_documented_ones(heading: str, key: str, default: object) -> None:
    written = rows(heading)[key].strip("`")
    match default:
        case bool():
            assert written == ("true" if default else "false")
        case Fraction():
            assert read_exact(written.strip('"')) == default
        case _:
            assert written == f'"{default}"'


def test_the_example_is_the_clinic() -> None:
    example = BLOCK.findall(section("An example"))
    assert [parse(text) for text in example] == [parse(CLINIC)]


@pytest.mark.parametrize("kind", COLUMN_MODELS)
def test_examples_of_columns(kind: str) -> None:
    (example,) = BLOCK.findall(section(f"Type `{kind}`"))
    names = list(tomllib.loads(example))
    text = CLINIC.replace('smoker = { type = "boolean" }\n', example)
    assert names
    assert {names[0], *names} <= {column.name for column in parse(text).table("patients").columns}
    assert all(column["type"] == kind for column in tomllib.loads(example).values())


def test_examples_of_sections() -> None:
    """Each is put into a smallest catalogue in place of that section."""
    parts = {
        "`[dataset]`": '[dataset]\nid = "d"\nunit = "person"\n',
        "`[budget]`": "[budget]\nepsilon = 1\n",
        "`[defaults]`": "",
        "`[tables.<name>]`": '[tables.t]\nsource = "t.csv"\nunit = "who"\ncolumns.who = { type = "key" }\n',
        "`[public.<name>]`": "",
    }
    for heading in parts:
        (example,) = BLOCK.findall(section(heading))
        text = "format = 1\n" + "\n".join(example if other == heading else part for other, part in parts.items())
        assert parse(text).warnings == ()


def test_the_error_shown_is_what_is_printed() -> None:
    (shown,) = re.findall(r"^```text\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown in [mistake.printed for mistake in read_mistakes()]
