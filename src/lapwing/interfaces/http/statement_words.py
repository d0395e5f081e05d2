"""The words that the SQL editor completes and highlights."""

from __future__ import annotations

from functools import cache

from lapwing.asking.options import written_terms
from lapwing.asking.vocabulary import KEYWORDS, TYPES, function_names


@cache
def statement_words() -> dict[str, str]:
    """The words by kind, in lower case, separated by blanks."""
    return {kind: " ".join(words).lower() for kind, words in (("keywords", KEYWORDS), ("types", TYPES), ("builtin", function_names()))}


def says_terms(sql: str) -> bool:
    """Whether a statement has its own clause ``WITH PRIVACY (..)``."""
    return bool(written_terms(sql, dialect="duckdb"))


def says_price(sql: str) -> bool:
    """Whether that clause names a price or an accuracy."""
    return "asked" in written_terms(sql, dialect="duckdb")
