"""Random statements over the two tables of events of ``shop_of_events``, and their answers as those of bare DuckDB over blocks, added up.

A statement is written twice: as it is asked, and with what its aggregates are made of. What bare DuckDB answers to the second over the rows
of each block alone is added up, group by group. Of what does not add up (units, values, extremes, medians) no group may be in two blocks.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from tests.support.conditions_on_time import Conditions

Row = tuple[Any, ...]
KINDS = ("COUNT(*)", "COUNT", "SUM", "SUM", "AVG", "VAR_POP", "COUNT(DISTINCT)", "COUNT(DISTINCT)", "MAX", "MEDIAN")
WHOLE = ("COUNT(DISTINCT)", "MAX", "MEDIAN")
"""Aggregates that do not add up."""


@dataclass(frozen=True)
class Measured:
    """An aggregate of a statement, of values that may be NULL."""

    kind: str
    value: str
    where: str | None

    def asked(self) -> str:
        """As a column of a statement."""
        written = {"COUNT(*)": "COUNT(*)", "COUNT(DISTINCT)": f"COUNT(DISTINCT {self.value})"}.get(self.kind, f"{self.kind}({self.value})")
        return self._filtered(written)

    def parts(self) -> list[str]:
        """What it is made of, as columns of bare DuckDB."""
        if self.kind in WHOLE or self.kind.startswith("COUNT"):
            return [self.asked()]
        powers = [f"COUNT({self.value})", f"SUM({self.value})", f"SUM({self.value} * {self.value})"]
        return [self._filtered(each) for each in powers]

    def of_parts(self, parts: Sequence[Any]) -> Any:
        """The aggregate, from what it is made of."""
        if len(parts) == 1:
            return parts[0]
        rows, total, squares = (0 if part is None else int(part) for part in parts)
        if not rows:
            return None
        mean = Fraction(total, rows)
        return {"SUM": total, "AVG": float(mean), "VAR_POP": float(Fraction(squares, rows) - mean**2)}[self.kind]

    def _filtered(self, written: str) -> str:
        return written if self.where is None else f"{written} FILTER (WHERE {self.where})"


@dataclass(frozen=True)
class SumOverTime:
    """A statement."""

    source: str
    keys: tuple[str, ...]
    rollup: bool
    measured: tuple[Measured, ...]

    def sql(self) -> str:
        """As it is asked: the keys, the number of rows, and the aggregates."""
        shown = [f"{key} AS k{number}" for number, key in enumerate(self.keys)]
        listed = [each.asked() + f" AS a{number}" for number, each in enumerate(self.measured)]
        return f"SELECT {', '.join([*shown, 'COUNT(*) AS n', *listed])} FROM {self.source}{self._grouped()}"

    def parts(self) -> str:
        """What it is made of, for bare DuckDB; totals are told from groups of NULL."""
        keys = [*self.keys, *([f"GROUPING({', '.join(self.keys)})"] if self.rollup else [])]
        made = [part for each in self.measured for part in each.parts()]
        return f"SELECT {', '.join([*keys, 'COUNT(*)', *made])} FROM {self.source}{self._grouped()}"

    def _grouped(self) -> str:
        listed = ", ".join(self.keys)
        return "" if not self.keys else f" GROUP BY ROLLUP({listed})" if self.rollup else f" GROUP BY {listed}"

    def together(self, answers: Iterable[Sequence[Row]]) -> list[Row]:
        """The answers to ``parts`` over several sets of rows, added up."""
        groups: dict[Row, list[Any]] = {}
        width = len(self.keys) + self.rollup
        single = [each.kind in WHOLE for each in self.measured for _ in each.parts()]
        for row in (row for rows in answers for row in rows if row[width]):
            mine, others = list(row[width:]), groups.get(row[:width])
            if others is not None and any(single):
                raise AssertionError(f"a group of two blocks in what does not add up: {row[:width]}")
            groups[row[:width]] = mine if others is None else [_added(*pair) for pair in zip(mine, others, strict=True)]
        return [self._row(group, parts) for group, parts in groups.items()]

    def _row(self, group: Row, parts: list[Any]) -> Row:
        rows, *others = parts
        values = []
        for each in self.measured:
            number = len(each.parts())
            values.append(each.of_parts(others[:number]))
            others = others[number:]
        return (*group[: len(self.keys)], rows, *values)


def _added(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def alike(found: Iterable[Row], expected: Iterable[Row], *, keys: int, within: float = 1e-6, withheld: bool = False) -> bool:
    """Whether these are the same rows, in any order: keys, a number of rows, and values.

    With ``withheld``, averages of few rows are NULL, and a sum of no rows is 0.
    """
    ours, theirs = (sorted(rows, key=lambda row: _place(row[: keys + 1])) for rows in (found, expected))
    return len(ours) == len(theirs) and all(_same(*pair, within=within, withheld=withheld) for pair in zip(ours, theirs, strict=True))


def _same(one: Row, other: Row, *, within: float, withheld: bool) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if not (withheld and (a is None or b is None))]
    return all(a == (pytest.approx(float(b), abs=within, rel=within) if _is_number(b) else b) for a, b in pairs)


def _is_number(value: object) -> bool:
    return value is not None and not isinstance(value, str | datetime.date)


def _place(row: Row) -> str:
    return repr([f"{float(value):020.3f}" if _is_number(value) else str(value) for value in row])


@dataclass
class Statements:
    """A source of statements over events and orders on these days."""

    rng: random.Random
    days: Sequence[datetime.date]

    def statement(self) -> SumOverTime:
        """Any statement."""
        choose, draw = self.rng.choice, self.rng.random
        source, timed = self._source()
        keys = ["t.device", "t.device"]
        if timed:
            keys += [
                "t.day",
                "t.day",
                "CAST(DATE_TRUNC('week', t.day) AS DATE)",
                "CAST(DATE_TRUNC('month', t.day) AS DATE)",
                "EXTRACT(DOW FROM t.day)",
                "EXTRACT(DAY FROM t.day)",
            ]
        if "FROM (" not in f"FROM {source}" and source.startswith("events"):
            keys += ["EXTRACT(HOUR FROM t.seen)"]
        chosen = list(dict.fromkeys(choose(keys) for _ in range(choose([0, 1, 1, 2]))))
        measured = tuple(self._measured(timed) for _ in range(choose([0, 1, 1, 2])))
        return SumOverTime(source, tuple(chosen), len(chosen) == 2 and draw() < 0.4, measured)

    def _measured(self, timed: bool) -> Measured:
        kind = self.rng.choice(KINDS)
        where = None
        if self.rng.random() < 0.25:
            where = self.rng.choice(["t.device = 'web'", "t.amount > 4", *([self._of("t.day").interval()] * 3 if timed else [])])
        value = self.rng.choice(["t.user_id", "t.user_id", "t.device"]) if kind == "COUNT(DISTINCT)" else "t.amount"
        return Measured(kind, "t.device" if kind == "COUNT" else value, where)

    def _of(self, column: str, number: str = "t.amount", *, timed: bool = False) -> Conditions:
        return Conditions(self.rng, column, timed=timed, number=number, days=self.days)

    def _where(self, column: str = "t.day", number: str = "t.amount") -> str:
        """A condition on time; of four statements one has none, and two have an interval."""
        of_time, choice = self._of(column, number), self.rng.random()
        return "TRUE" if choice < 0.25 else of_time.interval() if choice < 0.7 else of_time.any(1)

    def _same(self) -> str:
        """How events ``t`` meet orders ``o``: of the same person, and mostly of the same day."""
        of_time = self.rng.choice(
            [
                "",
                " AND t.day = o.paid",
                " AND t.day = o.paid",
                " AND t.day = o.paid",
                " AND DATE_TRUNC('month', t.day) = DATE_TRUNC('month', o.paid)",
                " AND o.paid >= t.day",
                " AND o.paid = t.day AND o.price > t.amount",
            ]
        )
        return f"t.user_id = o.user_id{of_time}"

    def _source(self) -> tuple[str, bool]:
        """Rows ``t`` with a device and an amount, and whether they have a day."""
        choose = self.rng.choice
        kinds = (self._rows, self._rows, self._nested, self._joined, self._left, self._semi, self._union, self._per_user, self._windows)
        source, timed = choose(kinds)()
        return source, timed

    def _rows(self) -> tuple[str, bool]:
        more = self.rng.choice(["", "", " AND t.device = 'app'", f" AND {self._of('t.seen', timed=True).interval()}"])
        return f"events t WHERE {self._where()}{more}", True

    def _nested(self) -> tuple[str, bool]:
        inner = f"SELECT user_id, day, device, amount + 1 AS amount FROM events WHERE {self._where('day', 'amount')}"
        return f"({inner}) t WHERE {self._where()}", True

    def _joined(self) -> tuple[str, bool]:
        return f"events t JOIN orders o ON {self._same()} WHERE {self._where()} AND {self._where('o.paid', 'o.price')}", True

    def _left(self) -> tuple[str, bool]:
        more = self.rng.choice(["", f" AND {self._of('o.paid').interval()}"])
        after = self.rng.choice([self._where(), self._where(), "o.paid IS NULL", self._of("o.paid").interval()])
        return f"events t LEFT JOIN orders o ON {self._same()}{more} WHERE {after}", True

    def _semi(self) -> tuple[str, bool]:
        inner = f"SELECT 1 FROM orders o WHERE {self._same()} AND {self._where('o.paid', 'o.price')}"
        return f"events t WHERE {self.rng.choice(['', 'NOT '])}EXISTS ({inner}) AND {self._where()}", True

    def _union(self) -> tuple[str, bool]:
        orders = f"SELECT user_id, paid, 'web', price FROM orders WHERE {self._where('paid', 'price')}"
        return f"(SELECT user_id, day, device, amount FROM events UNION ALL {orders}) t WHERE {self._where()}", True

    def _per_user(self) -> tuple[str, bool]:
        choose, where = self.rng.choice, self._where("day", "amount")
        made = choose(["COUNT(*)", "SUM(amount)", "MAX(amount)", f"COUNT(*) FILTER (WHERE {self._of('day').interval()})"])
        of_day = choose(["day", "day", "day", "CAST(DATE_TRUNC('week', day) AS DATE)", "CAST(DATE_TRUNC('month', day) AS DATE)", ""])
        keys, shown = (f", {of_day}", f", {of_day} AS day") if of_day else ("", "")
        inner = f"SELECT user_id, device{shown}, {made} AS amount FROM events WHERE {where} GROUP BY user_id, device{keys}"
        after = self._where() if of_day and self.rng.random() < 0.5 else f"t.amount > {choose([0, 1, 2, 9])}"
        if of_day == "day" and self.rng.random() < 0.3:
            inner = f"SELECT user_id, day, device, SUM(amount) AS amount FROM ({inner}) GROUP BY user_id, day, device"
        return f"({inner}) t WHERE {after}", bool(of_day)

    def _windows(self) -> tuple[str, bool]:
        choose = self.rng.choice
        of_day = choose([", day", ", day", ", day", ", device, day", "", ", DATE_TRUNC('month', day)", ", device"])
        over = f"OVER (PARTITION BY user_id{of_day} ORDER BY day, seen, device, amount)"
        made = choose([f"ROW_NUMBER() {over}", f"RANK() {over}", f"COUNT(*) OVER (PARTITION BY user_id{of_day})"])
        inner = f"SELECT user_id, day, device, amount, {made} AS r FROM events WHERE {self._where('day', 'amount')}"
        return f"({inner}) t WHERE r <= {choose([1, 2, 4])} AND {self._where()}", True
