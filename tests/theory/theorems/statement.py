"""What a checked statement consists of, and the examples that many of them are checked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

Check = Callable[..., bool]


class Method(Enum):
    """How a statement is decided."""

    EXACT = "exact"
    """In rational arithmetic, over everything enumerated; nothing is estimated."""

    ENCLOSED = "enclosed"
    """With irrational numbers between bounds that are rounded outwards; a pass is a proof for the numbers tried."""

    RUN = "run"
    """By running a procedure on fixed inputs, in floats, and comparing what comes out with the truth."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the lecture notes, in our words, and the function that decides it."""

    name: str
    says: str
    source: str
    """Where the notes say it (number of the notes, then section), and who said it first."""
    method: Method
    check: Check
    wrong: Mapping[str, Mapping[str, Any]]
    """Statements that are nearly this one and false: what is changed, and the arguments that make ``check`` decide it instead."""


def statement(
    *, says: str, source: str, wrong: Mapping[str, Mapping[str, Any]], method: Method = Method.EXACT
) -> Callable[[Check], Statement]:
    """Turns a function into a statement named after it. Its arguments have defaults; ``wrong`` gives others, for which it is False."""

    def made(check: Check) -> Statement:
        return Statement(check.__name__.replace("_", "-"), " ".join(says.split()), source, method, check, wrong)

    return made


Law = dict[int, Fraction]


def laws(*, outputs: int = 3, parts: int = 6) -> list[Law]:
    """Every law on so many outputs whose probabilities are multiples of ``1 / parts``; zeros are listed."""
    bars = combinations(range(parts + outputs - 1), outputs - 1)
    ends = [(-1, *bar, parts + outputs - 1) for bar in bars]
    return [{s: Fraction(end[s + 1] - end[s] - 1, parts) for s in range(outputs)} for end in ends]


def pairs_of_laws(*, outputs: int = 3, parts: int = 6) -> Iterator[tuple[Law, Law]]:
    """Every ordered pair of such laws."""
    every = laws(outputs=outputs, parts=parts)
    return ((p, q) for p in every for q in every)


def sets_of(outputs: int) -> list[tuple[int, ...]]:
    """Every set of outputs."""
    return list(chain.from_iterable(combinations(range(outputs), length) for length in range(outputs + 1)))


def probability(law: Mapping[int, Fraction], chosen: tuple[int, ...]) -> Fraction:
    """Of a set of outputs."""
    return sum((law.get(s, Fraction(0)) for s in chosen), Fraction(0))


def satisfies(p: Mapping[int, Fraction], q: Mapping[int, Fraction], *, odds: Fraction, delta: Fraction = Fraction(0)) -> bool:
    """The definition, word for word, in one direction: every set of outputs. Written apart from :mod:`lapwing.theory`."""
    outputs = 1 + max(chain(p, q))
    return all(probability(p, chosen) <= odds * probability(q, chosen) + delta for chosen in sets_of(outputs))


def private(p: Mapping[int, Fraction], q: Mapping[int, Fraction], *, odds: Fraction, delta: Fraction = Fraction(0)) -> bool:
    """The definition in both directions."""
    return satisfies(p, q, odds=odds, delta=delta) and satisfies(q, p, odds=odds, delta=delta)
