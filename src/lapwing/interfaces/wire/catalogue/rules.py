"""Decides which statements are for the curator: those that name a table of the data set. The others are about the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.interfaces.wire.lexing import Word

_CATALOGUES = ("information_schema", "generate_series", "unnest")


@dataclass(frozen=True, slots=True)
class OwnNames:
    """The names to look for in statements: the tables of the data set and their schemas, in lower case."""

    tables: frozenset[str]
    schemas: frozenset[str]

    def mentioned(self, words: Sequence[Word]) -> bool:
        """Whether the words name a table of the data set, without a schema or with one of the data set's schemas."""
        for place, word in enumerate(words):
            if word.is_name and word.value.casefold() in self.tables:
                qualified = place >= 2 and words[place - 1].says(".") and words[place - 2].is_name
                if not qualified or words[place - 2].value.casefold() in self.schemas:
                    return True
        return False


def of_the_catalogue(words: Sequence[Word]) -> bool:
    """Whether a statement reads no relation at all, or names something that only the catalogue has."""
    names = [word.value for word in words if word.is_name]
    return "from" not in names or any(name in _CATALOGUES or name.startswith("pg_") for name in names)
