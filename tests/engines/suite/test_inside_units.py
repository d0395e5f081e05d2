"""Groups within units give the same on every engine, over rows of random clinics."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.kernel.accounting import Account
from lapwing.kernel.facts import Facts
from tests.engines.suite import statements
from tests.engines.suite.engines import OTHERS
from tests.engines.suite.test_equal_answers import COUNTS, EngineNamed, compare
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS
from tests.support.sql_inside import InsideQueries
from tests.support.sql_shapes import MANY_ROWS, SqlShape, shapes_of

KINDS = [("unbounded", Account.PURE), ("unbounded", Account.APPROXIMATE)]
LISTED = (
    "SELECT COUNT(*) FROM (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits WHERE minutes > 30) AS t",
    "SELECT COUNT(*) FROM (SELECT patient_id, code FROM visits UNION SELECT patient_id, code FROM visits WHERE minutes > 30) AS t",
    "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE minutes > 30 INTERSECT SELECT patient_id FROM patients WHERE smoker) AS t",
    "SELECT COUNT(*) FROM visits a WHERE NOT EXISTS (SELECT 1 FROM visits b WHERE b.patient_id = a.patient_id AND b.day > a.day)",
    "SELECT COUNT(*) FROM visits a WHERE EXISTS (SELECT 1 FROM visits b "
    "WHERE b.patient_id = a.patient_id AND (b.code > a.code OR b.cost < 9))",
    "SELECT COUNT(b.cost), COUNT(*) FROM visits a LEFT JOIN visits b "
    "ON b.patient_id = a.patient_id AND b.minutes > a.minutes AND b.cost > 1",
    "SELECT SUM((SELECT COUNT(DISTINCT code) FROM visits v WHERE v.patient_id = p.patient_id)) FROM patients p",
    "SELECT c, COUNT(*), SUM(n) FROM (SELECT patient_id, ARG_MAX(code, day) AS c, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t "
    "WHERE c IN ('J10', 'J11') GROUP BY c",
    "SELECT SUM(c) FROM (SELECT patient_id, code, MIN_BY(minutes, started) AS c FROM visits GROUP BY patient_id, code) AS t",
    "SELECT SUM(t.n), SUM(t.m) FROM patients p, LATERAL (SELECT COUNT(*) AS n, MAX(minutes) AS m FROM visits v "
    "WHERE v.patient_id = p.patient_id) AS t",
    "SELECT COUNT(DISTINCT (code, clinic_id)), APPROX_COUNT_DISTINCT(patient_id) FROM visits",
)
"""Sets, pairs of rows and values of units, one of each."""


@pytest.mark.parametrize("name", OTHERS)
def test_sets_pairs_and_values(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    shapes = {text: SqlShape(text, Fraction(20), MANY_ROWS, UNIT_COLUMNS, REFERENCES) for text in LISTED}
    declaration = statements.clinic(tmp_path, "unbounded", Account.APPROXIMATE, seed=51)
    assert compare(engine_named(name), declaration, lambda _: shapes) == len(LISTED)


@pytest.mark.parametrize(("relation", "account"), KINDS)
@pytest.mark.parametrize("name", OTHERS)
def test_groups_within_units(tmp_path: Path, engine_named: EngineNamed, name: str, relation: str, account: Account) -> None:
    count, seed = COUNTS[name]["clinic"] // 2 + 1, 41 + KINDS.index((relation, account))

    def asked(facts: Facts) -> dict[str, SqlShape]:
        queries = InsideQueries(facts, UNIT_COLUMNS, REFERENCES, seed=seed)
        return shapes_of(queries, facts, UNIT_COLUMNS, REFERENCES, count=count)

    declaration = statements.clinic(tmp_path, relation, account, seed=seed)
    assert compare(engine_named(name), declaration, asked) >= int(0.8 * count)
