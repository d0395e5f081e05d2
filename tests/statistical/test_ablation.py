"""The tuned rules of the contribution model: their figures on paired draws, and that the measurement sees a rule that is missing.

The table of all rules is in docs/reference/event-data.md; `python -m benchmarks.ablation` makes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.ablation import HELD_OUT, LAWS, RULES, Figures, Setting, is_about, settings, without

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "event-data.md"
ERROR, SCORE = 1.3681, 3.9776
"""Error and interval score of all rules over the best known, on these draws: whoever moves a constant measures all rules again."""


@pytest.fixture(scope="module")
def drawn() -> list[Setting]:
    return settings(LAWS | HELD_OUT, [2_000], [0.5], repetitions=1)


def test_a_constant_that_moves_is_noticed(drawn: list[Setting]) -> None:
    found = Figures.of(drawn)
    assert (found.error, found.score) == pytest.approx((ERROR, SCORE), rel=1e-3), "run benchmarks.ablation and put its tables on the page"


def test_a_missing_rule_is_seen_and_comes_back(drawn: list[Setting]) -> None:
    curves = next(rule for rule in RULES if rule.name == "curves bend")
    whole = Figures.of(drawn)
    with without([curves]):
        assert abs(Figures.of(drawn).loss(whole)) > 0.005
    assert Figures.of(drawn) == whole


def test_every_rule_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [rule.name for rule in RULES if f"| {rule.name} |" not in text] == []


def test_a_stated_loss_is_about_right_within_a_factor_of_2() -> None:
    assert is_about(0.10, 0.19) and is_about(0.19, 0.10) and is_about(0.0, 0.009)
    assert not is_about(0.10, 0.21) and not is_about(0.0, 0.02)
