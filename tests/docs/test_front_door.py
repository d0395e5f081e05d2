"""The front door: a README that is read to its end, a path for each reader, guides in groups, and one account of what error bars cover."""

from __future__ import annotations

import re
import tomllib

from lapwing.answers.notes import clipping as loss_notes
from tests.docs.pages import ROOT
from tests.docs.transcripts import commands

DOCS = ROOT / "docs"
_GROUP = re.compile(r"^## .+?\n\n```\{toctree\}\n:maxdepth: 1\n\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README_LINES_MAX = 180
READERS = ("Analyst", "Data owner", "Operator", "Auditor", "Developer", "Teacher")
GROUP_MAX = 10
"""More entries than this below one heading are a list to search, not one to read."""


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _asked(text: str) -> tuple[int, int]:
    """How many questions of a page are answered, and how many are refused: what is printed then begins with a code."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    refused = [command.output.startswith("[") for block in blocks for command in commands(block) if " ask " in command.text]
    return len(refused) - sum(refused), sum(refused)


def test_the_readme_is_short_and_shows_an_answer_a_refusal_and_error_bars() -> None:
    text = _text("README.md")
    assert len(text.splitlines()) <= README_LINES_MAX
    answered, refused = _asked(text)
    assert answered >= 1 and refused >= 1
    assert "docs/images/chart.png" in text  # drawn by Answer.plot, which draws error bars
    linked = ("how-to/install.md", "how-to/serve.md", "how-to/wire.md", "explanation/known-limits.md")
    assert [name for name in linked if name not in text] == []


def test_a_page_shows_five_answers_and_five_refusals() -> None:
    answered, refused = _asked(_text("docs/tutorials/ten-questions.md"))
    assert answered >= 5 and refused >= 5


def test_every_reader_has_a_path_of_four_to_seven_pages() -> None:
    doors = re.findall(r"^```\{rubric\} (.+?)\n(.*?)^::::$", _text("docs/index.md"), re.MULTILINE | re.DOTALL)
    assert tuple(name for name, _ in doors) == READERS
    for name, path in doors:
        steps = re.findall(r"^\d\. \{doc\}`[^<`]+ <([^>]+)>`: .+", path, re.MULTILINE)
        assert 4 <= len(steps) <= 7, name
        assert [step for step in steps if not (DOCS / f"{step}.md").is_file()] == []


def test_pages_of_each_kind_are_listed_once_in_groups_that_can_be_read() -> None:
    for kind in ("tutorials", "how-to", "reference", "explanation"):
        groups = _GROUP.findall(_text(f"docs/{kind}/index.md"))
        listed = [page for group in groups for page in group.split()]
        assert sorted(listed) == sorted(page.stem for page in (DOCS / kind).glob("*.md") if page.stem != "index")
        assert max(len(group.split()) for group in groups) <= GROUP_MAX < len(listed)


def test_extras_of_the_install_page_are_those_that_there_are() -> None:
    extras = tomllib.loads(_text("pyproject.toml"))["project"]["optional-dependencies"].keys()
    rows = re.findall(r"^\| (`.+?) \|", _text("docs/how-to/install.md"), re.MULTILINE)
    assert {extra for row in rows for names in re.findall(r"`([^`]+)`", row) for extra in names.split(",")} == set(extras)


def test_what_error_bars_cover_is_said_at_the_top_with_the_words_of_the_notes() -> None:
    """The page said that bars never cover what a bound cut off, while notes of answers said that they reach to it."""
    top = " ".join(_text("docs/explanation/accuracy.md").partition("\n## ")[0].split())
    source = _text("src/" + loss_notes.__name__.replace(".", "/") + ".py")
    for words in ("the error bars reach to it", "do not reach to it"):
        assert words in source and words in top
