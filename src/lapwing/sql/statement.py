"""A whole statement: from text to private queries and post-processing, every word of it read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.kernel.facts import Facts
from lapwing.sql.over_answers.answers import AnsweredSelect
from lapwing.sql.queries import Queries
from lapwing.sql.row_refusals import row_refusal
from lapwing.sql.rows.names import BindCatalog, Environment, PublicRows
from lapwing.sql.scalars.handlers import BY_NAME, HANDLERS
from lapwing.sql.scalars.moment import SPELLINGS
from lapwing.sql.scalars.scope import Origin
from lapwing.sql.text.parse import OwnFunctions, deep_recursion, parse
from lapwing.sql.text.reader import Schemas, Session
from lapwing.sql.text.refusals import span_of
from lapwing.sql.text.source import Source
from lapwing.sql.text.unread_words import take_census
from lapwing.statements import DecidedRows, Statement

OWN_FUNCTIONS = OwnFunctions(BY_NAME, SPELLINGS)


def bind_statement(
    text: str,
    facts: Facts,
    *,
    settings: Settings,
    unit_columns: Mapping[str, str],
    references: Mapping[Origin, Origin],
    dialect: str,
    tokens: tuple[Token, ...] | None = None,
    public_rows: PublicRows | None = None,
    moment: int | None = None,
    decided: tuple[DecidedRows, ...] = (),
) -> Statement:
    """See ``lapwing.sql.bind``."""
    known = BindCatalog(facts, unit_columns, references, public_rows)
    with deep_recursion(settings.expression_depth_max):
        try:
            source, tree = parse(text, tokens, settings=settings, dialect=dialect, own=OWN_FUNCTIONS)
            return bind_tree(source, tree, known, settings=settings, dialect=dialect, moment=moment, decided=decided)
        except RecursionError as error:
            message = f"the statement is nested deeper than {settings.expression_depth_max} levels"
            raise Refused("expression-too-deep", message, span=span_of(text, 0, len(text))) from error


def bind_tree(
    source: Source,
    tree: exp.Expr,
    known: BindCatalog,
    *,
    settings: Settings,
    dialect: str = "duckdb",
    moment: int | None = None,
    decided: tuple[DecidedRows, ...] = (),
) -> Statement:
    """The statement of a parsed tree, or refuse. Post: every node was read, and every word of the text is in some node."""
    session = Session(source, settings, Schemas.of(known.facts.source_id), moment, dialect, known.facts.typed_numbers, decided=decided)
    queries = Queries(session, known, HANDLERS, tree)
    answered = queries.bind(tree, Environment())
    if not isinstance(answered, AnsweredSelect):
        raise row_refusal(session, tree, known.facts)
    if not queries.privates and not session.reads_public:
        raise session.refuse("from-missing", "the statement names no table of the data set in FROM", node=tree)
    for node in tree.walk():
        if id(node) not in session.read:
            raise session.refuse("sql-unsupported", "this part of the statement has no effect", node=node)
    take_census(source, tree)
    privates = tuple(query for query in queries.privates if query is not None)
    post = replace(answered.post, aggregates=session.aggregates_answers, crossed=tuple(session.crossed))
    return Statement(source.text, privates, post, tuple(queries.spans), tuple(dict.fromkeys(session.notes)), tuple(session.first))
