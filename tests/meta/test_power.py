"""The power of the checks: none misses a broken promise often, the page says what the listing says, and no test of a share is left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.meta.tree import ROOT
from tests.support.power import MISS_MAX, Counted, Promise, chance_at_least, least_sum, page
from tests.support.promises import EXCEPTIONS, PROMISES

PAGE = ROOT / "docs" / "reference" / "power-of-the-checks.md"
WORDS = ("share", "mean", "held", "hits", "covered", "coverage", "inside", "kept", "reached", "pvalue", "p_value")
"""What a share of answers is called."""
NAMES = {"FALSE_ALARM", "binomtest", "chi2", "chi_squared", "chi_squared_p_value", "p_value", "watched", "coverage"}


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_a_broken_promise_is_seldom_missed(promise: Promise) -> None:
    assert promise.miss <= MISS_MAX + 1e-12


def test_the_page_is_what_the_listing_says() -> None:
    said = "python -m tests.support.power --markdown > docs/reference/power-of-the-checks.md"
    assert PAGE.read_text(encoding="utf-8") == page(PROMISES, EXCEPTIONS), said


def compares_a_share(test: ast.FunctionDef) -> bool:
    """Whether a share is compared with a number from a half to one, or a law with draws."""
    for node in ast.walk(test):
        if isinstance(node, ast.Name | ast.Attribute) and (node.id if isinstance(node, ast.Name) else node.attr) in NAMES:
            return True
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            numbers = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, float)]
            rest = " ".join(ast.unparse(side) for side in sides if not isinstance(side, ast.Constant))
            if any(0.5 <= number < 1.0 for number in numbers) and any(word in rest for word in WORDS):
                return True
    return False


def found_in_tests() -> Iterator[str]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and compares_a_share(node):
                yield f"{path.relative_to(ROOT / 'tests')}::{node.name}"


def test_every_test_of_a_share_is_listed_or_has_a_reason_not_to_be() -> None:
    known = {promise.test for promise in PROMISES.values()} | EXCEPTIONS.keys()
    assert [name for name in found_in_tests() if name not in known] == []


def test_every_test_of_the_listing_exists() -> None:
    for name in {promise.test for promise in PROMISES.values()} | EXCEPTIONS.keys():
        path, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("counted", Counted)
@pytest.mark.parametrize("answers", [100, 250, 400])
def test_the_limit_is_the_most_lenient_one(counted: Counted, answers: int) -> None:
    least = least_sum(answers, 0.85, counted)
    assert chance_at_least(least, answers, 0.85, counted) <= MISS_MAX + 1e-9
    assert chance_at_least(least - 1.0, answers, 0.85, counted) > MISS_MAX


def test_eight_answers_that_two_may_keep_tell_nothing() -> None:
    assert PROMISES["targets against the truth"].miss_before > 0.99
    assert chance_at_least(2, 8, 0.5, Counted.WHOLE) == pytest.approx(0.965, abs=5e-4)
