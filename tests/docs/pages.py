"""Pages of the documentation as examples in order: Python blocks, console transcripts, and files (code blocks with a caption).

    python -m tests.docs.pages README.md docs/tutorials/analyst.md

runs pages and writes what their commands print today under the commands. The result is reviewed like any other change.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from sybil import Sybil
from sybil.document import Document
from sybil.example import Example
from sybil.parsers.abstract import AbstractCodeBlockParser
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser, SkipParser
from sybil.parsers.myst.lexers import DirectiveLexer
from sybil.typing import Evaluator, Parser

from tests.docs.transcripts import commands, evaluate_console, evaluate_file, run

ROOT = Path(__file__).resolve().parents[2]


def document_of(page: Path, console: Evaluator = evaluate_console) -> Document:
    """The examples of a page; ``console`` evaluates its transcripts."""
    parsers: list[Parser] = [
        PythonCodeBlockParser(),
        CodeBlockParser("console", console),
        AbstractCodeBlockParser([DirectiveLexer(directive="code-block", arguments="toml")], "toml", evaluate_file),
        SkipParser(),
    ]
    return Sybil(parsers=parsers, path=str(page.parent)).parse(page)


def refilled(page: Path) -> str:
    """The text of a page after running it in the current directory, with what its commands print now."""
    text = page.read_text(encoding="utf-8")
    found: list[tuple[str, str]] = []

    def refill(example: Example) -> None:
        said = str(example.parsed)
        shown = [(command.written, run(command.text).output) for command in commands(said)]
        found.append((said, "\n\n".join(f"{written}\n{output}".rstrip("\n") for written, output in shown) + "\n"))

    for example in document_of(page, refill).examples():
        example.evaluate()
    at = 0
    for said, now in found:
        at = text.index(said, at)
        text = text[:at] + now + text[at + len(said) :]
        at += len(now)
    return text


def main(pages: list[str]) -> None:
    """Refill pages, each in an empty directory and with a registry of its own."""
    for page in [Path(name).resolve() for name in pages]:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ |= {"LAPWING_HOME": str(Path(scratch) / "home"), "MPLBACKEND": "agg"}
            (Path(scratch) / "here").mkdir()
            os.chdir(Path(scratch) / "here")
            page.write_text(refilled(page), encoding="utf-8")
            os.chdir(ROOT)


if __name__ == "__main__":
    main(sys.argv[1:])
