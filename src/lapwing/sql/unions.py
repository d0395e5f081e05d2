"""UNION ALL: of rows, which stay with their units; and of answers, which are measured as one where their rows exclude one another."""

from __future__ import annotations

from functools import reduce
from operator import mul

from sqlglot import exp

from lapwing.errors import Refused
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Project, Union
from lapwing.kernel.stability import shape_of
from lapwing.sql.over_answers.answers import AnsweredSelect
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows import algebra, disjoint
from lapwing.sql.scalars.scope import Rows
from lapwing.sql.text.reader import Session
from lapwing.statements import Output, PostProcess, PrivateQuery, RowsAtMost


def union_of_rows(session: Session, facts: Facts, parts: list[Rows], node: exp.Expr) -> Rows:
    """All rows of both; they stay with their units."""
    first = parts[0]
    if any(len(part.names) != len(first.names) for part in parts):
        raise session.refuse("union-columns", "both parts of UNION ALL need the same number of columns", node=node)
    sources, virtual = [], set()
    renamed = [f"x{i}" for i in range(len(first.names))]
    for part in parts:
        virtual |= {name for name, column in zip(renamed, part.names.values(), strict=True) if column in part.virtual}
    for part in parts:
        listed = [(name, Column(column)) for name, column in zip(renamed, part.names.values(), strict=True) if name not in virtual]
        sources.append(Project(part.relation, tuple(listed)))
    relation = Union(tuple(sources))
    try:
        columns = dict(shape_of(relation, facts).columns)
    except Refused as error:
        error.span = error.span or session.source.span(node)
        raise
    units = {name for i, name in enumerate(renamed) if all([*part.names.values()][i] in part.units for part in parts)}
    domains = {name: columns.get(name, first.columns[[*first.names.values()][i]]) for i, name in enumerate(renamed)}
    return Rows(relation, "union", domains, dict(zip(first.names, renamed, strict=True)), {}, frozenset(units), frozenset(virtual))


def union_of_answers(session: Session, privates: list[PrivateQuery | None], parts: list[AnsweredSelect], node: exp.Expr) -> AnsweredSelect:
    """The rows of both answers, one after the other."""
    first = parts[0]
    for part in parts[1:]:
        if [value.kind for value in part.values] != [value.kind for value in first.values]:
            raise session.refuse("union-columns", "both parts of UNION ALL need the same columns", node=node)
    merged = _one_vector(privates, parts)
    if merged is not None:
        return merged
    marked = tuple(sorted({number for part in parts for number in part.post.marked}))
    source = " UNION ALL ".join(f"({part.post.sql(numbered=False, marked=marked)})" for part in parts)
    marks = [f"u.m{i}" if i in marked else None for i in range(len(first.values))]
    outputs = tuple(Output(o.name, f"u.c{i}", algebra.COMPUTED, marks[i]) for i, o in enumerate(first.post.outputs))
    values = tuple(Value(f"u.c{i}", value.kind, algebra.COMPUTED, value.node, mark=marks[i]) for i, value in enumerate(first.values))
    return AnsweredSelect(
        PostProcess(outputs, source=f"({source}) AS u", rows_of=None),
        values,
        reduce(mul, (part.rows for part in parts), RowsAtMost(len(parts))),
    )


def _one_vector(privates: list[PrivateQuery | None], parts: list[AnsweredSelect]) -> AnsweredSelect | None:
    """Branches over one relation that exclude one another are one vector with one bound, which is charged once, not per branch."""
    numbers = [part.post.rows_of for part in parts]
    if any(number is None or number != len(privates) - len(parts) + i for i, number in enumerate(numbers)):
        return None
    queries = [privates[number] for number in numbers if number is not None]
    merged = disjoint.merged([query for query in queries if query is not None])
    if merged is None or not all(_same_but_query(parts[0], part) for part in parts[1:]):
        return None
    assert numbers[0] is not None
    del privates[numbers[0] :]
    privates.append(merged)
    post = parts[0].post
    return AnsweredSelect(
        PostProcess(post.outputs, source=post.source, rows_of=post.rows_of, order_by=(f"q{numbers[0]}.k0 ASC",)),
        parts[0].values,
        RowsAtMost(1, (numbers[0],)),
    )


def _same_but_query(first: AnsweredSelect, other: AnsweredSelect) -> bool:
    """Whether two answers compute the same from the columns of their own queries, and have no other clauses."""
    a, b = first.post, other.post
    plain = all(p == PostProcess(p.outputs, source=p.source, rows_of=p.rows_of) for p in (a, b))
    swapped = [o.sql.replace(f"q{b.rows_of}.", f"q{a.rows_of}.") for o in b.outputs]
    return plain and a.source == f"q{a.rows_of}" and b.source == f"q{b.rows_of}" and [o.sql for o in a.outputs] == swapped
