"""Every Python example in the documentation and the README runs, and shows what it says it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.document import Document
from sybil.example import SybilFailure
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).resolve().parents[2]


def _document(path: Path) -> Document:
    return Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], path=str(path.parent)).parse(path)


def _pages() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if "_build" not in page.parts and "```python" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of one page run in order, in one namespace, in an empty directory and with a registry of their own."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("LAPWING_HOME", str(tmp_path / "home"))
    examples = list(_document(page).examples())
    assert len(examples) >= page.read_text(encoding="utf-8").count("```python")
    for example in examples:
        example.evaluate()


@pytest.mark.parametrize(
    ("block", "failure"), [("assert 1 + 1 == 3", AssertionError), (">>> 1 + 1\n3", SybilFailure)], ids=["code", "doctest"]
)
def test_an_example_that_is_wrong_fails(block: str, failure: type[Exception], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Planted\n\n```python\n{block}\n```\n", encoding="utf-8")
    (example,) = _document(page).examples()
    with pytest.raises(failure):
        example.evaluate()
