"""The columns of an answer before the question is asked: free, and no row is read."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lapwing.answers.assembly import empty_answer
from lapwing.asking.ask import ask
from lapwing.asking.bound_statement import bound_statement
from lapwing.asking.introspection import about_itself, columns_alone
from lapwing.asking.options import AskOptions, AskRequest
from lapwing.curator.curator import Curator
from lapwing.prices import statement_loss
from lapwing.sql.text.privacy_words import ShowBudget, read_words


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """Names, types, and which columns come from measured values and so may have error bars."""

    schema: pa.Schema
    measured: tuple[str, ...] = ()


def asked_columns(curator: Curator, sql: str, *, dialect: str, analyst: str) -> ResultColumns:
    """The columns of the answer to a statement, or ``Refused`` for the same reasons as asking it."""
    described = about_itself(curator, sql, dialect=dialect, analyst=analyst)
    if described is not None:
        return ResultColumns(described.table.schema)
    words = read_words(sql, settings=curator.settings, dialect=dialect)
    if isinstance(words, ShowBudget) or words.explain:
        return ResultColumns(ask(curator, AskRequest(sql, AskOptions(dialect=dialect), analyst)).table.schema)
    columns = columns_alone(curator, words.statement, dialect=dialect)
    if columns is not None:
        return ResultColumns(columns.table.schema)
    bound = bound_statement(curator, words, dialect=dialect)
    planned = bound.checked_plan(statement_loss(bound.budget, curator.declaration.defaults.epsilon))
    post = bound.statement.post
    measured = tuple(output.name for output in post.outputs if output.mark is not None)
    return ResultColumns(empty_answer(planned, post).schema, measured)
