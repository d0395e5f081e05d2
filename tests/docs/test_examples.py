"""Every example in the documentation and the README runs, and shows what it says it shows: Python, console transcripts, files."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from sybil.example import SybilFailure

from tests.docs.pages import ROOT, document_of, refilled
from tests.docs.transcripts import Command, Ran, commands, difference, masked, run

_BLOCK = re.compile(r"^```(?:python|console|\{code-block\} toml)$", re.MULTILINE)
OPTIONAL = {"cryptography": ("new_key(",), "matplotlib": (".plot(", "plots."), "pandas": (".to_pandas(",), "scipy": ("reconstruct(",)}
"""Libraries that Lapwing can use and does not need, and the calls that need them."""


def _pages() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if "_build" not in page.parts and _BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", _pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of one page run in order, in one namespace, in an empty directory and with a registry of their own."""
    # pytest gives the directory of a test that passed to the next one, and a page may leave a data set open.
    here = tmp_path / str(page.relative_to(ROOT)).replace("/", "-")
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("LAPWING_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    # A Spark that a page starts lives for seconds: compiling its code well costs more than it saves.
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    examples = list(document_of(page).examples())
    assert len(examples) >= len(_BLOCK.findall(page.read_text(encoding="utf-8")))
    needed = [name for name, calls in OPTIONAL.items() if any(call in str(example.parsed) for example in examples for call in calls)]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the page needs {', '.join(missing)}")
    for example in examples:
        example.evaluate()


@pytest.mark.parametrize(
    ("block", "failure"),
    [
        ("```python\nassert 1 + 1 == 3\n```", AssertionError),
        ("```python\n>>> 1 + 1\n3\n```", SybilFailure),
        ("```console\n$ lapwing --version\nlapwing version\n```", SybilFailure),
        ("```console\n$ lapwing -C nowhere budget\n[source-missing] nothing\n```", SybilFailure),
        ("```console\n$ echo one | cat\ntwo\n```", SybilFailure),
        ("```{code-block} toml\n:caption: ../outside.toml\nformat = 1\n```", ValueError),
    ],
    ids=["code", "doctest", "answer", "refusal", "shell", "file"],
)
def test_an_example_that_is_wrong_fails(block: str, failure: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"# Planted\n\n{block}\n", encoding="utf-8")
    (example,) = document_of(page).examples()
    with pytest.raises(failure):
        example.evaluate()


def test_a_block_with_a_caption_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Planted\n\n```{code-block} toml\n:caption: loans/lapwing.toml\n\nformat = 1\n```\n", encoding="utf-8")
    (example,) = document_of(page).examples()
    example.evaluate()
    assert (tmp_path / "loans" / "lapwing.toml").read_text(encoding="utf-8") == "format = 1\n"


def test_a_refusal_must_be_the_same_byte_for_byte_and_an_answer_the_same_in_shape() -> None:
    said = Command("lapwing ask ...", "n   ± 95%\n--  -----\n12      7\n\ncost epsilon 0.5 (rho 0.0027)")
    other = "   n  ± 95%\n----  -----\n-1,300   2.5\n\ncost epsilon 1 (rho 1.2e-05)"
    assert difference(said, Ran(0, other)) is None
    assert difference(said, Ran(3, other)) is not None
    assert difference(said, Ran(0, other.replace("cost", "price"))) is not None
    assert masked("bounding   ranked: 5 rows\npredicted  10 lost\nnoise  7") == masked("bounding  clipped: to length 2\nnoise  3")
    assert masked("clinic-0123abcd is prepared") == masked("clinic-9876dcba is prepared") != masked("clinic is prepared")


def test_commands_are_read_with_their_continuations() -> None:
    block = "$ lapwing ask \\\n    'SELECT 1'\none\n\ntwo\n\n$ true\n"
    first, second = commands(block)
    assert first == Command("lapwing ask 'SELECT 1'", "one\n\ntwo", "$ lapwing ask \\\n    'SELECT 1'")
    assert second == Command("true", "", "$ true")
    assert run("true") == Ran(0, "")


def test_refilling_puts_what_is_printed_today_under_each_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Planted\n\n```console\n$ echo \\\n    one\ntwo\n$ true\n$ echo three\n```\n\nEnd.\n", encoding="utf-8")
    after = "# Planted\n\n```console\n$ echo \\\n    one\none\n\n$ true\n\n$ echo three\nthree\n```\n\nEnd.\n"
    assert refilled(page) == after
