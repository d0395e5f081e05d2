"""The index of places against ``tomllib``, on documents written in every style TOML has."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.catalog.positions import Path, positions
from tests.unit.catalog.mistakes import CLINIC

bare_key = st.text("abz09_-", min_size=1, max_size=4)
any_key = st.one_of(bare_key, st.text("a.\"'#=[] é\n", max_size=4))
scalar = st.sampled_from(
    [
        "1",
        "-2.5e3",
        "1_000",
        "true",
        "inf",
        "2024-01-01",
        "2024-01-01T10:00:00Z",
        "2024-01-01 10:00:00.5",
        "10:30:00",
        '""',
        "''",
        '"a # b ] } , \\" \\u0041 = "',
        "'c:\\d # [x] \"y\"'",
        '"""one\n  \\"""two\\\n   # three """""',
        "'''four\n] } # 'five' '''",
        '""""quoted""""',
    ]
)


def quoted(key: str, draw: st.DrawFn) -> str:
    """A key in one of the ways to write it."""
    if key and all(char in "abz09_-" for char in key) and draw(st.booleans()):
        return key
    if "'" not in key and "\n" not in key and draw(st.booleans()):
        return f"'{key}'"
    return json.dumps(key)


@st.composite
def value_text(draw: st.DrawFn, depth: int = 2) -> str:
    """A value: scalar, array over several lines with comments, or inline table."""
    kind = draw(st.sampled_from(["scalar", "scalar", "array", "table"] if depth else ["scalar"]))
    if kind == "scalar":
        return draw(scalar)
    if kind == "array":
        items: list[str] = draw(st.lists(value_text(depth=depth - 1), max_size=3))
        gap = draw(st.sampled_from(["", " ", "\n  ", " # not ] this\n"]))
        comma = draw(st.sampled_from(["", ","])) if items else ""
        return "[" + gap + f"{gap},{gap}".join(items) + gap + comma + gap + "]"
    keys = draw(st.lists(any_key, unique=True, max_size=3))
    space = draw(st.sampled_from(["", " ", "\t"]))
    pairs = [f"{quoted(key, draw)}{space}={space}{draw(value_text(depth=depth - 1))}" for key in keys]
    return "{" + space + f"{space},{space}".join(pairs) + space + "}"


@st.composite
def document_text(draw: st.DrawFn) -> str:
    """Plain and dotted pairs, tables, sub-tables, arrays of tables, comments and blank lines."""
    lines: list[str] = []

    def pairs() -> None:
        for key in draw(st.lists(any_key, unique=True, max_size=3)):
            written = quoted(key, draw)
            if draw(st.booleans()):
                written += draw(st.sampled_from([".", " . ", "\t."])) + quoted(draw(any_key), draw)
            indent = draw(st.sampled_from(["", "  ", "\t"]))
            lines.append(f"{indent}{written} = {draw(value_text())}{draw(st.sampled_from(['', ' ', ' # [no.header]']))}")

    pairs()
    for key in draw(st.lists(any_key, unique=True, max_size=3)):
        name = "z" + key  # apart from the keys above
        header = quoted(name, draw) if draw(st.booleans()) else f" {json.dumps(name)} "
        if draw(st.booleans()):
            for _ in range(draw(st.integers(1, 2))):
                lines.append(f"[[{header}]]")
                pairs()
                if draw(st.booleans()):
                    lines.append(f"[{header}.{quoted('zz' + key, draw)}]")
                    pairs()
        else:
            lines.append(f"[{header}]{draw(st.sampled_from(['', ' # comment']))}")
            pairs()
            lines.append(draw(st.sampled_from(["", "# [x]\n", "\n\n"])))
            lines.append(f"[{header}.{quoted('zz' + key, draw)}]")
            pairs()
    return "\n".join(lines)


def walk(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every path below the top, with its value."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for key, item in inner:
        yield (*path, key), item
        yield from walk(item, (*path, key))


def read(text: str) -> dict[str, object] | None:
    """The document, or None for the few drawings that are no TOML (a dotted key into a value, a table opened twice)."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def same(left: object, right: object) -> bool:
    """Equal, and nan is nan."""
    return repr(left) == repr(right)


def check(text: str, document: dict[str, object]) -> int:
    """Compare the index with the document; the number of values whose text was read again."""
    found = positions(text)
    assert set(found.places) == {path for path, _ in walk(document)}
    read_again = 0
    for path, value in walk(document):
        place = found.places[path]
        start, end = place.value
        piece = text[start:end]
        key_piece = text[place.key[0] : place.key[1]]
        if isinstance(path[-1], str):
            assert list(tomllib.loads(f"{key_piece} = 1")) == [path[-1]]
        if piece.startswith("[") and not isinstance(value, list):
            assert piece.endswith("]")  # the header of a table
        elif isinstance(value, dict) and isinstance(path[-1], str) and piece == key_piece:
            assert not piece.startswith("{")  # a table that exists through a dotted key only
        elif isinstance(value, list) and piece.startswith("[["):
            # A [[header]], or an array whose first item is an array: then it reads back like any other value.
            again = read(f"value = {piece}")
            assert again is None or same(again["value"], value) or all(isinstance(item, dict) for item in value)
        else:
            assert same(tomllib.loads(f"value = {piece}")["value"], value)
            read_again += 1
    return read_again


@settings(max_examples=200, deadline=None)
@given(document_text())
def test_every_path_has_the_place_of_its_value(text: str) -> None:
    document = read(text)
    if document is not None:
        check(text, document)


def test_the_clinic() -> None:
    assert check(CLINIC, tomllib.loads(CLINIC)) > 100


def test_missing_paths_point_at_the_nearest_ancestor() -> None:
    found = positions("[a.b]\nc = 1\n")
    assert found.span(("a", "b", "x", "y")) == found.span(("a", "b"), of_key=True)
    assert (found.span(("a", "b", "x")).line, found.span(("a", "b", "x")).column) == (1, 4)
    assert (found.span(("z",)).start, found.span(("z",)).line, found.span(("z",)).column) == (0, 1, 1)


def test_the_generator_makes_toml_most_of_the_time() -> None:
    """Guards the test above against passing because nothing was ever checked."""
    outcomes = []

    @settings(max_examples=60, deadline=None, database=None)
    @given(document_text())
    def collect(text: str) -> None:
        document = read(text)
        outcomes.append(0 if document is None else len(list(walk(document))))

    collect()
    assert sum(1 for outcome in outcomes if outcome >= 3) > len(outcomes) / 3
