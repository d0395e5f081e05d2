"""Random statements over a table with columns of every type, spelt as one dialect wants them."""

from __future__ import annotations

import random
from collections.abc import Callable

_TEXTS = ("alpha", "Beta", "gamma ray", "", "o''hara", "none such")
_DATES = ("2024-01-01", "2024-02-29", "2024-06-30", "2023-12-31")
_DECIMALS = ("0.5", "0.1", "1.25", "0.29", "2.50", "12.345", "0.07", "3.0")


class Statements:
    """A source of statements. What divides is a constant or cannot be 0: PostgreSQL fails on 0, where Lapwing and DuckDB give NULL."""

    def __init__(self, seed: int, dialect: str) -> None:
        self._choose, self._dialect = random.Random(f"{dialect} {seed}"), dialect

    def statement(self) -> str:
        """A SELECT with aggregates, perhaps of groups, perhaps with a condition, perhaps of an answer."""
        choose = self._choose
        where = f" WHERE {self._condition(2)}" if choose.random() < 0.5 else ""
        match choose.randrange(10):
            case 0 | 1:
                return f"SELECT COUNT(*) AS n FROM t WHERE {self._condition(3)}"
            case 2 | 3 | 4:
                outputs = ", ".join(self._aggregate() for _ in range(choose.randint(1, 3)))
                return f"SELECT {outputs} FROM t{where}"
            case 5 | 6 | 7:
                outputs = ", ".join(["COUNT(*) AS n", self._aggregate()])
                return f"SELECT {self._key()} AS k, {outputs} FROM t{where} GROUP BY 1"
            case 8:
                return f"SELECT {self._over_answers()} AS r FROM t{where}"
            case _:
                return f"SELECT SUM(x) AS s, COUNT(x) AS n FROM (SELECT {self._number(2)} AS x, y FROM t{where}) AS q"

    def _one(self, *options: Callable[[], str]) -> str:
        return self._choose.choice(options)()

    def _pick(self, *options: str) -> str:
        return self._choose.choice(options)

    def _aggregate(self) -> str:
        number = self._number(2)
        return self._pick(
            f"SUM({number})",
            f"COUNT({number})",
            f"SUM(CASE WHEN {self._condition(1)} THEN {number} END)",
            f"COUNT(*) FILTER (WHERE {self._condition(2)})",
        )

    def _over_answers(self) -> str:
        total, count = f"SUM({self._pick('i', 'b', 'd', 'e', 'f')})", "COUNT(*)"
        return self._pick(
            f"{total} / {count}",
            f"{total} / {self._pick('7', '2.5', '10')}",
            f"COUNT(i) / {self._pick('7', '4', '2.0')}",
            f"CAST({total} / {self._pick('4', '8.0')} AS INTEGER)",
            f"100 * COUNT(i) / {count}",
            f"ROUND({total} / 7.0, 2)" if self._dialect == "duckdb" else "ROUND(SUM(d) / 7.0, 2)",
            f"FLOOR({total} / 3)",
            f"COALESCE({total}, 0) + {self._pick('1', '0.5')}",
        )

    def _key(self) -> str:
        return self._pick(
            "w",
            "y",
            "i % 7",
            f"CASE WHEN {self._condition(1)} THEN 'in' ELSE 'out' END",
            "EXTRACT(MONTH FROM day)",
            f"CAST({self._pick('d', 'e', 'f', 'i')} / {self._pick('10', '25', '12.5')} AS INTEGER)",
            f"FLOOR({self._pick('d', 'e * 3', 'f', 'i * 0.5')} / {self._pick('10', '25')})",
            f"ROUND({self._pick('d', 'e * 10', 'i * 0.25')}{self._pick('', ', 0')})",
            f"i / {self._pick('7', '10', '25')}",
            "i * 0.5",
            f"SIGN({self._number(1)})",
            f"{self._condition(2)}",
        )

    def _number(self, depth: int) -> str:
        pick, inner = self._pick, self._number
        if depth == 0 or self._choose.random() < 0.15:
            return self._one(
                lambda: pick("i", "b", "d", "e", "f", "d", "e"),
                lambda: pick("i", "b", "d", "e", "f", "d", "e"),
                lambda: str(self._choose.randint(1, 20)),
                lambda: pick(*_DECIMALS),
                lambda: pick("LENGTH(w)", "EXTRACT(YEAR FROM day)", "EXTRACT(DAY FROM ts)", "(day - DATE '2024-01-01')"),
            )
        less = depth - 1
        return self._one(
            *[lambda sign=sign: f"({inner(less)} {sign} {inner(less)})" for sign in ("+", "-", "*", "*")],
            lambda: f"({inner(less)} / {pick('2', '4', '5', '8', '10', '0.5', '2.5', '3', '7')})",
            lambda: f"(- {inner(less)})",
            lambda: f"{pick('ABS', 'FLOOR', 'CEIL', 'ROUND', 'SIGN', 'TRUNC', 'FLOOR', 'ROUND')}({inner(less)})",
            lambda: f"ROUND({inner(less)}, {pick('0', '1', '2', '-1')})",
            lambda: f"CAST({inner(less)} AS {pick('INTEGER', 'BIGINT', 'INTEGER')})",
            lambda: f"CASE WHEN {self._condition(less)} THEN {inner(less)} ELSE {pick(inner(less), '0', '0.5', 'NULL')} END",
            lambda: f"{pick('COALESCE', 'LEAST', 'GREATEST')}({inner(less)}, {inner(less)})",
            lambda: f"NULLIF({inner(less)}, {inner(0)})",
            lambda: f"({inner(less)} % {pick('7', '3', '0.4', '2.5')})",
        )

    def _condition(self, depth: int) -> str:
        pick, less = self._pick, max(depth - 1, 0)
        if depth > 1 and self._choose.random() < 0.3:
            return f"({self._condition(less)} {pick('AND', 'OR')} {self._condition(less)})"
        sign = pick("=", "<>", "<", "<=", ">", ">=", "=")
        return self._one(
            *[lambda: f"{self._number(less)} {sign} {self._number(less)}"] * 4,
            lambda: f"{self._number(less)} {sign} {pick(*_DECIMALS)}",
            lambda: f"{self._number(less)} BETWEEN {pick('-5', '0', '0.25')} AND {pick('10', '33.3')}",
            lambda: f"{self._number(less)} IN ({pick('1', '0.5')}, {pick('2.50', '-3')}, {pick('0.29', '7')})",
            lambda: pick("y", "NOT y", "y IS NULL", "y IS NOT TRUE"),
            lambda: f"w {pick('=', '<>', '<', '>=')} '{pick(*_TEXTS)}'",
            lambda: f"w LIKE '{pick('a%', '%a%', '_eta', '%')}'",
            lambda: f"day {sign} DATE '{pick(*_DATES)}'",
            lambda: f"ts {pick('<', '>=')} TIMESTAMP '{pick(*_DATES)} 12:00:00'",
            lambda: f"{pick('i', 'd', 'f', 'day', 'w')} IS {pick('', 'NOT ')}NULL",
        )
