"""Reading a catalogue: text in, a checked ``Declaration`` or an error that points at the line out."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from pathlib import Path

from pydantic import ValidationError

from lapwing.catalog.build import build
from lapwing.catalog.declaration import Declaration
from lapwing.catalog.positions import Positions, positions
from lapwing.catalog.problems import Problem, ProblemReport, fail, problem_at
from lapwing.catalog.schema import FORMAT, shape
from lapwing.catalog.settings import Settings
from lapwing.catalog.shape_problems import report_shape
from lapwing.errors import CatalogueError, Span

FILE_NAME = "lapwing.toml"
"""The default file name of a catalogue."""

_TOML_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_NO_DATA_SET = (
    "a data set is the folder of its lapwing.toml: `lapwing -C FOLDER` names it, `lapwing init FILE` drafts one, and `lapwing demo FOLDER`"
    " makes one of made-up data"
)


def load(path: str | Path, *, settings: Settings | None = None) -> Declaration:
    """Read a catalogue file. Relative sources start in its directory.

    Raises ``CatalogueError`` for the first problem in the order of the file; all others are notes on it.
    """
    file = Path(path)
    limit = (settings or Settings()).catalogue_bytes_max
    try:
        with file.open("rb") as stream:
            content = stream.read(limit + 1)
        text = content.decode("utf-8")
    except OSError as error:
        hint = _NO_DATA_SET if isinstance(error, FileNotFoundError) else ""
        raise CatalogueError("catalogue-unreadable", f"{file.name}: the file cannot be read: {error.strerror}", hint=hint) from None
    except UnicodeDecodeError:
        raise CatalogueError("catalogue-unreadable", f"{file.name}: the file is not UTF-8 text") from None
    return _read(text, name=file.name, directory=file.resolve().parent, settings=settings or Settings())


def parse(text: str, name: str = FILE_NAME, *, settings: Settings | None = None) -> Declaration:
    """Read the text of a catalogue; ``name`` is its name in errors. Raises as ``load`` does."""
    return _read(text, name=name, directory=None, settings=settings or Settings())


def _read(text: str, *, name: str, directory: Path | None, settings: Settings) -> Declaration:
    text = text.replace("\r\n", "\n")
    try:
        length_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise CatalogueError("catalogue-unreadable", f"{name}: the text cannot be written as UTF-8") from None
    if length_bytes > settings.catalogue_bytes_max:
        raise CatalogueError("catalogue-limit", f"{name}: the file is longer than {settings.catalogue_bytes_max} bytes")
    try:
        document = tomllib.loads(text, parse_float=Decimal)
        where = positions(text)
    except tomllib.TOMLDecodeError as error:
        fail([_syntax_problem(error, name=name, text=text)])
    except (RecursionError, ValueError, ArithmeticError):  # thousands of brackets, or a number of thousands of digits
        raise CatalogueError("catalogue-syntax", f"{name}: the file is nested too deeply or holds a number that is too long") from None
    report = ProblemReport(file=name, where=where, problems=[], warnings=[])
    _check_format(report, document.get("format", FORMAT))
    if report.problems:
        fail(report.problems)  # another format has other keys, so any other message would mislead
    try:
        model = shape(document)
    except ValidationError as error:
        report_shape(report, error)
        fail(report.problems)
    declaration = build(report, model, directory=directory, settings=settings)
    if report.problems:
        fail(report.problems)
    return declaration


def _check_format(report: ProblemReport, written: object) -> None:
    if type(written) is not int:
        report.problem("catalogue-format", ("format",), "`format` must be a whole number", hint=f"start the file with format = {FORMAT}")
    elif written != FORMAT:
        hint = "a newer version of Lapwing may read it" if written > FORMAT else f"start the file with format = {FORMAT}"
        report.problem("catalogue-format", ("format",), f"the file has format {written}; this version reads format {FORMAT}", hint=hint)


def _syntax_problem(error: tomllib.TOMLDecodeError, *, name: str, text: str) -> Problem:
    match = _TOML_PLACE.fullmatch(str(error))
    reason = match[1] if match else str(error)
    if match and match[2]:
        lines = text.split("\n")
        line, column = min(int(match[2]), len(lines)), int(match[3])
        start = sum(len(before) + 1 for before in lines[: line - 1]) + column - 1
        span = Span(start=start, end=start + 1, line=line, column=column)
    else:
        end = len(text.rstrip())
        span = Positions(text=text, places={}).span_at(end, end)
    message = f"this is not TOML: {reason[:1].lower()}{reason[1:]}"
    return problem_at("catalogue-syntax", span, message, hint="", file=name, text=text)
