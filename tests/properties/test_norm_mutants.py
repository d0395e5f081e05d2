"""Deliberate bugs in norms of units and in clipped counts of units: those that leak are seen by the oracle, the others by plain Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lapwing.audit.plan_shapes import Shape, sampled_norms, shapes
from lapwing.audit.runs import run_oracle
from lapwing.kernel import certify, sensitivity
from lapwing.kernel.accounting import Account
from lapwing.kernel.ir import UnitCount, UnitNorms
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.sensitivity import Sensitivity
from lapwing.render import cells, norms, queries
from tests.engines.suite import statements
from tests.engines.suite.engines import OnDuckDB
from tests.engines.suite.test_unit_norms import (
    check_alike,
    check_clipped_units,
    check_norms,
    check_sample,
    hostile_norms,
    listed_norms,
    prepared_tables,
)
from tests.properties.test_sensitivity_oracle import NEIGHBOURS, SEEDS, WORLDS

Patch = tuple[object, str, Any]

_SOURCE = norms.render_source
_BIN = norms.norm_bin
_CELLS_OF = cells.cells_of
_SCALED = queries.scaled_cell
_ALIKE = queries.alike_cell
_FINER = queries._finer
_INTEGERS = cells.CellInputs.integers
_BOUND = certify._bound
_CERTIFY_VECTOR = certify._certify_vector


def _other_sql(*replaced: tuple[str, str]) -> Patch:
    """Norms are rendered with other texts in some places."""

    def rendered(source: Any, *arguments: Any, **named: Any) -> str:
        sql = _SOURCE(source, *arguments, **named)
        for old, new in replaced if isinstance(source, UnitNorms) else ():
            assert old in sql, old
            sql = sql.replace(old, new)
        return sql

    return (queries, "render_source", rendered)


def in_two_bins(source: Any, *arguments: Any, where: str = "TRUE", **named: Any) -> str:
    sql = _SOURCE(source, *arguments, **named)
    if not isinstance(source, UnitNorms):
        return sql
    bin_of_unit, next_bin = f'b."{source.name}"', f'least(b."{source.name}" + 1, {len(source.squared_edges)})'
    return f'{sql} UNION ALL SELECT b._unit, {next_bin} AS "{source.name}" FROM ({sql}) b WHERE {where.format(bin_of_unit)}'


def _nothing_in_two_bins(*arguments: Any, **named: Any) -> str:
    """Only units of the lowest bin, that of norm 0 where 0 is an edge."""
    return in_two_bins(*arguments, where="{} = 0", **named)


def _each_cell_alone(cell: str, *, square: str, norm: str, limit: int, dialect: Any) -> str:
    return _SCALED(cell, square=f"(CAST({cell} AS HUGEINT) * {cell})", norm=norm, limit=limit, dialect=dialect)


def _units_on_the_whole_grid(vector: Any, shift: int) -> str:
    return _FINER(vector, 0 if isinstance(vector.measure, UnitCount) else shift)


def _step_of_whole_units(vector: Any, *arguments: Any) -> Any:
    found = _CERTIFY_VECTOR(vector, *arguments)
    return replace(found, step=found.step * 2**10) if isinstance(vector.measure, UnitCount) and vector.bound is not None else found


def _of_units(function: Callable[..., Sensitivity]) -> Patch:
    """Counts of units that are clipped get another bound."""

    def bound(vector: Any, row: Any, query: Any, shape: Any, facts: Any, per_unit: int) -> Sensitivity:
        if isinstance(vector.measure, UnitCount) and vector.bound is not None:
            return function(facts.neighbours, vector, row, shape, per_unit)
        return _BOUND(vector, row, query, shape, facts, per_unit)

    return (certify, "_bound", bound)


def _by_rows(neighbours: Neighbours, vector: Any, row: Any, shape: Any, per_unit: int) -> Sensitivity:
    return sensitivity.rows_weighing(neighbours, weight=shape.rows_per_unit, row=row)


def _by_groups(neighbours: Neighbours, vector: Any, row: Any, shape: Any, per_unit: int) -> Sensitivity:
    return sensitivity.units_counted(neighbours, groups=per_unit)


def _one_cell(neighbours: Neighbours, vector: Any, row: Any, shape: Any, per_unit: int) -> Sensitivity:
    return sensitivity.clipped(neighbours, norm=vector.bound.limit, cells=1, non_negative=True)


Factor = tuple[str, str, int]
"""Square, norm and limit of a unit's vector."""


def _by_the_other(cell: str, own: Factor, other: Factor, dialect: Any) -> str:
    return _SCALED(cell, square=other[0], norm=other[1], limit=other[2], dialect=dialect)


def _by_its_own(cell: str, own: Factor, other: Factor, dialect: Any) -> str:
    return _SCALED(cell, square=own[0], norm=own[1], limit=own[2], dialect=dialect)


def _by_the_larger(cell: str, own: Factor, other: Factor, dialect: Any) -> str:
    sql, changed = re.subn(r" OR (.*?)\) THEN", r" OR NOT (\1)) THEN", _ALIKE(cell, own, other, dialect), count=1)
    assert changed == 1
    return sql


def _by_position(hashed: str, one_in: int) -> str:
    return f"(SELECT COUNT(DISTINCT b._unit) FROM visits b WHERE b._unit < w._unit) % {one_in} = 0"


LEAKS: dict[str, tuple[str, Patch]] = {
    "a unit in two bins": ("unbounded", (queries, "render_source", in_two_bins)),
    "a unit that adds nothing in the bin above as well": ("unbounded", (queries, "render_source", _nothing_in_two_bins)),
    "a bin for each cell of a unit": ("unbounded", _other_sql((" GROUP BY c._unit)", " GROUP BY c._unit, c.c0)"))),
    "one bin for all units": ("unbounded", _other_sql(("SELECT c._unit,", "SELECT MIN(c._unit) AS _unit,"), (" GROUP BY c._unit)", ")"))),
    "a sample by position among all units": ("unbounded", (norms, "sample_predicate", _by_position)),
    "scaled by the factor of the other vector alone": ("unbounded", (queries, "alike_cell", _by_the_other)),
    "scaled by the larger of two factors": ("unbounded", (queries, "alike_cell", _by_the_larger)),
    "clipped group by group": ("unbounded", (queries, "scaled_cell", _each_cell_alone)),
    "clipped units bounded by their rows": ("unbounded", _of_units(_by_rows)),
    "clipped units bounded by their groups": ("unbounded", _of_units(_by_groups)),
    "clipped units bounded as if in one group": ("unbounded", _of_units(_one_cell)),
    "units replaced, charged as removed": (
        "bounded",
        (sensitivity, "rows_weighing", lambda _, **known: sensitivity.units_counted(Neighbours.UNBOUNDED, groups=known["weight"])),
    ),
}
"""The neighbour relation under which the oracle must see it, and the bug."""


CLIPPED = ("clipped units", "clipped mean, each with a cap")


def _shapes() -> dict[str, Shape]:
    found = {key: shape for key, shape in shapes(Account.PURE).items() if key.startswith("norms") or key in CLIPPED}
    return found | sampled_norms()


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("relation", WORLDS)
def test_no_neighbour_breaks_a_claim_about_a_sample(relation: str, account: Account) -> None:
    outcome = run_oracle(
        relation=relation, account=account, worlds=1, seed=SEEDS[0], only=sampled_norms(), neighbours_max=NEIGHBOURS[relation]
    )
    assert (outcome.faults, outcome.breaches) == ([], [])
    assert outcome.pairs >= 3 * len(sampled_norms())


@pytest.mark.parametrize("name", LEAKS)
def test_the_oracle_sees_what_leaks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    relation, (target, attribute, mutated) = LEAKS[name]
    monkeypatch.setattr(target, attribute, mutated)
    for seed in SEEDS:
        outcome = run_oracle(
            relation=relation,
            account=Account.PURE,
            worlds=WORLDS[relation],
            seed=seed,
            only=_shapes(),
            stop_at_first=True,
            neighbours_max=NEIGHBOURS[relation],
        )
        assert outcome.faults == []
        if outcome.breaches:
            return
    pytest.fail(f"the oracle did not see: {name}")


WRONG: dict[str, Patch] = {
    "sizes added instead of squares": _other_sql(("CAST(c.c0 AS HUGEINT) * c.c0", "CAST(abs(c.c0) AS HUGEINT)")),
    "squares of the sum": _other_sql(("SUM(CAST(c.c0 AS HUGEINT) * c.c0)", "(CAST(SUM(c.c0) AS HUGEINT) * SUM(c.c0))")),
    "a key forgotten": (norms, "cells_of", lambda rows, keys, columns: _CELLS_OF(rows, keys[1:], columns)),
    "rows without a key left out": (
        norms,
        "cells_of",
        lambda rows, keys, columns: _CELLS_OF(
            f"SELECT * FROM ({rows}) w WHERE {' AND '.join([f'w.{key} IS NOT NULL' for key in keys] or ['TRUE'])}", keys, columns
        ),
    ),
    "an edge belongs to the bin above": (norms, "norm_bin", lambda square, edges, dialect: _BIN(square, edges, dialect).replace("<=", "<")),
    "no bin above the last edge": (norms, "norm_bin", lambda s, edges, d: _BIN(s, edges, d).replace(f"ELSE {len(edges)} END", "END")),
    "the middle of a centred sum forgotten": (
        cells.CellInputs,
        "integers",
        lambda self, value, measure: _INTEGERS(self, value, replace(measure, offset=0)),
    ),
    "units that add nothing left out": _other_sql((" GROUP BY c._unit)", " GROUP BY c._unit HAVING MAX(c.c0) <> 0 OR MIN(c.c0) <> 0)")),
    "a sample of rows": (norms, "sample_predicate", lambda hashed, one_in: f"w._rank % {one_in} = 0"),
    "no sample": (norms, "sample_predicate", lambda hashed, one_in: "TRUE"),
    "scaled by its own factor alone": (queries, "alike_cell", _by_its_own),
    "a finer grid forgotten in the engine": (queries, "_finer", _units_on_the_whole_grid),
    "a finer grid forgotten in the certificate": (certify, "_certify_vector", _step_of_whole_units),
}
"""What leaks nothing and is wrong."""


def _all_checks(directory: Path) -> None:
    engine = OnDuckDB()
    snapshot = engine.prepare(statements.people(directory / "people", "unbounded", Account.PURE, seed=50))
    tables = prepared_tables(engine, snapshot)
    check_norms(snapshot, tables, listed_norms(snapshot.facts))
    check_clipped_units(snapshot, tables)
    check_sample(engine, snapshot, tables)
    check_alike(snapshot, tables)
    hostile = engine.prepare(statements.hostile(directory / "hostile", seed=1))
    check_norms(hostile, prepared_tables(engine, hostile), hostile_norms(hostile.facts, ("flag", "sex")))
    snapshot.close()
    hostile.close()


def test_without_a_bug_nothing_is_wrong(tmp_path: Path) -> None:
    _all_checks(tmp_path)


@pytest.mark.parametrize("name", WRONG)
def test_plain_python_sees_what_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WRONG[name])
    with pytest.raises(AssertionError):
        _all_checks(tmp_path)
