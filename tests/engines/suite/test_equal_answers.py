"""The same exact integers on every engine: generated statements, joins, the conformance list and hand-made plans, on hostile rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lapwing.audit.plan_shapes import Shape
from lapwing.audit.release_shapes import release_shapes
from lapwing.catalog import Declaration, load
from lapwing.engines.prepare import number_types_body
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.ir import Plan
from tests.differential.world import table, write
from tests.engines.comparison import Comparable, comparable, public_tables
from tests.engines.suite import statements
from tests.engines.suite.engines import OTHERS, OnDuckDB, SuiteEngine
from tests.support.sizes import size, spread

EngineNamed = Callable[[str], SuiteEngine]
COUNTS = {
    engine: {world: size(f"equal answers, {world} on {name}") for world in ("people", "clinic", "hostile")}
    for engine, name in (("postgres", "PostgreSQL"), ("spark", "Spark"))
}
"""Generated statements of each kind of world; Spark plans anew for each of them, so it gets fewer."""
COMPARED = [
    *(("postgres", *kind) for kind in statements.KINDS),
    *(("spark", *kind) for kind in spread(statements.KINDS, "equal answers, kinds on Spark")),
]
"""Engine, relation and account."""
HOSTILE_SEEDS = range(2)
LISTED = {Account.PURE: 55, Account.APPROXIMATE: 56}
"""Statements of the conformance list that measure something."""
LOGARITHM = "c32"
"""The one of them with a function whose last bit may differ."""


def _difference(plan: Plan, ours: Comparable, theirs: Comparable) -> str:
    """What is different, or nothing. Where an engine's own logarithm, exponential or sine takes part, a cell may be off by a step a row."""
    if not statements.functions_in(plan) & statements.TRANSCENDENTAL:
        return "" if ours == theirs else "exact tables differ"
    for (left, _), (right, _) in zip(ours, theirs, strict=True):
        gaps = [abs(a - b) for group in left.keys() & right.keys() for a, b in zip(left[group], right[group], strict=True)]
        if max(gaps, default=0) > ROWS_MAX:
            return "more than a step per row"
    return ""


ROWS_MAX = 1_000
"""No world of the suite has more rows than this in a table."""


def compare(engine: SuiteEngine, declaration: Declaration, shapes: Callable[..., Mapping[str, Shape]], *, same_types: bool = False) -> int:
    """Run every statement on DuckDB and on another engine; the number of those that must be equal, and were.

    ``same_types``: the source has no type that only one of them has.
    """
    first, second = OnDuckDB().prepare(declaration), engine.prepare(declaration)
    try:
        assert first.facts == second.facts
        assert not same_types or number_types_body(first.facts) == number_types_body(second.facts)
        assert public_tables(first) == public_tables(second)
        different, exact = [], 0
        for name, shape in shapes(first.facts).items():
            certified = certify(shape(first.facts), first.facts)
            why = _difference(certified.plan, comparable(first.run(certified)), comparable(second.run(certified)))
            if why:
                different.append((name, why))
            exact += not statements.functions_in(certified.plan) & statements.TRANSCENDENTAL
        assert different == []
        return exact
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize(("name", "relation", "account"), COMPARED)
def test_generated_statements(tmp_path: Path, engine_named: EngineNamed, name: str, relation: str, account: Account) -> None:
    count, seed = COUNTS[name]["people"], 11 + statements.KINDS.index((relation, account))
    declaration = statements.people(tmp_path, relation, account, seed=seed)
    exact = compare(engine_named(name), declaration, lambda facts: statements.generated(facts, count=count, seed=seed))
    assert exact >= int(0.8 * count), "statements that must be equal are most of them"


@pytest.mark.parametrize(("name", "relation", "account"), COMPARED)
def test_generated_relations(tmp_path: Path, engine_named: EngineNamed, name: str, relation: str, account: Account) -> None:
    count, seed = COUNTS[name]["clinic"], 21 + statements.KINDS.index((relation, account))
    declaration = statements.clinic(tmp_path, relation, account, seed=seed)
    exact = compare(engine_named(name), declaration, lambda facts: statements.generated_relations(facts, count=count, seed=seed))
    assert exact >= 0.6 * count


@pytest.mark.parametrize("name", OTHERS)
def test_windows_within_units(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Many rows here are of one time, and units hold NULLs, equal rows and repeated identifiers."""
    declaration = statements.clinic(tmp_path, "unbounded", Account.APPROXIMATE, seed=51)
    assert compare(engine_named(name), declaration, lambda _: statements.windows()) == len(statements.WINDOWS)


@pytest.mark.parametrize("seed", HOSTILE_SEEDS)
@pytest.mark.parametrize("name", OTHERS)
def test_generated_statements_over_hostile_rows(tmp_path: Path, engine_named: EngineNamed, name: str, seed: int) -> None:
    count = COUNTS[name]["hostile"]
    declaration = statements.hostile(tmp_path, seed=seed)
    exact = compare(engine_named(name), declaration, lambda facts: statements.generated(facts, count=count, seed=seed))
    assert exact >= 0.6 * count


@pytest.mark.parametrize(("name", "account"), [("postgres", Account.PURE), *((name, Account.APPROXIMATE) for name in OTHERS)])
def test_the_conformance_list(tmp_path: Path, engine_named: EngineNamed, name: str, account: Account) -> None:
    """What is refused is refused by the facts alone, before an engine is asked; the facts are the same."""
    declaration, listed = statements.clinic(tmp_path, "unbounded", account, seed=31), statements.conformance(account)
    assert len(listed) == LISTED[account]
    asked = [*listed] if name != "spark" else spread([*listed], "equal answers, conformance on Spark")
    # all but the one with a logarithm
    exact = len(asked) - (LOGARITHM in asked)
    assert compare(engine_named(name), declaration, lambda _: {key: listed[key] for key in asked}) == exact


@pytest.mark.parametrize("name", OTHERS)
def test_numbers_of_every_type(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    """Statements of both dialects over integers, decimals, doubles, dates and texts."""
    write(tmp_path / "world", table(3))
    declaration = load(tmp_path / "world" / "lapwing.toml")
    count = size(f"equal answers, types on {'Spark' if name == 'spark' else 'PostgreSQL'}")
    assert (
        compare(engine_named(name), declaration, lambda facts: statements.of_every_type(facts, count=count), same_types=True) >= 0.8 * count
    )


HAND_MADE = [*(("postgres", *kind) for kind in statements.KINDS), ("spark", *statements.KINDS[-1])]


@pytest.mark.parametrize(("name", "relation", "account"), HAND_MADE)
def test_hand_made_plans(tmp_path: Path, engine_named: EngineNamed, name: str, relation: str, account: Account) -> None:
    declaration, shapes = statements.people(tmp_path, relation, account, seed=41), {**statements.hand_made(account), **release_shapes()}
    asked = [*shapes] if name != "spark" else spread([*shapes], "equal answers, hand-made on Spark")
    assert compare(engine_named(name), declaration, lambda _: {key: shapes[key] for key in asked}) >= min(45, len(asked))


@pytest.mark.soak("in `check` there are fewer")
def test_the_counts_are_what_is_promised() -> None:
    for name, least in (("postgres", 1_000), ("spark", 200)):
        counts = COUNTS[name]
        kinds = [compared for compared in COMPARED if compared[0] == name]
        generated = len(kinds) * (counts["people"] + counts["clinic"]) + len(HOSTILE_SEEDS) * counts["hostile"]
        assert generated + LISTED[Account.APPROXIMATE] >= least
