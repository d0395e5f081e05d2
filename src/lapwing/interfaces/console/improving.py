"""Suggestions to make an answer more accurate, from its marks and error bars, and from the predicted accuracy at another price."""

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
"""The share of doubtful cells above which suggestions are made."""
_SELECT = re.compile(r"\s*(with|select|\()", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to try, and the new question if it is one."""

    words: str
    question: PageQuestion | None = None


Priced = Callable[[PageQuestion], Awaitable[PriceView | None]]
"""Returns the price of a question; None if it would be refused."""


async def suggestions(question: PageQuestion, answer: dict[str, Any], price: PriceView, priced: Priced) -> list[Suggestion]:
    """What to try next, the simplest first; nothing if the answer is good enough, or has no noise."""
    cells = [mark for column in answer["marks"].values() for mark in column]
    doubtful = sum(mark in DOUBTFUL for mark in cells)
    if not answer["intervals"] or not _SELECT.match(question.sql):
        return []
    found: list[Suggestion] = []
    if doubtful > _DOUBTFUL_SHARE * len(cells) or _are_wide(answer):
        found += await _at_a_higher_price(question, price, priced)
        if len(answer["rows"]) > 1:
            words = "Ask for fewer groups: use a coarser key, or WHERE for the part that matters. Each group then has more people."
            found.append(Suggestion(words))
    if price.scaled_is_closer and not question.says_terms:
        terms = f"epsilon = {question.epsilon}, scaled_groups = true" if question.epsilon else "scaled_groups = true"
        scaled = PageQuestion(f"{question.sql.rstrip().rstrip(';')}\nWITH PRIVACY ({terms})")
        if await priced(scaled) is not None:
            found.append(
                Suggestion("Scale the groups, by a model, to a separately measured total: predicted to be clearly more accurate.", scaled)
            )
    return found


async def _at_a_higher_price(question: PageQuestion, price: PriceView, priced: Priced) -> list[Suggestion]:
    """Twice the epsilon: its accuracy, and its cost, which is more than twice as much."""
    if question.says_price:
        return []
    pricier = PageQuestion(question.sql, figure(2 * price.epsilon).replace(",", ""))
    found = await priced(pricier)
    if found is None or found.too_much or found.free:
        return []
    bars = ""
    if found.half_width is not None and price.half_width:
        if found.half_width >= price.half_width:
            return []  # for example if bounds that were bought for the first price suit it better
        bars = f" error bars of ±{figure(found.half_width, digits=3)} instead of ±{figure(price.half_width, digits=3)} at 95%;"
    return [Suggestion(f"Twice the epsilon, {pricier.epsilon}:{bars} costs {found.share} of the budget instead of {price.share}.", pricier)]


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
