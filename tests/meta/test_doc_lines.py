"""Lines of the documentation are no longer than those of the code, except where Markdown has no way to break one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from docs import paragraphs

from tests.meta.tree import ROOT, tracked_files

LINE_MAX = int(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["line-length"])
_FENCE = re.compile(r"\s*(?:[-*+] |\d+\. )?\s*(`{3,}|~{3,})")


def _too_long(text: str) -> list[int]:
    """Numbers of the lines that are too long. Rows of tables, headings, code and output, and a single long word cannot be broken."""
    numbers = []
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark.group(1).startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark.group(1)
        elif len(line) > LINE_MAX and not line.lstrip().startswith(("|", "#")) and " " in line.strip().removeprefix("- "):
            numbers.append(number)
    return numbers


def _pages() -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".md"]


def test_lines_of_the_documentation_have_the_length_of_the_code() -> None:
    pages = _pages()
    assert ROOT / "README.md" in pages and len(pages) > 50
    assert [f"{page.relative_to(ROOT)}:{number}" for page in pages for number in _too_long(page.read_text(encoding="utf-8"))] == []


def test_a_long_line_is_found_and_what_cannot_be_broken_is_not() -> None:
    long = "word " * 40
    unbroken = f"https://{'x' * 200}"
    text = f"{long}\n- {long}\n```console\n{long}\n```\n| {long} |\n# {long}\n{unbroken}\n  ````{{note}}\n```\n{long}\n  ````\n{long}"
    assert _too_long(text) == [1, 2, 13]
    assert _too_long("x" * LINE_MAX) == []


def test_pages_say_who_does_something() -> None:
    """An analyst, an owner, an operator: a reader has to know who is meant. The changelog and decision records tell of the past."""
    told = [page for page in _pages() if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
    word = re.compile(r"\bwhoever\b", re.IGNORECASE)
    assert [str(page.relative_to(ROOT)) for page in told if word.search(page.read_text(encoding="utf-8"))] == []


def test_pages_made_by_programs_are_broken_at_the_same_length() -> None:
    assert paragraphs.LINE_MAX == LINE_MAX
    lines = paragraphs.wrapped("word `code with spaces` $a + b$ - " * 20, indent="  ").split("\n")
    assert len(lines) > 2 and max(map(len, lines)) <= LINE_MAX + len(" -")
    assert all(line.startswith("  ") and not line.strip().startswith("- ") for line in lines[1:])
    assert all(line.count("`") % 2 == line.count("$") % 2 == 0 for line in lines)
