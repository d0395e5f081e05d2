"""Random statements over any catalogue, typed so that most are answered: every aggregate, filters, expressions, groups, public joins.

For tests only, hence seeded: the same seed and facts give the same statements. A statement comes with what the bare engine is to be asked
for the same answer. With ``comparable`` the generator leaves out the few places where Lapwing differs from an engine by decision (division
by what can be 0, constants between two grid points, roots and logarithms of what can be negative) and the places where two correct
roundings may fall on two sides of a step; without it those are in, for tests that compare Lapwing with itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from lapwing.kernel import calendar
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    kind_of,
)
from lapwing.kernel.facts import Facts
from tests.support.sql_pieces import Generated, Piece, Source

JUNK_TEXTS = ("", "a", "%", "_", "it's", "x%", "%o%", "nothing like it")
SEPARATORS = ("'r'", "'-'", "'x'")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
PARTS = ("YEAR", "QUARTER", "MONTH", "DAY", "DOW", "ISODOW")
TRUNCATIONS = ("year", "quarter", "month", "week", "day")
SMALL_KEY_VALUES = 16
"""A second key has at most about this many values, so that cells stay few."""
FIRST_KEY_VALUES = 800


@dataclass(frozen=True, slots=True)
class _Key:
    sql: str
    discovered: bool = False


class SqlQueries:
    """A source of random statements about the tables of one data set."""

    def __init__(
        self,
        facts: Facts,
        unit_columns: Mapping[str, str],
        *,
        seed: int,
        comparable: bool = False,
        bare_unit: str | None = None,
        statistics: bool = False,
    ) -> None:
        """``bare_unit`` is the column that holds the unit in every table of the bare engine, for counting the units of groups.

        With ``statistics`` some aggregates are variances, correlations and quantiles.
        """
        self._statistics = statistics
        self._facts = facts
        self._units = unit_columns
        self._rng = random.Random(seed)
        self._comparable = comparable
        self._bare_unit = bare_unit
        self._discover = facts.account is Account.APPROXIMATE
        self._columns: Mapping[str, Domain] = {}
        self._unit: str | None = None

    # -- the statement --------------------------------------------------------------------------------------------------------------

    def statement(self, table: str | None = None) -> Generated:
        """A statement about a protected table."""
        return self.about(self._source(table or self._rng.choice(sorted(self._facts.tables))))

    def about(self, source: Source) -> Generated:
        """A statement about these rows."""
        rng, self._columns, self._unit = self._rng, source.columns, source.unit
        kept = [self.boolean(rng.randint(1, 3))] if rng.random() < 0.65 else []
        where = f" WHERE {' AND '.join([*kept, *source.conditions])}" if kept or source.conditions else ""
        keys = [key for key in self._keys() if source.bare_unit or not key.discovered or not self._bare_unit]
        pieces = [self._output() for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        names = [f"g{i}" for i in range(len(keys))]
        listed = [f"{key.sql} AS {name}" for key, name in zip(keys, names, strict=True)]
        grouped = f" GROUP BY {', '.join(self._key_name(key, i) for i, key in enumerate(keys))}" if keys else ""
        having = self._having(pieces, keys)
        order, sorted_by = self._order(pieces, keys)
        tail = f" FROM {source.sql}{where}{grouped}"
        asked, bare = (
            f"{source.prefix}SELECT {', '.join([*listed, *_named(pieces, form)])}{tail}{form(having)}" for form in (_asked, _bare)
        )
        limit, offset = (rng.randint(1, 6), rng.choice((0, 0, 1))) if sorted_by and rng.random() < 0.5 else (None, 0)
        limits = "" if limit is None else f" LIMIT {limit}" + (f" OFFSET {offset}" if offset else "")
        units = f", LIST(DISTINCT {source.bare_unit}) AS units" if source.bare_unit is not None else ""
        existing = f"{source.prefix}SELECT {', '.join(listed)}{units}{tail}" if keys else None
        return Generated(
            text=asked + order + limits,
            unlimited=asked + order,
            reference=bare + order,
            existing=existing,
            keys=len(keys),
            outputs=tuple(pieces),
            table=source.table,
            discovered=any(key.discovered for key in keys),
            limit=limit,
            offset=offset,
        )

    def condition(self, columns: Mapping[str, Domain], depth: int) -> str:
        """A condition on these columns."""
        self._columns = columns
        return self.boolean(depth)

    def _source(self, table: str) -> Source:
        """A table, perhaps joined to a public one."""
        columns = {name: domain for name, domain in self._facts.table(table).columns.items() if not isinstance(domain, KeyDomain)}
        joins = [pair for public in self._facts.public_tables for pair in self.joinable(table, public)]
        unit = self._units.get(table)
        if not joins or self._rng.random() < 0.55:
            return Source(table, table, columns, unit, self._bare_unit)
        column, public = self._rng.choice(joins)
        known = self._facts.public_table(public)
        joined: dict[str, Domain] = {f"t.{name}": domain for name, domain in columns.items()}
        joined |= {f"p.{name}": domain for name, domain in known.columns.items() if name != known.key}
        kind = self._rng.choice(("JOIN", "INNER JOIN", "LEFT JOIN"))
        condition = self._rng.choice((f"ON t.{column} = p.{known.key}", f"ON p.{known.key} = t.{column}"))
        if column == known.key and self._rng.random() < 0.4:
            condition = f"USING ({column})"
        bare_unit = f"t.{self._bare_unit}" if self._bare_unit else None
        return Source(table, f"{table} AS t {kind} {public} p {condition}", joined, f"t.{unit}" if unit else None, bare_unit)

    def joinable(self, table: str, public: str) -> list[tuple[str, str]]:
        """Columns of a protected table that a public one can be joined on, with that one's name."""
        known = self._facts.public_table(public)
        key = known.columns[known.key]
        columns = self._facts.table(table).columns
        if isinstance(key, IntegerDomain):
            return [(name, public) for name, domain in columns.items() if isinstance(domain, IntegerDomain)]
        return [(name, public) for name, domain in columns.items() if isinstance(domain, TextDomain) and isinstance(key, TextDomain)]

    def _key_name(self, key: _Key, number: int) -> str:
        return self._rng.choice((f"g{number}", key.sql, str(number + 1)))

    def _having(self, pieces: list[Piece], keys: list[_Key]) -> Piece:
        if not keys or self._rng.random() < 0.7:
            return Piece("", "", False, True)
        bound = self._rng.randint(0, 6)
        compare = self._rng.choice((">", ">=", "<>", "<="))
        whole = [(f"a{i}", piece) for i, piece in enumerate(pieces) if piece.whole and piece.sharp]
        choices = [self._aggregate(whole=True).wrapped(f" HAVING {{}} {compare} {bound}")]
        if whole:
            alias, _ = self._rng.choice(whole)
            choices.append(Piece(f" HAVING {alias} {compare} {bound}", f" HAVING {alias} {compare} {bound}", False, True))
        choices.append(Piece(" HAVING g0 IS NOT NULL", " HAVING g0 IS NOT NULL", False, True))
        choices.append(Piece(f" HAVING COUNT(*) > {bound} OR g0 IS NULL", f" HAVING COUNT(*) > {bound} OR g0 IS NULL", False, True))
        return self._rng.choice(choices)

    def _order(self, pieces: list[Piece], keys: list[_Key]) -> tuple[str, bool]:
        """ORDER BY with all keys at its end, so that no two rows tie; only by what is exact."""
        if not keys or self._rng.random() < 0.5:
            return "", False
        first = [f"a{i}" for i, piece in enumerate(pieces) if piece.whole and piece.sharp]
        listed = [self._rng.choice(first)] if first and self._rng.random() < 0.7 else []
        listed += [self._rng.choice((f"g{i}", str(i + 1))) for i in range(len(keys))]
        ends = ("", "", " DESC", " ASC", " DESC NULLS FIRST", " NULLS LAST", " NULLS FIRST")
        return " ORDER BY " + ", ".join(f"{item}{self._rng.choice(ends)}" for item in listed), True

    # -- keys -----------------------------------------------------------------------------------------------------------------------

    def _keys(self) -> list[_Key]:
        count = self._rng.choice((0, 0, 1, 1, 1, 2))
        keys: list[_Key] = []
        for number in range(count):
            key = self._key(small=number > 0 or count > 1)
            if key is not None and all(key.sql != other.sql for other in keys):
                keys.append(key)
        return keys

    def _key(self, *, small: bool) -> _Key | None:
        limit = SMALL_KEY_VALUES if small else FIRST_KEY_VALUES
        choices: list[_Key] = []
        for name, domain in self._columns.items():
            match domain:
                case TextDomain(None) if self._discover and not small:
                    choices += [_Key(name, discovered=True)] * 3 + [_Key(self._open_text_of(name, 2), discovered=True)]
                case TextDomain(values) if values is not None and len(values) < limit:
                    choices += [_Key(name), _Key(self._text_of(name, 2))]
                case IntegerDomain(lo, hi):
                    if hi - lo < limit:
                        choices.append(_Key(name))
                    step = self._rng.choice((2, 5, 10))
                    choices += [_Key(f"{name} % {step}"), *([_Key(f"{name} // {step}")] if (hi - lo) // step < limit else [])]
                case RealDomain(lo, hi, steps=int(steps)) if not small and hi - lo < 2_000:
                    choices.append(_Key(f"FLOOR({name} / {4 if hi - lo < 500 else 64})"))
                    choices += [_Key(name), _Key(f"{name} * 2")] if (hi - lo) * steps < limit else []
                case BooleanDomain():
                    choices.append(_Key(name))
                case DateDomain(lo, hi) | TimestampDomain(lo, hi):
                    choices += [_Key(f"EXTRACT({part} FROM {name})") for part in self._rng.sample(PARTS, 2)]
                    if not small:
                        choices.append(_Key(f"DATE_TRUNC('{self._rng.choice(TRUNCATIONS)}', {name})"))
                    if not small and isinstance(domain, DateDomain) and hi - lo < limit:
                        choices.append(_Key(name))
                case _:
                    pass
        choices.append(_Key(f"CASE WHEN {self.boolean(1)} THEN 'yes' WHEN {self.boolean(0)} THEN 'perhaps' ELSE 'no' END"))
        choices.append(_Key(f"({self.boolean(1)})"))
        found = self._rng.choice(choices)
        return found if any(name in found.sql for name in self._columns) else None

    # -- aggregates -----------------------------------------------------------------------------------------------------------------

    def _output(self) -> Piece:
        piece = self._aggregate()
        other = self._aggregate(whole=True)
        wraps: list[Callable[[], Piece]] = [lambda: piece] * 5
        wraps += [
            lambda: piece.wrapped("{} * 2"),
            lambda: piece.wrapped("-{}"),
            lambda: piece.wrapped("{} / 8.0", whole=False),
            lambda: piece.wrapped("1 + {}"),
        ]
        if piece.sharp:
            wraps += [
                lambda: piece.wrapped("COALESCE({}, 0) - 3"),
                lambda: piece.wrapped("ABS({})"),
                lambda: piece.wrapped("LEAST({}, 40)"),
                lambda: piece.wrapped("CASE WHEN {} > 7.0123 THEN 1 ELSE 0 END", whole=True),
                lambda: _ratio(piece, other),
                lambda: _ratio(other, self._aggregate(whole=True)),
            ]
        if piece.sharp and piece.whole:
            wraps += [lambda: piece.wrapped("ROUND({} / 8.0, 2)", whole=False), lambda: piece.wrapped("{} BETWEEN 2 AND 9", whole=False)]
        return self._rng.choice(wraps)()

    def _aggregate(self, *, whole: bool = False) -> Piece:
        rng = self._rng
        kept = f" FILTER (WHERE {self.boolean(rng.randint(0, 2))})" if rng.random() < 0.3 else ""
        counts = ["COUNT(*)", f"COUNT({self._anything(1)})", f"COUNT_IF({self.boolean(1)})"]
        counts.append(f"COUNT(CASE WHEN {self.boolean(1)} THEN 1 END)")
        if self._unit is not None:
            unit = self._unit
            counts += [f"COUNT(DISTINCT {unit})", f"COUNT(DISTINCT CASE WHEN {self.boolean(1)} THEN {unit} END)"]
        choice = rng.random()
        if choice < (0.6 if whole else 0.35):
            sql = rng.choice(counts) + kept
            # DuckDB makes a COUNT_IF of no rows NULL
            return Piece(sql, f"COALESCE({sql}, 0)" if sql.startswith("COUNT_IF") else sql, True, True)
        numbers = [*self._of_kind(Kind.INTEGER), *self._of_kind(Kind.REAL)]
        if self._statistics and not whole and numbers and rng.random() < 0.25:
            return self._statistic(rng.choice(numbers), rng.choice(numbers), kept)
        argument, integer, sharp = self._summand(whole=whole)
        sharp = sharp and (integer or not kept)
        if whole or rng.random() < 0.6:
            sql = f"SUM({argument}){kept}"
            return Piece(sql, f"COALESCE({sql}, 0)", integer, sharp)
        sql = f"AVG({argument}){kept}"
        return Piece(sql, sql, False, sharp)

    def _statistic(self, x: str, y: str, kept: str) -> Piece:
        """More than sums: what is computed from noisy moments, or found by quantiles."""
        of_one = (f"{name}({x})" for name in ("VAR_SAMP", "STDDEV", "VAR_POP", "MEDIAN", "MIN", "MAX"))
        of_two = (f"{name}({x}, {y})" for name in ("CORR", "COVAR_SAMP", "REGR_SLOPE"))
        sql = self._rng.choice((*of_one, *of_two, f"QUANTILE_CONT({x}, 0.9)")) + kept
        return Piece(sql, sql, False, False)

    def _summand(self, *, whole: bool) -> tuple[str, bool, bool]:
        """What is added up; whether it is an integer, and whether it is sharp."""
        reals = [name for name, domain in self._columns.items() if isinstance(domain, RealDomain)]
        choice = self._rng.random()
        if whole or not reals or choice < 0.4:
            sql = self.integer(self._rng.randint(0, 2))
            return (
                self._rng.choice((sql, f"CASE WHEN {self.boolean(1)} THEN {sql} END", f"CASE WHEN {self.boolean(1)} THEN 1 ELSE 0 END")),
                True,
                True,
            )
        if choice < 0.75:
            name = self._rng.choice(reals)
            if self._rng.random() < 0.3:  # a condition takes a stored real off its grid
                return f"CASE WHEN {self.boolean(1)} THEN {name} ELSE NULL END", False, False
            domain = self._columns[name]
            return name, False, isinstance(domain, RealDomain) and domain.steps is not None
        return self.real(self._rng.randint(1, 3)), False, False

    # -- expressions over rows --------------------------------------------------------------------------------------------------------

    def _of_kind(self, kind: Kind) -> list[str]:
        return [name for name, domain in self._columns.items() if kind_of(domain) is kind]

    def _anything(self, depth: int) -> str:
        return self._rng.choice(list(self._columns)) if self._rng.random() < 0.6 else self.integer(depth)

    def integer(self, depth: int) -> str:
        """An integer expression that stays small."""
        rng, columns = self._rng, self._of_kind(Kind.INTEGER)
        if depth <= 0 or rng.random() < 0.2:
            return rng.choice([*columns, *columns, str(rng.randint(-5, 20))])
        a, b, condition = self.integer(depth - 1), self.integer(depth - 1), self.boolean(depth - 1)
        choices = [
            f"{a} + {b}",
            f"({a}) - ({b})",
            f"({a}) * {rng.choice((-1, 2, 3))}",
            f"({a}) % {rng.choice((-7, 2, 10))}",
            f"({a}) // {rng.choice((3, 10, -4))}",
            f"ABS({a})",
            f"-({a})",
            f"LEAST({a}, {b})",
            f"GREATEST({a}, {b}, 7)",
            f"NULLIF({a}, {b})",
            f"COALESCE(NULLIF({a}, 5), {b})",
            f"SIGN({a})",
            f"CASE WHEN {condition} THEN {a} WHEN {self.boolean(0)} THEN 3 ELSE {b} END",
            f"CASE {a} WHEN 1 THEN {b} WHEN 5 THEN 2 END",
            f"({condition})::INT",
            f"IF({condition}, {a}, {b})",
        ]
        dates = self._of_kind(Kind.DATE) + self._of_kind(Kind.TIMESTAMP)
        if dates:
            choices += [f"EXTRACT({rng.choice(PARTS)} FROM {rng.choice(dates)}) % 10", f"date_part('month', {rng.choice(dates)})"]
        if moments := self._of_kind(Kind.TIMESTAMP):
            choices += [f"hour({rng.choice(moments)})", f"minute({rng.choice(moments)})"]
        if declared := self._declared():
            choices.append(f"LENGTH({self._text_of(rng.choice(declared), 1)})")
        if undeclared := [name for name in self._of_kind(Kind.TEXT) if name not in declared]:
            inner = self._open_text_of(rng.choice(undeclared), 1)
            choices += [f"LENGTH({inner}) % 10", f"LEAST(STRPOS({inner}, {_quoted(rng.choice(JUNK_TEXTS)[:1] or 'r')}), 9)"]
        if reals := self._of_kind(Kind.REAL):
            choices += [f"FLOOR({rng.choice(reals)})", f"CEIL({rng.choice(reals)})", f"CAST({rng.choice(reals)} AS INTEGER)"]
        return rng.choice(choices)

    def real(self, depth: int) -> str:
        """A computed real expression."""
        rng, columns = self._rng, self._of_kind(Kind.REAL)
        if depth <= 0 or rng.random() < 0.2:
            return rng.choice([*columns, *columns, f"{rng.randint(0, 30)}.25", "1e1", ".5"])
        a, b = self.integer(depth - 1), self.real(depth - 1)
        choices = [
            f"{a} + {b}",
            f"{b} - ({a})",
            f"({b}) * {rng.choice(('1.19', '0.5', '-3'))}",
            f"({b}) / {rng.choice(('4', '2.5', '-8'))}",
            f"({a}) / 7",
            f"ABS({b})",
            f"SQRT(ABS({b}))",
            f"LN(1 + ABS({b}))",
            f"EXP(LEAST({b}, 3))",
            f"LEAST({a}, {b})",
            f"GREATEST({b}, {a})",
            f"CAST({a} AS DOUBLE)",
            f"COALESCE({b}, {a})",
            f"({b}) / NULLIF({a}, 0)",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {b} ELSE {a} END",
        ]
        if not self._comparable:
            c = self.real(depth - 1)
            choices += [f"({b}) / ({c})", f"SQRT({b})", f"LN({b})", f"({b}) * ({c})", f"ROUND({b}, {rng.randint(0, 3)})", f"FLOOR({b})"]
        return rng.choice(choices)

    def _declared(self) -> list[str]:
        return [name for name, domain in self._columns.items() if isinstance(domain, TextDomain) and domain.values]

    def _text_of(self, column: str, depth: int) -> str:
        """A text expression over one declared column."""
        if depth <= 0 or self._rng.random() < 0.3:
            return column
        inner, start, count = self._text_of(column, depth - 1), self._rng.randint(-4, 5), self._rng.randint(0, 4)
        choices = [
            f"LOWER({inner})",
            f"UPPER({inner})",
            f"SUBSTRING({inner}, {start}, {count})",
            f"LEFT({inner}, {count})",
            f"RIGHT({inner}, {count})",
            f"{inner} || 'x'",
            f"CONCAT('a', {inner})",
            f"REPLACE({inner}, 'o', '0')",
            f"TRIM({inner})",
            f"COALESCE({inner}, 'none')",
        ]
        return self._rng.choice(choices)

    def _open_text_of(self, column: str, depth: int) -> str:
        """A text expression over a column without declared values."""
        if depth <= 0:
            return column
        inner, start, count = self._open_text_of(column, depth - 1), self._rng.randint(1, 4), self._rng.randint(0, 4)
        choices = [f"LOWER({inner})", f"UPPER({inner})", f"SUBSTRING({inner}, {start}, {count})", f"LEFT({inner}, {count})", inner]
        choices += [
            f"RIGHT({inner}, {count})",
            f"LEFT({inner}, -{count})",
            f"SPLIT_PART({inner}, {self._rng.choice(SEPARATORS)}, {min(start, 2)})",
        ]
        return self._rng.choice(choices)

    def boolean(self, depth: int) -> str:
        """A condition."""
        rng = self._rng
        if depth <= 0 or rng.random() < 0.15:
            return rng.choice([*self._of_kind(Kind.BOOLEAN), *(self._simple(name) for name in rng.sample(sorted(self._columns), 1))])
        choices: list[Callable[[], str]] = [
            lambda: f"({self.boolean(depth - 1)} AND {self.boolean(depth - 1)})",
            lambda: f"({self.boolean(depth - 1)} OR {self.boolean(depth - 1)} AND {self.boolean(0)})",
            lambda: f"NOT ({self.boolean(depth - 1)})",
            lambda: f"{self.integer(depth - 1)} {rng.choice(COMPARISONS)} {self.integer(depth - 1)}",
            lambda: f"{self.integer(depth - 1)} BETWEEN {rng.randint(-9, 9)} AND {rng.randint(0, 30)}",
            lambda: f"{self.integer(depth - 1)} {rng.choice(('', 'NOT '))}IN (1, 5, -3, 7)",
            lambda: f"({self.boolean(depth - 1)}) IS {rng.choice(('', 'NOT '))}{rng.choice(('TRUE', 'FALSE', 'NULL'))}",
            *[lambda: self._simple(rng.choice(list(self._columns)))] * 6,
        ]
        return rng.choice(choices)()

    def _simple(self, name: str) -> str:
        """A condition on one column."""
        rng, domain, compare = self._rng, self._columns[name], self._rng.choice(COMPARISONS)
        if rng.random() < 0.12:
            return f"{name} IS {rng.choice(('', 'NOT '))}NULL"
        match domain:
            case BooleanDomain():
                return rng.choice((name, f"NOT {name}", f"{name} = TRUE", f"{name} IS FALSE"))
            case IntegerDomain(lo, hi):
                return f"{name} {compare} {rng.randint(lo - 1, hi + 1)}"
            case RealDomain():
                return f"{name} {compare} {self._real_constant(domain)}"
            case TextDomain(values):
                return self._text_condition(name, values)
            case DateDomain(lo, hi):
                first, last = (calendar.to_date(rng.randint(lo, hi)).isoformat() for _ in range(2))
                truncated = f"DATE_TRUNC('{rng.choice(TRUNCATIONS)}', {name}) {compare} '{first}'"
                return rng.choice((f"{name} {compare} DATE '{first}'", f"{name} BETWEEN '{first}' AND '{last}'", truncated))
            case TimestampDomain(lo, hi):
                day = calendar.to_date(rng.randint(lo, hi) // calendar.DAY_MICROSECONDS).isoformat()
                return rng.choice((f"{name} {compare} TIMESTAMP '{day} 10:30:00'", f"hour({name}) < {rng.randint(1, 23)}"))
            case KeyDomain():
                return f"{name} IS NOT NULL"

    def _real_constant(self, domain: RealDomain) -> str:
        steps = domain.steps or 4
        if not self._comparable and self._rng.random() < 0.5:
            return self._rng.choice(("0.3333", "1e-9", "-7.77", "123456.789"))
        chosen = Fraction(self._rng.randint(int(domain.lo * steps), int(domain.hi * steps)), steps)
        return f"{float(chosen)!r}" if chosen >= 0 else f"({float(chosen)!r})"

    def _text_condition(self, name: str, values: tuple[str, ...] | None) -> str:
        rng = self._rng
        known = rng.sample(values, min(3, len(values))) if values else ["x", "y"]
        one = rng.choice([*known, rng.choice(JUNK_TEXTS)])
        compared = f"{rng.choice(COMPARISONS)} {_quoted(one)}"
        choices = [f"{name} {compared}", f"{name} IN ({_quoted(known[0])}, {_quoted(one)})", f"starts_with({name}, {_quoted(one[:1])})"]
        if not values:
            inner = self._open_text_of(name, 1)
            pattern = _quoted(
                rng.choice((f"%{one[1:3]}%", f"{one[:2]}%", f"%{one[-1:]}", f"{one[:1]}%{one[1:2]}%{one[-1:]}")).replace("_", "")
            )
            choices += [f"{inner} {rng.choice(('LIKE', 'NOT LIKE', 'ILIKE'))} {pattern}", f"contains({inner}, {_quoted(one[:2])})"]
            return rng.choice([*choices, f"{inner} {compared}", f"LENGTH({inner}) > {rng.randint(0, 9)}"])
        inner = self._text_of(name, 2)
        pattern = _quoted(rng.choice((f"%{one[1:3]}%", f"{one[:2]}%", "_" + one[1:], f"%{one[-1:]}")))
        choices += [f"{inner} {rng.choice(('LIKE', 'NOT LIKE', 'ILIKE'))} {pattern}", f"contains({inner}, {_quoted(one[:2])})"]
        choices += [f"{inner} {compared}", f"LENGTH({inner}) > {rng.randint(0, 9)}"]
        return rng.choice(choices)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(pieces: list[Piece], form: Callable[[Piece], str]) -> list[str]:
    return [f"{form(piece)} AS a{i}" for i, piece in enumerate(pieces)]


def _asked(piece: Piece) -> str:
    return piece.sql


def _bare(piece: Piece) -> str:
    return piece.reference


def _ratio(above: Piece, below: Piece) -> Piece:
    """A ratio that is NULL over 0."""
    return Piece(
        f"100.0 * {above.sql} / NULLIF({below.sql}, 0)",
        f"100.0 * {above.reference} / NULLIF({below.reference}, 0)",
        False,
        above.sharp and below.sharp,
    )


__all__ = ["Generated", "Piece", "Source", "SqlQueries"]
