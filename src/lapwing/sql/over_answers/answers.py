"""The result of a query: an answer, or rows with the columns that its SELECT lists."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.kernel.expressions import Column
from lapwing.kernel.ir import Project, Relation
from lapwing.sql.over_answers.values import Value
from lapwing.sql.rows import algebra
from lapwing.sql.rows.names import NoisyField, NoisyItem
from lapwing.sql.scalars.scope import Rows, Scope
from lapwing.sql.scalars.typed import Typed
from lapwing.statements import PostProcess, RowsAtMost


@dataclass(frozen=True, slots=True)
class AnsweredSelect:
    """A SELECT that is an answer: its post-processing, and what is known about each column."""

    post: PostProcess
    values: tuple[Value, ...]
    rows: RowsAtMost
    aggregated: bool = False
    """Whether it is an aggregate over answers."""

    @property
    def item(self) -> NoisyItem:
        """The answer as a relation for another SELECT. Columns are named c0, c1, .."""
        fields: dict[str, NoisyField] = {}
        marked = self.post.marked
        for number, (output, value) in enumerate(zip(self.post.outputs, self.values, strict=True)):
            mark = f"m{number}" if number in marked else None
            fields.setdefault(output.name.lower(), NoisyField(f"c{number}", value.kind, algebra.COMPUTED, mark, value.number))
        return NoisyItem(self.post.sql(numbered=False, marked=marked), fields, self.rows)


def named_rows(source: Relation, label: str, outputs: list[tuple[str, Typed]], scope: Scope) -> Rows:
    """Rows with the columns that a SELECT lists. Where it computes something, they are projected; plain columns keep their names."""
    plain = {name: typed.expression.name for name, typed in outputs if isinstance(typed.expression, Column)}
    if len(plain) == len(outputs):
        columns = {column: scope.columns[column] for column in plain.values()}
        origins = {column: scope.origins[column] for column in columns if column in scope.origins}
        kept = set(columns)
        hidden = (scope.hidden | set(scope.columns)) - kept
        return Rows(source, label, columns, plain, origins, frozenset(scope.units & kept), frozenset(scope.virtual & kept), hidden)
    names = {name: f"x{i}" for i, (name, _) in enumerate(outputs)}
    virtual = frozenset(names[name] for name, column in plain.items() if column in scope.virtual)
    listed = tuple((names[name], typed.expression) for name, typed in outputs if names[name] not in virtual)
    return Rows(
        relation=Project(source, listed),
        label=label,
        columns={names[name]: typed.domain for name, typed in outputs},
        names=names,
        origins={names[name]: scope.origins[column] for name, column in plain.items() if column in scope.origins},
        units=frozenset(names[name] for name, column in plain.items() if column in scope.units),
        virtual=virtual,
    )
