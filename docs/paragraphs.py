"""Breaks lines of pages that are made by programs, as those that people write are broken."""

from __future__ import annotations

import re

LINE_MAX = 140
_PIECE = re.compile(r"(?:`[^`]+`|\$[^$]+\$|\S)+")
"""A word. Code and formulas are never broken."""
_MARKER = re.compile(r"[-+*>|:=#]+|\d+[.)]")
"""What would begin a list, a quotation or a heading at the start of a line."""


def wrapped(text: str, *, indent: str = "") -> str:
    """One paragraph in lines of at most 140 characters; every line but the first begins with the indentation."""
    lines: list[str] = []
    for word in (match.group() for match in _PIECE.finditer(text)):
        if lines and (len(lines[-1]) + 1 + len(word) <= LINE_MAX or _MARKER.fullmatch(word)):
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}{word}" if lines else word)
    return "\n".join(lines)
