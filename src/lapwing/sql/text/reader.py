"""Consume all or refuse: the binder reads the parser's tree only through this class.

A ``Reader`` wraps one node. The binder takes arguments by name; ``finish`` refuses any argument that is set and was not
taken. The session remembers which nodes were read, so that at the end every node of the tree must have been.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.sql.text.source import Source
from lapwing.statements import DecidedRows, RowsAtMost, Statement


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why an argument is refused, if it is more specific than that it is not supported."""

    code: str
    message: str
    hint: str = ""


_WINDOWS = Reason("window-unsupported", "named windows work over answers, not over rows", "write the window inside OVER (...)")
_QUALIFY = Reason("window-unsupported", "QUALIFY works on answers, not on rows", "add GROUP BY: QUALIFY then filters rows of the answer")
_NO_PLACE = "rows of a subquery have no order, so none can be left out by its position"
_UNION_PLACE = Reason(
    "sql-unsupported", "ORDER BY and LIMIT cannot follow a UNION ALL", "SELECT * FROM (... UNION ALL ...) AS t ORDER BY ..."
)
_SAMPLE = Reason("sample-unsupported", "sampling is not supported", "leave it out: the noise already covers every row")
_PIVOT = Reason("sql-unsupported", "PIVOT is not supported", "use one aggregate with FILTER for each column")
_LEVELS = Reason("groups-unsupported", "this syntax for levels of groups is not supported", "GROUP BY ROLLUP (a, b)")
_REASONS: dict[tuple[str, str], Reason] = {
    ("Select", "distinct"): Reason("distinct-unsupported", "DISTINCT of rows is not supported in this subquery", "leave DISTINCT out"),
    ("Select", "with_"): Reason("with-unsupported", "WITH is not allowed here", "put it at the start of the statement"),
    ("Select", "windows"): _WINDOWS,
    ("Window", "alias"): _WINDOWS,
    ("Select", "qualify"): _QUALIFY,
    ("Select", "order"): Reason("sql-unsupported", _NO_PLACE, "leave ORDER BY out"),
    ("Select", "limit"): Reason("sql-unsupported", _NO_PLACE, "leave LIMIT out"),
    ("Select", "offset"): Reason("sql-unsupported", _NO_PLACE, "leave OFFSET out"),
    ("Union", "order"): _UNION_PLACE,
    ("Union", "limit"): _UNION_PLACE,
    ("Union", "offset"): _UNION_PLACE,
    ("Select", "sample"): _SAMPLE,
    ("Select", "into"): Reason("sql-unsupported", "an answer is returned, never stored as a table"),
    ("Select", "locks"): Reason("sql-unsupported", "data is never changed, so there is nothing to lock"),
    ("Select", "pivots"): _PIVOT,
    ("Table", "pivots"): _PIVOT,
    ("Table", "sample"): _SAMPLE,
    ("Group", "rollup"): _LEVELS,
    ("Group", "cube"): _LEVELS,
    ("Group", "grouping_sets"): _LEVELS,
    ("LimitOptions", "percent"): Reason("sql-unsupported", "a percentage of the rows is not supported", "write a number of rows"),
    ("In", "query"): Reason(
        "subquery-unsupported", "IN with a subquery is allowed only in WHERE, combined by AND", "list the values, or move it there"
    ),
    ("In", "field"): Reason("sql-unsupported", "IN takes a list", "write the constants in brackets"),
    ("Join", "method"): Reason("join-unsupported", "this kind of join is not supported", "use JOIN ... ON or JOIN ... USING"),
    ("DataType", "expressions"): Reason("cast-unsupported", "types with parameters are not supported", "CAST to DOUBLE"),
}
"""Reasons for refusing arguments, by class of node and name of argument."""


@dataclass(frozen=True, slots=True)
class Schemas:
    """Names that may qualify the name of a table, in lower case: all tables of a data set are in one schema of one catalogue."""

    schemas: tuple[str, ...] = ("public", "main")
    catalogues: tuple[str, ...] = ()

    @classmethod
    def of(cls, data_set: str) -> Schemas:
        """PostgreSQL's and DuckDB's own names, and the data set's: whole, or up to the first hyphen, where a name without quotes ends."""
        own = tuple(dict.fromkeys((data_set.lower(), data_set.lower().partition("-")[0])))
        return cls((*cls().schemas, *own), own)


@dataclass(slots=True)
class Session:
    """One statement being bound. It changes as the tree is read: ``depth`` is the nesting of the current node, ``read`` the nodes read."""

    source: Source
    settings: Settings
    schemas: Schemas = Schemas()
    moment: int | None = None
    """The time of the request, in microseconds since 1970, in UTC; None without a request."""
    dialect: str = "duckdb"
    typed_numbers: bool = False
    """Whether arithmetic follows the types of numbers; otherwise every number that is not an integer is a double."""
    depth: int = 0
    read: set[int] = field(default_factory=set)
    scans: int = 0
    """Scans of protected tables so far; each use of a name of WITH counts all of its scans."""
    parts: int = 0
    """Parts of the expressions of subqueries so far, likewise."""
    lookup_work: int = 0
    """The amount of text that functions have processed so far."""
    lookup_listed: int = 0
    """The amount of text that look-ups list so far."""
    aggregates_answers: bool = False
    """Whether there is an aggregate over answers so far."""
    crossed: list[RowsAtMost] = field(default_factory=list)
    """Joins of answers that pair any row with any row so far."""
    reads_public: bool = False
    """Whether it contains rows of a public table as constants."""
    decided: tuple[DecidedRows, ...] = ()
    """Rows of the answers that decide which rows count, as far as they are bought."""
    first: list[Statement] = field(default_factory=list)
    """These answers so far, in the order they are to be bought."""
    deciding: int = 0
    """How often a query used with rows was found to be an answer so far."""
    supposed: int = 0
    """How often a placeholder was used for a value that is not bought yet."""
    notes: list[str] = field(default_factory=list)
    """Notes for the author of the statement, whatever the answer."""

    @contextmanager
    def reading(self, node: exp.Expr) -> Iterator[Reader]:
        """Read a node: everything that is set must have been taken when the block ends."""
        if self.depth == self.settings.expression_depth_max:
            raise self.source.refuse(
                "expression-too-deep", f"the statement is nested deeper than {self.settings.expression_depth_max} levels", node=node
            )
        self.depth += 1
        reader = Reader(node, self.source)
        try:
            yield reader
        except Refused as error:
            if error.span is None:
                error.span = self.source.span(node)
            raise
        finally:
            self.depth -= 1
        reader.finish()
        self.read.add(id(node))

    def refuse(self, code: str, message: str, *, node: exp.Expr | None = None, hint: str = "") -> Refused:
        """A refusal that points at a node."""
        return self.source.refuse(code, message, node=node, hint=hint)


class Reader:
    """One node of the parser's tree and the names of its arguments that have not been read."""

    __slots__ = ("_source", "_unread", "node")

    def __init__(self, node: exp.Expr, source: Source) -> None:
        self.node = node
        self._source = source
        self._unread = {name for name, value in node.args.items() if is_set(value)}

    def node_of(self, name: str) -> exp.Expr:
        """A child that must be there."""
        child = self.optional(name)
        if child is None:
            raise self._source.refuse("sql-unsupported", "something is missing here", node=self.node)
        return child

    def optional(self, name: str) -> exp.Expr | None:
        """A child that may be missing."""
        value = self._take(name)
        if value is None or isinstance(value, exp.Expr):
            return value
        raise self._source.refuse("sql-unsupported", "this is not supported in this form", node=self.node)

    def many(self, name: str) -> tuple[exp.Expr, ...]:
        """A list of children, perhaps empty."""
        value = self._take(name)
        items = () if value is None else tuple(value) if isinstance(value, list) else (value,)
        if all(isinstance(item, exp.Expr) for item in items):
            return items
        raise self._source.refuse("sql-unsupported", "this is not supported in this form", node=self.node)

    def flag(self, name: str) -> bool:
        """A flag that is set or not."""
        value = self._take(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._source.refuse("sql-unsupported", "this is not supported in this form", node=self.node)

    def word(self, name: str) -> str:
        """A word of the text, empty if missing."""
        value = self._take(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise self._source.refuse("sql-unsupported", "this is not supported in this form", node=self.node)

    def data_type(self, name: str) -> exp.DType:
        """The plain type of a type node."""
        value = self._take(name)
        if isinstance(value, exp.DType):
            return value
        raise self._source.refuse("cast-unsupported", "this type is not supported", node=self.node)

    def require_absent(self, *names: str) -> None:
        """Refuse at once if one of these is set: it would change the meaning of the rest."""
        self._refuse([name for name in names if name in self._unread])

    def finish(self) -> None:
        """Refuse arguments that are set and were not read."""
        self._refuse(sorted(self._unread))

    def _refuse(self, names: list[str]) -> None:
        for name in names:
            value = self.node.args[name]
            items = value if isinstance(value, list) else [value]
            where = next((item for item in items if isinstance(item, exp.Expr)), self.node)
            general = Reason("sql-unsupported", f"{name.strip('_').replace('_', ' ')} is not supported here")
            reason = _REASONS.get((type(self.node).__name__, name), general)
            raise self._source.refuse(reason.code, reason.message, node=where, hint=reason.hint)

    def _take(self, name: str) -> object:
        self._unread.discard(name)
        value = self.node.args.get(name)
        return value if is_set(value) else None


def is_set(value: object) -> bool:
    """Whether an argument of a node is set: parsers write None, False and empty lists for absent arguments."""
    return not (value is None or value is False or (isinstance(value, list) and not value))
