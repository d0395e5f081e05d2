"""Groups within units give the same on every engine, over rows of random clinics."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.facts import Facts
from tests.engines.suite import statements
from tests.engines.suite.engines import OTHERS
from tests.engines.suite.test_equal_answers import COUNTS, EngineNamed, compare
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS
from tests.support.sql_inside import InsideQueries
from tests.support.sql_shapes import SqlShape, shapes_of

KINDS = [("unbounded", Account.PURE), ("unbounded", Account.APPROXIMATE)]


@pytest.mark.parametrize(("relation", "account"), KINDS)
@pytest.mark.parametrize("name", OTHERS)
def test_groups_within_units(tmp_path: Path, engine_named: EngineNamed, name: str, relation: str, account: Account) -> None:
    count, seed = COUNTS[name]["clinic"] // 2 + 1, 41 + KINDS.index((relation, account))

    def asked(facts: Facts) -> dict[str, SqlShape]:
        queries = InsideQueries(facts, UNIT_COLUMNS, REFERENCES, seed=seed)
        return shapes_of(queries, facts, UNIT_COLUMNS, REFERENCES, count=count)

    declaration = statements.clinic(tmp_path, relation, account, seed=seed)
    assert compare(engine_named(name), declaration, asked) >= 0.8 * count
