"""Functions of open text, which has no declared values: the kernel's few functions of text, and compositions of them.

The engine computes them row by row, in time that is linear in the length of the text, which is bounded. Patterns never reach an engine:
a LIKE pattern becomes a search for its parts one after another, and so does a regular expression that is made of plain texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.kernel.text_functions import PLACES_MAX
from lapwing.sql.scalars.binding import Scalars
from lapwing.sql.scalars.typed import Typed

MIDDLE_PARTS_MAX = 3
"""Most texts between two % of a pattern: the expression of the text occurs twice for each."""
SPLIT_PARTS_MAX = 5
"""Greatest number of a part between separators, for the same reason."""
ALTERNATIVES_MAX = 10
"""Most texts of a regular expression."""
_NEVER_THERE = 2**20
"""A place beyond the end of every text."""
_PLAIN = re.compile(r"(?:[^\\^$.|?*+()\[\]{}]|\\[^A-Za-z0-9])*")
_ANY = ".*"


def open_text(scalars: Scalars, node: exp.Expr, is_text_function: Callable[[exp.Expr], bool]) -> Typed | None:
    """Text without declared values, as it is or through functions of text; None for anything else."""
    inner: object = node
    while isinstance(inner, exp.Expr) and is_text_function(inner):
        inner = next(iter(inner.expressions), None) if type(inner) is exp.Anonymous else inner.args.get("this")
    if not isinstance(inner, exp.Expr):
        return None
    text = scalars.bind(inner)
    if not isinstance(text.domain, TextDomain) or text.domain.values is not None:
        return None
    return text if inner is node else scalars.bind(node)


@dataclass(frozen=True, slots=True)
class OpenText:
    """Text without declared values, and the node of a function of it."""

    scalars: Scalars
    node: exp.Expr
    text: Typed

    def call(self, function: Function, *arguments: Typed | int | str) -> Typed:
        """A function of the kernel; numbers and texts are constants."""
        return self.scalars.call(self.node, function, *(self._typed(argument) for argument in arguments))

    def _typed(self, argument: Typed | int | str) -> Typed:
        if isinstance(argument, Typed):
            return argument
        return self.scalars.constant(self.node, Literal(argument, Kind.INTEGER if isinstance(argument, int) else Kind.TEXT))

    def length(self) -> Typed:
        """How many characters it has."""
        return self.call(Function.LENGTH, self.text)

    def position(self, part: str) -> Typed:
        """The position of a part, from 1; 0 if it does not occur."""
        return self.call(Function.POSITION, self.text, part) if part else self.call(Function.LEAST, self.length(), 1)

    def part(self, start: Typed | int, count: Typed | int = PLACES_MAX) -> OpenText:
        """``count`` characters from ``start`` on."""
        return OpenText(self.scalars, self.node, self.call(Function.SUBSTRING, self.text, start, count))

    def substring(self, start: int, count: int | None) -> Typed:
        """SUBSTRING, counted from the front."""
        if start < 1 or (count is not None and count < 0):
            hint = "SUBSTRING(text, 1, 3), LEFT(text, 3) or RIGHT(text, 3)"
            message = "a substring of text without declared values must start at 1 or later and have no negative length"
            raise self.scalars.session.refuse("wrong-arguments", message, node=self.node, hint=hint)
        return self.part(min(start, _NEVER_THERE), PLACES_MAX if count is None else min(count, PLACES_MAX)).text

    def first(self, count: int) -> Typed:
        """The first characters, or all but the last if negative."""
        if count >= 0:
            return self.substring(1, count)
        many = self.call(Function.SUBTRACT, self.length(), min(-count, _NEVER_THERE))
        return self.part(1, self.call(Function.GREATEST, many, 0)).text

    def last(self, count: int) -> Typed:
        """The last characters, or all but the first if negative."""
        if count < 0:
            return self.substring(1 - count, None)
        count = min(count, _NEVER_THERE)
        start = self.call(Function.ADD, self.call(Function.SUBTRACT, self.length(), count), 1)
        return self.part(self.call(Function.GREATEST, start, 1), count).text

    def ends_with(self, end: str) -> Typed:
        """Whether it ends with a constant."""
        return self.call(Function.EQUAL, self.last(len(end)), end)

    def is_there(self) -> Typed:
        """True, or NULL if the text is NULL."""
        return self.call(Function.GREATER_EQUAL, self.length(), 0)

    def liked(self, parts: Sequence[str]) -> Typed:
        """Whether it is these parts with any text between: the first at the start, the last at the end, others where they first occur."""
        if len(parts) == 1:
            return self.call(Function.EQUAL, self.text, parts[0])
        head, *middle, tail = parts
        middle = [part for part in middle if part]
        if len(middle) > MIDDLE_PARTS_MAX:
            message = f"a pattern over text without declared values may have at most {MIDDLE_PARTS_MAX} texts between its first and last %"
            raise self.scalars.session.refuse("wrong-arguments", message, node=self.node, hint="join shorter patterns with AND")
        conditions = [self.call(Function.STARTS_WITH, self.text, head)] if head else []
        conditions += [self.ends_with(tail)] if tail else []
        rest = self
        if head and tail:
            conditions.append(self.call(Function.GREATER_EQUAL, self.length(), len(head) + len(tail)))
        if middle and tail:
            within = self.call(Function.SUBTRACT, self.length(), len(head) + len(tail))
            rest = self.part(len(head) + 1, self.call(Function.GREATEST, within, 0))
        elif middle and head:
            rest = self.part(len(head) + 1)
        for part in middle:
            place = rest.position(part)
            conditions.append(self.call(Function.GREATER, place, 0))
            rest = rest.part(self.call(Function.ADD, place, len(part)))
        if not conditions:
            return self.is_there()
        return conditions[0] if len(conditions) == 1 else self.call(Function.AND, *conditions)

    def split_part(self, separator: str, number: int) -> Typed:
        """The part with this number between separators; empty if there is none."""
        if not 1 <= number <= SPLIT_PARTS_MAX:
            message = f"SPLIT_PART of text without declared values takes the parts 1 to {SPLIT_PARTS_MAX} only"
            raise self.scalars.session.refuse("wrong-arguments", message, node=self.node, hint="count from the front")
        rest = self
        for _ in range(number - 1):
            rest = rest.part(self.call(Function.ADD, rest.before(separator), len(separator) + 1))
        return rest.part(1, rest.before(separator)).text

    def before(self, separator: str) -> Typed:
        """The number of characters before a separator; more than any text has if there is none."""
        place = self.call(Function.ADD, self.call(Function.POSITION, self.text, separator), _NEVER_THERE - 1)
        return self.call(Function.MODULO, place, _NEVER_THERE)

    def matches(self, pattern: str, *, full: bool) -> Typed | None:
        """Whether a regular expression matches, if it is made of plain texts at the start, at the end or anywhere; else None."""
        parts = [_parts(each, full=full) for each in pattern.split("|")]
        known = [each for each in parts if each is not None]
        if len(known) < len(parts) or len(parts) > ALTERNATIVES_MAX:
            return None
        conditions = [self.liked(each) for each in known]
        return conditions[0] if len(conditions) == 1 else self.call(Function.OR, *conditions)


def _parts(pattern: str, *, full: bool) -> tuple[str, ...] | None:
    """One alternative as parts of a LIKE pattern. A dot does not match a line end, so .* is supported only at an open end."""
    starts, ends = full or pattern.startswith("^"), full or (pattern.endswith("$") and not pattern.endswith("\\$"))
    pattern = pattern.removeprefix("^")
    pattern = pattern.removesuffix("$") if ends else pattern
    if not starts:
        pattern = pattern.removeprefix(_ANY)
    if not ends and not pattern.endswith(f"\\{_ANY}"):
        pattern = pattern.removesuffix(_ANY)
    if not _PLAIN.fullmatch(pattern):
        return None
    plain = re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)
    return (*(() if starts else ("",)), plain, *(() if ends else ("",)))
