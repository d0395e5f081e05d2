"""Rows of a made-up shop, with what real rows have: NULLs, duplicates, negative amounts, empty and non-ASCII texts, leap days, decimals.

Our own generator, from a fixed seed. Every value lies inside what ``shop.toml`` declares and no customer has more rows than it allows.
"""

from __future__ import annotations

import datetime
import random
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa

SEED = 7
ORDERS_PER_CUSTOMER_MAX = 30
SESSIONS_PER_CUSTOMER_MAX = 12
AMOUNT_MAX = 4_000
FIRST_MOMENT = datetime.datetime(2024, 1, 1)
SECONDS = 366 * 86_400
FIRST_DAY, DAYS = datetime.date(2023, 12, 1), 487
"""Of the calendar: up to 2025-03-31."""

COUNTRIES = ("DE", "FR", "GB", "US", "JP", "BR", "São Tomé", "", None)
SEGMENTS = ("consumer", "Großkunde", "small biz", "日本", "", None)
REFERRERS = ("", "friend", "Friend", "ads/search", "ads/social", "ünïcode", None)
CHANNELS = ("web", "store", "phone", "App", None)
STATUSES = ("placed", "shipped", "delivered", "cancelled", "returned")
COUPONS = (None, "SPRING10", "spring10", "VIP-2024", "welcome_5%")
NOTES = (None, "gift wrap", "Gift Wrap!", "", "it's late")
REASONS = ("damaged", "wrong size", "late", "other", None)
STEPS = ("view", "search", "add_to_cart", "checkout", "purchase")
SOURCES = ("google", "newsletter", "facebook", "(direct)", None)
PAGES = ("/", "/p/1", "/p/22", "/cart", "/search?q=lamp", "/Search?q=RUG", None)
DEVICES = ("ios", "android", "desktop")
CATEGORIES = {
    "books": ("fiction", "non-fiction"),
    "toys": ("games", "dolls"),
    "garden": ("tools", "plants"),
    "déco": ("lamps", "rugs"),
}
HOLIDAYS = {(1, 1), (12, 25), (12, 26), (5, 1)}
LEAP_YEARS = (1980, 1984, 1992, 2000)
MOMENTS = (
    datetime.datetime(2024, 2, 29, 12), datetime.datetime(2024, 3, 10, 2, 30), datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(2024, 10, 27, 2, 30), datetime.datetime(2024, 11, 3, 1, 30), datetime.datetime(2024, 12, 31, 23, 59, 59),
    datetime.datetime(2024, 1, 1), datetime.datetime(2024, 12, 30),
)  # fmt: skip
"""A leap day, hours that daylight saving skips or repeats, and the ends of years."""

_LONG, _INT, _DATE, _TIME, _TEXT = pa.int64(), pa.int32(), pa.date32(), pa.timestamp("us"), pa.string()
_TRUTH, _REAL, _MONEY = pa.bool_(), pa.float64(), pa.decimal128(10, 2)
SCHEMAS: dict[str, dict[str, pa.DataType]] = {
    "customers": {
        "customer_id": _LONG, "signup_date": _DATE, "country": _TEXT, "segment": _TEXT, "birth_date": _DATE, "opted_in": _TRUTH,
        "credit_limit": _REAL, "loyalty_points": _INT, "referrer": _TEXT, "group": _TEXT, "visits_2023": _INT,
    },
    "orders": {
        "order_id": _LONG, "customer_id": _LONG, "ordered_at": _TIME, "order_date": _DATE, "status": _TEXT, "channel": _TEXT,
        "amount": _MONEY, "discount": _REAL, "is_gift": _TRUTH, "coupon": _TEXT, "ship_date": _DATE, "priority": _INT,
    },
    "order_lines": {
        "line_id": _LONG, "order_id": _LONG, "product_id": _INT, "qty": _INT, "unit_price": _MONEY, "note": _TEXT,
    },
    "returns": {"return_id": _LONG, "order_id": _LONG, "returned_on": _DATE, "reason": _TEXT, "refund": _MONEY},
    "events": {
        "event_id": _LONG, "customer_id": _LONG, "session_id": _LONG, "ts": _TIME, "event_name": _TEXT, "page": _TEXT,
        "duration_ms": _INT, "utm_source": _TEXT, "device": _TEXT, "bounced": _TRUTH,
    },
    "products": {
        "product_id": _INT, "name": _TEXT, "category": _TEXT, "subcategory": _TEXT, "list_price": _REAL, "active": _TRUTH,
        "launched": _DATE,
    },
    "calendar": {
        "day": _DATE, "week_start": _DATE, "month_name": _TEXT, "is_holiday": _TRUTH, "fiscal_year": _INT, "fiscal_quarter": _INT,
    },
}  # fmt: skip

Row = dict[str, Any]


def all_tables(customers: int) -> dict[str, pa.Table]:
    """Every table by name. The same number of customers gives the same rows."""
    shop = _Shop(random.Random(SEED))
    shop.stock()
    for number in range(1, customers + 1):
        shop.serve(number)
    return {
        name: pa.Table.from_pylist([_typed(row, types) for row in shop.rows[name]], schema=pa.schema(types))
        for name, types in SCHEMAS.items()
    }


class _Shop:
    """The rows made so far."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.sessions = self.events = 0

    def stock(self) -> None:
        """The public tables: what is sold, and the days."""
        kinds = [(category, kind) for category, kinds in CATEGORIES.items() for kind in kinds for _ in range(3)]
        for number, (category, kind) in enumerate(kinds, start=1):
            price = round(self.draw.uniform(3, 200), 2)
            active = None if number == 7 else self.draw.random() < 0.8
            launched = datetime.date(2022, 1, 1) + _days(self.draw.randrange(1000))
            self._add("products", number, f"{kind} {(number - 1) % 3 + 1}", category, kind, price, active, launched)
        for number in range(DAYS):
            day = FIRST_DAY + _days(number)
            fiscal = (day.year + (day.month >= 10), (day.month - 10) % 12 // 3 + 1)
            self._add("calendar", day, day - _days(day.weekday()), day.strftime("%B"), (day.month, day.day) in HOLIDAYS, *fiscal)

    def serve(self, customer: int) -> None:
        """A customer with all that is theirs."""
        draw = self.draw
        signup = FIRST_DAY + _days(draw.randrange(420))
        birth = self._birth()
        country = draw.choices(COUNTRIES, [30, 20, 15, 15, 5, 5, 3, 4, 3])[0]
        segment = draw.choices(SEGMENTS, [50, 15, 15, 5, 5, 10])[0]
        opted_in = draw.choice([True, True, False, None])
        credit = None if draw.random() < 0.15 else round(draw.uniform(0, 20_000), 2)
        points = draw.randrange(-200, 2_000)
        referrer = draw.choices(REFERRERS, [10, 20, 10, 20, 10, 10, 20])[0]
        group, visits = draw.choice(["A", "B"]), draw.choice([0, 0, 0, 1, 2, 3, None])
        self._add("customers", customer, signup, country, segment, birth, opted_in, credit, points, referrer, group, visits)
        for _ in range(min(ORDERS_PER_CUSTOMER_MAX, int(draw.expovariate(1 / 5)))):
            self._order(customer)
        for _ in range(min(SESSIONS_PER_CUSTOMER_MAX, int(draw.expovariate(1 / 3)))):
            self._session(customer)

    def _birth(self) -> datetime.date | None:
        if self.draw.random() < 0.1:
            return None
        if self.draw.random() < 0.05:
            return datetime.date(self.draw.choice(LEAP_YEARS), 2, 29)
        return datetime.date(1940, 1, 1) + _days(self.draw.randrange(24_000))

    def _order(self, customer: int) -> None:
        draw, number = self.draw, len(self.rows["orders"]) + 1
        moment = draw.choice(MOMENTS) if draw.random() < 0.08 else FIRST_MOMENT + _seconds(draw.randrange(SECONDS))
        if draw.random() < 0.5:
            moment += datetime.timedelta(microseconds=number)
        status = draw.choices(STATUSES, [10, 20, 50, 12, 8])[0]
        amount = self._amount()
        channel = draw.choices(CHANNELS, [50, 25, 10, 10, 5])[0]
        paid = None if draw.random() < 0.04 else amount
        discount, gift = draw.choice([0, 0, 0, 0.1, 0.25, 0.5, None]), draw.choice([True, False, False, None])
        coupon = draw.choices(COUPONS, [60, 15, 8, 10, 7])[0]
        day = moment.date()
        shipped = None if status in ("placed", "cancelled") else day + _days(draw.randrange(12))
        priority = draw.randrange(1, 6)
        self._add("orders", number, customer, moment, day, status, channel, paid, discount, gift, coupon, shipped, priority)
        for _ in range(draw.choice([1, 1, 2, 3])):
            self._line(number)
        if status == "returned" or draw.random() < 0.05:
            returned = day + _days(draw.randrange(1, 60))
            reason = draw.choices(REASONS, [3, 3, 2, 2, 1])[0]
            self._add("returns", len(self.rows["returns"]) + 1, number, returned, reason, round(draw.uniform(0, 300), 2))

    def _amount(self) -> float:
        """What an order costs: some are refunds, some are free."""
        amount: float = min(round(self.draw.lognormvariate(4, 1), 2), AMOUNT_MAX)
        if self.draw.random() < 0.05:
            amount = -amount / 4
        if self.draw.random() < 0.04:
            amount = 0.0
        return round(amount, 2)

    def _line(self, order: int) -> None:
        draw, number = self.draw, len(self.rows["order_lines"]) + 1
        # Some name no product, some one that is not sold.
        product = draw.randrange(1, 26) if draw.random() < 0.97 else None
        quantity, price = draw.choice([1, 1, 1, 2, 3, 5, -1]), round(draw.uniform(1, 150), 2)
        self._add("order_lines", number, order, product, quantity, price, draw.choices(NOTES, [60, 15, 10, 10, 5])[0])

    def _session(self, customer: int) -> None:
        """What a customer does on the site, up to some step; now and then a row is there twice."""
        draw = self.draw
        self.sessions += 1
        moment = FIRST_MOMENT + _seconds(draw.randrange(SECONDS - 90_000))
        source = draw.choices(SOURCES, [30, 20, 20, 20, 10])[0]
        last = draw.choices(range(1, 6), [30, 25, 20, 15, 10])[0]
        steps = [step for step in STEPS[:last] for _ in range(draw.choice([1, 1, 2]))]
        for step in steps:
            self.events += 1
            moment += _seconds(draw.randrange(1, 900))
            page = draw.choice(PAGES)
            lasted = None if draw.random() < 0.1 else draw.randrange(120_000)
            device, bounced = draw.choice(DEVICES), draw.random() < 0.3
            for _ in range(2 if draw.random() < 0.02 else 1):
                self._add("events", self.events, customer, self.sessions, moment, step, page, lasted, source, device, bounced)

    def _add(self, table: str, *values: Any) -> None:
        self.rows[table].append(dict(zip(SCHEMAS[table], values, strict=True)))


def _typed(row: Row, types: dict[str, pa.DataType]) -> Row:
    """A row whose money is decimal."""
    cent = Decimal("0.01")
    return {
        name: Decimal(str(value)).quantize(cent) if types[name] == _MONEY and value is not None else value for name, value in row.items()
    }


def _days(count: int) -> datetime.timedelta:
    return datetime.timedelta(days=count)


def _seconds(count: int) -> datetime.timedelta:
    return datetime.timedelta(seconds=count)
