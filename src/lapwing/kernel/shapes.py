"""What is publicly known of a relation, and how the shapes of joins and unions follow from those of their parts.

Proofs: docs/proofs/rows-per-unit.md, docs/proofs/unit-work.md.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, KeyDomain, RealDomain, kind_of, union, with_null
from lapwing.kernel.facts import PublicFacts
from lapwing.kernel.ir import JoinKind, PublicJoin, UnitJoin

NAME_BYTES_MAX = 63
"""Longest name of a column: PostgreSQL cuts longer ones off, and two could become one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is publicly known of a relation."""

    columns: Mapping[str, Domain]
    rows_per_unit: int
    rows_max: int
    weighable: bool
    """Each row is still one row of one prepared table, so row weights are sound."""
    widest: int
    """Most rows of one unit in this relation or any that it is made of."""
    work: int
    """Parts of expressions computed for one unit's rows, and rows produced, to compute this relation."""
    numbering: frozenset[str] = frozenset()
    """Columns of whole numbers, each from 1 on, that are distinct within each unit."""

    def after(self, parts: int) -> Shape:
        """The same rows after this many parts of expressions were computed on each."""
        return replace(self, work=self.work + self.rows_per_unit * parts)


def named(columns: Iterable[tuple[str, Domain]]) -> Mapping[str, Domain]:
    """Columns by name. Engines treat names that differ only in letter case as equal, so the kernel does too and refuses the second."""
    result: dict[str, Domain] = {}
    folded: set[str] = set()
    for name, domain in columns:
        same = _folded(name)
        if same in folded or name.startswith("_"):
            raise Refused("column-name", f"the column name {name!r} is used twice or reserved")
        if not name or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX:
            raise Refused("column-name", f"a column name has from 1 to {NAME_BYTES_MAX} bytes")
        folded.add(same)
        result[name] = domain
    return result


@lru_cache(maxsize=10_000)
def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def column_domain(name: str, shape: Shape) -> Domain:
    """Domain of one column, or refuse."""
    if name not in shape.columns:
        raise Refused("unknown-column", f"there is no column {name!r} here")
    return shape.columns[name]


def publicly_joined(join: PublicJoin, shape: Shape, on: Domain, public: PublicFacts) -> Shape:
    """Shape of a join to a public table: its key is unique, so no row becomes two."""
    key = public.columns[public.key]
    texts = isinstance(key, KeyDomain) and isinstance(on, KeyDomain) and key.text != on.text
    if kind_of(key) is not kind_of(on) or isinstance(key, RealDomain) or texts:
        raise Refused("type-mismatch", f"the key of {join.table!r} is a {kind_of(key).value}, not a {kind_of(on).value}")
    added = []
    for name, column in join.columns:
        if column not in public.columns:
            raise Refused("unknown-column", f"there is no column {column!r} in {join.table!r}")
        domain = public.columns[column]
        added.append((name, with_null(domain, True) if join.kind is JoinKind.LEFT else domain))
    return replace(shape, columns=named([*shape.columns.items(), *added]))


def require_comparable(on: tuple[tuple[str, str], ...], left: Shape, right: Shape) -> None:
    """Refuse an equality for which an engine would have to convert values."""
    for a, b in on:
        x, y = column_domain(a, left), column_domain(b, right)
        if isinstance(x, KeyDomain) and isinstance(y, KeyDomain) and x.text == y.text:
            continue
        if kind_of(x) is not kind_of(y) or isinstance(x, RealDomain | KeyDomain):
            raise Refused("type-mismatch", f"columns {a!r} and {b!r} cannot be joined")


def joined(join: UnitJoin, left: Shape, right: Shape) -> Shape:
    """Shape of a join within units: partners have the same unit; nothing else is assumed."""
    require_comparable(join.on, left, right)
    optional = join.kind is JoinKind.LEFT
    added = []
    for name, column in join.columns:
        domain = column_domain(column, right)
        added.append((name, with_null(domain, True) if optional else domain))
    # Counted from either side: a row of the one meets at most as many rows of its unit as the other has. LEFT keeps all left rows.
    fan_out = max(1, right.rows_per_unit) if optional else right.rows_per_unit
    rows = left.rows_per_unit * fan_out
    rows_max = min(left.rows_max * fan_out, right.rows_max * left.rows_per_unit + (left.rows_max if optional else 0))
    return Shape(
        columns=named([*left.columns.items(), *added]),
        rows_per_unit=rows,
        rows_max=rows_max,
        weighable=False,
        widest=max(left.widest, right.widest, rows),
        work=left.work + right.work + left.rows_per_unit + right.rows_per_unit + rows,
    )


def half_joined(on: tuple[tuple[str, str], ...], shape: Shape, other: Shape, parts: int) -> Shape:
    """Shape of rows that have, or do not have, a partner: each stays one row. A condition of so many parts is computed on every pair."""
    require_comparable(on, shape, other)
    work = shape.work + other.work + shape.rows_per_unit + other.rows_per_unit + shape.rows_per_unit * other.rows_per_unit * parts
    return replace(shape, widest=max(shape.widest, other.widest), work=work)


def united(shapes: tuple[Shape, ...]) -> Shape:
    """Shape of all rows of all parts."""
    if not shapes:
        raise Refused("union-empty", "a union needs at least one source")
    first = shapes[0]
    columns = dict(first.columns)
    for shape in shapes[1:]:
        if list(shape.columns) != list(columns):
            raise Refused("union-columns", "all parts of a UNION ALL must have the same columns")
        for name, domain in shape.columns.items():
            if isinstance(domain, RealDomain) and domain.steps != getattr(columns[name], "steps", None):
                raise Refused("union-columns", f"column {name!r} is on different grids in the parts of a UNION ALL")
            if kind_of(domain) is not kind_of(columns[name]):
                raise Refused("union-columns", f"column {name!r} has different types in the parts of a UNION ALL")
            columns[name] = union(columns[name], domain)
    rows = sum(shape.rows_per_unit for shape in shapes)
    return Shape(
        columns=columns,
        rows_per_unit=rows,
        rows_max=sum(shape.rows_max for shape in shapes),
        weighable=False,
        widest=max(rows, *(shape.widest for shape in shapes)),
        work=rows + sum(shape.work for shape in shapes),
    )
