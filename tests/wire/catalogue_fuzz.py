"""Statements about the catalogue at random, hostile ones among them.

A second reader, which knows nothing of the grammar, says of a text for the shadow whether we wrote it.
"""

from __future__ import annotations

import random
import re

from lapwing.interfaces.wire.catalogue.words import FIELDS, FILTERS, FUNCTIONS, GUARDS, SCHEMA_FUNCTIONS, SCHEMA_TYPES, TYPES

# fmt: off
HOSTILE_FUNCTIONS = [
    "set_config('search_path', 'x', false)", "pg_sleep(0)", "query_to_xml('select 1', true, true, '')", "lo_create(0)",
    "lo_from_bytea(0, '')", "pg_advisory_lock(1)", "pg_notify('a', 'b')", "pg_terminate_backend(1)", "pg_read_file('x')",
    "pg_stat_get_activity(NULL)", "pg_stat_get_backend_activity(1)", "repeat('x', 9)", "lpad('x', 9)", "dblink('a', 'b')",
    "txid_current()", "nextval('s')", "pg_catalog.set_config('a.b', 'c', false)", '"pg_catalog"."pg_sleep"(0)', "PG_SLEEP(0)",
    "pg_describe_object(1262, 1, 0)", "public.patients(1)", "makeaclitem(10, 10, 'SELECT', false)",
    "has_table_privilege('postgres', 'pg_class', 'SELECT')", "lo_get(1)",
]
_FUNCTIONS = [
    "lower({})", "pg_catalog.upper({})", "coalesce({}, {})", "nullif({}, {})", "format_type(23, {})", "pg_get_userbyid({})",
    "abs({})", "pg_database_size({})", "has_database_privilege({}, 'CONNECT')", "shobj_description({}, 'pg_database')",
    "concat({}, {}, {})", "now()", "substring({} from 1 for 2)", "trim(both 'x' from {})", "extract(epoch from now())",
    "position({} in {})", "overlay({} placing 'x' from 1)", "count(*)", "count(DISTINCT {})", "array_agg({} ORDER BY {})",
    "sum({}) FILTER (WHERE {})", "row_number() OVER (ORDER BY {})",
    "string_agg({}, ',') OVER (PARTITION BY {} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)", "current_schema()", "random()",
    "cast({} as text)", "current_setting('search_path')", "array(select {})", "row({}, {})", "exists(select {})",
    "greatest({}, {})",
]
_RELATIONS = [
    "unnest(ARRAY[0::float8]) AS x",
    "pg_class", "pg_catalog.pg_class c", "pg_database d", "pg_roles", '"pg_catalog"."pg_type" AS t', "information_schema.tables",
    "pg_user u", "generate_series(1, 3)", "generate_series(1, {}) AS g(n)", "unnest(ARRAY[1, 2]) WITH ORDINALITY AS u(a, b)",
    "(SELECT {}) AS s(x)", "pg_auth_members", "LATERAL (SELECT {}) l", "(pg_class a CROSS JOIN pg_namespace b)", "pg_shdescription",
    "ONLY pg_attribute", "w", "pg_stat_user_tables", "pg_catalog.pg_stat_activity a", "pg_locks", "pg_stats",
]
_HOSTILE_RELATIONS = [
    "pg_statistic", "pg_hba_file_rules", "pg_authid", "pg_largeobject", "public.patients_x", "pg_stat_get_activity(NULL)", "pg_shadow",
    "pg_class TABLESAMPLE SYSTEM (1)", "ROWS FROM (pg_sleep(0))", "pg_file_settings", "public.pg_stat_activity",
    "lo_import('x') AS q",
]
_VALUES = [
    "1", "1.5e3", "'a'", "'it''s'", "'\\'", "E'a\\'b'", "E'\\\\'", "$$ a ' b $$", "$x$ -- $x$", "NULL", "TRUE", "$1", "oid",
    "relname", "c.oid", '"a""b"', "current_user", "DATE '2024-01-01'", "'x'::regclass", "'10'::oid", "INTERVAL '1' DAY",
    "'{1,2}'::int[]", "(1, 2)", "ARRAY[1, 2]", "pg_catalog.pg_class.relname", "w.a", "CASE WHEN 1 = 1 THEN 2 ELSE 3 END",
    "'sentinel'", "(SELECT 1)", "d.datname", "1::numeric(10, 2)", "timestamp with time zone '2024-01-01'", "'\u00e9\u4e2d'",
    "current_database()",
]
_OPERATORS = [
    "+", "-", "||", "=", "<>", "<", "~", "!~*", "AND", "OR", "LIKE", "NOT ILIKE", "OPERATOR(pg_catalog.||)",
    "OPERATOR(pg_catalog.=)", "IS DISTINCT FROM", "BETWEEN 1 AND", "AT TIME ZONE", 'COLLATE "C" ||', "= ANY (ARRAY[1]) OR",
    "IN (1, 2) AND", "::text ||", "/",
]
_SCRAPS = [
    "(", ")", ",", ";", "--", "/*", "*/", "'", '"', "\\", "$$", "DISTINCT ON (1)", "AS", "FROM", "SELECT", "INTO x", "FOR UPDATE",
    "::", "OPERATOR(pg_catalog.||)", "WITH", "UNION ALL", ".", "[", "]", "\x00", "\u2028", "E'", "UESCAPE", "VARIADIC", "=>", "\n",
    "*", "$1$",
]
_HOSTILE_VALUES = ["U&'x'", "X'1F'", "'postgres'::regrole", "'a' 'b'", "E'\\x41'", "'x'::aclitem"]
_HOSTILE_VALUES += ["(0::float8).pg_sleep", "(1).lo_create", "x.pg_sleep"]
# fmt: on


def random_statement(chance: random.Random) -> str:
    """A statement; two in five were broken afterwards."""
    text = _select(chance, 3)
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        text = _broken(chance, text)
    return text


def _select(chance: random.Random, depth: int) -> str:
    pick = chance.random
    parts = ["WITH w AS (" + _select(chance, depth - 1) + ")" if depth > 1 and pick() < 0.15 else ""]
    parts += ["SELECT", chance.choice(["", "", "", "DISTINCT", "DISTINCT ON (1)", "ALL"])]
    parts += [", ".join(_target(chance, depth) for _ in range(chance.randrange(1, 4)))]
    if pick() < 0.7:
        join = chance.choice([", ", " JOIN ", " LEFT JOIN ", " CROSS JOIN "])
        relations = [_relation(chance, depth) for _ in range(chance.randrange(1, 3))]
        parts += ["FROM", join.join(relations), "ON true" if len(relations) > 1 and "JOIN" in join and "CROSS" not in join else ""]
    for clause, odds in (
        ("WHERE {}", 0.5),
        ("GROUP BY {}", 0.2),
        ("HAVING {}", 0.1),
        ("ORDER BY {} DESC NULLS LAST", 0.2),
        ("LIMIT 3", 0.3),
    ):
        if pick() < odds:
            parts.append(_fill(chance, clause, depth))
    text = " ".join(part for part in parts if part)
    return f"{text} UNION ALL {_select(chance, depth - 1)}" if depth > 1 and pick() < 0.1 else text


def _target(chance: random.Random, depth: int) -> str:
    named = chance.choice(["", "", " AS n", ' "x y"', " label", ' AS "select"', ' AS "a"" || pg_sleep(1) || ""b"'])
    named = " f(1)" if chance.random() < 0.01 else named
    return chance.choice(["*", "c.*"]) if chance.random() < 0.1 else _expression(chance, depth) + named


def _relation(chance: random.Random, depth: int) -> str:
    listed = _HOSTILE_RELATIONS if chance.random() < 0.04 else _RELATIONS
    return _fill(chance, chance.choice(listed), depth)


def _expression(chance: random.Random, depth: int) -> str:
    if depth <= 0 or chance.random() < 0.35:
        return chance.choice(_HOSTILE_VALUES if chance.random() < 0.02 else _VALUES)
    kind = chance.random()
    if kind < 0.03:
        return chance.choice(HOSTILE_FUNCTIONS)
    if kind < 0.55:
        return _fill(chance, chance.choice(_FUNCTIONS), depth)
    if kind < 0.65:
        return f"({_select(chance, depth - 1)})"
    return f"{_expression(chance, depth - 1)} {chance.choice(_OPERATORS)} {_expression(chance, depth - 1)}"


def _fill(chance: random.Random, form: str, depth: int) -> str:
    while "{}" in form:
        form = form.replace("{}", _expression(chance, depth - 1).replace("{}", ""), 1)
    return form


def _broken(chance: random.Random, text: str) -> str:
    words = text.split(" ")
    at = chance.randrange(len(words))
    match chance.randrange(4):
        case 0:
            words.insert(at, chance.choice([*_SCRAPS, *HOSTILE_FUNCTIONS]))
        case 1:
            del words[at]
        case 2:
            words[at] = chance.choice(_SCRAPS)
        case _:
            other = chance.randrange(len(words))
            words[at], words[other] = words[other], words[at]
    return " ".join(words)


# -- the second reader -----------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""\s+|(?P<text>E'(?:[^'\\]|''|\\.)*'|'(?:[^'\\]|'')*')|(?P<quoted>"(?:[^"]|"")+")|(?P<number>[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<parameter>\$[0-9]+)|(?P<upper>[A-Z_]+)(?![a-z0-9'$&])|(?P<lower>[a-z_]+)(?![A-Z0-9'$&])|(?P<sign>::|=>|:=|[()\[\],.:]|[+\-*/<>=~!@#%^&|`?]+)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS_TEXT = """
WITH RECURSIVE SELECT ALL DISTINCT ON FROM WHERE GROUP BY HAVING WINDOW UNION INTERSECT EXCEPT ORDER LIMIT OFFSET FETCH FIRST NEXT ROW
ROWS ONLY VALUES AS NOT MATERIALIZED LATERAL CROSS NATURAL INNER LEFT RIGHT FULL OUTER JOIN USING ORDINALITY AND OR LIKE ILIKE SIMILAR
TO BETWEEN SYMMETRIC ASYMMETRIC IN AT TIME ZONE ESCAPE OVERLAPS OPERATOR IS NULL TRUE FALSE UNKNOWN ISNULL NOTNULL COLLATE CASE WHEN
THEN ELSE END CAST EXTRACT EXISTS ARRAY ANY SOME COALESCE GREATEST LEAST NULLIF GROUPING SETS ROLLUP CUBE POSITION SUBSTRING FOR OVERLAY
PLACING TRIM LEADING TRAILING BOTH ASC DESC NULLS LAST PARTITION RANGE GROUPS UNBOUNDED PRECEDING FOLLOWING CURRENT EXCLUDE TIES NO
OTHERS VARIADIC WITHIN FILTER OVER INT INTEGER SMALLINT BIGINT REAL BOOLEAN FLOAT DECIMAL DEC NUMERIC VARCHAR NCHAR BIT CHAR CHARACTER
TIMESTAMP INTERVAL DOUBLE PRECISION VARYING WITHOUT YEAR MONTH DAY HOUR MINUTE SECOND CURRENT_DATE CURRENT_USER SESSION_USER USER
CURRENT_ROLE CURRENT_CATALOG CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP
"""
_KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
_CALLED_KEYWORDS_TEXT = """
ALL ANY SOME ARRAY AS BY CAST COALESCE CUBE DISTINCT EXCEPT EXISTS EXTRACT FILTER FROM GREATEST GROUP GROUPING IN INTERSECT JOIN LATERAL
LEAST MATERIALIZED NOT NULLIF ON AND OR OPERATOR OVER OVERLAY POSITION ROLLUP ROW SELECT SETS SUBSTRING THEN TRIM UNION USING VALUES
WHEN WHERE ELSE HAVING LIKE ILIKE TO BETWEEN CASE LIMIT OFFSET SYMMETRIC ASYMMETRIC FOR PLACING BOTH LEADING TRAILING ZONE ESCAPE FLOAT
DECIMAL DEC NUMERIC VARCHAR NCHAR BIT CHAR CHARACTER TIMESTAMP TIME INTERVAL VARYING SECOND CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME
LOCALTIMESTAMP CURRENT_SCHEMA ONLY FETCH ROWS RANGE GROUPS VARIADIC OVERLAPS FIRST NEXT
"""
_CALLED_KEYWORDS = frozenset(_CALLED_KEYWORDS_TEXT.split())
"""Keywords before a bracket: none of them calls a function by a name."""
_OWN_WORDS = frozenset(re.findall(r"[a-z_]+", " ".join([*FILTERS.values(), *(guard.template for guard in GUARDS.values())])))
_SCHEMAS = ("pg_catalog", "information_schema")


def foreign_words(text: str) -> list[str]:
    """Whatever in a text for the shadow is not ours: unknown words, or a bracket after a name that is neither listed nor an alias."""
    tokens: list[tuple[str, str]] = []
    wrong: list[str] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return [text[at : at + 20]]
        if found.lastgroup is not None:
            tokens.append((found.lastgroup, found.group(found.lastgroup)))
        at = found.end()
    for place, (kind, value) in enumerate(tokens):
        before = [token[1] for token in tokens[max(place - 2, 0) : place]]
        called = place + 1 < len(tokens) and tokens[place + 1][1] == "("
        if kind == "upper":
            known = value in (_CALLED_KEYWORDS if called else _KEYWORDS)
        elif kind == "lower":
            known = value in _SCHEMAS or (value in _OWN_WORDS and not called) or (called and value in FUNCTIONS & _OWN_WORDS)
        elif kind == "quoted" and before[-1:] == ["."] and place > 1 and tokens[place - 2][0] not in ("quoted", "lower"):
            known = value[1:-1] in FIELDS
        else:
            known = kind != "quoted" or not called or _may_be_called(value[1:-1], before)
        wrong += [] if known else [value]
    return wrong


def _may_be_called(name: str, before: list[str]) -> bool:
    if before[-1:] == ["AS"] or name.startswith("common table "):
        return True
    schema = before[0] if len(before) == 2 and before[1] == "." else ""
    return name in {"pg_catalog": FUNCTIONS | TYPES, "information_schema": SCHEMA_FUNCTIONS | SCHEMA_TYPES}.get(schema, frozenset())
