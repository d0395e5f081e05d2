"""Marks as text: a sign after the number, and a line below the table with its meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lapwing.statements import CellMark

SIGNS: Mapping[CellMark, str] = {
    CellMark.NOISE_ONLY: "~",
    CellMark.MEANINGLESS: "!",
    CellMark.SIZE_UNKNOWN: "?",
    CellMark.SCALED: "*",
}
_MEANINGS: Mapping[CellMark, str] = {
    CellMark.NOISE_ONLY: "too small to tell from noise: the true number may be zero",
    CellMark.MEANINGLESS: "withheld, because what it is computed from is lost in noise",
    CellMark.SIZE_UNKNOWN: "nothing says how many rows stand behind it: ask for COUNT(*) beside it",
    CellMark.SCALED: "scaled to a total by a model, as was asked for",
}

_IN_SHORT: Mapping[CellMark, str] = {
    CellMark.NOISE_ONLY: "too small to tell from noise: the true number may be zero",
    CellMark.MEANINGLESS: "withheld: lost in noise",
    CellMark.SIZE_UNKNOWN: "nothing says how many rows stand behind it",
    CellMark.SCALED: "scaled to a total by a model",
}


def in_short(marks: Sequence[CellMark | None]) -> list[str]:
    """A short sentence for each sign used in a column, for the legend of a chart."""
    return [f"{sign} {_IN_SHORT[mark]}." for mark, sign in SIGNS.items() if mark in marks]


def missing_text(mark: CellMark | None) -> str:
    """The text in place of a missing value."""
    return f"withheld {SIGNS[mark]}" if mark is CellMark.MEANINGLESS else "no value"


def with_signs(texts: Sequence[str], marks: Sequence[CellMark | None] | None) -> list[str]:
    """The cells of a column with their signs. Cells without one are padded, so that digits are aligned."""
    if marks is None or not any(marks):
        return list(texts)
    return [f"{text} {' ' if mark is None else SIGNS[mark]}" for text, mark in zip(texts, marks, strict=True)]


def footnotes(marks: Mapping[str, Sequence[CellMark | None]]) -> list[str]:
    """A line for each sign used: its meaning and its columns."""
    lines = []
    for mark, sign in SIGNS.items():
        counts = {name: sum(one is mark for one in column) for name, column in marks.items()}
        places = ", ".join(f"{name} in {count:,} of {len(marks[name]):,} rows" for name, count in counts.items() if count)
        lines += [f"{sign} {_MEANINGS[mark]} ({places})"] if places else []
    return lines


def noise_in_words(marks: Mapping[str, Sequence[CellMark | None]]) -> list[str]:
    """A sentence for each column with cells that are no more than noise."""
    sentences = []
    for name, column in marks.items():
        count = sum(mark is CellMark.NOISE_ONLY for mark in column)
        whose = name if len(column) == 1 else f"{count:,} of {len(column):,} values of {name}"
        sentences += [f"{whose} {'is no larger than its' if count == 1 else 'are no larger than their'} noise"] if count else []
    return sentences
