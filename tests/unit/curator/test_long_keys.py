"""Keys with more declared values than are listed: said beforehand, free, and never discovered in place of a declared list."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog import Settings
from lapwing.errors import Refused
from tests.differential.world import silent
from tests.unit.cli.support import run

PEOPLE = 700
DELTAS = pytest.mark.parametrize("delta", ["0", '"2^-30"'], ids=["pure", "approximate"])


def _write(directory: Path, *, values: int, numbers: int, delta: str) -> None:
    names = [f"v{number}" for number in range(values)]
    held = {
        "u": range(PEOPLE),
        "c": [None if u % 7 == 6 else names[u % 7] for u in range(PEOPLE)],
        "i": [u % 9 for u in range(PEOPLE)],
    }
    pq.write_table(pa.table({name: list(column) for name, column in held.items()}), directory / "t.parquet")
    listed = ", ".join(f'"{name}"' for name in names)
    text = f"""
format = 1
[dataset]
id = "many"
unit = "person"
[budget]
epsilon = 1_000_000
delta = {delta}
ceiling = {{ epsilon = 1_000_000 }}
statistics_share = 0
[tables.t]
source = "t.parquet"
unit = "u"
one_row_per_unit = true
rows_max = 1000
[tables.t.columns]
u = {{ type = "key", null = false }}
c = {{ type = "text", values = [{listed}] }}
i = {{ type = "integer", min = 0, max = {numbers - 1}, null = false }}
"""
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")


def _opened(directory: Path, *, values: int, numbers: int, delta: str, settings: Settings | None = None) -> lw.DataSet:
    _write(directory, values=values, numbers=numbers, delta=delta)
    data_set = lw.open(directory, home=directory / "home", settings=settings)
    data_set.prepare()
    return data_set


@DELTAS
@pytest.mark.parametrize("key", ["c", "i"])
def test_a_key_of_21_000_declared_values_is_listed(key: str, delta: str, tmp_path: Path) -> None:
    with _opened(tmp_path, values=21_000, numbers=21_000, delta=delta) as data_set, silent():
        answer = data_set.ask(f"SELECT {key}, COUNT(*) AS n FROM t GROUP BY {key}", epsilon=1000)
    found = dict(zip(answer.table.column(key).to_pylist(), answer.table.column("n").to_pylist(), strict=True))
    held = [None if u % 7 == 6 else f"v{u % 7}" for u in range(PEOPLE)] if key == "c" else [u % 9 for u in range(PEOPLE)]
    assert len(found) == (21_001 if key == "c" else 21_000)
    assert {value: count for value, count in found.items() if count} == Counter(held)


@DELTAS
def test_a_longer_list_is_refused_free_and_says_the_limit(delta: str, tmp_path: Path) -> None:
    few = Settings(key_values_max=200)
    with _opened(tmp_path, values=300, numbers=300, delta=delta, settings=few) as data_set:
        for key in ("c", "c, i", "i, c", "UPPER(c)"):
            for ask in (data_set.explain, data_set.ask):
                with pytest.raises(Refused) as refused:
                    ask(f"SELECT {key}, COUNT(*) FROM t GROUP BY {key}", epsilon=1)
                assert refused.value.code == "too-many-groups"
                assert "key_values_max" in refused.value.message and "200" in refused.value.message
                assert "key_values_max" in refused.value.hint
        assert data_set.budget.share_spent == 0
        with silent():
            answer = data_set.ask("SELECT c, COUNT(*) AS n FROM t WHERE c IN ('v1', 'v2') GROUP BY c", epsilon=1000)
        assert answer.table.to_pydict() == {"c": ["v1", "v2"], "n": [100, 100]}, "as the hint says"


def test_the_limit_is_met_at_its_edge_with_null_aside(tmp_path: Path) -> None:
    with _opened(tmp_path, values=300, numbers=300, delta="0", settings=Settings(key_values_max=300)) as data_set:
        assert "301 known" in str(data_set.explain("SELECT c, COUNT(*) FROM t GROUP BY c", epsilon=1))
        assert "301 known" in str(data_set.explain("SELECT UPPER(c), COUNT(*) FROM t GROUP BY 1", epsilon=1))
        assert "300 known" in str(data_set.explain("SELECT i, COUNT(*) FROM t GROUP BY i", epsilon=1))
        assert "300 known" in str(data_set.explain("SELECT i + 1, COUNT(*) FROM t GROUP BY 1", epsilon=1))


def test_groups_of_a_longer_range_are_discovered_and_that_is_said(tmp_path: Path) -> None:
    with _opened(tmp_path, values=10, numbers=200_001, delta='"2^-30"') as data_set:
        sql = "SELECT i, COUNT(*) AS n FROM t GROUP BY i"
        why = "the key 'i' has 200,001 possible values, and at most 100,000 are listed (key_values_max)"
        assert f"({why})" in str(data_set.explain(sql, epsilon=100))
        with silent():
            answer = data_set.ask(sql, epsilon=100)
        assert f"{why}: groups are discovered" in answer.notes
        found = dict(zip(answer.table.column("i").to_pylist(), answer.table.column("n").to_pylist(), strict=True))
        assert found == Counter(u % 9 for u in range(PEOPLE))


def test_too_many_combinations_are_discovered_and_that_is_said(tmp_path: Path) -> None:
    with _opened(tmp_path, values=300, numbers=300, delta='"2^-30"', settings=Settings(known_cells_max=1000)) as data_set:
        why = "GROUP BY has 90,300 possible groups, and at most 1,000 are listed (known_cells_max)"
        assert f"({why})" in str(data_set.explain("SELECT c, i, COUNT(*) FROM t GROUP BY c, i", epsilon=100))


def test_one_list_longer_than_all_cells_is_refused(tmp_path: Path) -> None:
    with _opened(tmp_path, values=300, numbers=300, delta='"2^-30"', settings=Settings(known_cells_max=100)) as data_set:
        with pytest.raises(Refused, match="301 possible groups, and at most 100 are listed") as refused:
            data_set.explain("SELECT c, COUNT(*) FROM t GROUP BY c", epsilon=1)
        assert refused.value.code == "too-many-groups" and "known_cells_max" in refused.value.hint


def test_without_delta_a_longer_range_is_refused_with_the_limit(tmp_path: Path) -> None:
    with _opened(tmp_path, values=10, numbers=200_001, delta="0") as data_set:
        with pytest.raises(Refused, match=r"200,001 possible values, and at most 100,000 are listed \(key_values_max\)") as refused:
            data_set.ask("SELECT i, COUNT(*) FROM t GROUP BY i", epsilon=1)
        assert refused.value.code == "keys-need-delta" and data_set.budget.share_spent == 0


@DELTAS
def test_check_says_it(delta: str, tmp_path: Path) -> None:
    _write(tmp_path, values=10, numbers=200_001, delta=delta)
    ran = run("-C", str(tmp_path), "check", home=tmp_path)
    becomes = "is refused" if delta == "0" else "is discovered, not listed"
    assert f"GROUP BY i {becomes}: 200,001 possible values, more than key_values_max (100,000)" in ran.out
    assert "GROUP BY c" not in ran.out
