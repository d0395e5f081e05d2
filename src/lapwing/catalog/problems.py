"""Problems of a catalogue: one ``Problem`` per mistake, shown with its line.

The catalogue is public to its owner, so a problem may quote it. It never quotes a row: nothing here reads data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from lapwing.catalog.positions import Path, Positions
from lapwing.errors import CatalogueError, Span

_WIDTH_MAX = 120
"""Longest piece of a line that is quoted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake (or, in ``Declaration.warnings``, one thing to reconsider) and its place."""

    code: str
    message: str
    hint: str
    file: str
    span: Span
    excerpt: str
    """The quoted line with a caret under the place; empty when there is no such line."""

    def headline(self) -> str:
        """File, line, column and message, with the quoted line."""
        return f"{self.file}:{self.span.line}:{self.span.column}: {self.message}{self.excerpt}"

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> CatalogueError:
        """The exception that says this."""
        return CatalogueError(self.code, self.headline(), hint=self.hint, span=self.span)


@dataclass(frozen=True, slots=True)
class ProblemReport:
    """Collects the problems of one text. The lists grow while the text is checked; everything else is fixed."""

    file: str
    where: Positions
    problems: list[Problem]
    warnings: list[Problem]

    def problem(self, code: str, path: Path, message: str, *, hint: str = "", of_key: bool = False) -> None:
        """Record a mistake at the value (or the key) of ``path``."""
        self.problems.append(self._at(code, path, message, hint=hint, of_key=of_key))

    def warn(self, code: str, path: Path, message: str, *, hint: str = "") -> None:
        """Record a warning: the catalogue is accepted, the owner should look."""
        self.warnings.append(self._at(code, path, message, hint=hint, of_key=False))

    def _at(self, code: str, path: Path, message: str, *, hint: str, of_key: bool) -> Problem:
        return problem_at(code, self.where.span(path, of_key=of_key), message, hint=hint, file=self.file, text=self.where.text)


def problem_at(code: str, span: Span, message: str, *, hint: str, file: str, text: str) -> Problem:
    """A problem at a known span of ``text``."""
    return Problem(code=code, message=message, hint=hint, file=file, span=span, excerpt=_excerpt(text, span))


def fail(problems: Sequence[Problem]) -> NoReturn:
    """Raise the first problem in the order of the file; the others are notes on it (``error.__notes__``)."""
    first, *others = sorted(problems, key=lambda problem: (problem.span.line, problem.span.column))
    error = first.error()
    for other in others:
        error.add_note(str(other))
    raise error


def _excerpt(text: str, span: Span) -> str:
    lines = text.split("\n")
    if span.end == 0 or span.line > len(lines):
        return ""  # the problem has no place in the text: the file as a whole lacks something
    line = "".join(char if char.isprintable() or char == "\t" else "?" for char in lines[span.line - 1])
    column = min(span.column - 1, len(line))
    length = max(1, min(span.end - span.start, len(line) - column))
    cut = max(0, column - _WIDTH_MAX // 2)
    shown = line[cut : cut + _WIDTH_MAX]
    carets = "^" * min(length, max(1, len(shown) - (column - cut)))
    indent = "".join("\t" if char == "\t" else " " for char in shown[: column - cut])
    margin = f"{span.line:>4} | "
    return f"\n{margin}{shown}\n{' ' * (len(margin) - 2)}| {indent}{carets}"
