"""How large the heavy tests are, in each tier.

``LAPWING_TIER`` chooses: ``check`` (the default, with each change), ``nightly`` (every night, with new draws) or ``soak`` (hours). A mutant
is searched for in exactly the worlds that the oracle of the same tier searches, so a size that is too small to see a known mistake fails in
the tier that has it.

``tests/support/nightly.py`` lists the tests that ``check`` leaves out. A test that runs in ``soak`` alone is marked ``soak``, with what
guards the same in ``check``. ``python -m tests.support.sizes`` prints the page that lists all of it.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from tests.support.nightly import NIGHTLY

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "checks-in-tiers.md"


class Tier(StrEnum):
    """What is run: with each change, every night, or for hours."""

    CHECK = "check"
    NIGHTLY = "nightly"
    SOAK = "soak"


TIER = Tier(os.environ.get("LAPWING_TIER", Tier.CHECK))


@dataclass(frozen=True, slots=True)
class Size:
    """What is counted, how many there are in each tier, and where (a file or a folder under ``tests``).

    ``nightly`` is given where it is more than in ``check``.
    """

    what: str
    check: int
    soak: int
    where: str
    nightly: int | None = None

    def of(self, tier: Tier) -> int:
        """How many there are in this tier."""
        return {Tier.CHECK: self.check, Tier.NIGHTLY: self.nightly or self.check, Tier.SOAK: self.soak}[tier]


SIZES = {
    "equal answers, types on PostgreSQL": Size(
        "statements over columns of every type on PostgreSQL", 60, 1_000, "engines/suite/test_equal_answers.py", 200
    ),
    "equal answers, types on Spark": Size(
        "statements over columns of every type on Spark", 8, 200, "engines/suite/test_equal_answers.py", 40
    ),
    "differential statements": Size(
        "random statements of each dialect that are compared with its bare engine", 150, 10_000, "differential/test_differential.py", 1_000
    ),
    "calls of each operation": Size("calls of each operation, made from the description", 3, 200, "server/test_openapi.py", 8),
    "server under load, seconds": Size(
        "seconds for which eight analysts ask while workers, a replica and the database die", 6, 120, "server/test_load.py"
    ),
    "a denial, seconds": Size("seconds of each denial of service, while others are measured", 3, 20, "wire/test_denials.py"),
    "pages, barriers": Size("pages of the documentation in which axe-core looks for barriers", 20, 1_000, "docs/test_whole_docs.py", 40),
    "second list, statements": Size(
        "statements of the second list whose answers are compared with bare DuckDB's", 20, 210, "unit/audit/test_second_list.py", 210
    ),
    "third list, statements": Size(
        "statements of the third list, compared with bare DuckDB and PostgreSQL", 20, 509, "unit/audit/test_third_list.py", 509
    ),
    "random messages on the wire": Size("messages at random, in all", 800, 100_000, "wire/test_fuzz.py", 2_000),
    "random statements about the catalogue": Size(
        "statements about the catalogue at random, written or refused", 4_000, 1_000_000, "wire/test_catalogue_query.py", 100_000
    ),
    "visitors of the wire": Size("connections that ask and go, 50 at a time", 60, 5_000, "wire/test_process.py"),
    "Superset in two worlds": Size("statements of Superset that are asked on both worlds", 4, 32, "wire/test_superset.py", 8),
    "two worlds, statements": Size("statements of the second list that are asked on both worlds", 10, 210, "server/test_two_worlds.py"),
    "two worlds, requests": Size("requests in all, at least", 60, 500, "server/test_two_worlds.py"),
    "two worlds of pages, statements": Size(
        "statements that are priced, asked and looked at again in both worlds", 2, 120, "console/test_two_worlds_of_pages.py"
    ),
    "two worlds of pages, requests": Size("pages and forms in all, at least", 500, 1_000, "console/test_two_worlds_of_pages.py"),
    # The sensitivity oracle. Mutants are looked for in the same worlds (tests/properties/test_mutants.py).
    "oracle seeds": Size(
        "seeds of the oracle's worlds, for each neighbour relation and account", 1, 3, "properties/test_sensitivity_oracle.py"
    ),
    "oracle of an order, relations": Size(
        "of both relations, with an account that is a union", 1, 2, "properties/test_sensitivity_oracle.py"
    ),
    "oracle worlds, unbounded": Size("worlds of a seed, one unit more or less", 2, 8, "properties/test_sensitivity_oracle.py"),
    "oracle worlds, bounded": Size("worlds of a seed, one unit replaced", 1, 8, "properties/test_sensitivity_oracle.py"),
    "oracle neighbours, bounded": Size(
        "neighbours of a world, one unit replaced, at most; other oracles too",
        6,
        99,
        "properties/test_sensitivity_oracle.py",
    ),
    "statements whose groups are compared": Size(
        "statements whose groups are compared with every row that can be", 120, 6_000, "unit/planning/test_possible_groups.py", 240
    ),
    "oracle on PostgreSQL, worlds, unbounded": Size("worlds, one unit more or less", 2, 4, "engines/suite/test_postgres_oracle.py"),
    "oracle on PostgreSQL, worlds, bounded": Size("worlds, one unit replaced", 1, 2, "engines/suite/test_postgres_oracle.py"),
    "statements on degenerate worlds": Size(
        "statements on each world whose columns are empty or all alike", 6, 40, "attacks/test_degenerate_worlds.py", 16
    ),
    "oracle of blocks on PostgreSQL, neighbours": Size("neighbours of a world", 4, 24, "engines/suite/test_postgres_oracle.py"),
    "oracle of moments, worlds": Size("worlds of each relation and account", 1, 3, "properties/test_moments_oracle.py"),
    "oracle of quantiles, worlds": Size("worlds of each relation and account", 1, 6, "properties/test_quantile_oracle.py"),
    "oracle of releases, worlds": Size("worlds of each relation and account", 1, 24, "properties/test_release_oracle.py"),
    "conditions on time": Size(
        "conditions on dates, on timestamps and in statements of two tables", 120, 4_000, "properties/test_statement_blocks.py", 1_000
    ),
    "statements over blocks": Size(
        "random statements, added up over blocks with bare DuckDB", 150, 40_000, "properties/test_sums_over_time.py", 4_000
    ),
    "statements over blocks, asked": Size(
        "of them, measured by block, in each of 18 declarations", 3, 100, "properties/test_sums_over_time.py", 20
    ),
    "oracle of blocks, worlds": Size("worlds of each relation and account", 1, 3, "properties/test_block_oracle.py", 2),
    "oracle of blocks, neighbours": Size("neighbours of a world", 3, 16, "properties/test_block_oracle.py", 10),
    "oracle of bought blocks, worlds": Size("worlds of each relation and account", 1, 3, "properties/test_bought_blocks_oracle.py"),
    "oracle of bought blocks, neighbours": Size("neighbours of a world", 3, 40, "properties/test_bought_blocks_oracle.py", 15),
    "oracle of bought blocks, statements": Size(
        "statements whose plans are compared", 8, 15, "properties/test_bought_blocks_oracle.py", 15
    ),
    "oracle of blocks, neighbours that grew": Size("neighbours, in versions that grew", 2, 24, "properties/test_block_oracle.py", 12),
    "oracle of streams, worlds": Size("worlds of each relation", 1, 12, "properties/test_stream_oracle.py"),
    "attacks on synthetic rows, releases": Size("releases for each attack and world", 80, 2_000, "attacks/test_synthetic_rows.py"),
    "matched filter, releases": Size("runs of each kind of release", 4_000, 100_000, "attacks/test_releases.py"),
    "oracle of SQL, statements": Size("statements for each relation and account", 16, 60, "properties/test_sql_oracle.py"),
    "oracle of relations, statements": Size(
        "generated statements for each relation and account", 16, 90, "properties/test_relations_oracle.py"
    ),
    "oracle of relations, families": Size("families of ten worlds that differ in one unit", 1, 2, "properties/test_relations_oracle.py"),
    "oracle of groups within units, statements": Size(
        "generated statements for each relation and account", 8, 60, "properties/test_inside_oracle.py"
    ),
    "limit, seeds of groups within units": Size(
        "seeds of statements for each relation and account", 1, 8, "properties/test_inside_limit.py"
    ),
    "limit, seeds of answers that decide": Size("seeds of 25 statements for each account", 1, 6, "properties/test_deciding_limit.py"),
    "adversary of the union of filters, statements": Size(
        "statements of the exact search over adaptive strategies", 3, 4, "theory/test_union_of_filters.py"
    ),
    "adversary of the union of filters, games": Size(
        "random games that are searched to the end", 12, 300, "theory/test_union_of_filters.py"
    ),
    "preparation oracle, pairs": Size("pairs of sources for each of four seeds", 300, 5_000, "properties/test_preparation_oracle.py"),
    "preparation oracle, appended pairs": Size(
        "pairs of sources whose rows were appended", 50, 400, "properties/test_preparation_oracle.py"
    ),
    "rows as units, worlds": Size("worlds in which rows are units, all their neighbours", 5, 60, "properties/test_row_units.py"),
    "rows as units, statements": Size("statements for each relation and account", 16, 60, "properties/test_row_units.py"),
    "limit, seeds of SQL": Size("seeds of 25 statements for each relation and account", 1, 4, "properties/test_sql_limit.py"),
    "limit, statements about relations": Size("statements of a seed", 16, 40, "properties/test_relations_limit.py"),
    "limit, statements with groups within units": Size("statements of a seed", 12, 20, "properties/test_inside_limit.py"),
    "oracle of the conformance list, kinds": Size(
        "of four pairs of a relation and an account, for the conformance list", 2, 4, "properties/test_relations_oracle.py"
    ),
    "sizes of relations, statements": Size("statements of each world", 15, 40, "properties/test_relation_sizes.py"),
    "limit, seeds of relations": Size("seeds of statements for each relation and account", 1, 5, "properties/test_relations_limit.py"),
    "Spark oracle, neighbours": Size("neighbours of the world of a bounded relation", 1, 3, "engines/spark/test_spark_oracle.py"),
    "Spark oracle of blocks, shapes": Size("shapes, those that cross ranges first", 6, 40, "engines/spark/test_spark_oracle.py"),
    "Spark oracle of blocks, neighbours": Size("neighbours of the world", 1, 4, "engines/spark/test_spark_oracle.py"),
    "Spark oracle, runs": Size("runs of the oracle on Spark", 2, 4, "engines/spark/test_spark_oracle.py"),
    "Spark oracle, quarters": Size("quarters of the shapes in each run", 1, 4, "engines/spark/test_spark_oracle.py"),
    # Generated statements and expressions.
    "fuzzed statements, parts": Size("parts of mutated and generated statements", 1, 6, "properties/test_sql_fuzz.py"),
    "hostile SQL, expressions": Size(
        "expressions over hostile rows, for each of four worlds", 150, 2_600, "engines/test_sql_hostile.py", 300
    ),
    "hostile texts": Size(
        "hostile texts that every function of open text is taken of", 3_000, 100_000, "engines/test_open_text.py", 10_000
    ),
    "sampled calls, worlds": Size("worlds of 1,500 calls of functions over hostile rows", 1, 2, "engines/test_sql_samples.py"),
    "fuzzed statements about several tables, of a part": Size(
        "of a part about several tables; two thirds as many are about one, six times as many are broken",
        120,
        600,
        "properties/test_sql_fuzz.py",
        240,
    ),
    "fuzzed statements in all": Size("statements in all, at least", 900, 24_000, "properties/test_sql_fuzz.py", 1_800),
    "fuzzed expressions in all": Size(
        "expressions on PostgreSQL in all, at least", 1_000, 10_000, "engines/postgres/test_expressions.py", 2_000
    ),
    "fuzzed expressions, seeds": Size("seeds of 260 expressions over hostile rows", 4, 40, "engines/test_expressions.py", 8),
    "fuzzed expressions on Spark, statements": Size(
        "statements of 120 expressions over hostile rows", 2, 17, "engines/spark/test_spark_fuzz.py"
    ),
    "equal answers, people on Spark": Size(
        "statements about people for each relation and account", 3, 15, "engines/suite/test_equal_answers.py"
    ),
    "equal answers, clinic on Spark": Size(
        "statements with joins for each relation and account", 3, 12, "engines/suite/test_equal_answers.py"
    ),
    "equal answers, kinds on Spark": Size("of four pairs of a relation and an account", 2, 4, "engines/suite/test_equal_answers.py"),
    "equal answers, conformance on Spark": Size("statements of the conformance list", 20, 56, "engines/suite/test_equal_answers.py"),
    "equal answers, hand-made on Spark": Size("hand-made plans", 24, 99, "engines/suite/test_equal_answers.py"),
    "prepared rows on Spark, worlds": Size(
        "worlds of each kind whose prepared rows are compared", 1, 3, "engines/suite/test_prepared_rows.py"
    ),
    "folders on Spark": Size(
        "styles of sources in folders, of which every pair is compared", 1, 2, "engines/suite/test_source_neighbours.py"
    ),
    "equal answers, hostile on Spark": Size("statements over each of two hostile worlds", 4, 20, "engines/suite/test_equal_answers.py"),
    "equal answers, people on PostgreSQL": Size(
        "statements about people for each relation and account", 10, 150, "engines/suite/test_equal_answers.py", 25
    ),
    "equal answers, clinic on PostgreSQL": Size(
        "statements with joins for each relation and account", 6, 90, "engines/suite/test_equal_answers.py", 15
    ),
    "equal answers, hostile on PostgreSQL": Size(
        "statements over each of two hostile worlds", 8, 75, "engines/suite/test_equal_answers.py", 20
    ),
    # The ledger. Mutants of the protocol run the same scenarios.
    "schedules, switches": Size("switches from one client to another (99 is every order)", 2, 99, "schedules/test_interleavings.py"),
    "schedules, switches where there are most orders": Size(
        "switches where there are most orders", 1, 3, "schedules/test_interleavings.py"
    ),
    "schedules, sampled orders": Size("orders by chance of an owner and two who ask", 16, 100, "schedules/test_interleavings.py", 40),
    "walks of the local ledger": Size(
        "walks of 200 steps along the model, of the ledger and of its mutants", 12, 60, "ledger/test_model.py"
    ),
    "walks over blocks": Size(
        "walks of 80 steps of a local ledger with blocks of time, for each account, and of its mutants", 4, 40, "ledger/test_block_model.py"
    ),
    "walks of the ledger on PostgreSQL": Size("walks of 200 steps along the model", 4, 30, "ledger/test_postgres_model.py"),
    "walks of the policies": Size("walks of 200 steps along the model", 4, 30, "schedules/test_policy_model.py"),
    "crowds that faults are tried on": Size("of six: 1, 4 and 32 clients of 1 and 10 data sets", 3, 6, "faults/test_kills.py"),
    "kills of clients": Size("kills for each crowd of 4 and 32 clients", 80, 460, "faults/test_kills.py"),
    "kills of clients in all": Size("kills in all, at least", 250, 2_000, "faults/test_kills.py"),
    # Samples. What a band allows follows from the number.
    "draws of quantiles": Size("draws of each coin and each law of quantiles", 2_000, 20_000, "statistical/test_quantiles.py", 6_000),
    "draws of noise": Size("draws of each law, against the law", 500_000, 100_000_000, "statistical/test_drawn_laws.py"),
    "ratios of sub-totals": Size("averages of sub-totals with Laplace noise", 500, 10_000, "statistical/test_level_coverage.py"),
    "releases whose free answers are compared with the truth": Size(
        "releases for each law and set of tables, with about 155 free answers each, at least", 1, 20, "statistical/test_free_answers.py"
    ),
    "releases of free sums and ratios": Size(
        "releases for each law and set of tables, with their sums and ratios, at least", 30, 2_000, "statistical/test_free_answers.py"
    ),
    "releases of trees compared with the truth": Size("releases of trees of each law", 400, 4_000, "statistical/test_tree_answers.py"),
    "targets against the truth": Size(
        "runs of each statement asked for an accuracy, at least", 8, 200, "statistical/test_targets_and_truth.py"
    ),
    "messy sources, members": Size(
        "members, and rows that are units, of the messy sources", 1_000, 4_000, "statistical/test_messy_sources.py"
    ),
    "messy sources, rounds": Size("answers of each statement on messy files, at least", 2, 60, "statistical/test_messy_sources.py"),
    "messy rows, rounds": Size("answers of each statement on messy rows, at least", 4, 60, "statistical/test_messy_sources.py"),
    "sparse sums, answers": Size(
        "answers of each sum of what is mostly NULL or 0, of each data set, at least", 4, 50, "statistical/test_sparse_sums.py"
    ),
    "rare counts, answers": Size(
        "answers of a count of one row in a hundred, at each of two prices, at least", 14, 200, "statistical/test_sparse_sums.py"
    ),
    "messy tables on PostgreSQL, members": Size("members of the messy tables", 1_000, 4_000, "engines/postgres/test_messy_sources.py"),
    "messy tables on PostgreSQL, rounds": Size(
        "answers of each statement on them, at least", 2, 20, "engines/postgres/test_messy_sources.py"
    ),
    "sequences against dp-accounting": Size(
        "sequences of mechanisms, priced by dp-accounting too", 1_000, 10_000, "unit/kernel/test_accounting.py", 3_000
    ),
    "generated statements with fewer rows": Size(
        "statements whose joins are left out, or not", 40, 150, "unit/planning/test_fewer_rows.py", 60
    ),
    "audits of a claim that holds": Size("audits whose false alarms are counted", 200, 500, "statistical/test_audit.py"),
    "losses below the least price": Size(
        "losses below the least price of an accuracy, none of which reaches it", 24, 139, "unit/curator/test_accuracy.py"
    ),
    "people of the auction": Size("people whose reports are enumerated, ten prices", 3, 6, "games/test_auction.py"),
    "composed sequences": Size("mixed sequences of mechanisms", 1_000, 10_000, "theory/test_composition_mixed.py", 2_500),
}


def size(name: str) -> int:
    """How many, in this tier."""
    return SIZES[name].of(TIER)


Item = TypeVar("Item")


def spread(items: Sequence[Item], name: str) -> list[Item]:
    """As many of the items as the size of this name says, evenly: the first, the last, and some between."""
    count = min(size(name), len(items))
    return [items[index * (len(items) - 1) // max(count - 1, 1)] for index in range(count)]


@dataclass(frozen=True, slots=True)
class SoakTest:
    """A test that runs in ``soak`` alone, and what guards the same in ``check``."""

    name: str
    guard: str


def soak_tests() -> Iterator[SoakTest]:
    """All tests marked so, from their sources."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.soak":
                        yield SoakTest(f"{path.relative_to(ROOT / 'tests')}::{node.name}", str(ast.literal_eval(mark.args[0])))


def page() -> str:
    """The page of the documentation."""
    lines = [
        "# Checks in tiers",
        "",
        "<!-- Made by `python -m tests.support.sizes > docs/reference/checks-in-tiers.md`; a test compares them. -->",
        "",
        "The size of each heavy test in `make check` (and in CI), in `make nightly` and in `make soak`. Every test that is not listed is",
        "the same in all. {doc}`../how-to/run-the-checks` says how to run them. A deliberate mistake (a mutant) is searched for in the",
        "worlds of the tier that runs: all of them must be seen in `check`.",
        "",
        "| Test, under `tests/` | What is counted | `check` | `nightly` | `soak` |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [f"| `{one.where}` | {one.what} | {' | '.join(f'{one.of(tier):,}' for tier in Tier)} |" for one in SIZES.values()]
    lines += ["", "## Tests that `check` leaves out", "", "Each with the test or the mutant that guards the same in `check`.", ""]
    lines += [line for pattern, guard in NIGHTLY.items() for line in (f"- `{pattern.removeprefix('tests/')}`", f"  ({guard})")]
    only = list(soak_tests())
    if only:
        lines += ["", "## Tests in soak alone", "", "Each with what guards the same in `check`.", ""]
        lines += [line for one in only for line in (f"- `{one.name}`", f"  ({one.guard})")]
    lines += [
        "",
        "## What else a soak runs",
        "",
        "| Target | What |",
        "|---|---|",
        "| `make lapwing-faults` "
        "| random faults: the ledger on PostgreSQL (kills, cut connections, full disks, jumping clocks), the server over it |",
        "| `make audit` | a million runs of every mechanism and plan, and of planted mistakes ({doc}`audit-report`) |",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
