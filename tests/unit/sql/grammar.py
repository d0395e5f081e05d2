"""Random statements about the clinic, typed so that most are accepted and mean the same on the bare engine.

Left out on purpose are the few places where Lapwing differs from an engine by decision: division by something that can be 0, constants
between two grid points, roots and logarithms of what can be negative.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

COLUMNS = {
    "visits": {
        "integer": ["minutes", "clinic_id"],
        "real": ["cost"],
        "text": ["code"],
        "date": ["day"],
        "timestamp": ["started"],
        "boolean": [],
    },
    "patients": {
        "integer": ["birth_year"],
        "real": ["income"],
        "text": ["sex", "region"],
        "date": [],
        "timestamp": [],
        "boolean": ["smoker", "vaccinated"],
    },
}
TEXTS = ["J10", "J", "north%", "%o%", "_10", "northam", "f", "", "west-1", "it''s"]


@dataclass(frozen=True)
class Grammar:
    """Makes statements about one table; every call of a method is one random choice after another."""

    rng: random.Random
    table: str

    def statement(self) -> str:
        """A statement with aggregates, perhaps grouped, joined, filtered, ordered."""
        aggregates = [f"{self.aggregate()} AS a{i}" for i in range(self.rng.randint(1, 3))]
        keys = [self.key() for _ in range(self.rng.choice([0, 0, 1, 2]))]
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + aggregates
        self.rng.shuffle(listed)
        text = f"SELECT {', '.join(listed)} FROM {self.table}"
        if self.rng.random() < 0.7:
            text += f" WHERE {self.boolean(3)}"
        if keys:
            text += f" GROUP BY {', '.join(self.rng.choice([f'g{i}', key]) for i, key in enumerate(keys))}"
        if self.rng.random() < 0.3:
            text += f" HAVING {self.rng.choice(['COUNT(*)', 'a0', 'SUM(1)'])} {self.rng.choice(['>', '<=', '<>'])} {self.rng.randint(0, 9)}"
        return text

    def aggregate(self) -> str:
        """An aggregate, or a little arithmetic with aggregates."""
        plain = self.rng.choice(["COUNT(*)", f"COUNT({self.any(2)})", "COUNT(DISTINCT patient_id)"])
        added = f"{self.rng.choice(['SUM', 'AVG'])}({self.number(3)})"
        found = self.rng.choice([plain, added, added])
        if self.rng.random() < 0.3:
            found += f" FILTER (WHERE {self.boolean(2)})"
        if self.rng.random() < 0.1:
            found = f"COALESCE(COUNT_IF({self.boolean(2)}), 0)"  # a bare engine gives NULL where there is no row
        wrap = self.rng.choice(["{}"] * 6 + ["{} * 2", "-{}", "{} - 0.5", "{} / 8.0", "1 + {}", "COALESCE({}, 0) - 3", "ABS({})"])
        return wrap.format(found)

    def key(self) -> str:
        """Something to group by."""
        choices = [self.text(2), self.integer(2), f"CASE WHEN {self.boolean(1)} THEN 'yes' ELSE 'no' END", f"({self.boolean(1)})"]
        found = self.rng.choice(choices)
        return found if any(name in found for kinds in COLUMNS[self.table].values() for name in kinds) else self.column("text")

    def any(self, depth: int) -> str:
        return self.rng.choice([self.number, self.text, self.boolean])(depth)

    def column(self, kind: str) -> str:
        return self.rng.choice(COLUMNS[self.table][kind])

    def number(self, depth: int) -> str:
        return self.rng.choice([self.integer, self.real])(depth)

    def integer(self, depth: int) -> str:
        """An integer expression that stays small."""
        if depth == 0 or self.rng.random() < 0.25:
            return self.rng.choice([self.column("integer"), self.column("integer"), str(self.rng.randint(-5, 500))])
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        choices = [
            f"{a} + {b}",
            f"{a} - {b}",
            f"({a}) * {self.rng.randint(-3, 9)}",
            f"({a}) % {self.rng.choice([-7, 2, 10])}",
            f"ABS({a})",
            f"-({a})",
            f"LEAST({a}, {b})",
            f"GREATEST({a}, {b}, 7)",
            f"NULLIF({a}, {b})",
            f"COALESCE(NULLIF({a}, 5), {b})",
            f"SIGN({a})",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {a} WHEN {self.boolean(0)} THEN 3 ELSE {b} END",
            f"CASE {a} WHEN 1 THEN {b} WHEN 5 THEN 2 END",
            f"LENGTH({self.text(depth - 1)})",
            f"({self.boolean(depth - 1)})::INT",
            f"({a}) // {self.rng.choice([3, 10, -4])}",
            f"IF({self.boolean(depth - 1)}, {a}, {b})",
        ]
        if self.table == "visits":
            part = self.rng.choice(["YEAR", "MONTH", "DAY", "DOW", "QUARTER", "ISODOW"])
            choices += [f"EXTRACT({part} FROM {self.rng.choice(['day', 'started'])})", "hour(started)", "date_part('minute', started)"]
        return self.rng.choice(choices)

    def real(self, depth: int) -> str:
        """A real expression."""
        if depth == 0 or self.rng.random() < 0.25:
            return self.rng.choice([self.column("real"), self.column("real"), f"{self.rng.randint(0, 900)}.25", "1e2", ".5"])
        a, b = self.number(depth - 1), self.real(depth - 1)
        choices = [
            f"{a} + {b}",
            f"{b} - ({a})",
            f"({a}) * {self.rng.choice(['1.19', '0.5', '-3'])}",
            f"({b}) / {self.rng.choice(['4', '2.5', '-8'])}",
            f"({a}) / 7",
            f"ABS({b})",
            f"SQRT(ABS({a}))",
            f"LN(1 + ABS({b}))",
            f"LEAST({a}, {b})",
            f"GREATEST({b}, {a})",
            f"CAST({a} AS DOUBLE)",
            f"COALESCE({b}, {a})",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {b} ELSE {a} END",
            f"CASE WHEN {self.boolean(depth - 1)} THEN {b} END",
        ]
        return self.rng.choice(choices)

    def text(self, depth: int) -> str:
        """A text expression over one declared column."""
        if depth == 0 or self.rng.random() < 0.3:
            return self.column("text")
        inner = self.text(depth - 1)
        start, count = self.rng.randint(-4, 5), self.rng.randint(-2, 5)
        choices = [
            f"LOWER({inner})",
            f"UPPER({inner})",
            f"SUBSTRING({inner}, {start}, {abs(count)})",
            f"SUBSTR({inner}, {start})",
            f"LEFT({inner}, {count})",
            f"RIGHT({inner}, {count})",
            f"{inner} || 'x'",
            f"CONCAT('a', {inner})",
            f"REPLACE({inner}, 'o', '0')",
            f"TRIM({inner})",
            f"COALESCE({inner}, 'none')",
        ]
        return self.rng.choice(choices)

    def boolean(self, depth: int) -> str:
        """A condition."""
        if depth == 0 or self.rng.random() < 0.15:
            return self.rng.choice([*COLUMNS[self.table]["boolean"], f"{self.column('integer')} > {self.rng.randint(0, 500)}"])
        compare = self.rng.choice(["=", "<>", "<", "<=", ">", ">=", "!="])
        text = self.rng.choice(TEXTS)
        choices = [
            f"({self.boolean(depth - 1)} AND {self.boolean(depth - 1)})",
            f"({self.boolean(depth - 1)} OR {self.boolean(depth - 1)} AND {self.boolean(0)})",
            f"NOT {self.boolean(depth - 1)}",
            f"{self.integer(depth - 1)} {compare} {self.integer(depth - 1)}",
            f"{self.column('real')} {compare} {self.rng.choice(['20', '12', '1000', '0'])}",
            f"{self.integer(depth - 1)} BETWEEN {self.rng.randint(-9, 9)} AND {self.rng.randint(0, 99)}",
            f"{self.integer(depth - 1)} {self.rng.choice(['', 'NOT '])}IN (1, 5, -3, 7)",
            f"{self.text(depth - 1)} {compare} '{text}'",
            f"{self.text(depth - 1)} IN ('{text}', 'J11')",
            f"{self.text(depth - 1)} {self.rng.choice(['LIKE', 'NOT LIKE', 'ILIKE'])} '{text}'",
            f"{self.any(depth - 1)} IS {self.rng.choice(['', 'NOT '])}NULL",
            f"({self.boolean(depth - 1)}) IS {self.rng.choice(['', 'NOT '])}{self.rng.choice(['TRUE', 'FALSE'])}",
            f"starts_with({self.text(depth - 1)}, '{text}')",
            f"contains({self.text(depth - 1)}, '{text}')",
        ]
        if self.table == "visits":
            choices += [
                f"day {compare} DATE '2024-07-01'",
                f"started {compare} TIMESTAMP '2024-07-01 10:30:00'",
                f"DATE_TRUNC('{self.rng.choice(['month', 'week', 'year'])}', day) {compare} '2025-03-01'",
            ]
        return self.rng.choice(choices)
