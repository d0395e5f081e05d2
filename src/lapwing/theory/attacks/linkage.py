"""Linkage: a table without names, joined with a register that has them.

A few ordinary attributes (place of residence, date of birth) are together unique for most people, so removing names removes nothing
(Sweeney 2000). Tables of counts are no better when their cells are small: a count of 1 *is* a record. Under differential privacy, cells
of few people are hidden if their keys are not declared, and noisy if they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from lapwing.errors import LapwingError

_Secret = TypeVar("_Secret", bound=Hashable)
Quasi = tuple[Hashable, ...]
"""A value of the quasi-identifier: the attributes that both tables have, in a fixed order."""


def link_rows(
    rows: Iterable[Mapping[str, Hashable]], register: Mapping[str, Quasi], *, on: Sequence[str], secret: str
) -> dict[str, Hashable]:
    """Names from the register, each with the secret of the only row that can belong to that person.

    ``rows`` have no names; ``on`` lists the attributes that the values of the register contain. A name is linked if nobody else in the
    register and exactly one row has its attributes. If the register lists everybody in the table, every link is right.
    """
    matches: dict[Quasi, list[Hashable]] = {}
    for row in rows:
        missing = [name for name in (*on, secret) if name not in row]
        if missing:
            raise LapwingError("attack-input", "each row must have the attributes in `on` and the secret")
        matches.setdefault(tuple(row[name] for name in on), []).append(row[secret])
    return {name: matches[quasi][0] for name, quasi in unique_people(register).items() if len(matches.get(quasi, ())) == 1}


def link_counts(
    counts: Mapping[tuple[Quasi, _Secret], int | float], register: Mapping[str, Quasi], *, least: float = 0.5
) -> dict[str, _Secret]:
    """Names with unique attributes in the register, each with the secret whose cell is the largest.

    ``counts`` is a released table of counts by quasi-identifier and secret; a missing cell counts as empty. Exact cells of a
    unique person are 1 and 0. Noisy cells make this a guess, the likeliest one if all cells have the same noise. A person without a cell
    of at least ``least`` is omitted; with minus infinity, everybody with a cell gets a guess.
    """
    best: dict[Quasi, tuple[float, _Secret]] = {}
    for (quasi, secret), count in counts.items():
        if count >= least and (quasi not in best or count > best[quasi][0]):
            best[quasi] = (count, secret)
    return {name: best[quasi][1] for name, quasi in unique_people(register).items() if quasi in best}


def unique_people(register: Mapping[str, Quasi]) -> dict[str, Quasi]:
    """The part of a register whose attributes are shared with nobody else in it."""
    seen: dict[Quasi, int] = {}
    for quasi in register.values():
        seen[quasi] = seen.get(quasi, 0) + 1
    return {name: quasi for name, quasi in register.items() if seen[quasi] == 1}
