"""Rewrites of a refused statement, which the user can accept with a click. Each is offered only if it would be answered.

They follow from the refusal's hint and position, so they contain only what the analyst typed and public names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lapwing.errors import LapwingError, Span

_MEANT = re.compile(r"did you mean '([^']+)'\?")
_WRITTEN_AS = re.compile(r"^write it as ('[^']*')$")
# Each pattern runs in linear time, because users can type anything.
_NAMES = re.compile(r"SELECT\s+(?P<names>[\w.]+(?:\s*,\s*[\w.]+)*)\s+(?P<rest>FROM\b.*)", re.IGNORECASE | re.DOTALL)
_STAR = re.compile(r"SELECT\s+\*\s+(?P<rest>FROM\b.*)", re.IGNORECASE | re.DOTALL)
_AFTER_ROWS = re.compile(r"(?<=\s)(GROUP\s+BY|HAVING|ORDER\s+BY|LIMIT|WITH\s+PRIVACY)\b", re.IGNORECASE)
_GROUPED = re.compile(r"\bGROUP\s+BY\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Another statement, and a short description of the change."""

    words: str
    sql: str


def rewrites(sql: str, error: LapwingError) -> Iterator[Rewrite]:
    """Candidates, the most likely first; the caller must check whether they would be answered."""
    span, hint = error.span, error.hint or ""
    if span is not None:
        if meant := _MEANT.search(hint):
            yield Rewrite(f"use {meant[1]}", _put(sql, span, meant[1]))
        if written := _WRITTEN_AS.match(hint):
            yield Rewrite(f"write {written[1]}", _put(sql, span, written[1]))
        if hint.startswith(("leave it out", "leave the comment out")):
            yield Rewrite("leave it out", re.sub(r"[ \t]{2,}", " ", _put(sql, span, "")).rstrip())
        if "add it to GROUP BY" in hint:
            name = sql[span.start : span.end]
            yield Rewrite(f"group by {name}", _grouped(sql, name))
    if error.code == "rows-not-aggregates":
        alone = sql.strip().removesuffix(";").rstrip()
        if names := _NAMES.fullmatch(alone):
            rest = _without_groups(names["rest"])
            yield Rewrite("count them", f"SELECT {names['names']}, COUNT(*) AS n {rest} GROUP BY {names['names']}")
        elif star := _STAR.fullmatch(alone):
            yield Rewrite("count them", f"SELECT COUNT(*) AS n {_without_groups(star['rest'])}")


def _without_groups(text: str) -> str:
    """The text before GROUP BY and the clauses after it."""
    found = _AFTER_ROWS.search(text)
    return text if found is None else text[: found.start()].rstrip()


def _put(sql: str, span: Span, text: str) -> str:
    return sql[: span.start] + text + sql[span.end :]


def _grouped(sql: str, name: str) -> str:
    """The statement with one more key."""
    found = _GROUPED.search(sql)
    if found:
        return f"{sql[: found.end()]}{name}, {sql[found.end() :]}"
    rows = _without_groups(sql)
    return f"{sql.rstrip().rstrip(';')} GROUP BY {name}" if rows == sql else f"{rows} GROUP BY {name}{sql[len(rows) :]}"
