"""Contributions and selectivity: guesses that move accuracy only, but sane ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from lapwing.contribution.bounding import BoundingInputs, BoundingKind, choose, groups_for
from lapwing.contribution.rows_per_unit import Contributions, assumed, histogram_plan
from lapwing.contribution.selectivity import kept_share
from lapwing.kernel.accounting import Account, charge_loss
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, Kind, RealDomain, TextDomain
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours

COLUMNS: dict[str, Domain] = {
    "n": IntegerDomain(0, 99, nullable=False),
    "x": RealDomain(Fraction(0), Fraction(10), nullable=False, steps=10),
    "d": DateDomain(0, 365, nullable=False),
    "w": TextDomain(("a", "b", "c", "d"), nullable=False),
    "t": TextDomain(None),
    "f": BooleanDomain(),
}


def integer(value: int) -> Literal:
    return Literal(value, Kind.INTEGER)


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_histogram_of_rows_per_unit_costs_what_was_given_for_it(account: Account, neighbours: Neighbours) -> None:
    facts = Facts("s", 1, neighbours, account, {"t": TableFacts({"n": COLUMNS["n"]}, 50, 1_000)}, {})
    for loss in (Fraction(1, 1_000), Fraction(1, 3)):
        certified = certify(histogram_plan("t", facts, loss=loss), facts)
        assert 0.999 * charge_loss(loss) <= certified.cost.loss <= charge_loss(loss) and certified.cost.delta == 0


def test_what_is_assumed_has_the_declared_number_of_units() -> None:
    found = assumed(rows_per_unit_max=100, rows_max=10**6, units=5_000)
    assert found.units() == pytest.approx(5_000)
    assert 1 <= found.rows() / found.units() <= 100
    assert assumed(rows_per_unit_max=1, rows_max=10, units=None).bins == ((1.0, 10.0),)


def test_rows_above_a_limit_fall_as_it_rises_and_as_fewer_rows_pass_a_filter() -> None:
    known = Contributions(((1.0, 100.0), (10.0, 10.0), (80.0, 2.0)))
    above = [known.excess(limit) for limit in (0, 1, 5, 20, 80, 100)]
    assert above[0] == known.rows() and above[-1] == 0
    assert all(a >= b for a, b in pairwise(above))
    thinned = [known.excess(2, share=share) for share in (1.0, 0.5, 0.1, 0.001)]
    assert all(a >= b >= 0 for a, b in pairwise(thinned))


@pytest.mark.parametrize(
    ("predicate", "share"),
    [
        (call(Function.LESS, Column("n"), integer(10)), 0.1),
        (call(Function.LESS_EQUAL, Column("n"), integer(9)), 0.1),
        (call(Function.GREATER, integer(10), Column("n")), 0.1),
        (call(Function.GREATER_EQUAL, Column("n"), integer(200)), 0.0),
        (call(Function.LESS, Column("x"), Literal(Fraction(5, 2), Kind.REAL)), 0.25),
        (call(Function.EQUAL, Column("w"), Literal("a", Kind.TEXT)), 0.25),
        (call(Function.IN, Column("w"), Literal("a", Kind.TEXT), Literal("b", Kind.TEXT)), 0.5),
        # constants that no row can hold do not count
        (call(Function.IN, Column("w"), *(Literal(word, Kind.TEXT) for word in ("a", "x", "y", "z", "v"))), 0.25),
        (call(Function.NOT, call(Function.IN, call(Function.MODULO, Column("n"), integer(2)), *map(integer, (1, 5, -3, 7)))), 0.5),
        (call(Function.NOT, call(Function.EQUAL, Column("w"), Literal("a", Kind.TEXT))), 0.75),
        (call(Function.NOT_EQUAL, Column("n"), integer(3)), 0.99),
        (call(Function.EQUAL, Column("d"), Literal(5, Kind.DATE)), 1 / 366),
        # two ranges of one column meet, they do not multiply
        (
            call(Function.AND, call(Function.GREATER_EQUAL, Column("n"), integer(50)), call(Function.LESS, Column("n"), integer(60))),
            0.1,
        ),
        (call(Function.OR, call(Function.LESS, Column("n"), integer(50)), call(Function.LESS, Column("x"), integer(5))), 0.75),
    ],
)
def test_the_share_of_rows_a_filter_keeps(predicate: Expression, share: float) -> None:
    assert kept_share(predicate, COLUMNS) == pytest.approx(share)


@pytest.mark.parametrize(
    "predicate",
    [
        Column("f"),
        call(Function.IS_NULL, Column("t")),
        call(Function.STARTS_WITH, Column("t"), Literal("a", Kind.TEXT)),
        call(Function.EQUAL, Column("t"), Column("t")),
        call(Function.LESS, Column("n"), Column("x")),
        call(Function.NOT, call(Function.EQUAL, integer(1), integer(1))),
        call(Function.NOT, call(Function.IN, integer(0), integer(1), integer(5))),
    ],
)
def test_an_unknown_share_is_a_guess_between_none_and_all(predicate: Expression) -> None:
    assert 0 < kept_share(predicate, COLUMNS) < 1


WIDE = BoundingInputs(
    contributions=Contributions(((1.0, 10_000.0), (20.0, 500.0), (150.0, 20.0))),
    rows_per_unit_max=200,
    kept=1.0,
    cells=50,
    account=Account.APPROXIMATE,
    loss_per_vector=0.05,
    has_average=False,
    units_only=False,
)


def test_units_alone_need_no_row_bound() -> None:
    choice = choose(replace(WIDE, units_only=True, cells=1))
    assert (choice.kind, choice.limit, choice.truncation) == (BoundingKind.RANKED, 200.0, 0.0)


def test_groups_kept_are_the_root_of_the_limit() -> None:
    assert groups_for(16, None) == 4 and groups_for(16, 1) == 1 and groups_for(0.5, 10) == 1
