"""What would make an answer better: from its marks and its error bars, and from what another price is predicted to give."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lapwing.answers.display.number_format import figure
from lapwing.interfaces.console.prices import PriceView
from lapwing.interfaces.console.questions import PageQuestion

DOUBTFUL = ("noise_only", "meaningless")
_DOUBTFUL_SHARE = 0.1
"""Of the cells: from here on the answer could be better."""
_SELECT = re.compile(r"\s*(with|select|\()", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to try, and, where it is another question, which."""

    words: str
    question: PageQuestion | None = None


Priced = Callable[[PageQuestion], Awaitable[PriceView | None]]
"""The price of a question; None where it would be refused."""


async def suggestions(question: PageQuestion, answer: dict[str, Any], price: PriceView, priced: Priced) -> list[Suggestion]:
    """What to try next, the simplest first; nothing where the answer is good as it is, or was free of noise."""
    cells = [mark for column in answer["marks"].values() for mark in column]
    doubtful = sum(mark in DOUBTFUL for mark in cells)
    if not answer["intervals"] or not _SELECT.match(question.sql):
        return []
    found: list[Suggestion] = []
    if doubtful > _DOUBTFUL_SHARE * len(cells) or _are_wide(answer):
        found += await _at_a_higher_price(question, price, priced)
        if len(answer["rows"]) > 1:
            words = (
                "Ask for fewer groups: with a coarser key, or with WHERE for the part that matters. Each group then has more people in it."
            )
            found.append(Suggestion(words))
    if price.scaled_is_closer and not question.says_terms:
        terms = f"epsilon = {question.epsilon}, scaled_groups = true" if question.epsilon else "scaled_groups = true"
        scaled = PageQuestion(f"{question.sql.rstrip().rstrip(';')}\nWITH PRIVACY ({terms})")
        if await priced(scaled) is not None:
            found.append(
                Suggestion("Scale the groups to a total that is measured apart: predicted to be clearly closer, by a model.", scaled)
            )
    return found


async def _at_a_higher_price(question: PageQuestion, price: PriceView, priced: Priced) -> list[Suggestion]:
    """Twice the epsilon: what it would give, and what it would cost, which is more than twice as much."""
    if question.says_price:
        return []
    dearer = PageQuestion(question.sql, figure(2 * price.epsilon).replace(",", ""))
    found = await priced(dearer)
    if found is None or found.too_much or found.free:
        return []
    bars = ""
    if found.half_width is not None and price.half_width:
        if found.half_width >= price.half_width:
            return []  # such as where bounds that were bought for the first price serve it better
        bars = f" error bars of ±{figure(found.half_width, digits=3)} instead of ±{figure(price.half_width, digits=3)} at 95%;"
    return [Suggestion(f"Twice the epsilon, {dearer.epsilon}:{bars} costs {found.share} of the budget instead of {price.share}.", dearer)]


def _are_wide(answer: dict[str, Any]) -> bool:
    """Whether most error bars are wider than a fifth of their value."""
    wide = total = 0
    names = [column["name"] for column in answer["columns"]]
    for name, bars in answer["intervals"].items():
        place = names.index(name)
        for row, bar in zip(answer["rows"], bars, strict=True):
            if bar is not None and row[place] is not None:
                total += 1
                wide += (bar[1] - bar[0]) / 2 > abs(row[place]) / 5
    return total > 0 and wide > total / 2
