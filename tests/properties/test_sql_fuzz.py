"""Thirty thousand broken and generated statements: each is refused with a span or bound; nothing else happens.

What is bound is checked by other means than the binder's: the tables and columns that its text names are those of the private query, every
node of the parsed tree was read, and, where the bare engine takes the text too, it gives the same answer. A sample is planned and rendered:
the engine says itself which tables the certified SQL reads, and those are the text's.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from fractions import Fraction
from typing import assert_never

import duckdb
import pytest

from lapwing.errors import Refused
from lapwing.kernel.expressions import Expression, columns_of
from lapwing.kernel.ir import Filter, PerUnit, Plan, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitNorms, UnitWindow
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import render_plan
from lapwing.sql.queries import Queries
from lapwing.sql.rows.names import BindCatalog, Environment
from lapwing.sql.scalars.handlers import HANDLERS
from lapwing.sql.statement import OWN_FUNCTIONS
from lapwing.sql.text.parse import deep_recursion, parse
from lapwing.sql.text.reader import Session
from lapwing.statements import AggregateKind, Statement
from tests.support.sizes import size
from tests.support.sql_relations import RelationalQueries
from tests.support.sql_shapes import SqlShape
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import FACTS, MOMENT, PUBLIC_ROWS, REFERENCES, SETTINGS, UNIT_COLUMNS, bound
from tests.unit.sql.grammar import Grammar
from tests.unit.sql.meaning import Row, answer, engine, rows, same, stored
from tests.unit.sql.mutations import WORD, mutated

PARTS = size("fuzzed statements, parts")
RELATIONAL = size("fuzzed statements about several tables, of a part")
GENERATED, MUTATED = 2 * RELATIONAL // 3, 6 * RELATIONAL
"""Statements of each part: broken ones of the list, generated about one table and about several."""
RENDERED_EVERY = 4
"""Of the statements that are bound, one in so many is planned and rendered as well."""

TABLES = {*FACTS.tables, *FACTS.public_tables}
COLUMNS = {
    *(column for table in FACTS.tables.values() for column in table.columns),
    *(column for table in FACTS.public_tables.values() for column in table.columns),
}
UNITS = {"patient_id"}
PARTS_OF_DATES = {"day"}
"""Columns that are also the name of a function or part of a date."""
DECLARED = {"sex", "region", "code", "kind", "chapter", "city"}
_TEXT_WORDS = "like ilike starts_with contains ends_with prefix suffix left right substr substring upper lower concat length replace trim"
TEXT_FUNCTIONS = frozenset(_TEXT_WORDS.split())
"""A function of declared text can turn out to be a constant, and the column is then gone."""
_KEYWORDS = "select distinct where and or not by case when then else having on from between in is like ilike filter as using join interval"
KEYWORDS = frozenset(_KEYWORDS.split())

ROWS = rows(visits=120)
STORED = stored(ROWS)
FEW_ROWS = rows(patients=14, visits=36)
"""For statements about several tables, whose meaning is computed by looking at every pair of rows."""
FEW_STORED = stored(FEW_ROWS)
DIFFERS = re.compile(r"/|count_?if|\bln\b|1e999|\bmean\b", re.IGNORECASE)
"""Where Lapwing differs from a bare engine by decision: division by 0, counts of nothing, logarithms of 0."""


def _read(relation: Relation) -> tuple[set[str], set[str]]:
    """Tables and columns of a relation."""
    match relation:
        case Scan(table):
            return {table}, set()
        case Filter(source, predicate):
            tables, columns = _read(source)
            return tables, columns | columns_of(predicate)
        case PublicJoin(source, table, on, added):
            tables, columns = _read(source)
            key = FACTS.public_table(table).key
            return tables | {table}, columns | columns_of(on) | {key} | {column for _, column in added}
        case Project(source, projected):
            tables, columns = _read(source)
            return tables, columns.union(*(columns_of(value) for _, value in projected))
        case UnitJoin(left, right, pairs, added) | SemiJoin(left, right, pairs, columns=added):
            (tables, columns), (more, others) = _read(left), _read(right)
            linked = {name for pair in pairs for name in pair} | (set() if relation.where is None else columns_of(relation.where))
            return tables | more, columns | others | linked | {column for _, column in added} | UNITS
        case Union(sources):
            found = [_read(source) for source in sources]
            return set().union(*(tables for tables, _ in found)), set().union(*(columns for _, columns in found))
        case PerUnit(source, aggregates, keys):
            tables, columns = _read(source)
            values = [aggregate.value for _, aggregate in aggregates if aggregate.value is not None] + [value for _, value in keys]
            return tables, columns.union(UNITS, *(columns_of(value) for value in values))
        case UnitWindow(source, windows):
            tables, columns = _read(source)
            read = [value for _, window in windows for value in (*window.partition, *(key.value for key in window.order), window.value)]
            return tables, columns.union(UNITS, *(columns_of(value) for value in read if value is not None))
        case _:
            assert_never(relation)


def _named(statement: Statement) -> tuple[set[str], set[str]]:
    """Tables and columns of all private queries."""
    tables: set[str] = set()
    columns: set[str] = set()
    for private in statement.privates:
        own, read = _read(private.source)
        expressions: list[Expression | None] = [key for _, key in private.keys]
        for aggregate in private.aggregates:
            expressions += [aggregate.value, aggregate.second, aggregate.where]
            if aggregate.kind in (AggregateKind.COUNT_UNITS, AggregateKind.COUNT):  # COUNT of the unit's column is COUNT(*)
                read |= UNITS
        tables |= own
        columns |= read.union(*(columns_of(expression) for expression in expressions if expression is not None))
    return tables, columns


def _words(text: str) -> list[str]:
    """Words of a text outside quotes and comments, small, quoted names without their quotes."""
    without = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return [word.strip('"').lower() for word in WORD.findall(without) if not word.startswith(("'", "--"))]


def _aliases(words: list[str]) -> set[str]:
    """Names that are given: after AS, or straight after a bracket or a name."""
    given = set()
    for before, word in itertools.pairwise(words):
        ends = before == ")" or (before.isidentifier() and before not in KEYWORDS)
        if word.isidentifier() and (before == "as" or ends):
            given.add(word)
    return given


def _check_names(text: str, statement: Statement) -> None:
    words = _words(text)
    tables, columns = _named(statement)
    named = {word for word in words if word in TABLES}
    # A public table beside answers is written out: it is in no private query, and its rows are in what is done with the answers.
    written_out = set(FACTS.public_tables) if "(VALUES " in statement.post.sql(numbered=False) else set()
    assert named - _aliases(words) - written_out <= tables <= named, text
    if words.count("select") > 1:
        return  # what an inner SELECT lists need not be used
    # A name in the relation may carry its table in front: clinics_city is city of clinics.
    known = tables | columns | {name.partition("_")[2] for name in columns} | _aliases(words) | PARTS_OF_DATES
    if not TEXT_FUNCTIONS.isdisjoint(words):
        known |= DECLARED
    lost = [word for word in words if word in TABLES | COLUMNS and word not in known]
    assert lost == [], f"{lost} are in the text but not in the query: {text}"


def _check_rendered(text: str, bare: duckdb.DuckDBPyConnection) -> bool:
    """Whether the statement could be planned; if so, the engine reads the tables of the text, each under its own name, and nothing else."""
    try:
        plan = SqlShape(text, Fraction(1), None, UNIT_COLUMNS, REFERENCES).planned(FACTS)
    except Refused:
        return False
    if plan.measured is None:
        return False
    rendered = [sql for query in render_plan(plan.measured, DUCKDB) for sql in (query.sql, *(one.sql for one in query.quantiles)) if sql]
    read = set().union(*(bare.get_table_names(sql.replace("$salt", "''")) for sql in rendered))  # its parameter, the salt, is a text
    assert read == _named_by(plan.measured.plan) <= set(_words(text)), text
    return True


def _named_by(plan: Plan) -> set[str]:
    sources = (query.source.source if isinstance(query.source, UnitNorms) else query.source for query in plan.queries)
    return set().union(*(_read(source)[0] for source in sources))


def _check_read(text: str) -> None:
    with deep_recursion(SETTINGS.expression_depth_max):
        source, tree = parse(text, settings=SETTINGS, dialect="duckdb", own=OWN_FUNCTIONS)
        session = Session(source, SETTINGS, moment=MOMENT)
        Queries(session, BindCatalog(FACTS, UNIT_COLUMNS, REFERENCES, PUBLIC_ROWS.get), HANDLERS).bind(tree, Environment())
    assert session.read == {id(node) for node in tree.walk()}, text


def _statements(part: int) -> list[str]:
    rng = random.Random(9_000 + part)
    texts = list(ACCEPTED.values())
    made = [mutated(rng.choice(texts), rng) for _ in range(MUTATED)]
    several = RelationalQueries(FACTS, UNIT_COLUMNS, REFERENCES, seed=9_100 + part, comparable=True)
    made += [Grammar(rng, rng.choice(["visits", "patients"])).statement() for _ in range(GENERATED)]
    made += [several.statement().text for _ in range(RELATIONAL)]
    return [text if i < MUTATED or rng.random() < 0.5 else mutated(text, rng) for i, text in enumerate(made)]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_statement_is_refused_or_bound(part: int) -> None:
    assert size("fuzzed statements in all") <= PARTS * (MUTATED + GENERATED + RELATIONAL)
    bare, few = engine(ROWS), engine(FEW_ROWS)
    seen: Counter[str] = Counter()
    for text in _statements(part):
        try:
            statement = bound(text)
        except Refused as error:
            assert error.span is not None and 0 <= error.span.start <= error.span.end <= len(text), text
            seen["refused"] += 1
            continue
        seen["bound"] += 1
        _check_names(text, statement)
        _check_read(text)
        if seen["bound"] % RENDERED_EVERY == 0:
            seen["rendered"] += _check_rendered(text, bare)
        if not DIFFERS.search(text):
            several = text.upper().count("SELECT") > 1 or " JOIN " in text.upper()
            seen[_compared(text, statement, few if several else bare, FEW_STORED if several else STORED)] += 1
            seen["several"] += several
    least = {"bound": 0.8, "same": 0.5, "several": 0.25, "rendered": 0.15}
    assert {name: seen[name] for name, share in least.items() if seen[name] < share * RELATIONAL} == {}, seen
    assert seen["engine refuses"] < 20, seen  # the parser takes a few texts more: WITH t (SELECT ..), names that are reserved there


def _compared(text: str, statement: Statement, bare: duckdb.DuckDBPyConnection, tables: dict[str, list[Row]]) -> str:
    try:
        expected = bare.execute(text).fetchall()
    except duckdb.Error:
        return "engine refuses"
    assert same(answer(statement, tables), expected, ordered=False), text
    return "same"
