"""``[limits]``: how fast analysts may spend, as shares of the budget, and what is refused there."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.catalog import LimitsDecl, parse
from lapwing.catalog.changes import Verdict, classify
from lapwing.errors import CatalogueError

_CATALOGUE = """
format = 1
[dataset]
id = "library"
unit = "reader"
[budget]
epsilon = 1
{limits}
[tables.loans]
source = "loans.parquet"
unit = "reader_id"
[tables.loans.columns]
reader_id = {{ type = "key" }}
"""


def _text(limits: str = "") -> str:
    return _CATALOGUE.format(limits=limits)


def test_without_the_section_there_is_no_limit() -> None:
    assert parse(_text()).limits == LimitsDecl(per_statement=None, per_day=None)


def test_shares_are_exact() -> None:
    read = parse(_text("[limits]\nper_statement = 0.1\nper_day = 1"))
    assert read.limits == LimitsDecl(per_statement=Fraction(1, 10), per_day=Fraction(1))


@pytest.mark.parametrize("share", ["0", "-0.1", "1.01", "20"])
@pytest.mark.parametrize("key", ["per_statement", "per_day"])
def test_a_share_is_above_nothing_and_at_most_the_whole(key: str, share: str) -> None:
    with pytest.raises(CatalogueError, match=f"`{key}` must be above 0 and at most 1") as refused:
        parse(_text(f"[limits]\n{key} = {share}"))
    assert refused.value.code == "catalogue-bad-value"


def test_preparation_can_buy_its_statistics_within_them() -> None:
    with pytest.raises(CatalogueError, match="statistics_share") as refused:
        parse(_text("[limits]\nper_statement = 0.04"))
    assert refused.value.code == "catalogue-contradiction"
    assert parse(_text("statistics_share = 0.04\n[limits]\nper_statement = 0.04")).limits.per_statement == Fraction(1, 25)


def test_a_change_is_policy() -> None:
    before, after = parse(_text()), parse(_text("[limits]\nper_statement = 0.2\nper_day = 0.5"))
    for old, new in ((before, after), (after, before)):
        found = classify(old, new)
        assert [(one.where, one.verdict) for one in found] == [
            ("limits.per_statement", Verdict.KEEPS),
            ("limits.per_day", Verdict.KEEPS),
        ]
