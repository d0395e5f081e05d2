"""All statements, in the order of the notes."""

from __future__ import annotations

from tests.theory.theorems import chances, definition, games, mechanisms, rules
from tests.theory.theorems.statement import Statement

SECTIONS: dict[str, tuple[Statement, ...]] = {
    "The definition": tuple(definition.STATEMENTS),
    "What follows from a promise": tuple(rules.STATEMENTS),
    "Sensitivity and mechanisms": tuple(mechanisms.STATEMENTS),
    "Attackers, people and chance": tuple(chances.STATEMENTS),
    "Lies, equilibria and many questions": tuple(games.STATEMENTS),
}

STATEMENTS: tuple[Statement, ...] = tuple(item for section in SECTIONS.values() for item in section)
