"""Wrong catalogues: what exactly the owner reads, and that nothing else than ``CatalogueError`` ever comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.catalog import Declaration, Settings, load, parse
from lapwing.errors import Actor, CatalogueError
from tests.unit.catalog.mistakes import CLINIC, HERE, Mistake, read_mistakes

MISTAKES = read_mistakes()


def refusal(text: str, limits: Settings | None = None) -> CatalogueError:
    """The error a text is refused with."""
    with pytest.raises(CatalogueError) as caught:
        parse(text, settings=limits)
    return caught.value


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_what_is_printed(mistake: Mistake) -> None:
    error = refusal(mistake.text())
    assert "\n".join([str(error), *getattr(error, "__notes__", [])]) == mistake.printed
    assert error.actor is Actor.OWNER
    assert error.span is not None
    lines = mistake.text()[: error.span.start].split("\n")
    assert (error.span.line, error.span.column) == (len(lines), len(lines[-1]) + 1)


def test_the_collection_is_what_it_says() -> None:
    names = [mistake.name for mistake in MISTAKES]
    assert len(names) == len(set(names)) >= 25
    assert all(mistake.printed.startswith("[catalogue-") for mistake in MISTAKES)


def test_problems_come_in_the_order_of_the_file() -> None:
    wrong = CLINIC.replace("confidence = 0.95", "confidence = 2").replace("minutes = { type", "Minutes = { type")
    error = refusal(wrong.replace("min = 1920", "min = 3000"))
    printed = [str(error), *error.__notes__]
    line_numbers = [int(found[1]) for text in printed if (found := re.search(r"lapwing\.toml:(\d+):", text))]
    assert line_numbers == sorted(line_numbers)
    assert len(line_numbers) == len(printed) == 3


def test_errors_name_the_file() -> None:
    with pytest.raises(CatalogueError, match=r"mine\.toml:1:10: the file has format 7"):
        parse(CLINIC.replace("format = 1", "format = 7"), "mine.toml")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_catalogue_is_refused_or_read(data: st.DataObject) -> None:
    """Cut, double or overwrite any piece: the outcome is a declaration or a CatalogueError that points into the text."""
    start = data.draw(st.integers(0, len(CLINIC)))
    end = min(len(CLINIC), start + data.draw(st.integers(0, 80)))
    instead = data.draw(st.one_of(st.just(""), st.text(max_size=12), st.just(CLINIC[start:end] * 2), st.sampled_from(CLINIC.split("\n"))))
    text = CLINIC[:start] + instead + CLINIC[end:]
    try:
        outcome = parse(text)
    except CatalogueError as error:
        assert error.code.startswith("catalogue-")
        assert error.span is not None
        assert 1 <= error.span.line <= text.count("\n") + 1
    else:
        assert isinstance(outcome, Declaration)


json_like = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=5), st.just("2024-01-01")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text("abct", min_size=1, max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(re.findall(r"(?m)^\w+ = .*[^\[,]$", CLINIC)), json_like)
def test_any_value_of_any_type_is_refused_or_read(line: str, value: object) -> None:
    """Whatever stands where a value should stand, there is no other error than ours."""
    text = CLINIC.replace(line, f"{line.split(' = ')[0]} = {as_toml(value)}")
    try:
        assert isinstance(parse(text), Declaration)
    except CatalogueError as error:
        assert error.code.startswith("catalogue-")


def as_toml(value: object) -> str:
    """A TOML value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case list():
            return "[" + ", ".join(as_toml(item) for item in value) + "]"
        case dict():
            return "{" + ", ".join(f"{key} = {as_toml(item)}" for key, item in value.items()) + "}"
        case _:
            return '"' + "".join(f"\\U{ord(char):08x}" if ord(char) < 0xD800 or ord(char) > 0xDFFF else "?" for char in str(value)) + '"'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "catalogue-syntax"),
        ("format = 1" + "0" * 6000, "catalogue-syntax"),
        ("x = " + "{a=" * 3000 + "1" + "}" * 3000, "catalogue-syntax"),
        ("", "catalogue-missing-key"),
        ("\ufeffformat = 1", "catalogue-syntax"),
        (CLINIC.replace("epsilon = 3", "epsilon = 1e999999999"), "catalogue-wrong-type"),
        (CLINIC.replace("epsilon = 3", "epsilon = nan"), "catalogue-wrong-type"),
        (CLINIC.replace("max = 480", "max = 1" + "0" * 4000), "catalogue-bad-bounds"),
        (CLINIC.replace("patient", "p\x1b[31m", 1), "catalogue-syntax"),
        (CLINIC.replace("patient", "\ud800", 1), "catalogue-unreadable"),
    ],
)
def test_hostile_texts(text: str, code: str) -> None:
    error = refusal(text)
    assert error.code == code
    assert "\x1b" not in str(error)
    assert all(len(line) < 500 for line in str(error).split("\n"))


def test_windows_line_ends_change_nothing() -> None:
    assert parse(CLINIC.replace("\n", "\r\n")) == parse(CLINIC)
    error = refusal(CLINIC.replace("min = 1920", "min = 3000").replace("\n", "\r\n"))
    assert error.span is not None
    assert error.span.line == 29


LIMITS = [
    (Settings(catalogue_tables_max=4), Settings(catalogue_tables_max=5)),
    (Settings(columns_per_table_max=7), Settings(columns_per_table_max=8)),
    (Settings(values_per_column_max=19), Settings(values_per_column_max=20)),
    (Settings(text_value_bytes_max=8), Settings(text_value_bytes_max=9)),
    (Settings(unit_path_hops_max=1), Settings(unit_path_hops_max=2)),
    (Settings(catalogue_bytes_max=len(CLINIC.encode()) - 1), Settings(catalogue_bytes_max=len(CLINIC.encode()))),
]


@pytest.mark.parametrize(("below", "at"), LIMITS)
def test_limits_at_their_edge(below: Settings, at: Settings) -> None:
    assert refusal(CLINIC, below).code == "catalogue-limit"
    assert parse(CLINIC, settings=at) == parse(CLINIC)


class TestFiles:
    def test_a_file_is_read(self) -> None:
        declaration = load(HERE / "clinic.toml")
        assert declaration.directory == HERE.resolve()
        assert declaration.tables == parse(CLINIC).tables

    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "latin.toml").write_bytes("unit = 'élève'".encode("latin-1"))
        (tmp_path / "long.toml").write_bytes(b"#" * 101)
        for name, message in [
            ("absent.toml", r"absent\.toml: the file cannot be read: No such file or directory"),
            ("latin.toml", r"latin\.toml: the file is not UTF-8 text"),
        ]:
            with pytest.raises(CatalogueError, match=message) as caught:
                load(tmp_path / name)
            assert caught.value.code == "catalogue-unreadable"
        with pytest.raises(CatalogueError, match=r"long\.toml: the file is longer than 100 bytes"):
            load(tmp_path / "long.toml", settings=Settings(catalogue_bytes_max=100))
