"""What a statement would cost, found while it is typed, in a separate thread, so that typing never waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lapwing.answers.display.budget import LARGE_SHARE
from lapwing.errors import LapwingError

if TYPE_CHECKING:
    from lapwing.asking.explaining.explanation import Explanation

STOP_SECONDS = 10.0
"""How long the shell waits, at exit, for a price that is being found."""
QUIET_SECONDS = 0.25
"""A text is explained when it has not changed for this long, so at most four times a second."""
KNOWN_MAX = 64
_ACCURACY = ("noise", "average", "selection", "scaled")
"""Lines of an explanation that say how accurate an answer would be."""


@dataclass(frozen=True, slots=True)
class ShownPrice:
    """What is known about asking a statement."""

    words: str
    """The price, or why it is refused, in a line."""
    accuracy: str = ""
    free: bool = False
    refused: bool = False
    large: bool = False
    """It takes so much of the budget that it must be confirmed even if the price was on the screen."""


def price_of(explanation: Explanation) -> ShownPrice:
    """The price and the predicted accuracy, in a line each."""
    values, cost = explanation.to_dict(), explanation.cost
    accuracy = "; ".join(text for name, text in explanation.lines if name in _ACCURACY)
    if cost.free or values.get("stored"):
        return ShownPrice("free: answered before" if values.get("stored") else "free", accuracy, free=True)
    words = f"epsilon {cost.epsilon:.3g}, {_percent(values['share_of_budget'])} of the budget"
    words = words if values["affordable"] else f"{words}: {values.get('too_much', 'more than is left').upper()}"
    return ShownPrice(words, accuracy, large=values["share_of_budget"] > LARGE_SHARE)


def refusal(error: LapwingError) -> ShownPrice:
    """Why asking would be refused."""
    hint = f" ({error.hint})" if error.hint else ""
    return ShownPrice(f"[{error.code}] {error.message}{hint}", refused=True)


def _percent(share: float) -> str:
    return "less than 0.01%" if 0 < share < 0.0001 else f"{share:.2%}"


class LivePrice:
    """Finds the price of the text that was typed last. ``explain`` is called in a separate thread; ``changed`` when a price is known."""

    def __init__(self, explain: Callable[[str], Explanation], changed: Callable[[], None]) -> None:
        self._explain = explain
        self._changed = changed
        self._gate = threading.Condition()
        self._wanted = ""
        self._known: dict[str, ShownPrice] = {}
        self._age = 0
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="lapwing-price", daemon=True)
        self._thread.start()

    def look(self, statement: str) -> None:
        """Find the price of this statement next, unless it is known or the statement is empty."""
        with self._gate:
            self._wanted = statement
            self._gate.notify_all()

    def known(self, statement: str) -> ShownPrice | None:
        """The price, if it was found."""
        with self._gate:
            return self._known.get(statement)

    def forget(self) -> None:
        """Drop the known prices: they may have changed, because something was asked or set."""
        with self._gate:
            self._known.clear()
            self._age += 1
            self._gate.notify_all()

    def stop(self) -> None:
        """End the thread, and wait for it a while: a process that ends while an engine works in a thread is aborted."""
        with self._gate:
            self._is_stopped = True
            self._gate.notify_all()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while True:
            with self._gate:
                self._gate.wait_for(self._has_work)
                statement, age = self._wanted, self._age
                if self._gate.wait_for(partial(self._is_typed_on, statement), timeout=QUIET_SECONDS):
                    if self._is_stopped:
                        return
                    continue
            price = self._found(statement)
            with self._gate:
                if self._is_stopped:
                    return
                if age == self._age:
                    while len(self._known) >= KNOWN_MAX:
                        self._known.pop(next(iter(self._known)))
                    self._known[statement] = price
            self._changed()

    def _has_work(self) -> bool:
        return self._is_stopped or (self._wanted != "" and self._wanted not in self._known)

    def _is_typed_on(self, statement: str) -> bool:
        return self._is_stopped or self._wanted != statement

    def _found(self, statement: str) -> ShownPrice:
        try:
            return price_of(self._explain(statement))
        except LapwingError as error:
            return refusal(error)
        except Exception as error:  # its text may hold anything
            return ShownPrice(f"the price cannot be found: {type(error).__name__}", refused=True)
