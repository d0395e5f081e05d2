"""Where a refusal points: spans of a text."""

from __future__ import annotations

from lapwing.errors import Span
from lapwing.statements import Statement


def span_of(text: str, start: int, end: int) -> Span:
    """The half-open range as a span with line and column; lines end at a newline character, as editors count them."""
    return Span(start=start, end=end, line=text.count("\n", 0, start) + 1, column=start - (text.rfind("\n", 0, start) + 1) + 1)


_OF_KEYS = frozenset({"groups-by-real", "groups-by-unit", "keys-need-delta", "too-many-groups"})


def span_in(statement: Statement, code: str) -> Span:
    """The span for a refusal by the planner, which does not know the text: the key or aggregate if there is only one, else the SELECT."""
    mark = ".k" if code in _OF_KEYS else ".a"
    spans = [span for name, span in statement.spans if mark in name]
    if len(spans) == 1:
        return spans[0]
    return next((span for name, span in statement.spans if "." not in name), span_of(statement.text, 0, len(statement.text)))
