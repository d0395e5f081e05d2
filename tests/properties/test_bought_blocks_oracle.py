"""What is really bought block by block: no neighbour that differs in one person's rows of one block breaks a claim of any such plan.

A data set with twelve closed months is asked statements that are measured by month, and every plan that is bought for a block is kept. The
oracle over blocks of time compares these plans.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import lapwing
from lapwing.audit.block_worlds import BLOCKS_OF_TIME, FEBRUARY, JANUARY, JULY, declare_blocks
from lapwing.audit.oracle import ChangedBlock
from lapwing.audit.runs import Family, OracleRun, run_oracle
from lapwing.audit.worlds import World
from lapwing.curator import block_life
from lapwing.curator.charged_release import ChargedRelease
from lapwing.curator.curator import Curator
from lapwing.kernel.accounting import Account
from lapwing.kernel.calendar import to_days
from lapwing.kernel.ir import Plan
from lapwing.kernel.workload import scans_of
from lapwing.ledger.purchases import BlockName
from tests.properties.block_mutants import BY_NAME
from tests.support.sizes import size, spread

WORLDS, NEIGHBOURS = size("oracle of bought blocks, worlds"), size("oracle of bought blocks, neighbours")
MUTANT_NEIGHBOURS = 30
ORDER = 32
BLOCKS = (JANUARY, FEBRUARY, JULY)
WHERE = "day < DATE '2024-03-01' OR CAST(DATE_TRUNC('month', day) AS DATE) = DATE '2024-07-01'"
VISITS = f"(SELECT * FROM visits WHERE {WHERE})"
OF_BOTH = WHERE.replace("day", "v.day")
STATEMENTS = (
    f"SELECT COUNT(*) AS n FROM {VISITS}",
    f"SELECT clinic, COUNT(*) AS n, SUM(cost) AS s FROM {VISITS} GROUP BY clinic",
    f"SELECT clinic, flag, AVG(change) AS a FROM {VISITS} GROUP BY clinic, flag",
    f"SELECT VAR_POP(late) AS v FROM {VISITS} WHERE flag",
    f"SELECT clinic, COUNT(*) FILTER (WHERE cost > 100) AS n, SUM(late) AS s FROM {VISITS} GROUP BY clinic",
    f"SELECT CAST(DATE_TRUNC('month', day) AS DATE) AS m, COUNT(DISTINCT person_id) AS n FROM {VISITS} GROUP BY m",
    f"SELECT CAST(DATE_TRUNC('month', day) AS DATE) AS m, clinic, COUNT(*) AS n, SUM(cost) AS s FROM {VISITS} GROUP BY m, clinic",
    f"SELECT CAST(DATE_TRUNC('month', day) AS DATE) AS m, MEDIAN(cost) AS h FROM {VISITS} GROUP BY m",
    f"SELECT clinic, flag, COUNT(*) AS n FROM {VISITS} GROUP BY ROLLUP(clinic, flag)",
    f"SELECT city, COUNT(*) AS n FROM {VISITS} v JOIN clinics USING (clinic) GROUP BY city",
    "SELECT n, COUNT(*) AS c FROM (SELECT person_id, LEAST(COUNT(*), 4) AS n"
    f" FROM {VISITS} GROUP BY person_id, DATE_TRUNC('month', day)) GROUP BY n",
    "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id, DATE_TRUNC('month', day) ORDER BY visit_id) AS r"
    f" FROM {VISITS}) WHERE r <= 2",
    "SELECT clinic, COUNT(*) AS n FROM visits v JOIN drugs d ON v.person_id = d.person_id AND v.day = d.day"
    f" WHERE {OF_BOTH} GROUP BY clinic",
    "SELECT clinic, SUM(cost) AS s FROM visits v"
    " WHERE NOT EXISTS (SELECT 1 FROM drugs d WHERE v.person_id = d.person_id AND v.day = d.day AND dose > 2)"
    f" AND ({OF_BOTH}) GROUP BY clinic",
    f"SELECT COUNT(*) AS n, COUNT(x) AS c FROM (SELECT flag AS x FROM visits WHERE {WHERE}"
    f" UNION ALL SELECT dose > 2 FROM drugs WHERE {WHERE})",
)


@dataclass(frozen=True)
class Terms:
    """A relation and an account."""

    relation: str
    account: Account
    order: int | None = None

    @property
    def delta(self) -> str:
        """As the oracle declares it."""
        return "0" if self.account is Account.PURE else '"2^-30"' if self.order is None else f'"2^-30"\norder = {self.order}'


def bought(directory: Path, monkeypatch: pytest.MonkeyPatch, terms: Terms, statements: Sequence[str] = STATEMENTS) -> dict[str, Plan]:
    """Each plan that is bought for a block, by the name of what is bought."""
    plans: dict[str, Plan] = {}
    answer = Curator.answer

    def kept(self: Curator, plan: Plan, *, summary: str, **more: object) -> ChargedRelease:
        purchase = more["purchase"]
        name = getattr(purchase, "name", "")
        block = BlockName.of_text(name).block
        (charged,) = self.preview(plan).blocks
        assert (charged.first, charged.last) == (block, block), "the block of the name pays, and no other"
        assert {scan.blocks for query in plan.queries for scan in scans_of(query.source)} == {
            replace(scan.blocks, first=block, last=block) for query in plan.queries for scan in scans_of(query.source) if scan.blocks
        }
        plans[f"{len(plans)}: {name}"] = plan
        return answer(self, plan, summary=summary, **more)  # type: ignore[arg-type]

    world = BLOCKS_OF_TIME.world(random.Random(3))
    declare_blocks(world, directory, neighbours=terms.relation, delta=terms.delta)
    catalogue = directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace("epsilon = 1\n", "epsilon = 1_000\n"))
    with monkeypatch.context() as patch:
        patch.setattr(block_life, "today", lambda: to_days(datetime.date(2025, 6, 1)))
        patch.setattr(Curator, "answer", kept)
        with lapwing.open(directory, home=directory.parent / "home") as data_set:
            data_set.prepare(accept_losses=True)
            for sql in statements:
                before = len(plans)
                answer_of = data_set.ask(sql, epsilon=1)
                assert answer_of.notes[0].startswith("measured by month: 3 months paid"), (sql, answer_of.notes)
                assert len(plans) - before >= len(BLOCKS), sql
    return plans


def _of_these_blocks(world: World, relation: str, rng: random.Random) -> Iterator[tuple[World, ChangedBlock | None]]:
    """Neighbours that differ in the blocks that are asked for, and then one of each other kind."""
    found = list(BLOCKS_OF_TIME.neighbours(world, relation, rng))
    inside = [pair for pair in found if pair[1] is not None and pair[1].number in BLOCKS]
    outside = {pair[1].number: pair for pair in found if pair[1] is not None and pair[1].number not in BLOCKS}
    # Of each five, one differs elsewhere.
    others = list(outside.values())
    for number, pair in enumerate(inside):
        yield pair
        if number % 4 == 1 and others:
            yield others.pop()


IN_THESE_BLOCKS = replace(BLOCKS_OF_TIME, neighbours=_of_these_blocks)


def compared(plans: dict[str, Plan], terms: Terms, *, worlds: int, neighbours: int, stop: bool = False) -> OracleRun:
    """What the oracle says of these plans."""
    family: Family = IN_THESE_BLOCKS
    return run_oracle(
        family=family,
        only={name: lambda facts, plan=plan: plan for name, plan in plans.items()},  # type: ignore[misc]
        relation=terms.relation,
        account=terms.account,
        order=terms.order,
        worlds=worlds,
        seed=5,
        neighbours_max=neighbours,
        stop_at_first=stop,
    )


TERMS = [
    Terms(relation, account, order)
    for relation in ("unbounded", "bounded")
    for account, order in ((Account.PURE, None), (Account.APPROXIMATE, None), (Account.APPROXIMATE, ORDER))
]


@pytest.mark.parametrize("terms", TERMS, ids=lambda terms: f"{terms.relation}-{terms.account.value}-{terms.order}")
def test_no_plan_that_is_bought_for_a_block_breaks_a_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terms: Terms) -> None:
    statements = spread(STATEMENTS, "oracle of bought blocks, statements")
    plans = bought(tmp_path / "asked", monkeypatch, terms, statements)
    assert len(plans) >= len(statements) * len(BLOCKS) + 6, "answers, and histograms for some"
    outcome = compared(plans, terms, worlds=WORLDS, neighbours=NEIGHBOURS)
    assert outcome.faults == []
    assert outcome.breaches == []
    assert outcome.pairs >= len(plans) * WORLDS * NEIGHBOURS, "the run must be as large as it says"


@pytest.mark.parametrize("name", ["no range at all", "a range one block longer", "ranks within the person"])
def test_the_oracle_sees_the_bug_in_what_is_bought(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = Terms("unbounded", Account.APPROXIMATE)
    plans = bought(tmp_path / "asked", monkeypatch, terms)
    for target, attribute, replacement in BY_NAME[name].patches:
        monkeypatch.setattr(target, attribute, replacement)
    assert compared(plans, terms, worlds=2, neighbours=MUTANT_NEIGHBOURS, stop=True).breaches, f"the oracle did not see: {name}"
