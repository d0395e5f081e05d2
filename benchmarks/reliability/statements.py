"""Statements by family, each with the bare SQL of its truth and of what every unit adds to every cell."""

from __future__ import annotations

import random  # noqa: TID251  (which statements are asked, not noise)
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.reliability.shop import AMOUNT_MAX, CATEGORIES, CHANNELS, COUNTRIES, DAYS, DEVICES, PRICE_MAX


class Measured(StrEnum):
    """What an output of a statement is."""

    COUNT = "count"
    SUM = "sum"
    AVERAGE = "average"
    UNITS = "units"


@dataclass(frozen=True, slots=True)
class Output:
    """One aggregate of a statement; ``most`` is the declared maximum of a value, whose minimum is 0."""

    name: str
    measured: Measured
    value: str = ""
    most: int = 1

    def sql(self, unit: str) -> str:
        """As it is asked."""
        text = {
            Measured.COUNT: "COUNT(*)",
            Measured.SUM: f"SUM({self.value})",
            Measured.AVERAGE: f"AVG({self.value})",
            Measured.UNITS: f"COUNT(DISTINCT {unit})",
        }
        return f"{text[self.measured]} AS {self.name}"


@dataclass(frozen=True, slots=True)
class AskedStatement:
    """A statement in parts, from which both the question and its truth are written."""

    family: str
    source: str
    unit: str
    outputs: tuple[Output, ...]
    keys: tuple[tuple[str, str], ...] = ()
    """Expressions and the names they are given."""
    where: str = "TRUE"
    rollup: bool = False
    known: bool = True
    """Whether all groups are declared; else they are discovered."""

    @property
    def sql(self) -> str:
        """What is asked."""
        columns = [f"{key} AS {name}" for key, name in self.keys] + [output.sql(self.unit) for output in self.outputs]
        where = "" if self.where == "TRUE" else f" WHERE {self.where}"
        return f"SELECT {', '.join(columns)} FROM {self.source}{where}{self._grouping()}"

    def _grouping(self) -> str:
        if not self.keys:
            return ""
        listed = ", ".join(key for key, _ in self.keys)
        return f" GROUP BY ROLLUP ({listed})" if self.rollup else f" GROUP BY {listed}"

    @property
    def levels(self) -> tuple[int, ...]:
        """How many of the keys each level keeps."""
        return tuple(range(len(self.keys), -1, -1)) if self.rollup else (len(self.keys),)

    def contributions_sql(self) -> str:
        """For every unit and finest group: rows, and for every output with a value its sum."""
        keys = [f"CAST({key} AS VARCHAR) AS k{place}" for place, (key, _) in enumerate(self.keys)]
        sums = [f"CAST(SUM({output.value or '1'}) AS DOUBLE) AS v{place}" for place, output in enumerate(self.outputs)]
        grouped = ", ".join(str(place + 1) for place in range(len(keys) + 1))
        listed = ", ".join([f"{self.unit} AS unit", *keys, "CAST(COUNT(*) AS DOUBLE) AS n", *sums])
        return f"SELECT {listed} FROM {self.source} WHERE {self.where} GROUP BY {grouped}"


N = Output("n", Measured.COUNT)
REVENUE = Output("revenue", Measured.SUM, "amount", AMOUNT_MAX)
AVERAGE = Output("average", Measured.AVERAGE, "amount", AMOUNT_MAX)
USERS = Output("users", Measured.UNITS)
SPENT = Output("spent", Measured.SUM, "i.price", PRICE_MAX)
COUNTRY, DEVICE, DAY, URL = ("country", "country"), ("device", "device"), ("day", "day"), ("url", "url")
EVENTS_OF_USERS = "events AS e JOIN users AS u ON e.user_id = u.user_id"
ITEMS_OF_ORDERS = "items AS i JOIN orders AS o ON i.order_id = o.order_id"


def _filters(draw: random.Random, prefix: str = "") -> str:
    """A filter as people write them: one value, a few, a period, a range of amounts, or two of these."""
    first, length = draw.randrange(DAYS - 7), draw.choice((1, 3, 7))
    period = f"{prefix}day BETWEEN DATE '2026-01-{first + 1:02d}' AND DATE '2026-01-{first + length:02d}'"
    choices = [
        f"{prefix}device = '{draw.choice(DEVICES)}'",
        f"{prefix}country IN ({', '.join(repr(name) for name in draw.sample(COUNTRIES, 3))})",
        f"{prefix}amount < {draw.choice((5, 10, 20, 50))}",
        f"{prefix}amount >= {draw.choice((20, 50, 100))}",
        period,
    ]
    return " AND ".join(draw.sample(choices, draw.choice((1, 1, 2))))


def _perhaps(draw: random.Random) -> str:
    return _filters(draw) if draw.random() < 0.5 else "TRUE"


def _keys(draw: random.Random) -> tuple[tuple[str, str], ...]:
    return draw.choice(((), (COUNTRY,), (DEVICE,), (DAY,), (COUNTRY, DEVICE)))


def _filtered_count(draw: random.Random) -> AskedStatement:
    return AskedStatement("filtered counts", "events", "user_id", (N,), _keys(draw), _filters(draw))


def _sum(draw: random.Random) -> AskedStatement:
    outputs = (REVENUE,) if draw.random() < 0.7 else (N, REVENUE)
    return AskedStatement("sums", "events", "user_id", outputs, _keys(draw), _perhaps(draw))


def _average(draw: random.Random) -> AskedStatement:
    keys = draw.choice(((), (COUNTRY,), (DEVICE,), (DAY,)))
    return AskedStatement("averages", "events", "user_id", (AVERAGE,), keys, _perhaps(draw))


def _distinct(draw: random.Random) -> AskedStatement:
    keys = draw.choice(((DAY, COUNTRY), (DAY,), (COUNTRY,), (DAY, DEVICE)))
    return AskedStatement("distinct units", "events", "user_id", (USERS,), keys, _perhaps(draw))


def _discovered(draw: random.Random) -> AskedStatement:
    output = draw.choice((N, N, USERS))
    return AskedStatement("discovered keys", "events", "user_id", (output,), (URL,), _perhaps(draw), known=False)


def _join(draw: random.Random) -> AskedStatement:
    if draw.random() < 0.5:
        keys = draw.choice(((), (("u.country", "country"),), (("e.device", "device"),), (("u.country", "country"), ("e.device", "device"))))
        where = draw.choice(("u.member", "TRUE", _filters(draw, "e.")))
        output = draw.choice((N, Output("revenue", Measured.SUM, "e.amount", AMOUNT_MAX)))
        return AskedStatement("joins", EVENTS_OF_USERS, "u.user_id", (output,), keys, where)
    keys = draw.choice(
        ((), (("i.category", "category"),), (("o.channel", "channel"),), (("o.channel", "channel"), ("i.category", "category")))
    )
    where = draw.choice(("TRUE", f"o.channel = '{draw.choice(CHANNELS)}'", f"i.category = '{draw.choice(CATEGORIES)}'", "i.price < 20"))
    return AskedStatement("joins", ITEMS_OF_ORDERS, "o.user_id", (draw.choice((N, SPENT)),), keys, where)


def _rollup(draw: random.Random) -> AskedStatement:
    keys = draw.choice(((COUNTRY, DEVICE), (DEVICE, COUNTRY), (COUNTRY,), (DAY, DEVICE)))
    return AskedStatement("ROLLUP", "events", "user_id", (draw.choice((N, REVENUE)),), keys, _perhaps(draw), rollup=True)


FAMILIES: dict[str, Callable[[random.Random], AskedStatement]] = {
    "filtered counts": _filtered_count,
    "sums": _sum,
    "averages": _average,
    "distinct units": _distinct,
    "discovered keys": _discovered,
    "joins": _join,
    "ROLLUP": _rollup,
}


def statements(family: str, many: int, *, seed: int = 14) -> Iterator[AskedStatement]:
    """The first so many different statements of a family; always the same."""
    draw = random.Random(f"{seed} {family}")
    seen: set[str] = set()
    while len(seen) < many:
        made = FAMILIES[family](draw)
        if made.sql not in seen:
            seen.add(made.sql)
            yield made
