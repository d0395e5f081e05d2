"""The list of a SELECT without aggregates: columns of rows of units, which only another SELECT may use."""

from __future__ import annotations

from sqlglot import exp

from lapwing.kernel.expressions import Column
from lapwing.sql.scalars.binding import Scalars, column_name, computed_column, is_star, qualifier, read_star, require_excluded
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.select_list import SelectItem


def row_items(scalars: Scalars, items: list[SelectItem]) -> list[tuple[str, Typed]]:
    """The columns that a SELECT of rows lists, by name."""
    outputs: list[tuple[str, Typed]] = []
    for item in items:
        if is_star(item.node):
            meant_by, excluded = read_star(scalars.session, item.node)
            matching = [one for one in scalars.scope.items if one.is_meant(meant_by)]
            if meant_by is not None and not matching:
                message = f"there is no table {meant_by.table!r} in this FROM"
                raise scalars.session.refuse("unknown-table", message, node=item.node)
            require_excluded(scalars.session, item.node, excluded, {name for one in matching for name in one.columns})
            for one in matching:
                for name, column in one.columns.items():
                    if name in excluded:
                        continue
                    if column in scalars.scope.computed:
                        outputs.append((name, computed_column(scalars, item.node, column)))
                        continue
                    scalars.scope.used.add(column)
                    outputs.append((name, Typed(Column(column), scalars.scope.columns[column], item.node)))
            continue
        outputs.append((item.name.lower(), _row_value(scalars, item.node)))
    names = [name for name, _ in outputs]
    if len(set(names)) != len(names):
        merged: dict[str, Typed] = {}
        for name, typed in outputs:
            if name in merged and merged[name].expression != typed.expression and name not in scalars.scope.merged:
                hint = "give one an alias"
                raise scalars.session.refuse("ambiguous-column", f"two columns are called {name!r}", node=typed.node, hint=hint)
            merged.setdefault(name, typed)
        return list(merged.items())
    return outputs


def _row_value(scalars: Scalars, node: exp.Expr) -> Typed:
    """One column of rows; the unit of one row per unit may be passed on, though it is not a column of the relation."""
    matches = scalars.scope.lookup(node.name, qualifier(node)) if type(node) is exp.Column else []
    if len(matches) != 1 or matches[0] not in scalars.scope.virtual:
        return scalars.bind(node)
    with scalars.session.reading(node) as reader:
        column_name(scalars.session, reader)
    return Typed(Column(matches[0]), scalars.scope.columns[matches[0]], node)
