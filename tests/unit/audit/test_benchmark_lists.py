"""The lists after two benchmarks: complete, what becomes of each statement as it says, and a comparison that can fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.audit.lists import benchmark_lists
from lapwing.audit.lists.benchmark_lists import BENCHMARKS, BenchmarkWorlds, benchmark_statements, run_benchmark
from lapwing.audit.lists.conformance import Listed, Score
from tests.meta.tree import DOCS

TPCH, CLICKBENCH = (replace(BENCHMARKS[name], units=120) for name in ("tpch", "clickbench"))


def test_the_lists_are_complete_and_in_order() -> None:
    for benchmark, letter, many in ((TPCH, "t", 22), (CLICKBENCH, "k", 43)):
        listed = benchmark_statements(benchmark)
        assert [one.name for one in listed] == [f"{letter}{number:02}" for number in range(1, many + 1)]
        assert all(one.sql.startswith(("SELECT", "WITH")) and "--" not in one.sql and ";" not in one.sql for one in listed)
    assert all(bool(one.rewrite) == bool(one.code) for one in benchmark_statements(TPCH))


def test_the_same_units_give_the_same_rows() -> None:
    for benchmark in (TPCH, CLICKBENCH):
        assert all(table.equals(benchmark.rows(50)[name]) for name, table in benchmark.rows(50).items())


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchmarkWorlds]:
    worlds = BenchmarkWorlds(TPCH, tmp_path_factory.mktemp("shop"))
    yield worlds
    worlds.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchmarkWorlds]:
    worlds = BenchmarkWorlds(CLICKBENCH, tmp_path_factory.mktemp("site"))
    yield worlds
    worlds.close()


@pytest.mark.parametrize("listed", benchmark_statements(TPCH), ids=lambda listed: listed.name)
def test_questions_about_a_shop_are_accepted_or_have_a_rewrite_that_is(shop: BenchmarkWorlds, listed: Listed) -> None:
    assert shop.is_accepted(listed.sql) or (listed.code and shop.is_accepted(listed.rewrite))


@pytest.mark.parametrize("listed", benchmark_statements(CLICKBENCH), ids=lambda listed: listed.name)
def test_questions_about_a_site_are_accepted_or_refused_as_listed(site: BenchmarkWorlds, listed: Listed) -> None:
    if listed.lacking and site.is_accepted(listed.sql):
        return
    assert site.is_accepted(listed.sql) if listed.answered else site.refused(listed) == listed.code


@pytest.mark.parametrize("name", ["t04", "t05", "t12"])
def test_answers_about_a_shop_are_those_of_the_bare_engine(shop: BenchmarkWorlds, name: str) -> None:
    (listed,) = (one for one in benchmark_statements(TPCH) if one.name == name)
    assert shop.answered(listed.sql) == ""


def test_a_wrong_answer_is_noticed(shop: BenchmarkWorlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_lists.BenchmarkWorlds, "_limit", lambda *_: ([("1-URGENT", 10.0**6)], True))
    (listed,) = (one for one in benchmark_statements(TPCH) if one.name == "t04")
    assert "differ" in shop.answered(listed.sql)


@pytest.mark.parametrize("name", ["tpch", "clickbench"])
def test_the_figures_of_the_page_are_those_of_the_list(name: str) -> None:
    listed = benchmark_statements(BENCHMARKS[name])
    answered = sum(one.answered for one in listed)
    rewritten = sum(bool(one.rewrite) for one in listed)
    line = f"| `{name}` | {len(listed)} | {answered} | {answered + rewritten} | {len(listed) - answered - rewritten} |"
    assert line in (DOCS / "reference" / "conformance.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tpch", "clickbench"])
def test_the_lists_run_as_they_say(name: str, tmp_path: Path) -> None:
    score = Score(tuple(run_benchmark(BENCHMARKS[name], tmp_path)))
    assert score.failed == []
    assert score.to_dict()["answered"] == sum(listed.answered for listed in benchmark_statements(BENCHMARKS[name]))
