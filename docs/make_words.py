"""Writes the page of terms, their pictures, and the style that the console shows them in, from the words of the console.

python -m docs.make_words
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from lapwing.interfaces.console.charts import style_sheet
from lapwing.interfaces.console.words import TERMS, Term, picture

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "reference" / "words.md"
PICTURES = DOCS / "images" / "words"
SHEET = DOCS.parent / "src" / "lapwing" / "interfaces" / "console" / "assets" / "charts.css"
"""The style of charts and pictures, for pages."""
THEMES = ("light", "dark")
_HEAD = """# Words

Each term of Lapwing in two sentences. The console shows the same words beside the term, one click away: this page is made from them by
`python -m docs.make_words`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(term) for term in TERMS)])


def _section(term: Term) -> str:
    pictures = [
        f"```{{image}} ../images/words/{term.key}-{theme}.svg\n:class: only-{theme} word-picture\n:alt: {term.shows}\n```"
        for theme in THEMES
    ]
    meaning = textwrap.fill(term.meaning, width=120, break_on_hyphens=False)
    read_on = f"More: {{doc}}`/{term.page}`."
    return "\n\n".join([f"## {term.name}", *pictures, meaning, read_on]) + "\n"


def pictures() -> dict[str, str]:
    """Each picture by the name of its file."""
    return {f"{term.key}-{theme}.svg": picture(term, alone=True, dark=theme == "dark") + "\n" for term in TERMS for theme in THEMES}


if __name__ == "__main__":
    SHEET.write_text(style_sheet(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (PICTURES / name).write_text(drawn, encoding="utf-8")
