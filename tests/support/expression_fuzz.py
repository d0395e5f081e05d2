"""Random well-typed expressions of the IR over given columns: every function, deep nesting, constants at the edges.

For tests only, hence seeded: the same seed gives the same expressions. An expression counts only if the kernel's own rules accept it; where
a range became too wide the generator narrows it with LEAST and GREATEST, as an analyst would, so that deep arithmetic survives.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel import calendar
from lapwing.kernel.date_functions import TIME_TRUNCATIONS, TRUNCATIONS
from lapwing.kernel.domains import Domain, Kind, RealDomain, bounds, kind_of
from lapwing.kernel.expressions import Call, Case, Column, Expression, Function, Literal, Value
from lapwing.kernel.functions import result_domain
from lapwing.kernel.ir import GridSum
from lapwing.kernel.stability import domain_of
from tests.support.hostile import TEXTS

INTEGERS: tuple[int, ...] = (0, 1, -1, 2, 3, -3, 7, 10, 60, 100, -1000, 2**31, 2**52, -(2**52), 2**53 + 1, 2**62 - 1, 1 - 2**62)
REALS: tuple[Fraction, ...] = (
    *(
        Fraction(text)
        for text in ("0", "0.1", "0.2", "0.3", "-0.7", "1/3", "-1/3", "0.5", "2.5", "-2.5", "1", "10", "100", "12.34", "4999.995")
    ),
    *(Fraction(text) for text in ("1e-9", "-1e-9", "1e-300", "5e-324", "1e-400", "1e9", "1e90", "-1e90", "200", "-200", "-1000", "0.9")),
    *(Fraction(2) ** power for power in (-31, -30, -29, 52, 53, 62, 299)),
    Fraction(2**53 + 1),
    Fraction(0.49999999999999994),
)
_SHORT_TEXTS = tuple(text for text in TEXTS if "\x00" not in text and len(text) < 100)
_STEPS = (1, 2, 3, 7, 10, 100, 1024, 10**6, 10**12)
_COMPARISONS = (Function.EQUAL, Function.NOT_EQUAL, Function.LESS, Function.LESS_EQUAL, Function.GREATER, Function.GREATER_EQUAL)
_DATE_PARTS = (
    *(Function.YEAR, Function.QUARTER, Function.MONTH, Function.DAY, Function.DAY_OF_WEEK, Function.DAY_OF_YEAR, Function.WEEK),
    *(Function.ISO_YEAR, Function.DAY_NUMBER),
)
_TIME_PARTS = (Function.HOUR, Function.MINUTE, Function.SECOND, Function.MICROSECONDS)
_OF_DOUBLES = (Function.SQRT, Function.LN, Function.LOG_2, Function.LOG_10, Function.EXP, Function.SIN, Function.COS, Function.TO_REAL)
_TRUNCATIONS = tuple(TRUNCATIONS)
_CHOICES = (None, Function.COALESCE, Function.NULL_IF)
"""Ways to choose among values of any kind; None stands for CASE."""
_MAKERS: Mapping[Kind, tuple[Function | None, ...]] = {
    Kind.BOOLEAN: (
        *(Function.AND, Function.OR, Function.NOT, Function.IN, Function.IS_NULL, Function.STARTS_WITH),
        *_COMPARISONS,
        *_CHOICES,
    ),
    Kind.INTEGER: (
        *(Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.INTEGER_DIVIDE, Function.MODULO, Function.NEGATE, Function.ABS),
        *(Function.SIGN, Function.FLOOR, Function.CEILING, Function.TO_INTEGER, Function.ROUND, Function.LEAST, Function.GREATEST),
        *(*_DATE_PARTS, *_TIME_PARTS, Function.LENGTH, Function.POSITION, Function.STEPS, *_CHOICES),
    ),
    Kind.REAL: (
        *(Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.DIVIDE, Function.NEGATE, Function.ABS, Function.ROUND),
        *(*_OF_DOUBLES, Function.LEAST, Function.GREATEST, Function.TO_GRID, Function.OF_STEPS, *_CHOICES),
    ),
    Kind.TEXT: (*_CHOICES, Function.SUBSTRING, Function.LOWER, Function.UPPER),
    Kind.DATE: (*_TRUNCATIONS, Function.DATE_OF, Function.DATE_OF, Function.ADD_MONTHS, *_CHOICES),
    Kind.TIMESTAMP: (*_TRUNCATIONS, *TIME_TRUNCATIONS, Function.TIMESTAMP_OF, Function.TIMESTAMP_OF, Function.ADD_MONTHS, *_CHOICES),
    Kind.KEY: (None, Function.COALESCE),
}
KINDS = (Kind.INTEGER, Kind.REAL, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TEXT)
"""What an expression can be asked for; identifiers only occur inside."""


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with the domain that the kernel gives it."""

    expression: Expression
    domain: Domain


class ExpressionFuzz:
    """A source of random expressions over the columns of one relation."""

    def __init__(self, columns: Mapping[str, Domain], *, seed: int) -> None:
        self._columns = columns
        self._choose = random.Random(seed)
        self._by_kind = {kind: [name for name, domain in columns.items() if kind_of(domain) is kind] for kind in Kind}
        self.refused = 0
        """How many nodes the kernel refused on the way."""

    def expression(self, kind: Kind, *, depth: int) -> Typed:
        """A random expression of this kind, nested at most ``depth`` deep (narrowing comes on top)."""
        if depth <= 0 or self._choose.random() < 0.05:
            return self._leaf(kind)
        for _ in range(4):
            maker = self._choose.choice(_MAKERS[kind])
            try:
                made = self._case(kind, depth) if maker is None else self._call(maker, kind, depth)
            except Refused:
                self.refused += 1
                continue
            # ROUND and the extremes may give another kind of number than was asked for
            if kind_of(made.domain) is kind:
                return made
        return self._leaf(kind)

    def measure(self, *, depth: int, magnitude_max: int) -> GridSum:
        """A sum of a random numeric expression, on a random grid, with bounds that hold, cut or miss its range.

        No grid integer exceeds ``magnitude_max``.
        """
        value = self.expression(self._choose.choice((Kind.INTEGER, Kind.REAL)), depth=depth)
        steps = self._choose.choice(_STEPS)
        if self._choose.random() < 0.5:
            steps = (value.domain.steps if isinstance(value.domain, RealDomain) else None) or 1
        limit = Fraction(magnitude_max - 1, steps)
        lo, hi = bounds(value.domain)
        width = hi - lo
        cut = self._choose.random()
        if cut < 0.3:
            lo, hi = lo + width / 4, hi - width / 4
        elif cut < 0.4:
            lo, hi = Fraction(self._choose.randint(-20, 0)), Fraction(self._choose.randint(0, 20))
        lo, hi = min(max(lo, -limit), limit), min(max(hi, -limit), limit)
        offset = self._choose.choice((0, 0, 0, 1, -7))
        return GridSum(value.expression, lo, hi, steps, offset)

    def _leaf(self, kind: Kind) -> Typed:
        names = self._by_kind[kind]
        if kind is Kind.KEY or (names and self._choose.random() < 0.6):
            return self._typed(Column(self._choose.choice(names)))
        return self._literal(kind)

    def _literal(self, kind: Kind) -> Typed:
        return self._typed(Literal(None if self._choose.random() < 0.06 else self._constant(kind), kind))

    def _constant(self, kind: Kind) -> Value:
        choose = self._choose
        match kind:
            case Kind.BOOLEAN:
                return choose.random() < 0.5
            case Kind.INTEGER:
                return choose.choice((*INTEGERS, choose.randint(-50, 50)))
            case Kind.REAL:
                return choose.choice((*REALS, Fraction(choose.randint(-5000, 5000), 100), Fraction(choose.uniform(-1e6, 1e6))))
            case Kind.TEXT:
                return choose.choice(_SHORT_TEXTS)
            case Kind.DATE:
                return choose.choice((0, -1, calendar.DAYS_MIN, calendar.DAYS_MAX, choose.randint(19_000, 20_500)))
            case _:
                day = choose.choice((0, -1, calendar.DAYS_MIN, calendar.DAYS_MAX, choose.randint(19_000, 20_500)))
                return day * calendar.DAY_MICROSECONDS + choose.choice((0, 1, 86_399_999_999, choose.randrange(86_400_000_000)))

    def _typed(self, expression: Expression) -> Typed:
        return Typed(expression, domain_of(expression, self._columns))

    def _below(self, kind: Kind, depth: int) -> Typed:
        """A child: one level less deep, or anything shallower."""
        return self.expression(kind, depth=depth - 1 if self._choose.random() < 0.6 else self._choose.randrange(depth))

    def _case(self, kind: Kind, depth: int) -> Typed:
        numbers = (Kind.INTEGER, Kind.REAL)
        branches = tuple(
            (self._below(Kind.BOOLEAN, depth).expression, self._below(kind, depth).expression) for _ in range(self._choose.randint(1, 2))
        )
        if kind is Kind.KEY and self._choose.random() < 0.5:
            return self._typed(Case(branches, Literal(None, kind)))
        otherwise = self._choose.choice(numbers) if kind is Kind.REAL else kind
        return self._typed(Case(branches, self._below(otherwise, depth).expression))

    def _call(self, function: Function, kind: Kind, depth: int) -> Typed:
        arguments = self._arguments(function, kind, depth)
        try:
            return self._made(function, arguments)
        except Refused as refusal:
            if refusal.code != "range-too-wide":
                raise
            return self._made(function, [self._narrowed(argument) for argument in arguments])

    def _made(self, function: Function, arguments: list[Typed]) -> Typed:
        parts = tuple(argument.expression for argument in arguments)
        return Typed(Call(function, parts), result_domain(function, tuple(argument.domain for argument in arguments), parts))

    def _narrowed(self, argument: Typed) -> Typed:
        """The argument inside a modest range; constants stay as they are."""
        kind = kind_of(argument.domain)
        if kind not in (Kind.INTEGER, Kind.REAL) or isinstance(argument.expression, Literal):
            return argument
        limit = self._choose.choice((1, 10, 199, 1000, 10**6))
        low, high = (self._typed(Literal(end, kind)) for end in (-limit if self._choose.random() < 0.7 else 0, limit))
        return self._made(Function.LEAST, [self._made(Function.GREATEST, [argument, low]), high])

    def _arguments(self, function: Function, kind: Kind, depth: int) -> list[Typed]:
        choose = self._choose

        def child(of: Kind) -> Typed:
            return self._below(of, depth)

        def number() -> Typed:
            return child(choose.choice((Kind.INTEGER, Kind.REAL)))

        def dated() -> Typed:
            return child(choose.choice((Kind.DATE, Kind.TIMESTAMP)))

        makers: dict[Function, Callable[[], list[Typed]]] = {
            **dict.fromkeys((Function.AND, Function.OR), lambda: [child(Kind.BOOLEAN) for _ in range(choose.randint(2, 3))]),
            Function.NOT: lambda: [child(Kind.BOOLEAN)],
            **dict.fromkeys(_COMPARISONS, lambda: self._pair(depth)),
            Function.IN: lambda: self._list(depth),
            Function.IS_NULL: lambda: [child(choose.choice(tuple(Kind)))],
            Function.STARTS_WITH: lambda: [child(Kind.TEXT), self._literal(Kind.TEXT)],
            **dict.fromkeys((Function.LENGTH, Function.LOWER, Function.UPPER), lambda: [child(Kind.TEXT)]),
            Function.POSITION: lambda: [child(Kind.TEXT), self._typed(Literal(choose.choice(("a", "o", "é", "'", "ab")), Kind.TEXT))],
            Function.SUBSTRING: lambda: [child(Kind.TEXT), *(self._typed(Literal(choose.randint(1, 5), Kind.INTEGER)) for _ in "ab")],
            Function.DIVIDE: lambda: [number(), number()],
            **dict.fromkeys((Function.SIGN, Function.FLOOR, Function.CEILING, Function.TO_INTEGER), lambda: [child(Kind.REAL)]),
            **dict.fromkeys(_OF_DOUBLES, lambda: [number()]),
            # of a large number that is off in its last bit they would be anything
            **dict.fromkeys((Function.SIN, Function.COS), lambda: [self._below(choose.choice((Kind.INTEGER, Kind.REAL)), 1)]),
            Function.ROUND: lambda: [child(kind), self._typed(Literal(choose.randint(0, 9), Kind.INTEGER))],
            Function.TO_GRID: lambda: [number(), self._steps()],
            Function.STEPS: lambda: [self._made(Function.TO_GRID, [number(), self._steps()])],
            Function.OF_STEPS: lambda: [child(Kind.INTEGER), self._steps()],
            **dict.fromkeys((Function.LEAST, Function.GREATEST), lambda: self._some(kind, depth)),
            Function.COALESCE: lambda: self._some(kind, depth),
            Function.NULL_IF: lambda: [child(kind), number() if kind in (Kind.INTEGER, Kind.REAL) else child(kind)],
            **dict.fromkeys(_DATE_PARTS, lambda: [dated()]),
            **dict.fromkeys((*_TIME_PARTS, *TIME_TRUNCATIONS), lambda: [child(Kind.TIMESTAMP)]),
            # any whole number is too far for the calendar, so the number of a date or moment is moved a little
            Function.DATE_OF: lambda: [self._moved(Function.DAY_NUMBER, dated(), 800)],
            Function.TIMESTAMP_OF: lambda: [self._moved(Function.MICROSECONDS, child(Kind.TIMESTAMP), 10**14)],
            Function.ADD_MONTHS: lambda: [child(kind), self._typed(Literal(choose.choice((0, 1, -1, 12, -13, 700)), Kind.INTEGER))],
            **dict.fromkeys((Function.NEGATE, Function.ABS), lambda: [child(kind)]),
            **dict.fromkeys(_TRUNCATIONS, lambda: [child(kind)]),
        }
        if function in makers:
            return makers[function]()
        # arithmetic: integers among themselves, or at least one real
        return [child(kind), number() if kind is Kind.REAL else child(kind)]

    def _steps(self) -> Typed:
        return self._typed(Literal(self._choose.choice(_STEPS), Kind.INTEGER))

    def _moved(self, number: Function, dated: Typed, most: int) -> Typed:
        """The number of a date or moment and a little more or less; a date at the end of the calendar stays where it is."""
        found = self._made(number, [dated])
        by = self._typed(Literal(self._choose.choice((0, 1, -1, most, -self._choose.randrange(most))), Kind.INTEGER))
        moved = self._made(Function.ADD, [found, by])
        try:
            result_domain(
                Function.DATE_OF if number is Function.DAY_NUMBER else Function.TIMESTAMP_OF, (moved.domain,), (moved.expression,)
            )
        except Refused:
            return found
        return moved

    def _some(self, kind: Kind, depth: int) -> list[Typed]:
        first = self._below(kind, depth)
        others = [
            self._below(self._choose.choice((Kind.INTEGER, Kind.REAL)) if kind is Kind.REAL else kind, depth)
            for _ in range(self._choose.randint(1, 2))
        ]
        return [first, *others]

    def _pair(self, depth: int) -> list[Typed]:
        """Two comparable expressions; often a column and a constant, which compare on the column's grid."""
        kind = self._choose.choice(KINDS)
        numeric = kind in (Kind.INTEGER, Kind.REAL)
        if self._choose.random() < 0.4:
            pair = [self._leaf(kind), self._literal(self._choose.choice((Kind.INTEGER, Kind.REAL)) if numeric else kind)]
            return pair if self._choose.random() < 0.7 else pair[::-1]
        return [self._below(kind, depth), self._below(self._choose.choice((Kind.INTEGER, Kind.REAL)) if numeric else kind, depth)]

    def _list(self, depth: int) -> list[Typed]:
        kind = self._choose.choice(KINDS)
        numeric = kind in (Kind.INTEGER, Kind.REAL)
        options = []
        for _ in range(self._choose.randint(1, 4)):
            option = self._choose.choice((Kind.INTEGER, Kind.REAL)) if numeric else kind
            options.append(self._typed(Literal(self._constant(option), option)))
        return [self._leaf(kind) if self._choose.random() < 0.4 else self._below(kind, depth), *options]


def functions_of(expression: Expression) -> set[Function]:
    """Every function that occurs in an expression."""
    match expression:
        case Call(function, arguments):
            return {function}.union(*(functions_of(argument) for argument in arguments))
        case Case(branches, otherwise):
            return functions_of(otherwise).union(*(functions_of(part) for branch in branches for part in branch))
        case _:
            return set()
