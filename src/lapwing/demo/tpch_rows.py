"""Rows of a made-up wholesale business in the shape of the well-known decision-support benchmark. Our own generator, from a fixed seed.

Every value lies inside what ``tpch.toml`` declares and no customer has more rows than it allows.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SEED = 22
ORDERS_PER_CUSTOMER_MAX = 40
ITEMS_PER_ORDER_MAX = 7
PARTS = 200
SUPPLIERS = 40
OFFERS_PER_PART = 4
FIRST_DAY = datetime.date(1992, 1, 1)
DAYS_OF_ORDERS = 2405
"""Up to 1998-08-02; items are shipped, promised and received within 151 days more."""
TODAY = 1263
"""1995-06-17, counted from the first day: what was received by then may have been returned, what is shipped later is open."""

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3),
    ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0),
    ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
COLOURS = ("almond", "blue", "forest", "green", "ivory", "lemon", "navy", "rose")
FINISHES = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
TREATMENTS = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
SIZES = ("JUMBO", "LG", "MED", "SM", "WRAP")
VESSELS = ("BAG", "BOX", "CASE", "DRUM", "PACK")

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def all_tables(customers: int) -> dict[str, pa.Table]:
    """Every table by name. The same number of customers gives the same rows."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    offers = _partsupp(rng)
    many = np.minimum(rng.negative_binomial(2, 0.25, customers), ORDERS_PER_CUSTOMER_MAX)
    many[rng.random(customers) < 0.3] = 0  # a third never ordered anything
    customer_of = np.repeat(np.arange(1, customers + 1, dtype=np.int64), many)
    ordered = rng.integers(0, DAYS_OF_ORDERS, len(customer_of))
    items, prices, received = _lineitem(rng, ordered, offers)
    return {
        "customer": _customer(rng, customers),
        "orders": _orders(rng, customer_of, ordered, prices, received),
        "lineitem": items,
        "part": _part(rng),
        "supplier": _supplier(rng),
        "partsupp": offers,
        "nation": _nation(),
        "region": pa.table({"r_regionkey": pa.array(range(len(REGIONS)), pa.int64()), "r_name": list(REGIONS)}),
    }


def _customer(rng: np.random.Generator, customers: int) -> pa.Table:
    nation = rng.integers(0, len(NATIONS), customers)
    local = rng.integers(0, 10**7, customers)
    return pa.table(
        {
            "c_custkey": np.arange(1, customers + 1, dtype=np.int64),
            "c_name": [f"Customer {number:06}" for number in range(1, customers + 1)],
            "c_nationkey": nation,
            "c_phone": [f"{10 + n}-{number:07}" for n, number in zip(nation, local, strict=True)],
            "c_acctbal": _cents(rng, -999, 9999, customers),
            "c_mktsegment": _picked(rng, SEGMENTS, customers),
        }
    )


def _orders(rng: np.random.Generator, customer_of: Ints, ordered: Ints, prices: Floats, received: Ints) -> pa.Table:
    count = len(customer_of)
    words = _picked(rng, ("as usual", "special requests", "call before delivery", "none"), count)
    return pa.table(
        {
            "o_orderkey": np.arange(1, count + 1, dtype=np.int64),
            "o_custkey": customer_of,
            "o_orderstatus": np.where(received <= TODAY, "F", np.where(ordered > TODAY, "O", "P")),
            "o_totalprice": prices,
            "o_orderdate": _days(ordered),
            "o_orderpriority": _picked(rng, PRIORITIES, count),
            "o_shippriority": np.zeros(count, np.int64),
            "o_comment": words,
        }
    )


def _lineitem(rng: np.random.Generator, ordered: Ints, offers: pa.Table) -> tuple[pa.Table, Floats, Ints]:
    """Items, and of each order the price of all its items and the day the last was received."""
    many = rng.integers(1, ITEMS_PER_ORDER_MAX + 1, len(ordered))
    order = np.repeat(np.arange(len(ordered)), many)
    count = len(order)
    offer = rng.integers(0, offers.num_rows, count)
    part = offers.column("ps_partkey").to_numpy()[offer]
    quantity = rng.integers(1, 51, count)
    price = np.round(quantity * (900 + part * 1.25), 2)
    shipped = ordered[order] + rng.integers(1, 121, count)
    promised = ordered[order] + rng.integers(30, 91, count)
    received = shipped + rng.integers(1, 31, count)
    returned = np.where(received > TODAY, "N", np.where(rng.random(count) < 0.5, "A", "R"))
    table = pa.table(
        {
            "l_orderkey": order + 1,
            "l_partkey": part,
            "l_suppkey": offers.column("ps_suppkey").to_numpy()[offer],
            "l_partsupp": offers.column("ps_id").take(pa.array(offer)),
            "l_linenumber": np.concatenate([np.arange(1, number + 1) for number in many]) if count else order,
            "l_quantity": quantity,
            "l_extendedprice": price,
            "l_discount": rng.integers(0, 11, count) / 100,
            "l_tax": rng.integers(0, 9, count) / 100,
            "l_returnflag": returned,
            "l_linestatus": np.where(shipped > TODAY, "O", "F"),
            "l_shipdate": _days(shipped),
            "l_commitdate": _days(promised),
            "l_receiptdate": _days(received),
            "l_shipinstruct": _picked(rng, INSTRUCTIONS, count),
            "l_shipmode": _picked(rng, MODES, count),
        }
    )
    last = np.zeros(len(ordered), np.int64)
    np.maximum.at(last, order, received)
    return table, np.round(np.bincount(order, price, len(ordered)), 2), last


def _part(rng: np.random.Generator) -> pa.Table:
    kinds = zip(_picked(rng, FINISHES, PARTS), _picked(rng, TREATMENTS, PARTS), _picked(rng, METALS, PARTS), strict=True)
    vessels = zip(_picked(rng, SIZES, PARTS), _picked(rng, VESSELS, PARTS), strict=True)
    colours = zip(_picked(rng, COLOURS, PARTS), _picked(rng, COLOURS, PARTS), strict=True)
    maker = rng.integers(1, 6, PARTS)
    return pa.table(
        {
            "p_partkey": np.arange(1, PARTS + 1, dtype=np.int64),
            "p_name": [" ".join(pair) for pair in colours],
            "p_mfgr": [f"Manufacturer#{number}" for number in maker],
            "p_brand": [f"Brand#{number}{brand}" for number, brand in zip(maker, rng.integers(1, 6, PARTS), strict=True)],
            "p_type": [" ".join(kind) for kind in kinds],
            "p_size": rng.integers(1, 51, PARTS),
            "p_container": [" ".join(pair) for pair in vessels],
        }
    )


def _supplier(rng: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "s_suppkey": np.arange(1, SUPPLIERS + 1, dtype=np.int64),
            "s_name": [f"Supplier {number:03}" for number in range(1, SUPPLIERS + 1)],
            "s_nationkey": rng.permutation(np.arange(SUPPLIERS) % len(NATIONS)),
            "s_acctbal": _cents(rng, -999, 9999, SUPPLIERS),
            "s_comment": _picked(rng, ("prompt", "Customer Complaints", "recommended", "new"), SUPPLIERS),
        }
    )


def _partsupp(rng: np.random.Generator) -> pa.Table:
    part = np.repeat(np.arange(1, PARTS + 1, dtype=np.int64), OFFERS_PER_PART)
    supplier = (part * 7 + np.tile(np.arange(OFFERS_PER_PART) * (SUPPLIERS // OFFERS_PER_PART), PARTS)) % SUPPLIERS + 1
    return pa.table(
        {
            "ps_id": [f"{p}/{s}" for p, s in zip(part, supplier, strict=True)],
            "ps_partkey": part,
            "ps_suppkey": supplier,
            "ps_availqty": rng.integers(1, 9999, len(part)),
            "ps_supplycost": _cents(rng, 1, 1000, len(part)),
        }
    )


def _nation() -> pa.Table:
    return pa.table(
        {
            "n_nationkey": pa.array(range(len(NATIONS)), pa.int64()),
            "n_name": [name for name, _ in NATIONS],
            "n_regionkey": pa.array([region for _, region in NATIONS], pa.int64()),
        }
    )


def _picked(rng: np.random.Generator, words: Sequence[str], count: int) -> list[str]:
    return [words[number] for number in rng.integers(0, len(words), count)]


def _cents(rng: np.random.Generator, low: int, high: int, count: int) -> Floats:
    amounts: Floats = rng.integers(100 * low, 100 * high, count) / 100
    return amounts


def _days(numbers: Ints) -> pa.Array:
    return pa.array(numbers + (FIRST_DAY - datetime.date(1970, 1, 1)).days, pa.int32()).cast(pa.date32())
