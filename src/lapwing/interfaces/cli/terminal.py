"""Colours and tables on a terminal; plain text everywhere else.

The colours are fixed entries of the 256-colour palette, of middle lightness, so that they can be read on light and on dark backgrounds
whatever the terminal's theme makes of "yellow". Everything else is the terminal's own foreground colour. A terminal that has sixteen
colours only, all of its theme's choosing, gets none. NO_COLOR is honoured.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ACCENT = "color(31)"
"""Error bars, progress, names of things."""
CAUTION = "color(166)"
"""Notes and warnings."""
ALARM = "color(196)"
"""Refusals and faults."""


_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that act on a terminal instead of being shown: controls except tab and newline, and those that change the text direction."""


def printable(text: str) -> str:
    """Text that came from outside (a statement, a name, a reason) made safe to print: characters that act are escaped as in JSON."""
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class EscapingStream:
    """A standard stream on which no printed text acts on the terminal, except the colours of the console."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """The bare stream, for the console, which writes its own control sequences; its input goes through :func:`printable`."""

    def write(self, text: str) -> int:
        """Write, escaping characters that act on the terminal."""
        return self.rich_proxied_file.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def console(*, stderr: bool = False) -> Console:
    """A console that never colours numbers by itself, and never uses the theme's sixteen colours."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Passed explicitly: while rich redraws a line, it would look the stream up again, and could find the escaping one.
    file = getattr(stream, "rich_proxied_file", stream)
    drawing = Console(file=file, highlight=False, markup=False, emoji=False)
    if drawing.color_system in ("256", "truecolor", None):
        return drawing
    return Console(file=file, highlight=False, markup=False, emoji=False, no_color=True)


@contextmanager
def status(first: str) -> Iterator[Callable[[str], None]]:
    """A progress line on a terminal's standard error, which disappears at the end of the command; nothing elsewhere."""
    target = console(stderr=True)
    if not target.is_terminal:
        yield lambda _text: None
        return
    from lapwing.interfaces.python.waiting import line_shown

    with line_shown(target, printable(first)) as show:
        yield lambda text: show(printable(text))


def is_terminal() -> bool:
    """Whether standard output is a terminal (or is made to count as one by FORCE_COLOR)."""
    return console().is_terminal


def write(text: str) -> None:
    """Plain text on standard output."""
    sys.stdout.write(printable(text) + "\n")


def write_data(text: str) -> None:
    """Values on standard output: for a file or another program as they are, for a terminal printable."""
    stream = sys.stdout if sys.stdout.isatty() else getattr(sys.stdout, "rich_proxied_file", sys.stdout)
    stream.write((printable(text) if sys.stdout.isatty() else text) + "\n")


def write_error(text: str) -> None:
    """An error on standard error; its first line is highlighted on a terminal."""
    target, text = console(stderr=True), printable(text)
    if not target.is_terminal:
        sys.stderr.write(text + "\n")
        return
    first, _, rest = text.partition("\n")
    target.print(first, style=f"bold {ALARM}", soft_wrap=True)
    if rest:
        target.print(rest, soft_wrap=True)


def write_note(text: str) -> None:
    """A remark on standard error, so that a pipe does not get it."""
    target, text = console(stderr=True), printable(text)
    if target.is_terminal:
        target.print(text, style=CAUTION, soft_wrap=True)
    else:
        sys.stderr.write(text + "\n")


def table(headers: Sequence[str], *, right: Sequence[bool], accents: Sequence[bool]) -> Table:
    """An empty table: ``right`` columns hold numbers, ``accents`` columns are set in the accent colour."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    headers = [printable(header) for header in headers]
    grid = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for header, to_right, accent in zip(headers, right, accents, strict=True):
        grid.add_column(
            header, justify="right" if to_right else "left", style=ACCENT if accent else None, no_wrap=to_right, overflow="fold"
        )
    return grid


def add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """A row of a table, with cells that may hold text from outside."""
    table.add_row(*map(printable, cells), style=style)


def plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """Columns of text, as wide as they need to be: for pipes and files."""
    headers, rows = [printable(header) for header in headers], [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines = [list(headers), ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )
