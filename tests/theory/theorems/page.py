"""The page of all statements, made from the statements themselves.

    python -m tests.theory.theorems.page

writes docs/reference/theorems.md; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path

from docs.paragraphs import wrapped

from tests.theory.theorems.registry import SECTIONS, STATEMENTS
from tests.theory.theorems.statement import Statement

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "theorems.md"

OPENING = """\
# Statements, decided

Lapwing's vocabulary is that of five sets of lecture notes. This page lists what the notes state, in our words, and where Lapwing decides
it: each statement is a function in `tests/theory/theorems`, run with the other tests. Next to each stand statements that are nearly the
same and *false*; the same function decides these too, so every check is seen to be able to fail. Where the notes say something that is not
so, it stands among the false ones.

There are {count} statements and {wrong} false ones beside them. *Exact*: decided in rational arithmetic over everything that was
enumerated (all laws on a few outputs with a common denominator, all small databases, all sets of outputs), without estimates. *Enclosed*:
irrational numbers occur, and lie between bounds that are rounded outwards. *Run*: a procedure in floats is run on fixed inputs, and what
comes out is compared with the truth. No check draws random numbers. A check over finitely many cases
is not a proof for all; the proofs are in {{doc}}`/proofs/index` and in the papers named.

| notes | what they are |
|---|---|
| 1 | reading notes on Dwork and Roth 2014, chapters 1 to 3: the promise, basic terms, probabilistic tools |
| 2 | revision notes of a university course, week 10.1: an introduction with Laplace and Gaussian noise |
| 3 | a graduate course on ethical machine learning (ISYE 8813, J. Ziani, 2021), lecture 3: the definition |
| 4 | a report on approximate privacy, selection, online queries and mechanism design, after G. Kamath's lectures 5 to 8 |
| 5 | a primer: unbounded and bounded privacy, secrecy and control, divergences |

Every notion of the notes, with its name, its page and its check, is in {{doc}}`concepts`.
"""


def _entry(item: Statement) -> str:
    wrong = "\n".join(wrapped(f"- False: {change}.", indent="  ") for change in item.wrong)
    says = wrapped(f"{item.says} ({item.method.value.capitalize()}. Source: {item.source}.)")
    return f"### {item.name}\n\n{says}\n\n{wrong}\n"


def rendered() -> str:
    """The page as it should be."""
    opening = OPENING.format(count=len(STATEMENTS), wrong=sum(len(item.wrong) for item in STATEMENTS))
    sections = [f"## {title}\n\n" + "\n".join(_entry(item) for item in items) for title, items in SECTIONS.items()]
    return opening + "\n" + "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
