"""Every deliberate bug in groups within units makes one of their suites fail."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from tests.properties.inside_mutants import MUTANTS
from tests.properties.limit_runs import Limit, TooNoisy
from tests.properties.test_relation_mutants import given
from tests.properties.test_relation_sizes import check_limits, worlds
from tests.properties.test_relations_oracle import CAPS, CHUNKS, CONTENTS, FAMILIES
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS
from tests.support.family_runs import family_of, run_families
from tests.support.sql_shapes import MANY_ROWS, SqlShape

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
WIDE = (
    "SELECT COUNT(*), SUM(n) FROM (SELECT patient_id, day, COUNT(*) AS n FROM visits GROUP BY patient_id, day) AS t",
    "SELECT clinic_id, COUNT(*) FROM (SELECT DISTINCT patient_id, clinic_id, visit_id FROM visits) AS t GROUP BY clinic_id",
    "SELECT y, COUNT(*) FROM (SELECT patient_id, vaccinated, MAX(birth_year) AS y FROM patients GROUP BY 1, 2) AS t GROUP BY y",
    "SELECT SUM(n) FROM (SELECT visit_id, COUNT(*) AS n FROM prescriptions GROUP BY visit_id) AS t",
)
COUNTS = (
    "SELECT COUNT(*) AS a0 FROM (SELECT DISTINCT person_id, clinic FROM visits) AS t",
    "SELECT COUNT(*) AS a0 FROM (SELECT person_id, clinic, day, COUNT(*) AS n FROM visits GROUP BY person_id, clinic, day) AS t",
    "SELECT SUM(a) AS a0 FROM (SELECT person_id, clinic AS a, minutes AS b FROM visits GROUP BY person_id, clinic, minutes) AS t",
    "SELECT SUM(a) AS a0 FROM (SELECT grade, COUNT(*) AS a FROM people GROUP BY grade) AS t WHERE a > 1",
    "SELECT COUNT(*) AS a0 FROM (SELECT DISTINCT visit_id FROM drugs) AS t",
    "SELECT COUNT(*) AS a0 FROM (SELECT person_id FROM people EXCEPT SELECT person_id FROM visits WHERE minutes > 4) AS t",
    "SELECT SUM(c) AS a0 FROM (SELECT person_id, ARG_MAX(minutes, minutes) AS c FROM visits GROUP BY person_id) AS t",
    "SELECT SUM(n) AS a0 FROM (SELECT person_id, COUNT(DISTINCT clinic) AS n FROM visits GROUP BY person_id) AS t",
    "SELECT COUNT((SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id)) AS a0 FROM people p",
    "SELECT COUNT(*) AS a0 FROM people p WHERE (SELECT COUNT(*) FROM visits v WHERE v.person_id = p.person_id) < 1",
    "SELECT SUM((SELECT COUNT(*) FROM drugs d WHERE d.visit_id = v.visit_id)) AS a0 FROM visits v",
    "SELECT COUNT(*) AS a0 FROM (SELECT person_id, minutes FROM visits EXCEPT SELECT person_id, minutes FROM visits WHERE urgent) AS t",
)


def _seen_by_oracle() -> bool:
    relation, account, seed = CHUNKS[0]
    outcome = run_families(
        relation=relation,
        account=account,
        make=family_of(relation, contents=CONTENTS),
        families=FAMILIES[relation],
        seed=seed,
        only={text: SqlShape(text, Fraction(20), MANY_ROWS, UNIT_COLUMNS, REFERENCES) for text in WIDE},
        caps=CAPS,
        stop_at_first=True,
    )
    return bool(outcome.breaches)


def _seen_by_limit(directory: Path) -> bool:
    limit = Limit(directory, neighbours="unbounded", delta="0")
    try:
        for text in COUNTS:
            try:
                limit.compare(given(text))
            except TooNoisy:
                continue
            except (AssertionError, LapwingError, KeyError):  # each of them is answered where there is no bug
                return True
    finally:
        limit.data.close()
    return False


def _seen(suite: str, directory: Path) -> bool:
    match suite:
        case "oracle":
            return _seen_by_oracle()
        case "limit":
            return _seen_by_limit(directory)
        case "lowering":
            try:
                check_limits()
            except AssertionError:
                return True
            return False
        case _:
            raise AssertionError(suite)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_suite_sees_the_bug(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutant = BY_NAME[name]
    worlds()  # prepared before anything is broken
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    assert _seen(mutant.suite, tmp_path), f"the {mutant.suite} suite did not see: {name}"


@pytest.mark.parametrize("suite", ["oracle", "limit"])
def test_without_a_bug_the_same_suite_is_clean(suite: str, tmp_path: Path) -> None:
    assert not _seen(suite, tmp_path)


def test_there_are_at_least_eight() -> None:
    assert len(BY_NAME) == len(MUTANTS) >= 8
