"""Sources as owners have them, and their neighbours, prepared on DuckDB, by the thousand; and 21 bugs that the oracle must see."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.properties.preparation_mutants import BY_NAME, MUTANTS
from tests.support.preparation_oracle import ByAppending, InDuckDB, run_preparation_oracle
from tests.support.sizes import size
from tests.support.source_worlds import Family, random_family, random_style

PAIRS = size("preparation oracle, pairs")


def _sources(rng: random.Random) -> Family:
    return random_family(rng, random_style(rng), optional=1, contents=28, hostile=0.25)


def _growing(rng: random.Random) -> Family:
    style = replace(random_style(rng, with_csv=False), growing=True, straight=True)
    return random_family(rng, style, optional=1, contents=10, hostile=0.3, kinds=("claims a visit", "another order"))


@pytest.mark.parametrize("seed", range(4))
def test_no_neighbour_changes_the_rows_of_others(seed: int) -> None:
    outcome = run_preparation_oracle(_sources, InDuckDB(), pairs=PAIRS, seed=seed)
    assert outcome.breaches == []
    assert outcome.pairs >= PAIRS
    assert 0.5 * outcome.pairs < outcome.pairs - outcome.stopped < outcome.pairs, "most are prepared, and some stop"


def test_nor_does_one_whose_rows_were_appended() -> None:
    outcome = run_preparation_oracle(_growing, ByAppending(), pairs=size("preparation oracle, appended pairs"), seed=2)
    assert outcome.breaches == []
    assert outcome.stopped > 0


@pytest.mark.parametrize("name", BY_NAME)
def test_the_oracle_sees_the_bug(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BY_NAME[name]
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)

    def make(rng: random.Random) -> Family:
        return random_family(rng, mutant.style, optional=1, contents=4, hostile=0.7, kinds=mutant.brought)

    prepare = ByAppending() if mutant.style.growing else InDuckDB()
    outcome = run_preparation_oracle(make, prepare, pairs=150, seed=3, stop_at_first=True)
    assert outcome.breaches, f"the oracle did not see: {name} (after {outcome.pairs} pairs)"


def test_there_are_at_least_twelve() -> None:
    assert len(MUTANTS) >= 12
