"""Consume all or refuse: the only way the binder looks at a foreign tree.

A ``Reader`` stands for one node. What the binder wants to know it takes by name; ``finish`` refuses any argument that is set and was not
taken. The session remembers which nodes were read, so that at the end every node of the tree must have been.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlglot import exp

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused
from lapwing.sql.source import Source

_REASONS: dict[tuple[str, str], tuple[str, str]] = {
    ("Select", "distinct"): ("SELECT DISTINCT is not supported yet", "GROUP BY the columns and ask for COUNT(*)"),
    ("Select", "with_"): ("WITH is not supported yet", "write the query without a common table expression"),
    ("Select", "windows"): ("windows are not supported yet", "order the answer with ORDER BY"),
    ("Select", "qualify"): ("QUALIFY is not supported", "filter the answer with HAVING"),
    ("Select", "sample"): ("sampling is not supported", "leave it out: the noise already covers every row"),
    ("Select", "into"): ("SELECT INTO is not supported", "an answer is returned, never stored as a table"),
    ("Select", "locks"): ("row locks are not supported", "leave the clause out: data is never changed"),
    ("Select", "pivots"): ("PIVOT is not supported", "use one aggregate with FILTER for each column"),
    ("Table", "sample"): ("sampling is not supported", "leave it out: the noise already covers every row"),
    ("Table", "db"): ("tables are named without a schema", "use the name of the catalogue alone"),
    ("Table", "pivots"): ("PIVOT is not supported", "use one aggregate with FILTER for each column"),
    ("Group", "rollup"): ("ROLLUP is not supported yet", "ask one statement for each level"),
    ("Group", "cube"): ("CUBE is not supported yet", "ask one statement for each level"),
    ("Group", "grouping_sets"): ("GROUPING SETS are not supported yet", "ask one statement for each set"),
    ("Group", "all"): ("GROUP BY ALL is not supported", "list the columns"),
    ("In", "query"): ("IN with a subquery is not supported yet", "list the values"),
    ("Join", "method"): ("this kind of join is not supported", "use JOIN ... ON or JOIN ... USING"),
    ("Column", "db"): ("columns are named with at most a table in front", "use table.column"),
}
"""Message and hint for arguments that are worth more than the general refusal."""


@dataclass(slots=True)
class Session:
    """One statement being bound. It changes as the tree is read: ``depth`` is the nesting of the node in hand, ``read`` what was read."""

    source: Source
    settings: Settings
    depth: int = 0
    read: set[int] = field(default_factory=set)
    lookup_work: int = 0
    """Text that functions went through so far."""
    lookup_listed: int = 0
    """Text that look-ups list so far."""

    @contextmanager
    def reading(self, node: exp.Expr) -> Iterator[Reader]:
        """Read a node: everything that is set must have been taken when the block ends."""
        self.depth += 1
        if self.depth > self.settings.expression_depth_max:
            raise self.source.refuse("expression-too-deep", f"nested deeper than {self.settings.expression_depth_max} levels", node=node)
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
    """One node of a foreign tree and the names of its arguments that have not been read."""

    __slots__ = ("_source", "_unread", "node")

    def __init__(self, node: exp.Expr, source: Source) -> None:
        self.node = node
        self._source = source
        self._unread = {name for name, value in node.args.items() if is_set(value)}

    def node_of(self, name: str) -> exp.Expr:
        """A child that must be there."""
        child = self.optional(name)
        if child is None:
            raise self._source.refuse("sql-unsupported", f"{_spoken(self.node)} is incomplete", node=self.node)
        return child

    def optional(self, name: str) -> exp.Expr | None:
        """A child that may be missing."""
        value = self._take(name)
        if value is None or isinstance(value, exp.Expr):
            return value
        raise self._source.refuse("sql-unsupported", f"{_spoken(self.node)} cannot be used like this", node=self.node)

    def many(self, name: str) -> tuple[exp.Expr, ...]:
        """A list of children, perhaps empty."""
        value = self._take(name)
        items = () if value is None else tuple(value) if isinstance(value, list) else (value,)
        if all(isinstance(item, exp.Expr) for item in items):
            return items
        raise self._source.refuse("sql-unsupported", f"{_spoken(self.node)} cannot be used like this", node=self.node)

    def flag(self, name: str) -> bool:
        """A mark that is set or not."""
        value = self._take(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._source.refuse("sql-unsupported", f"{_spoken(self.node)} cannot be used like this", node=self.node)

    def word(self, name: str) -> str:
        """A word of the text, empty if missing."""
        value = self._take(name)
        if value is None or isinstance(value, str):
            return value or ""
        raise self._source.refuse("sql-unsupported", f"{_spoken(self.node)} cannot be used like this", node=self.node)

    def data_type(self, name: str) -> exp.DType:
        """The plain type that a type node stands for."""
        value = self._take(name)
        if isinstance(value, exp.DType):
            return value
        raise self._source.refuse("cast-unsupported", "this type is not supported", node=self.node)

    def require_absent(self, *names: str) -> None:
        """Refuse at once if one of these is set: it would change the meaning of all the rest."""
        self._refuse([name for name in names if name in self._unread])

    def finish(self) -> None:
        """Refuse what is set and was not read."""
        self._refuse(sorted(self._unread))

    def _refuse(self, names: list[str]) -> None:
        for name in names:
            general = f"{_spoken(self.node)} with {name.strip('_').replace('_', ' ')} is not supported", ""
            message, hint = _REASONS.get((type(self.node).__name__, name), general)
            value = self.node.args[name]
            items = value if isinstance(value, list) else [value]
            where = next((item for item in items if isinstance(item, exp.Expr)), self.node)
            raise self._source.refuse("sql-unsupported", message, node=where, hint=hint)

    def _take(self, name: str) -> object:
        self._unread.discard(name)
        value = self.node.args.get(name)
        return value if is_set(value) else None


def is_set(value: object) -> bool:
    """Whether an argument of a node says anything: parsers write None, False and empty lists for what is absent."""
    return not (value is None or value is False or (isinstance(value, list) and not value))


def _spoken(node: exp.Expr) -> str:
    """What a node is called in messages."""
    return type(node).__name__.upper()
