"""Hostile open texts, and expressions over them with what bare DuckDB calls the same."""

from __future__ import annotations

import random
from collections.abc import Mapping

from lapwing.catalog import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, TextDomain
from lapwing.kernel.expressions import Expression
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours
from lapwing.sql import bind

COLUMNS: Mapping[str, Domain] = {"s": TextDomain(None)}
FACTS = Facts("texts", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"texts": TableFacts(COLUMNS, 5, 10**6)}, {})
PIECES = (
    *(
        "a",
        "b",
        "ab",
        "aab",
        "ABA",
        "pril",
        "Pril",
        "%",
        "_",
        "\\",
        "'",
        '"',
        "$1",
        "^",
        "$",
        "|",
        ".",
        ".*",
        "-",
        "/",
        "//",
        " ",
        "\n",
        "\t",
    ),
    *(
        "é",
        "e\u0301",
        "É",
        "ß",
        "ẞ",
        "İ",
        "ı",
        "ſ",
        "\u212a",
        "σς",
        "Σ",
        "ǅ",
        "Ⱥ",
        "ⱥ",
        "ŉ",
        "ﬁ",
        "Ω",
        "\u2126",
        "𐐀",
        "𐐨",
        "👨‍👩‍👧",
        "\u202e",
        "\ufeff",
        "漢字",
    ),
    *("\u0130\u0307", "--", ";", "NULL", "0", "\x7f", "\u0085", "\u2028", "\U0010ffff", "\ue000"),
)
BYTES_MAX = 1_024
EXPRESSIONS: tuple[str, ...] = (
    *("LENGTH(s)", "LOWER(s)", "UPPER(s)", "LEFT(s, 1)", "LEFT(s, 0)", "LEFT(s, -2)", "RIGHT(s, 2)", "RIGHT(s, -1)", "SUBSTRING(s, 2)"),
    *("SUBSTRING(s, 3, 2)", "SUBSTR(s, 900, 100)", "STRPOS(s, 'a')", "INSTR(s, 'é')", "POSITION('/' IN s)", "SPLIT_PART(s, '/', 1)"),
    *("SPLIT_PART(s, '/', 2)", "SPLIT_PART(s, 'a', 3)", "SPLIT_PART(s, 'ab', 4)", "LOWER(LEFT(s, 3))", "UPPER(SPLIT_PART(s, '-', 2))"),
    *("LENGTH(LOWER(RIGHT(s, 5)))", "s LIKE '%pril%'", "s LIKE 'a%'", "s LIKE '%a'", "s LIKE 'a%a'", "s LIKE 'a%b%a'", "s LIKE '%a%b%'"),
    *("s LIKE '%a%é%b%'", "s LIKE '%'", "s LIKE '%%'", "s LIKE ''", "s LIKE 'a'", "s NOT LIKE '%b%'", "s LIKE '%''%'", "s LIKE 'ab%ab'"),
    *("s LIKE '%!%%' ESCAPE '!'", "s ILIKE '%pril%'", "s ILIKE 'É%'", "s ILIKE '%σ'", "s NOT ILIKE 'A%B'", "CONTAINS(s, 'ab')"),
    *("CONTAINS(s, '')", "STARTS_WITH(s, 'é')", "STARTS_WITH(s, '')", "ENDS_WITH(s, 'b')", "ENDS_WITH(s, '')", "SUFFIX(s, '漢字')"),
    *(
        "REGEXP_MATCHES(s, 'pril')",
        "REGEXP_MATCHES(s, '^a|b$')",
        "REGEXP_MATCHES(s, '.*ab.*')",
        "REGEXP_MATCHES(s, '^$')",
        "s SIMILAR TO 'ab|é'",
    ),
    *("REGEXP_FULL_MATCH(s, 'a|ab|')", "REGEXP_MATCHES(s, '\\.|\\$')", "LENGTH(s) + STRPOS(s, 'b') > 9", "COALESCE(LOWER(s), 'x') = 'x'"),
    *("LOWER(s) = 'ab'", "LEFT(s, 2) < 'b'", "CASE WHEN s LIKE '%a%' THEN LEFT(s, 1) ELSE UPPER(s) END"),
)


def texts(seed: int, count: int) -> list[str | None]:
    """So many texts of at most ``BYTES_MAX`` bytes; some are NULL, empty, or as long as can be."""
    rng = random.Random(seed)
    made: list[str | None] = [
        None,
        "",
        "a" * BYTES_MAX,
        "Ⱥ" * (BYTES_MAX // 2),
        "/" * BYTES_MAX,
        "ab" * (BYTES_MAX // 2),
        "a" * 1_023 + "b",
    ]
    while len(made) < count:
        pieces = [rng.choice(PIECES) if rng.random() < 0.8 else chr(_code(rng)) for _ in range(rng.choice((1, 2, 3, 5, 8, 40, 400)))]
        made.append("".join(pieces).encode()[:BYTES_MAX].decode(errors="ignore"))
    return made[:count]


def _code(rng: random.Random) -> int:
    code = rng.choice((rng.randrange(1, 0x250), rng.randrange(1, 0x2FFF), rng.randrange(1, 0x1F000), rng.randrange(1, 0x110000)))
    return code if not 0xD800 <= code <= 0xDFFF else 0xFFFD


def expression(text: str) -> Expression:
    """An expression over ``s``, bound as a key."""
    statement = bind(f"SELECT {text} AS k, COUNT(*) FROM texts GROUP BY k", FACTS, settings=Settings(), unit_columns={})
    ((_, key),) = statement.private.keys
    return key
