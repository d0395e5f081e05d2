"""The format of values that the source stores as text: declared, never guessed from the values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lapwing.catalog.positions import Path
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.schema import AnyColumnModel, BooleanModel, DateModel, TimestampModel

DAY_PARTS, TIME_PARTS = ("YYYY", "MM", "DD"), ("hh", "mm", "ss")
_PARTS = re.compile("|".join((*DAY_PARTS, *TIME_PARTS)))
_BETWEEN = re.compile(r"[ .,:/T_-]*")
_WORDS_MAX, _WORD_CHARACTERS_MAX = 20, 50


@dataclass(frozen=True, slots=True)
class Spelling:
    """The value of each text; empty if the common grammar applies."""

    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    format: str = ""
    """For a date or timestamp: the parts, each once and of fixed width, and the separators."""


COMMON_SPELLING = Spelling()
"""The one grammar of all engines."""


def spelling_of(report: ProblemReport, path: Path, model: AnyColumnModel) -> Spelling:
    """The declared spelling, meaningful only if no problem was reported."""
    match model:
        case BooleanModel():
            _check_words(report, path, model)
            return Spelling(true=model.true, false=model.false)
        case DateModel() | TimestampModel():
            _check_format(report, (*path, "format"), model.format, with_time=isinstance(model, TimestampModel))
            return Spelling(format=model.format)
        case _:
            return COMMON_SPELLING


def _check_words(report: ProblemReport, path: Path, model: BooleanModel) -> None:
    if bool(model.true) != bool(model.false):
        hint = 'such as true = ["yes"], false = ["no"]'
        report.problem("catalogue-contradiction", path, "`true` and `false` are declared together or not at all", hint=hint, of_key=True)
    for key, words in (("true", model.true), ("false", model.false)):
        if len(words) > _WORDS_MAX:
            report.problem("catalogue-limit", (*path, key), f"more than {_WORDS_MAX} spellings")
        for position, word in enumerate(words):
            at: Path = (*path, key, position)
            if not word or not word.isprintable() or len(word) > _WORD_CHARACTERS_MAX:
                hint = f"1 to {_WORD_CHARACTERS_MAX} printable characters; an empty value is NULL"
                report.problem("catalogue-bad-values", at, "this cannot be a spelling", hint=hint)
            if word in words[:position] or (key == "false" and word in model.true):
                report.problem("catalogue-bad-values", at, "this spelling is listed twice")


def _check_format(report: ProblemReport, path: Path, written: str, *, with_time: bool) -> None:
    if not written:
        return
    parts = _PARTS.findall(written)
    needed = set(DAY_PARTS)
    allowed = needed | set(TIME_PARTS) if with_time else needed
    is_whole = len(parts) == len(set(parts)) and needed <= set(parts) <= allowed
    # minutes without hours, or seconds without minutes, would be guessed
    times = [part in parts for part in TIME_PARTS]
    if not is_whole or times != sorted(times, reverse=True) or not _BETWEEN.fullmatch(_PARTS.sub("", written)):
        hint = (
            'such as "DD.MM.YYYY"'
            + (' or "MM/DD/YYYY hh:mm"' if with_time else "")
            + ": each part once, of fixed width, signs between them"
        )
        report.problem("catalogue-bad-value", path, "this cannot be a format", hint=hint)
