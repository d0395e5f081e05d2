"""Writes SVG as text. Every name and text is escaped here; styles are classes, never inline styles, which pages forbid."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape

TEXT_SIZE = 13
_LETTER = 0.56
"""The width of an ordinary letter, relative to the font size."""
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even escaped."""
_STEERING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text around them."""


def clean(text: str) -> str:
    """Text that any XML parser accepts and that does not affect its surroundings; other characters are replaced."""
    return _STEERING.sub("\ufffd", _NOT_IN_XML.sub("\ufffd", text))


def number(value: float) -> str:
    """A coordinate: two decimals are finer than any screen."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"


def element(tag: str, *inside: str, **attributes: str | float | None) -> str:
    """An element around the results of earlier calls. ``class_`` is ``class``, and an underscore inside a name becomes a hyphen."""
    written = "".join(_attribute(name, value) for name, value in attributes.items() if value is not None)
    return f"<{tag}{written}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{written}/>"


def _attribute(name: str, value: str | float) -> str:
    text = value if isinstance(value, str) else number(value)
    return f' {name.removesuffix("_").replace("_", "-")}="{escape(clean(text))}"'


def words(text: str) -> str:
    """Text inside an element."""
    return escape(clean(text))


def text(x: float, y: float, said: str, *, class_: str = "lw-text", anchor: str | None = None, turned: float | None = None) -> str:
    """A line of text with its baseline at (x, y)."""
    transform = None if turned is None else f"rotate({number(turned)} {number(x)} {number(y)})"
    return element("text", words(said), x=x, y=y, class_=class_, text_anchor=anchor, transform=transform)


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rect(x: float, y: float, width: float, height: float, *inside: str, class_: str) -> str:
    """A rectangle; negative sizes become 0."""
    return element("rect", *inside, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=class_)


def hint(said: str) -> str:
    """The tooltip of the element around it."""
    return element("title", words(said))


def group(inside: Iterable[str], *, class_: str | None = None, clip: str | None = None) -> str:
    """Several elements as one."""
    return element("g", *inside, class_=class_, clip_path=None if clip is None else f"url(#{clip})")


def width_of(said: str, size: float = TEXT_SIZE) -> float:
    """The approximate width of a text. Characters of wide scripts are as wide as the font size."""
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in said)
    return (wide + (len(said) - wide) * _LETTER) * size


def fitted(said: str, room: float, size: float = TEXT_SIZE) -> str:
    """The text on one line, truncated with an ellipsis if it does not fit."""
    shown = " ".join(clean(said).split())
    if width_of(shown, size) <= room:
        return shown
    while shown and width_of(shown + "…", size) > room:
        shown = shown[:-1]
    return shown.rstrip() + "…"


def lines_of(said: str, room: float, size: float = TEXT_SIZE) -> list[str]:
    """The text in lines that fit."""
    lines: list[str] = []
    for word in clean(said).split():
        if lines and width_of(f"{lines[-1]} {word}", size) <= room:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(fitted(word, room, size))
    return lines
