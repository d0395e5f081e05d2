"""Holes that were found while proving, each with the counter-example that showed it. None may come back."""

from __future__ import annotations

import copy
import dataclasses
import random
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from lapwing.audit.plan_shapes import shapes
from lapwing.audit.runs import RANKING_KEY, prepare_in_duckdb
from lapwing.audit.worlds import declare, random_world
from lapwing.catalog import Declaration, load
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Case, Column, Function, Literal, call
from lapwing.kernel.ir import Cap, Clipped, Grouped, KnownGroups, Plan, PublicJoin, Query, Ranked, RowCount, Scan, UnitCount, Vector
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.permit import issue
from lapwing.kernel.release import release

LAW = DiscreteLaplace(Fraction(8))


def _catalogue(directory: Path, source: str, key: str = 'type = "key"', columns: str = "") -> Declaration:
    (directory / "lapwing.toml").write_text(
        f"""
format = 1
[dataset]
id = "holes"
unit = "person"
[budget]
epsilon = 1
delta = 0
[tables.t]
source = "{source}"
unit = "id"
rows_max = 1000
[tables.t.columns]
id = {{ {key} }}
{columns}
"""
    )
    return load(directory / "lapwing.toml")


def _rows(declaration: Declaration) -> list[tuple[object, ...]]:
    snapshot = DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=RANKING_KEY)
    rows = snapshot._connection.execute("SELECT * FROM t").fetchall()
    snapshot.close()
    return sorted(rows, key=repr)


@pytest.mark.parametrize("hostile", ["9,'a", "9,#x", '9,"a ""quoted"" b"', "9,x;y", "9,2024-01-01", "9,\t", "9,|a|b|"])
def test_one_csv_record_does_not_change_how_others_are_read(tmp_path: Path, hostile: str) -> None:
    records = ["1,a", "2,b;c", "3,'q'", "4,5.0"]
    found = []
    for name, lines in (("with", [*records, hostile]), ("without", records)):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "t.csv").write_text("\n".join(["id,x", *lines]) + "\n")
        found.append(_rows(_catalogue(directory, "t.csv", columns='x = { type = "text" }')))
    assert [row for row in found[0] if row[0] != 9] == found[1]
    assert len(found[1]) == 4


def test_units_are_never_merged_by_conversion(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n01\n1.4\n1e0\n 1\n2\n")
    assert [row[0] for row in _rows(_catalogue(tmp_path, "t.csv"))] == [1, 2]
    duckdb.connect().execute(f"COPY (SELECT * FROM (VALUES (1.0::DOUBLE), (1.4), (2.0)) v(id)) TO '{tmp_path / 't.parquet'}'")
    assert [row[0] for row in _rows(_catalogue(tmp_path, "t.parquet"))] == [1, 2]


def _facts(tmp_path: Path) -> DuckDBSnapshot:
    snapshot = prepare_in_duckdb(declare(random_world(random.Random(1)), tmp_path / "w", neighbours="unbounded", delta="0"))
    assert isinstance(snapshot, DuckDBSnapshot)
    return snapshot


def test_a_computed_real_key_cannot_choose_groups(tmp_path: Path) -> None:
    facts = _facts(tmp_path).facts
    key = call(Function.MULTIPLY, Column("cost"), Literal(Fraction(-1), Kind.REAL))
    query = Query(
        Scan("visits", 12),
        (("k", key),),
        KnownGroups(((Fraction(0),), (Fraction(-1),))),
        Grouped(1),
        (Vector("n", RowCount(), LAW, Cap(1)),),
    )
    with pytest.raises(Refused, match="groups-by-real"):
        certify(Plan((query,)), facts)
    certify(Plan((dataclasses.replace(query, bounding=Ranked(), vectors=(Vector("n", RowCount(), LAW),)),)), facts)


def test_a_text_key_is_not_joined_to_a_number(tmp_path: Path) -> None:
    facts = _facts(tmp_path).facts
    source = PublicJoin(Scan("drugs", 5), "clinics", Column("drug"), (("city", "city"),))
    with pytest.raises(Refused, match="type-mismatch"):
        certify(Plan((Query(source, (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), LAW),)),)), facts)


@pytest.mark.parametrize(
    "query",
    [
        Query(Scan("visits", 3), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(Case((), Literal(True, Kind.BOOLEAN))), LAW),)),
        Query(Scan("visits", 3), (), KnownGroups(((),)), Grouped(1), (Vector("n", RowCount(), LAW, Cap(2**200)),)),
        Query(Scan("visits", 3), (), KnownGroups(((),)), Clipped(500), (Vector("n", UnitCount(), LAW),)),
        Query(Scan("visits", 3), (), KnownGroups(((),)), Clipped(10), (Vector("n", RowCount(), LAW, Cap(2**200)),)),
    ],
    ids=["empty case", "huge cell", "huge bits", "huge norm"],
)
def test_what_an_engine_could_not_run_is_refused_before_any_charge(tmp_path: Path, query: Query) -> None:
    with pytest.raises(Refused):
        certify(Plan((query,)), _facts(tmp_path).facts)


def test_a_permit_is_used_once_even_as_a_copy(tmp_path: Path) -> None:
    snapshot = _facts(tmp_path)
    certified = certify(shapes(Account.PURE)["filter"](snapshot.facts), snapshot.facts)
    permit = issue(1, certified.digest, certified.cost)
    with pytest.raises(TypeError):
        copy.copy(permit)
    twin = issue(1, certified.digest, certified.cost, nonce=permit.nonce)
    release(certified, permit, snapshot.run(certified))
    del permit
    with pytest.raises(LapwingError, match="permit-used"):
        release(certified, twin, snapshot.run(certified))


def test_a_result_is_released_for_its_own_plan_only(tmp_path: Path) -> None:
    snapshot = _facts(tmp_path)
    wide, narrow = (
        certify(Plan((Query(Scan("visits", k), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), LAW),)),)), snapshot.facts)
        for k in (12, 1)
    )
    with pytest.raises(LapwingError, match="engine-result"):
        release(narrow, issue(1, narrow.digest, narrow.cost), snapshot.run(wide))
    cheaper = dataclasses.replace(wide, cost=Cost.zero())
    with pytest.raises(LapwingError, match="permit-mismatch"):
        release(cheaper, issue(1, wide.digest, Cost.zero()), snapshot.run(wide))


def test_a_constant_between_two_grid_points_compares_like_the_number_it_is(tmp_path: Path) -> None:
    duckdb.connect().execute(f"COPY (SELECT range AS id, 1.20 + range / 100 AS x FROM range(8)) TO '{tmp_path / 't.parquet'}'")
    snapshot = DuckDBSnapshot.in_memory(
        _catalogue(tmp_path, "t.parquet", columns='x = { type = "real", min = 0, max = 10, steps = 100 }'),
        version=1,
        ranking_key=RANKING_KEY,
    )
    cases = [(Function.LESS, 4), (Function.LESS_EQUAL, 4), (Function.GREATER, 4), (Function.GREATER_EQUAL, 4)]
    for function, expected in cases:
        for swapped in (False, True):
            sides = (Column("x"), Literal(Fraction("1.2344"), Kind.REAL))
            mirrored = {Function.LESS: Function.GREATER, Function.GREATER: Function.LESS}
            mirrored |= {Function.LESS_EQUAL: Function.GREATER_EQUAL, Function.GREATER_EQUAL: Function.LESS_EQUAL}
            where = call(mirrored[function], *reversed(sides)) if swapped else call(function, *sides)
            plan = Plan((Query(Scan("t", 1), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(where), LAW),)),))
            certified = certify(plan, snapshot.facts)
            assert snapshot.run(certified)._tables[0]._vectors[0][0] == expected
