"""Plans that discover their groups by the weights that units spread over them, over the tables of ``worlds``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from lapwing.kernel.expressions import Column, not_null
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Cap, Clipped, Filter, Follow, GridSum, Grouped, Plan, Query, Ranked, RowCount, Scan, UnitCount, UnitJoin
from lapwing.kernel.laws import DiscreteGaussian

BITS = 10
ONE = 2**BITS
WIDE = DiscreteGaussian(Fraction(64 * ONE))
"""Noise so wide, relative to a weight, that a unit with many groups needs the highest threshold; at scale 8, a unit with one group does."""


def discovering_by_weight(discovered: Callable[..., Query]) -> Mapping[str, Callable[[Facts], Plan]]:
    """Plans that discover groups by weights, for every kind of contribution bounding; ``discovered`` makes a query of this kind."""
    dose = GridSum(Column("dose"), Fraction(0), Fraction(10), 2)
    change = GridSum(Column("change"), Fraction(-100), Fraction(100), 2)
    clipped = (
        ("n", RowCount(not_null(Column("dose"))), Cap(2 * ONE)),
        ("s", dose, Follow("n")),
        ("r", RowCount(), Cap(ONE)),
        ("u", UnitCount()),
    )
    changes = (("c", change, Cap(50 * ONE)), ("n", RowCount(Column("flag")), Cap(ONE)))
    return {
        "discovered by weight, ranked": lambda f: Plan(
            (
                discovered(
                    f,
                    Scan("drugs", 7),
                    "drug",
                    Ranked(),
                    ("n", RowCount()),
                    ("s", dose),
                    ("u", UnitCount()),
                    spread_bits=BITS,
                ),
            )
        ),
        "discovered by weight, wide noise": lambda f: Plan(
            (discovered(f, Scan("visits", 12), "day", Ranked(), spread_bits=BITS, law=WIDE),)
        ),
        "discovered by weight, coarse": lambda f: Plan(
            (discovered(f, Scan("visits", 12), "day", Ranked(), ("n", RowCount()), spread_bits=1),)
        ),
        "discovered by weight, grouped": lambda f: Plan(
            (discovered(f, Scan("drugs", 20), "drug", Grouped(3), ("n", RowCount(), Cap(3)), ("u", UnitCount()), spread_bits=BITS),)
        ),
        "discovered by weight, grouped, never crowded": lambda f: Plan(
            (discovered(f, Scan("drugs", 3), "drug", Grouped(5), ("n", RowCount(), Cap(3)), spread_bits=BITS),)
        ),
        "discovered by weight, clipped": lambda f: Plan(
            (discovered(f, Scan("drugs", 20), "drug", Clipped(BITS), *clipped, spread_bits=BITS),)
        ),
        "discovered by weight, clipped, signed": lambda f: Plan(
            (discovered(f, Scan("visits", 12), "day", Clipped(BITS), *changes, spread_bits=BITS, law=WIDE),)
        ),
        "discovered by weight, clipped, units only": lambda f: Plan(
            (discovered(f, Scan("visits", 5), "day", Clipped(BITS), ("u", UnitCount(Column("flag"))), spread_bits=BITS),)
        ),
        "discovered by weight, joined": lambda f: Plan(
            (
                discovered(
                    f,
                    UnitJoin(Filter(Scan("visits", 6), Column("flag")), Scan("drugs", 3), (), (("drug", "drug"),)),
                    "drug",
                    Clipped(BITS),
                    ("n", RowCount(), Cap(3 * ONE)),
                    spread_bits=BITS,
                ),
            )
        ),
    }
