"""Requests for releases: marginals, a synthetic table, a tree of ranges. They have a text form for the ledger and for files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from lapwing.errors import Refused

WAYS_MAX = 4
"""Axes of one marginal."""
COLUMNS_MAX = 64
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")
EDGE = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30}|/[1-9][0-9]{0,29})?([eE][+-]?[0-9]{1,2})?")
"""Digits are limited: 1e999999999 is a short text, but not a number that can be worked with exactly."""
SUMMARY = "release "
"""How the ledger's line of a release begins."""

Bins: TypeAlias = int | tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class Marginals:
    """Counts of rows by every combination of ``ways`` of the columns, and by fewer; by default, of pairs.

    ``bins`` gives, for columns with many values, the number of spans or their edges (in values of the column; days and microseconds since
    1970 for dates and timestamps).
    """

    columns: tuple[str, ...]
    ways: int
    bins: tuple[tuple[str, Bins], ...]

    def __init__(
        self, *columns: str, ways: int | None = None, bins: Mapping[str, int | Sequence[int | float | str | Fraction]] | None = None
    ) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "ways", min(2, len(columns)) if ways is None else ways)
        object.__setattr__(self, "bins", _bins(bins or {}))
        _require_columns(self.columns, self.bins)
        if not 1 <= self.ways <= min(WAYS_MAX, len(columns)):
            raise Refused("release-ways", f"ways must be from 1 to {min(WAYS_MAX, len(columns))} for these columns, not {ways}")


@dataclass(frozen=True, slots=True)
class SyntheticTable:
    """Rows that are like the rows of the table in the columns and pairs of columns that were measured; they do not belong to any unit.

    ``method`` is ``auto``, ``pairs`` or ``independent``: see docs/explanation/synthetic-tables.md.
    """

    columns: tuple[str, ...]
    method: str
    bins: tuple[tuple[str, Bins], ...]

    def __init__(
        self, *columns: str, method: str = "auto", bins: Mapping[str, int | Sequence[int | float | str | Fraction]] | None = None
    ) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "bins", _bins(bins or {}))
        _require_columns(self.columns, self.bins)
        if method not in ("auto", "pairs", "independent"):
            raise Refused("release-method", f"the method of a synthetic table is auto, pairs or independent, not {method!r}")


BRANCH_MAX = 64
"""Children of one node of a tree."""


@dataclass(frozen=True, slots=True)
class RangeTree:
    """Counts of rows by ranges of one ordered column, of any length; for each combination of the ``by`` columns, if there are any.

    The column is counted in leaves (its declared values, or ``bins``), in nodes of ``branch`` leaves, in nodes of ``branch`` of these, and
    so on. ``bins`` is the number of spans of the column or their edges; or a mapping from names of columns to these.
    """

    column: str
    by: tuple[str, ...]
    branch: int
    bins: tuple[tuple[str, Bins], ...]

    def __init__(
        self,
        column: str,
        by: str | Sequence[str] = (),
        branch: int = 4,
        bins: int | Sequence[int | float | str | Fraction] | Mapping[str, int | Sequence[int | float | str | Fraction]] | None = None,
    ) -> None:
        cuts = bins if isinstance(bins, Mapping) else {} if bins is None else {column: bins}
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "by", (by,) if isinstance(by, str) else tuple(by))
        object.__setattr__(self, "branch", branch)
        object.__setattr__(self, "bins", _bins(cuts))
        _require_columns(self.columns, self.bins)
        if not 2 <= branch <= BRANCH_MAX:
            raise Refused("release-branch", f"a node of a tree has 2 to {BRANCH_MAX} children, not {branch}")
        if len(self.by) >= WAYS_MAX:
            raise Refused("release-ways", f"a tree takes at most {WAYS_MAX - 1} further columns")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the release; that of the tree is the last."""
        return (*self.by, self.column)


QuantileRequest: TypeAlias = Marginals | SyntheticTable | RangeTree


def _bins(given: Mapping[str, int | Sequence[int | float | str | Fraction]]) -> tuple[tuple[str, Bins], ...]:
    return tuple((column, cut if isinstance(cut, int) else tuple(_edge(edge, column) for edge in cut)) for column, cut in given.items())


def _edge(written: int | float | str | Fraction, column: str) -> Fraction:
    text = str(written)
    if not EDGE.fullmatch(text):
        raise Refused("axis-bins", f"edges of the column {column!r} must be numbers of at most 30 digits")
    return Fraction(text)


def _require_columns(columns: tuple[str, ...], bins: tuple[tuple[str, Bins], ...]) -> None:
    if not 1 <= len(columns) <= COLUMNS_MAX or len(set(columns)) != len(columns):
        raise Refused("release-columns", f"a release takes 1 to {COLUMNS_MAX} different columns")
    unknown = [column for column, _ in bins if column not in columns]
    if unknown:
        raise Refused("release-columns", f"bins are given for {unknown[0]!r}, which is not among the columns")


PARTS_MAX = 16
"""Parts of one release."""


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """A request for a release of one table, with a name and one or more parts."""

    name: str
    table: str
    wanted: tuple[QuantileRequest, ...]
    rows_per_unit: int = 1
    """The bound on the rows of one unit."""
    shares: tuple[Fraction, ...] = ()
    """The weights by which the price is divided among the parts; equal by default."""

    def __post_init__(self) -> None:
        if not NAME.match(self.name):
            raise Refused(
                "release-name", "the name of a release may have letters, digits, points, hyphens and underscores, at most 80 in all"
            )
        if not 1 <= len(self.wanted) <= PARTS_MAX:
            raise Refused("release-parts", f"a release must have 1 to {PARTS_MAX} parts: marginals, trees of ranges, synthetic tables")
        if self.shares and (len(self.shares) != len(self.wanted) or any(share <= 0 for share in self.shares)):
            raise Refused("release-parts", "shares of the price must be numbers above 0, one for each part of the release")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all parts, each once."""
        return tuple(dict.fromkeys(column for part in self.wanted for column in part.columns))

    def price_shares(self) -> tuple[Fraction, ...]:
        """The share of each part in the price; they sum to 1."""
        shares = self.shares or (Fraction(1),) * len(self.wanted)
        return tuple(share / sum(shares) for share in shares)

    def text(self) -> str:
        """The request as one line; equal requests have equal text."""
        if len(self.wanted) == 1:
            about = {"table": self.table, **wanted_fields(self.wanted[0]), "rows": self.rows_per_unit}
        else:
            about = {"table": self.table, "rows": self.rows_per_unit, "parts": [wanted_fields(part) for part in self.wanted]}
            about |= {"shares": [str(share) for share in self.shares]} if self.shares else {}
        return f"{SUMMARY}{self.name} {json.dumps(about, ensure_ascii=True, separators=(',', ':'))}"

    @classmethod
    def of_text(cls, text: str) -> ReleaseRequest:
        """Inverse of :meth:`text`; ``ValueError`` for any other text."""
        if not text.startswith(SUMMARY):
            raise ValueError("not a release")
        name, _, rest = text.removeprefix(SUMMARY).partition(" ")
        about = json.loads(rest)
        parts, shares = about.get("parts", [about]), about.get("shares", [])
        wanted = tuple(wanted_value(part) for part in parts)
        return cls(name, about["table"], wanted, about["rows"], tuple(Fraction(share) for share in shares))


def kind_of_part(wanted: QuantileRequest) -> str:
    """``marginals``, ``synthetic`` or ``tree``."""
    match wanted:
        case Marginals():
            return "marginals"
        case SyntheticTable():
            return "synthetic"
        case RangeTree():
            return "tree"


def wanted_fields(wanted: QuantileRequest) -> dict[str, Any]:
    """A part of a release as names and plain values."""
    bins = {column: cut if isinstance(cut, int) else [str(edge) for edge in cut] for column, cut in wanted.bins}
    about: dict[str, Any] = {"kind": kind_of_part(wanted), "columns": list(wanted.columns), "bins": bins}
    match wanted:
        case Marginals(ways=ways):
            return about | {"ways": ways}
        case SyntheticTable(method=method):
            return about | {"method": method}
        case RangeTree(branch=branch):
            return about | {"branch": branch}


def wanted_value(about: Mapping[str, Any]) -> QuantileRequest:
    """Inverse of :func:`wanted_fields`."""
    columns, bins = about["columns"], about["bins"]
    if about["kind"] == "marginals":
        return Marginals(*columns, ways=about["ways"], bins=bins)
    if about["kind"] == "tree":
        return RangeTree(columns[-1], columns[:-1], about["branch"], bins)
    return SyntheticTable(*columns, method=about["method"], bins=bins)
