"""The page of functions is made from the entries themselves; here it is made again and compared.

Set LAPWING_WRITE_GOLDEN=1 to write it anew.
"""

from __future__ import annotations

import os

from docs.function_listing import GROUPS, LISTED, SIGNS
from docs.paragraphs import wrapped

from lapwing.sql.scalars.dates import COMPUTED_PARTS, PARTS, TRUNCATIONS
from lapwing.sql.scalars.named_function import FunctionReference
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "functions.md"
HEAD = """# Functions

<!-- made from src/lapwing/sql/scalars and docs/function_listing.py by tests/docs/test_functions_page.py: change it there -->

Every function that may stand in an expression over rows: {count} functions under {names} names, and the signs and words of
the grammar. The list is closed; anything else is refused with `function-unsupported`. Each is **total**: on any row it gives
a value or NULL and never an error, because an error would tell that some row is there. Each has an **interval** that follows
from the declared bounds (proof: [domains of expressions](../proofs/intervals.md)); an expression whose interval could leave
the exact range of an engine is refused before anything is charged.

Nothing of a call reaches the engine as it was written. A function is bound as a composition of a few dozen primitives of the
kernel, and those are what an engine is asked to compute. A new one is [added in one place](../how-to/add-a-function.md).

In the tables, x and y are numbers or anything that fits, a, b and n integers, d a date or timestamp, t a timestamp, s text,
p a condition; what is in quotes is a constant. "Differs" says where a bare DuckDB or PostgreSQL does something else. Every
row of every table is checked against bare DuckDB on hundreds of rows by the tests.
"""
DATES = """Parts of dates: {parts}. Sunday is 0 in `dow` and 7 in `isodow`; `week` and `isoyear` are those of ISO 8601; hours and less
are parts of timestamps only. Truncation to: {truncations}.

An interval is a whole number of one unit: `INTERVAL '30 days'`, `INTERVAL 3 MONTH`; days and shorter units may be times a whole number
that is computed, `INTERVAL '15 minutes' * FLOOR(x)`. Months keep the day, or take
the last day of the month where it has no such day.
"""
TEXT = """Text is computed by Lapwing itself over the *declared* values of a column, and reaches the engine as a list of values or
cases. Of text without declared values ("open text"), the engine computes `LENGTH`, `LOWER`, `UPPER`, `LEFT`, `RIGHT`, `SUBSTRING` and
`SPLIT_PART` from the front, `STRPOS`, `CONTAINS` and the like, `LIKE` and `ILIKE` without `_`, and regular expressions that are plain texts
with `^`, `$` and `|`: all in time linear in its length, which is at most 1,024 bytes, and with the same result on every engine. Regular
expressions over declared text are the small part of RE2's that Lapwing matches itself, in linear time: letters, `.`, `[a-z]`, `\\d`,
`\\w`, `\\s`, `( )`, `|`, `^`, `$`, `*`, `+`, `?`, `{2,5}` and their lazy forms. Text of several declared columns has a value for each
combination of theirs.
"""


def _call(meaning: FunctionReference) -> str:
    if meaning in SIGNS:
        return f"`{meaning.names[0] if len(meaning.names) == 1 else ' '.join(meaning.names)}`"
    first = f"`{meaning.names[0]}({meaning.arguments})`"
    return ", ".join([first, *(f"`{name}`" for name in meaning.names[1:])])


def _row(meaning: FunctionReference) -> str:
    cells = (_call(meaning), meaning.means, meaning.gives, meaning.null, meaning.total, meaning.differs)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """The page as the entries have it."""
    names = sum(len(meaning.names) for meaning in LISTED)
    parts = [HEAD.format(count=len(LISTED), names=names)]
    for group in GROUPS:
        rows = [_row(meaning) for meaning in (*SIGNS, *LISTED) if meaning.group == group]
        parts.append(f"## {group.capitalize()}\n")
        parts.append("| call | meaning | gives | NULL | total because | differs |\n|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
        if group == "dates":
            listed = ", ".join(f"`{part}`" for part in sorted([*PARTS, *COMPUTED_PARTS]))
            text = DATES.format(parts=listed, truncations=", ".join(f"`{part}`" for part in TRUNCATIONS))
            parts.append("\n\n".join(wrapped(paragraph) for paragraph in text.split("\n\n")) + "\n")
        if group == "text":
            parts.append(TEXT)
    return "\n".join(parts)


def test_the_page_is_up_to_date() -> None:
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_entry_is_in_a_chapter() -> None:
    assert {meaning.group for meaning in (*LISTED, *SIGNS)} == set(GROUPS)
    assert all(_row(meaning) in page() for meaning in (*LISTED, *SIGNS))
