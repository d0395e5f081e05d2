"""The sensitivity oracle on relations: the conformance list and generated joins, subqueries and nestings; no claim is ever broken.

Statements are bound and planned as an analyst's are, and run on families of neighbouring clinics (tests.support.clinic_worlds).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache

import pytest

from lapwing.audit.lists.conformance import listed_statements
from lapwing.audit.runs import OracleRun
from lapwing.catalog import Settings
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan, PublicJoin, SemiJoin, UnitJoin
from lapwing.kernel.workload import parts_of
from lapwing.sql.text.privacy_words import Question, read_words
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS, Caps
from tests.support.family_runs import clinic_facts, family_of, fan_out_of, run_families
from tests.support.sizes import size, spread
from tests.support.sql_shapes import MANY_ROWS, SqlShape, relational_shapes

STATEMENTS = size("oracle of relations, statements")
"""Generated statements of each chunk."""
CAPS = Caps()
CHUNKS = [
    ("unbounded", Account.PURE, 51),
    ("unbounded", Account.APPROXIMATE, 52),
    ("bounded", Account.PURE, 53),
    ("bounded", Account.APPROXIMATE, 54),
]
FAMILIES = {"unbounded": 1, "bounded": size("oracle of relations, families")}
PAIRS = {"unbounded": 32, "bounded": 45 * FAMILIES["bounded"]}
"""Pairs of each statement: all edges of the subsets of 4 units; all pairs of 10 worlds of each family."""
CONTENTS = 9
FREE = {"c24", "c58"}
"""Of the conformance list, what measures nothing: a declared domain, the budget."""
NEED_DELTA = {"c15"}


@lru_cache
def facts(relation: str, account: Account, caps: Caps = CAPS) -> Facts:
    return clinic_facts(relation, account, caps)


@lru_cache
def conformance(relation: str, account: Account, caps: Caps = CAPS) -> dict[str, SqlShape]:
    """The statements of the conformance list that measure something, priced as if units had many rows, so that bounds bind."""
    found = {}
    for listed in listed_statements():
        if listed.answered and listed.name not in FREE and not (account is Account.PURE and listed.name in NEED_DELTA):
            words = read_words(listed.sql, settings=Settings())
            assert isinstance(words, Question)
            found[listed.name] = SqlShape(words.statement, Fraction(1), MANY_ROWS, UNIT_COLUMNS, REFERENCES)
    assert len(found) == 58 - len(FREE) - (len(NEED_DELTA) if account is Account.PURE else 0)
    return found


@lru_cache
def generated(relation: str, account: Account, seed: int) -> dict[str, SqlShape]:
    return relational_shapes(facts(relation, account), UNIT_COLUMNS, REFERENCES, count=STATEMENTS, seed=seed)


def kinds_of(plan: Plan) -> set[str]:
    """The kinds of relations in a plan; joins and conditions with their variants."""
    found = {"queries"} if len(plan.queries) > 1 else set()
    for part in (part for query in plan.queries for part in parts_of(query.source)):
        match part:
            case UnitJoin(_, _, on, _, kind):
                found.add(f"{kind.value} join on {'a key' if on else 'the unit'}")
            case SemiJoin(_, _, on, negated):
                found.add(f"{'not ' if negated else ''}exists on {'a key' if on else 'the unit'}")
            case PublicJoin(_, _, _, _, kind):
                found.add(f"{kind.value} public join")
            case _:
                found.add(type(part).__name__)
    return found


def run(relation: str, account: Account, seed: int, shapes: dict[str, SqlShape]) -> OracleRun:
    return run_families(
        relation=relation,
        account=account,
        make=family_of(relation, contents=CONTENTS),
        families=FAMILIES[relation],
        seed=seed,
        only=shapes,
        caps=CAPS,
    )


def clean(outcome: OracleRun, *, pairs: int) -> None:
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= pairs, "the run must be as large as it says"


@pytest.mark.parametrize(("relation", "account", "seed"), spread(CHUNKS, "oracle of the conformance list, kinds"))
def test_no_neighbour_breaks_a_claim_about_the_conformance_list(relation: str, account: Account, seed: int) -> None:
    shapes = conformance(relation, account)
    clean(run(relation, account, seed, shapes), pairs=PAIRS[relation] * len(shapes))


@pytest.mark.parametrize(("relation", "account", "seed"), CHUNKS)
def test_no_neighbour_breaks_a_claim_about_generated_statements(relation: str, account: Account, seed: int) -> None:
    shapes = generated(relation, account, seed)
    clean(run(relation, account, seed, shapes), pairs=PAIRS[relation] * STATEMENTS)


@pytest.mark.soak("the oracle in `check` says itself how many pairs it has")
def test_the_pairs_add_up_to_thirty_thousand() -> None:
    pairs = sum(PAIRS[relation] * (STATEMENTS + len(conformance(relation, account))) for relation, account, _ in CHUNKS)
    assert pairs >= 30_000, pairs


def test_generated_statements_meet_every_relation() -> None:
    met: Counter[str] = Counter()
    texts: set[str] = set()
    for relation, account, seed in CHUNKS:
        for text, shape in generated(relation, account, seed).items():
            texts.add(text)
            met.update(kinds_of(shape(facts(relation, account))))
    assert len(texts) >= 10 * STATEMENTS / 3
    joins = {f"{kind} join on {what}" for kind in ("inner", "left") for what in ("a key", "the unit")}
    conditions = {f"{word}exists on {what}" for word in ("", "not ") for what in ("a key", "the unit")}
    wanted = (
        joins | conditions | {"inner public join", "left public join", "Union", "PerUnit", "UnitWindow", "Project", "Filter", "queries"}
    )
    assert min(met[kind] for kind in wanted) >= STATEMENTS // 13, met


# A small cap, under which almost all rows of the whale are dropped; and one that keeps 100 visits and 10^4 prescriptions: 10^6 rows joined.
FAN_OUT = [(Caps(visits=7, prescriptions=20), 100, 10_000), (Caps(visits=100, prescriptions=10_000), 100, 10_000)]


@pytest.mark.parametrize(("caps", "visits", "prescriptions"), FAN_OUT)
@pytest.mark.parametrize("account", list(Account))
def test_a_unit_with_ten_thousand_rows_to_join_stays_within_the_bound(
    account: Account, caps: Caps, visits: int, prescriptions: int
) -> None:
    known = facts("unbounded", account, caps)
    shapes = {name: shape for name, shape in joined_statements(account, caps).items() if _affordable(shape, known)}
    assert len(shapes) >= 15, "joined statements of the list and generated ones"
    outcome = run_families(
        relation="unbounded",
        account=account,
        make=fan_out_of(visits=visits, prescriptions=prescriptions),
        families=1,
        seed=5,
        only=shapes,
        caps=caps,
    )
    clean(outcome, pairs=len(shapes))


def joined_statements(account: Account, caps: Caps) -> dict[str, SqlShape]:
    known = facts("unbounded", account, caps)
    found = dict(conformance("unbounded", account, caps))
    found |= relational_shapes(known, UNIT_COLUMNS, REFERENCES, count=30, seed=61)
    return {name: shape for name, shape in found.items() if _joins(shape, known)}


def _joins(shape: SqlShape, known: Facts) -> bool:
    try:
        return any(isinstance(part, UnitJoin) for query in shape(known).queries for part in parts_of(query.source))
    except Refused:
        return False


def _affordable(shape: SqlShape, known: Facts) -> bool:
    """Not more than two joins of units in one relation: three of 10^4 rows each would not end."""
    relations = [query.source for query in shape(known).queries]
    return all(sum(isinstance(part, UnitJoin) for part in parts_of(relation)) <= 2 for relation in relations)
