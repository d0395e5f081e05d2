"""A refusal as text: the message, the place in the statement with carets under it, and the hint."""

from __future__ import annotations

from lapwing.errors import LapwingError, Span

_WIDTH_MAX = 120
"""Longest piece of a line that is quoted."""


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
