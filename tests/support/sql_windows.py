"""Random windows over the rows of one unit.

``comparable``: the bare engine must say the same, which leaves rows of one time in any order it likes. Windows in which that shows are
ordered by all columns there.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from lapwing.kernel.domains import (
    DateDomain,
    Domain,
    IntegerDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    with_null,
)


class Windows:
    """Windows over rows that have these columns."""

    def __init__(self, rng: random.Random, columns: Mapping[str, Domain], unit: str, *, comparable: bool) -> None:
        self._rng, self._columns, self._unit, self._comparable = rng, columns, unit, comparable

    def column(self) -> tuple[str, Domain]:
        """A window, and roughly what it holds."""
        pick = self._rng.choice
        name = pick(sorted(self._columns))
        domain = self._columns[name]
        summed = isinstance(domain, IntegerDomain) or (isinstance(domain, RealDomain) and _adds_up(domain))
        ordered = summed or isinstance(domain, RealDomain | DateDomain | TimestampDomain)
        ordered = ordered or (isinstance(domain, TextDomain) and domain.values is not None)
        words = ["LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "ROW_NUMBER", "RANK", "DENSE_RANK", "COUNT"]
        words += ["SUM", "SUM"] if summed else []
        words += ["MIN", "MAX"] if ordered else []
        word = pick(words)
        numbers = IntegerDomain(0, 9, nullable=False)
        match word:
            case "ROW_NUMBER":
                return f"ROW_NUMBER() OVER ({self._partition()} {self._order(by_place=True)})", numbers
            case "RANK" | "DENSE_RANK":
                return f"{word}() OVER ({self._partition()} {self._order(by_place=False)})", numbers
            case "LAG" | "LEAD":
                steps = pick(("", ", 1", ", 2", ", 0"))
                return f"{word}({name}{steps}) OVER ({self._partition()} {self._order(by_place=True)})", with_null(domain, True)
            case "FIRST_VALUE":
                return f"{word}({name}) OVER ({self._partition()} {self._order(by_place=True)})", domain
            case "LAST_VALUE":
                frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
                return f"{word}({name}) OVER ({self._partition()} {self._order(by_place=True)} {frame})", domain
            case _:
                value = pick(("*", name)) if word == "COUNT" else name
                return f"{word}({value}) OVER ({self._partition()}{self._reach()})", numbers if word == "COUNT" else with_null(domain, True)

    def distinct_on(self) -> tuple[str, str]:
        """The words before the columns and after the rows that pick one row of each unit."""
        return f"DISTINCT ON ({self._unit}) ", f" ORDER BY {self._unit}, {self._order(by_place=True).removeprefix('ORDER BY ')}"

    def _partition(self) -> str:
        more = [name for name in sorted(self._columns) if not isinstance(self._columns[name], RealDomain)]
        if more and self._rng.random() < 0.25:
            return f"PARTITION BY {', '.join(self._rng.sample([self._unit, self._rng.choice(more)], 2))}"
        return f"PARTITION BY {self._unit}"

    def _order(self, *, by_place: bool) -> str:
        names = self._rng.sample(sorted(self._columns), min(len(self._columns), self._rng.choice((1, 1, 2))))
        if by_place and self._comparable:
            names += [name for name in sorted(self._columns) if name not in names]
        return f"ORDER BY {', '.join(name + self._rng.choice(('', ' DESC', ' NULLS FIRST', '')) for name in names)}"

    def _reach(self) -> str:
        match self._rng.randrange(4):
            case 0:
                return ""
            case 1:
                return f" {self._order(by_place=True)} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
            case 2:
                return f" {self._order(by_place=False)} RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            case _:
                return f" {self._order(by_place=False)}"


def _adds_up(domain: RealDomain) -> bool:
    """Whether sums of it are exact in doubles, too."""
    return domain.steps is not None and domain.steps & (domain.steps - 1) == 0
