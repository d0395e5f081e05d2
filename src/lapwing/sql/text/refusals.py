"""Where a refusal points: spans of a text, and the printed form with a caret."""

from __future__ import annotations

from lapwing.errors import LapwingError, Span
from lapwing.statements import Statement

_WIDTH_MAX = 120
"""Longest piece of a line that is quoted."""


def span_of(text: str, start: int, end: int) -> Span:
    """The half-open range as a span with line and column; lines end at a newline character, as editors count them."""
    return Span(start=start, end=end, line=text.count("\n", 0, start) + 1, column=start - (text.rfind("\n", 0, start) + 1) + 1)


_OF_KEYS = frozenset({"groups-by-real", "groups-by-unit", "keys-need-delta"})


def span_in(statement: Statement, code: str) -> Span:
    """Where a refusal of planning points, which does not know the text: a key or aggregate where one can be meant, else its SELECT."""
    wanted = ".k" if code in _OF_KEYS else ".a"
    found = [span for name, span in statement.spans if wanted in name]
    if len(found) == 1:
        return found[0]
    return next((span for name, span in statement.spans if "." not in name), span_of(statement.text, 0, len(statement.text)))


def render_refusal(text: str, error: LapwingError) -> str:
    """Code, message, the line of the statement with carets under the span, and the hint."""
    lines = [f"[{error.code}] {error.message}"]
    if error.span is not None:
        lines += _excerpt(text, error.span)
    if error.hint:
        lines.append(f"hint: {error.hint}")
    return "\n".join(lines)


def _excerpt(text: str, span: Span) -> list[str]:
    first = span.start - (span.column - 1)
    line = text[first:].split("\n", 1)[0]
    shown_from = max(0, span.column - 1 - _WIDTH_MAX // 2) if len(line) > _WIDTH_MAX else 0
    shown = line[shown_from : shown_from + _WIDTH_MAX]
    quoted = "".join(character if character.isprintable() else " " for character in shown)
    before = span.column - 1 - shown_from
    length = max(1, min(span.end - span.start, len(quoted) - before))
    if shown_from + _WIDTH_MAX < len(line):
        quoted += "…"
    if shown_from:
        quoted, before = "…" + quoted, before + 1
    margin = f"{span.line:>4} | "
    return [f"{margin}{quoted}", f"{' ' * (len(margin) - 2)}| {' ' * before}{'^' * length}"]
