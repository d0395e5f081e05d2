"""First questions to ask, from the declarations of the tables: each can be answered, and none was taken from rows."""

from __future__ import annotations

import re
from typing import Any

from lapwing.errors import LapwingError
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.access import AuthorizedRequest
from lapwing.interfaces.http.routes import asking
from lapwing.interfaces.http.shapes import AskedBody
from lapwing.interfaces.http.statement_words import statement_words

FIRST_EPSILON = "0.2"
FIRST_MAX = 4
FIRST_TABLES_MAX = 4
"""The number of tables with proposed questions."""
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")


async def first_questions(call: AuthorizedRequest) -> list[tuple[str, str]]:
    """Questions that suit the declared columns, each as text and as a URL token: a few for each table."""
    try:
        tables = (await asking.described(call))["tables"][:FIRST_TABLES_MAX]
        asked = [
            question
            for table in tables
            for question in _asked_of(table, (await asking.table(table, call))["columns"], is_only=len(tables) == 1)
        ]
    except LapwingError:
        return []
    return [(words, PageQuestion(sql, FIRST_EPSILON).token()) for words, sql in asked]


async def example(call: AuthorizedRequest, tables: list[str]) -> str:
    """A statement that would be answered: counts by a declared list if there is one, else the count of a table; empty without either.

    The planner decides which names and how many groups a statement may have, so each candidate is explained first.
    """
    for table in tables:
        columns = (await asking.table(table, call))["columns"]
        for sql in (*(_counts_by(table, key) for key in _listed(columns)), _count_of(table)):
            try:
                if not (await asking.explain(AskedBody(sql=sql), call))["cost"]["free"]:
                    return sql
            except LapwingError:
                continue
    return ""


def quoted_name(name: str) -> str:
    """A quoted name for a statement, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _asked_of(table: str, columns: dict[str, Any], *, is_only: bool) -> list[tuple[str, str]]:
    """Questions for the number of rows: in total, by each list and over time."""
    asked = [(f"How many rows does {table} have?", f"SELECT COUNT(*) AS n FROM {quoted_name(table)}")]
    of = "" if is_only else f"rows of {table} "
    listed = _listed(columns)
    for row in _rows(columns):
        key = quoted_name(row["column"])
        by = f"FROM {quoted_name(table)} GROUP BY {key} ORDER BY {key}"
        if row["column"] in listed and row["type"] == "text":
            asked.append((f"How many {of}for each {row['column']}?", f"SELECT {key}, COUNT(*) AS n {by}"))
        elif row["type"] in ("date", "timestamp"):
            month = f"SELECT DATE_TRUNC('month', {key}) AS month, COUNT(*) AS n FROM {quoted_name(table)} GROUP BY month ORDER BY month"
            asked.append((f"How many {of}in each month, by {row['column']}?", month))
    return asked[:FIRST_MAX]


def _rows(columns: dict[str, Any]) -> list[dict[str, str]]:
    """The declaration of each column of a table."""
    names = [column["name"] for column in columns["columns"]]
    return [dict(zip(names, row, strict=True)) for row in columns["rows"]]


def _listed(columns: dict[str, Any]) -> list[str]:
    """Columns with a few declared values, text before booleans."""
    rows = _rows(columns)
    words = [row["column"] for row in rows if row["type"] == "text" and "," in row["values"]]
    return words + [row["column"] for row in rows if row["type"] == "boolean"]


def _counts_by(table: str, key: str) -> str:
    return f"SELECT {_typed(key)}, COUNT(*) AS n FROM {_typed(table)} GROUP BY {_typed(key)}"


def _count_of(table: str) -> str:
    return f"SELECT COUNT(*) AS n FROM {_typed(table)}"


def _typed(name: str) -> str:
    """A name as typed: in quotes if necessary."""
    return name if _PLAIN_NAME.fullmatch(name) and name not in statement_words()["keywords"].split() else quoted_name(name)
