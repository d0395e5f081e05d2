"""Keys on the path to a unit: each must lead to one owner, or a person's record would be copied to every row that names its key.

A *link key* is a column of a parent table that the path of another table names (``unit = "visit_id -> visits.visit_id"``). All rows of the
parent that hold one value of it must lead on to the same owner: hold the same unit, or the same key of the next table. Then a row of the
other table reaches one unit at most, and is that unit's alone (docs/proofs/preparation.md). A source in which this does not hold is not
prepared: the error tells the owner alone how many values are shared, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.catalog import Declaration, UnitPath
from lapwing.engines.prepare import SourceTable, link_key
from lapwing.errors import PreparationError
from lapwing.render.dialect import Dialect


@dataclass(frozen=True, slots=True)
class LinkKey:
    """A column that rows of other tables name, and the column of the same table that leads on from there."""

    table: str
    column: str
    owner: str
    """The table's unit column, or its own key to the next table of the path."""


def link_keys(declaration: Declaration) -> tuple[LinkKey, ...]:
    """Every key that some path goes through, each once.

    A key that is itself what leads on (``patient_id`` of patients) is not among them: it always leads to one owner.
    """
    keys: dict[LinkKey, None] = {}
    for table in declaration.tables:
        for hop in table.unit.hops:
            path = declaration.table(hop.target.table).unit
            assert isinstance(path, UnitPath), "nothing belongs to a row that is a unit: the catalogue refuses it"
            owner = path.hops[0].column if path.hops else path.end.column
            if owner != hop.target.column:
                keys[LinkKey(hop.target.table, hop.target.column, owner)] = None
    return tuple(keys)


def link_parents(declaration: Declaration) -> frozenset[str]:
    """Tables whose keys must lead to one owner."""
    return frozenset(key.table for key in link_keys(declaration))


def require_one_owner_each(
    declaration: Declaration, sources: Mapping[str, SourceTable], dialect: Dialect, ask: Callable[[str], Sequence[Sequence[Any]]]
) -> None:
    """Refuse sources in which some key leads to several owners. ``sources`` is all that is read, older rows included."""
    for key in link_keys(declaration):
        shared, rows = ask(shared_keys_query(key, declaration, sources[key.table], dialect))[0]
        if shared:
            count, leads = ("1 value", "leads") if shared == 1 else (f"{shared} values", "lead")
            message = f"{count} of `{key.table}.{key.column}` ({rows} rows) {leads} to more than one owner"
            hint = "rows of other tables that name such a value would be copied to each: make the column unique in its source"
            raise PreparationError("link-key-shared", message, hint=hint)


def shared_keys_query(key: LinkKey, declaration: Declaration, source: SourceTable, dialect: Dialect) -> str:
    """SELECT of how many values of a link key lead to more than one owner, and how many rows hold them.

    Values are compared as links are: after conversion. An unknown owner is an owner of its own; an unknown key links nothing.
    """
    declared = declaration.table(key.table)
    link, owner = (link_key(declared, column, source, dialect) for column in (key.column, key.owner))
    read = f"SELECT {link} AS link, {owner} AS owner FROM {source.sql} s"
    pairs = f"SELECT r.link, r.owner, COUNT(*) AS n FROM ({read}) r GROUP BY r.link, r.owner"
    shared = f"SELECT SUM(p.n) AS n FROM ({pairs}) p WHERE p.link IS NOT NULL GROUP BY p.link HAVING COUNT(*) > 1"
    return f"SELECT COUNT(*), SUM(k.n) FROM ({shared}) k"
