"""Every deliberate bug in relations makes one of their suites fail. A mutant that survives means that suite is blind to the mistake."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import LapwingError, Refused
from tests.properties.limit_runs import Limit, TooNoisy
from tests.properties.relation_mutants import MUTANTS as OF_RELATIONS
from tests.properties.test_relation_sizes import check_limits, check_sizes, worlds
from tests.properties.test_relations_limit import relational
from tests.properties.test_relations_oracle import CAPS, CHUNKS, CONTENTS, FAMILIES, conformance
from tests.properties.window_mutants import WINDOW_MUTANTS
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS
from tests.support.family_runs import family_of, run_families
from tests.support.sql_pieces import Generated, Piece
from tests.support.sql_shapes import MANY_ROWS, SqlShape
from tests.unit.sql.clinic import bound
from tests.unit.sql.refused import REFUSED

MUTANTS = (*OF_RELATIONS, *WINDOW_MUTANTS)
BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
LIMIT_STATEMENTS = 15
JOINED = ("c38", "c39", "c40", "c41", "c42", "c43", "c45", "c48", "c52")
"""Of the conformance list: every way of joining."""
WIDE = (
    "SELECT COUNT(*), SUM(minutes) FROM visits WHERE patient_id IN (SELECT patient_id FROM visits)",
    "SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM visits) AS e",
    "SELECT COUNT(*), SUM(minutes) FROM (SELECT LAG(minutes) OVER (PARTITION BY patient_id ORDER BY code) AS minutes FROM visits) AS e",
    "SELECT clinic_id, COUNT(*) FROM (SELECT clinic_id, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY minutes < 0) AS n FROM "
    "(SELECT patient_id, clinic_id, minutes FROM visits) AS v) AS e WHERE n = 1 GROUP BY clinic_id",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id, clinic_id ORDER BY day) AS n FROM visits) AS e WHERE n = 1",
)
"""Many matches of a condition; a unit that uses its limit in both parts of a union; windows."""
COUNTS = (
    "SELECT COUNT(*) AS a0 FROM visits WHERE visit_id IN (SELECT visit_id FROM drugs)",
    "SELECT COUNT(*) AS a0 FROM visits v WHERE NOT EXISTS (SELECT 1 FROM drugs d WHERE d.visit_id = v.visit_id)",
    "SELECT COUNT(*) AS a0 FROM visits v JOIN drugs d ON v.visit_id = d.visit_id",
    "SELECT COUNT(*) AS a0 FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND v.minutes > 6",
    "SELECT COUNT(*) AS a0 FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id HAVING COUNT(*) > 1) t",
    "SELECT SUM(t.n) AS a0 FROM (SELECT person_id, COUNT(*) FILTER (WHERE minutes > 6) AS n FROM visits GROUP BY person_id) t",
    "SELECT COUNT(*) AS a0 FROM (SELECT person_id FROM visits UNION ALL SELECT person_id FROM people) e",
    "SELECT COUNT(*) AS a0 FROM visits WHERE minutes NOT IN (SELECT clinic FROM clinics WHERE beds > 3)",
    "SELECT SUM(b) AS a0 FROM (SELECT LAG(minutes) OVER (PARTITION BY person_id ORDER BY day, visit_id) AS b FROM visits) t",
    "SELECT SUM(b) AS a0 FROM (SELECT LAG(minutes) OVER (PARTITION BY person_id ORDER BY day DESC, visit_id) AS b FROM visits) t",
    "SELECT SUM(b) AS a0 FROM (SELECT LAG(clinic) OVER (PARTITION BY person_id ORDER BY score NULLS FIRST, visit_id) AS b FROM visits) t",
    "SELECT SUM(b) AS a0 FROM (SELECT SUM(minutes) OVER (PARTITION BY person_id ORDER BY urgent) AS b FROM visits) t",
    "SELECT COUNT(*) AS a0 FROM (SELECT clinic FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY visit_id) = 2) t",
    "SELECT COUNT(*) AS a0 FROM (SELECT DISTINCT ON (person_id, urgent) clinic FROM visits ORDER BY person_id, urgent, day) t",
    "SELECT COUNT(*) AS a0 FROM people p LEFT JOIN visits v ON v.person_id = p.person_id AND v.minutes > p.grade",
    "SELECT COUNT(*) AS a0 FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.person_id = v.person_id AND minutes > v.minutes)",
    "SELECT SUM(n) AS a0 FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id, urgent ORDER BY visit_id) AS n FROM visits) t",
)
"""Asked before generated ones: one for each way."""


def given(text: str) -> Generated:
    """A statement that counts one thing, as the generators make them."""
    return Generated(text, text, text, None, 0, (Piece("a0", "a0", True, True),), "", False, None, 0)


def _seen_by_oracle() -> bool:
    """In the families in which ``test_relations_oracle`` finds nothing, and over statements of that list."""
    relation, account, seed = CHUNKS[0]
    shapes = {name: shape for name, shape in conformance(relation, account).items() if name in JOINED}
    fresh = {name: SqlShape(shape.sql, shape.epsilon, MANY_ROWS, UNIT_COLUMNS, REFERENCES) for name, shape in shapes.items()}
    fresh |= {text: SqlShape(text, Fraction(20), MANY_ROWS, UNIT_COLUMNS, REFERENCES) for text in WIDE}
    outcome = run_families(
        relation=relation,
        account=account,
        make=family_of(relation, contents=CONTENTS),
        families=FAMILIES[relation],
        seed=seed,
        only=fresh,
        caps=CAPS,
        stop_at_first=True,
    )
    return bool(outcome.breaches)


def _seen_by_limit(directory: Path) -> bool:
    limit = Limit(directory, neighbours="unbounded", delta="0")
    queries = relational(limit, 900)
    statements = [given(text) for text in COUNTS] + [queries.statement() for _ in range(LIMIT_STATEMENTS)]
    try:
        for statement in statements:
            try:
                limit.compare(statement)
            except TooNoisy:
                continue
            except Refused:
                continue
            except (AssertionError, LapwingError):
                return True
    finally:
        limit.data.close()
    return False


def _seen_by_refusals() -> bool:
    for code, text in REFUSED.values():
        try:
            bound(text)
        except Refused as error:
            if error.code != code:
                return True
        else:
            return True
    return False


def _seen_by(check: Callable[[], int]) -> bool:
    try:
        check()
    except AssertionError:
        return True
    return False


def _seen(suite: str, directory: Path) -> bool:
    match suite:
        case "oracle":
            return _seen_by_oracle()
        case "limit":
            return _seen_by_limit(directory)
        case "refusals":
            return _seen_by_refusals()
        case "sizes":
            return _seen_by(check_sizes)
        case "lowering":
            return _seen_by(check_limits)
        case _:
            raise AssertionError(suite)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_suite_sees_the_bug(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mutant = BY_NAME[name]
    worlds()  # prepared before anything is broken
    for target, attribute, replacement in mutant.patches:
        monkeypatch.setattr(target, attribute, replacement)
    assert _seen(mutant.suite, tmp_path), f"the {mutant.suite} suite did not see: {name}"


@pytest.mark.parametrize("suite", sorted({mutant.suite for mutant in MUTANTS} - {"sizes", "lowering"}))
def test_without_a_bug_the_same_suite_is_clean(suite: str, tmp_path: Path) -> None:
    """Sizes and lowering have tests of their own."""
    assert not _seen(suite, tmp_path)


def test_there_are_at_least_ten() -> None:
    assert len(BY_NAME) == len(MUTANTS) >= 10
