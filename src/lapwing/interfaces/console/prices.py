"""The view of an explanation: the price, as a share and in epsilon, and the accuracy of each output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lapwing.answers.display.budget import LARGE_SHARE
from lapwing.answers.display.number_format import share_text

_ACCURACY = ("noise", "average", "selection", "scaled")
"""Lines of an explanation that say how accurate an answer would be."""
_TOLD_APART = frozenset({"price", "closer", *_ACCURACY})
DEVIATIONS_AT_95 = 1.96
"""Half the width of a 95 % error bar, in predicted standard deviations."""
_LAW_AND_ERROR = re.compile(r"(?P<law>gaussian|laplace), (?P<error>±[^;]*)")


@dataclass(frozen=True, slots=True)
class PriceView:
    """A price as the page shows it."""

    epsilon: float
    share: str
    free: bool
    stored: bool
    too_much: str
    """The limit that it exceeds, as text; empty if it can be paid."""
    is_large: bool
    """It takes so much of the budget that the analyst must confirm it."""
    accuracy: tuple[tuple[str, str], ...]
    """The outputs and their predicted errors."""
    about: tuple[tuple[str, str], ...]
    """All other lines of the explanation."""
    half_width: float | None
    """The predicted error of the first output that has one, to trade price against accuracy."""
    scaled_is_closer: bool
    seen: str
    """The price, which the form sends back: only a price that was on the screen is charged."""


def price_view(explained: dict[str, Any]) -> PriceView:
    """The view of a reply to ``explain``."""
    lines, cost, values = explained["lines"], explained["cost"], explained["values"]
    stored, free = bool(values.get("stored")), bool(cost["free"] or values.get("stored"))
    errors = list((values.get("predicted_error") or {}).values())
    return PriceView(
        epsilon=cost["epsilon"],
        share=share_text(values["share_of_budget"]),
        free=free,
        stored=stored,
        too_much="" if free else values["too_much"],
        is_large=not free and values["share_of_budget"] > LARGE_SHARE,
        accuracy=tuple(_named(text) for name, text in lines if name in _ACCURACY),
        about=tuple((name, text) for name, text in lines if name not in _TOLD_APART),
        half_width=DEVIATIONS_AT_95 * errors[0] if errors else None,
        scaled_is_closer=any(name == "closer" for name, _ in lines),
        seen="free" if free else f"epsilon {cost['epsilon']!r} rho {cost['rho']} delta {cost['delta']}",
    )


def _named(text: str) -> tuple[str, str]:
    """``n: gaussian, ±222 at 95%`` as the output's name and a text with the error before the kind of noise."""
    name, separator, said = text.partition(": ")
    if not separator:
        return "", text
    found = _LAW_AND_ERROR.fullmatch(said)
    return name, said if found is None else f"{found['error']}, {found['law']} noise"
