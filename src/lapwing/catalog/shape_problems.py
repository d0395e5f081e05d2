"""Mistakes of shape, in our own words and at their place.

pydantic finds them; what is printed depends on the kind of mistake only, not on pydantic's wording, so the messages are ours to keep
stable.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from lapwing.catalog.positions import Path
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.schema import COLUMN_MODELS, keys_of, model_at

_NEEDED = {
    "string_type": ("text", 'write it in quotes: "..."'),
    "bool_type": ("true or false", "without quotes"),
    "int_type": ("a whole number", "without quotes and without a decimal point"),
    "dict_type": ("a table", "open it with a [header] of its own"),
    "model_type": ("a table", "write { key = value, ... } or a [header] of its own"),
    "model_attributes_type": ("a table", 'write { type = "..." }'),
    "tuple_type": ("a list of texts", 'write ["a", "b"]'),
    "exact_number": ("a finite number", 'such as 3, 0.5, "1e-9" or "2^-40"'),
    "plain_date": ("a date", "write it without quotes and without a time: 2024-12-31"),
    "plain_timestamp": ("a date and time", "write it without quotes and without a zone: 2024-12-31T23:59:59"),
}
"""What was needed, and how to write it, by pydantic's error type."""


def report_shape(report: ProblemReport, error: ValidationError) -> None:
    """Translate every error of ``error`` into a problem."""
    details = error.errors(include_url=False, include_context=True)
    suggested = set()
    for detail in details:
        if detail["type"] == "extra_forbidden" and (key := _suggestion(detail["loc"])):
            suggested.add((*detail["loc"][:-1], key))
    for detail in details:
        # A misspelt key is one mistake, not an unknown key and a missing one.
        if not (detail["type"] == "missing" and detail["loc"] in suggested):
            _report_one(report, detail)


def closest(word: str, words: Iterable[str]) -> str:
    """The word most like ``word``, or the empty string."""
    matches = difflib.get_close_matches(word.lower(), list(words), n=1, cutoff=0.6)
    return matches[0] if matches else ""


def table_name(path: Path) -> str:
    """How messages refer to a table of the file: by its header, or by the column it declares."""
    match path:
        case ():
            return "the catalogue"
        case ("tables" | "public", table, "columns", column):
            return f"the column {table}.{column}"
        case _:
            return f"[{'.'.join(str(part) for part in path)}]"


def _report_one(report: ProblemReport, detail: ErrorDetails) -> None:
    loc = detail["loc"]
    path = _file_path(loc)
    parent, key = path[:-1], path[-1]
    match detail["type"]:
        case "extra_forbidden":
            message = f"{table_name(parent)} has no key `{key}`"
            if len(loc) > len(path):
                message += f' when its type is "{loc[4]}"'
            report.problem("catalogue-unknown-key", path, message, hint=_key_hint(loc), of_key=True)
        case "missing":
            message = f"{table_name(parent)} needs the key `{key}`"
            report.problem("catalogue-missing-key", path, message, hint=_missing_hint(path), of_key=True)
        case "union_tag_not_found":
            message = f"{table_name(path)} needs the key `type`"
            report.problem("catalogue-missing-key", path, message, hint=_one_of(COLUMN_MODELS), of_key=True)
        case "union_tag_invalid":
            _report_word(report, (*path, "type"), str(detail["ctx"]["tag"]), COLUMN_MODELS)
        case "literal_error":
            words = [word.strip(" '") for word in detail["ctx"]["expected"].replace(" or ", ",").split(",")]
            _report_word(report, path, detail["input"], words)
        case kind if kind in _NEEDED:
            needed, hint = _NEEDED[kind]
            subject = f"item {key + 1} of `{parent[-1]}`" if isinstance(key, int) else f"`{key}`"
            report.problem("catalogue-wrong-type", path, f"{subject} must be {needed}", hint=hint)
        case _:  # no other kind can come from the models as they are; refuse all the same
            report.problem("catalogue-wrong-type", path, f"`{key}` cannot be read")


def _report_word(report: ProblemReport, path: Path, word: object, words: Iterable[str]) -> None:
    shown = f'"{word}"' if isinstance(word, str) else str(word)
    meant = closest(str(word), words)
    hint = f'did you mean "{meant}"?' if meant else _one_of(words)
    report.problem("catalogue-bad-value", path, f"`{path[-1]}` cannot be {shown}", hint=hint)


def _one_of(words: Iterable[str]) -> str:
    return "one of " + ", ".join(f'"{word}"' for word in words)


def _missing_hint(path: Path) -> str:
    match path:
        case ("format",):
            return "start the file with format = 1"
        case (str(section),):
            return f"add a section [{section}]" if section != "tables" else "add a section [tables.<name>]"
        case ("tables", _, "unit"):
            return 'the column that says whose row it is, or a path "column -> table.column"'
        case ("tables" | "public", _, "columns"):
            return "columns that are not declared cannot be asked about"
        case ("tables" | "public", _, "columns", _, "min" | "max"):
            return "bounds are declared, never taken from the data"
        case _:
            return ""


def _suggestion(loc: Path) -> str:
    model = model_at(loc[:-1])
    return closest(str(loc[-1]), keys_of(model)) if model else ""


def _key_hint(loc: Path) -> str:
    if meant := _suggestion(loc):
        return f"did you mean `{meant}`?"
    model = model_at(loc[:-1])
    return "its keys are " + ", ".join(f"`{key}`" for key in keys_of(model)) if model else ""


def _file_path(loc: Path) -> Path:
    """The path in the file: pydantic puts the type of a column into the location, where the file has no such level."""
    match loc:
        case ("tables" | "public", table, "columns", column, str(kind), *rest) if kind in COLUMN_MODELS:
            return (loc[0], table, "columns", column, *rest)
        case _:
            return loc
