"""Answers among rows: once they are bought, a statement is the one with constants in their place, and nothing else is measured."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.errors import Refused
from lapwing.kernel.expressions import Literal
from lapwing.statements import DecidedRows, expressions_of
from tests.unit.sql.clinic import bound

TOP = "SELECT code, COUNT(*) AS n FROM visits GROUP BY code ORDER BY n DESC LIMIT 2"
TWO: DecidedRows = (("I10", 70), ("J10", 50))
MEAN: DecidedRows = ((Fraction("120.5"),),)
MEANS: DecidedRows = ((1, Fraction("10.5")), (3, None), (None, Fraction(7)), (2, Fraction(20)))
PAIRS: DecidedRows = (("I10", 1, 9), ("J10", 2, 8))
SAME: tuple[tuple[str, tuple[DecidedRows, ...], str], ...] = (
    (
        f"SELECT COUNT(*) FROM visits WHERE code IN (SELECT code FROM ({TOP}) AS t)",
        ((("I10",), ("J10",), (None,), ("I10",)),),
        "SELECT COUNT(*) FROM visits WHERE code IN ('I10', 'J10')",
    ),
    (
        f"SELECT COUNT(*) FROM visits WHERE NOT (code IN (SELECT code FROM ({TOP}) AS t))",
        ((("I10",), ("J10",)),),
        "SELECT COUNT(*) FROM visits WHERE code NOT IN ('I10', 'J10')",
    ),
    (f"SELECT COUNT(*) FROM visits WHERE code NOT IN (SELECT code FROM ({TOP}) AS t)", ((),), "SELECT COUNT(*) FROM visits"),
    (
        f"SELECT COUNT(*) FROM visits WHERE code NOT IN (SELECT code FROM ({TOP}) AS t)",
        ((("I10",), (None,)),),
        "SELECT COUNT(*) FROM visits WHERE FALSE",
    ),
    (f"SELECT COUNT(*) FROM visits WHERE code IN (SELECT code FROM ({TOP}) AS t)", ((),), "SELECT COUNT(*) FROM visits WHERE FALSE"),
    (
        f"SELECT v.code, AVG(cost) FROM visits AS v JOIN ({TOP}) AS t ON t.code = v.code GROUP BY v.code",
        (TWO,),
        "SELECT v.code, AVG(cost) FROM visits AS v WHERE v.code IN ('I10', 'J10') GROUP BY v.code",
    ),
    (
        f"WITH top AS ({TOP}) SELECT top.code, AVG(cost) FROM top JOIN visits USING (code) GROUP BY top.code",
        (TWO,),
        "SELECT code, AVG(cost) FROM visits WHERE code IN ('I10', 'J10') GROUP BY code",
    ),
    (
        f"SELECT SUM(t.n) FROM visits AS v JOIN ({TOP}) AS t ON v.code = t.code",
        (TWO,),
        "SELECT SUM(CASE WHEN code = 'I10' THEN 70 WHEN code = 'J10' THEN 50 END) FROM visits WHERE code IN ('I10', 'J10')",
    ),
    (
        f"SELECT COUNT(*) FILTER (WHERE t.code IS NULL) FROM visits AS v LEFT JOIN ({TOP}) AS t ON v.code = t.code",
        (TWO,),
        "SELECT COUNT(*) FILTER (WHERE CASE WHEN code = 'I10' THEN 'I10' WHEN code = 'J10' THEN 'J10' END IS NULL) FROM visits",
    ),
    (
        "SELECT COUNT(*) FROM visits AS v JOIN (SELECT clinic_id, AVG(cost) AS m FROM visits GROUP BY clinic_id) AS t"
        " ON v.clinic_id = t.clinic_id WHERE v.cost > t.m",
        (MEANS,),
        "SELECT COUNT(*) FROM visits WHERE clinic_id IN (1, 3, 2)"
        " AND cost > CASE WHEN clinic_id = 1 THEN 10.5 WHEN clinic_id = 2 THEN 20.0 END",
    ),
    (
        "SELECT COUNT(*) FROM visits AS v, (SELECT code, clinic_id, COUNT(*) AS n FROM visits GROUP BY code, clinic_id LIMIT 2) AS t"
        " WHERE v.code = t.code AND minutes > 5 AND v.clinic_id = t.clinic_id",
        (PAIRS,),
        "SELECT COUNT(*) FROM visits WHERE code IN ('I10', 'J10') AND clinic_id IN (1, 2)"
        " AND ((code = 'I10' AND clinic_id = 1) OR (code = 'J10' AND clinic_id = 2)) AND minutes > 5",
    ),
    ("SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", (MEAN,), "SELECT COUNT(*) FROM visits WHERE cost > 120.5"),
    (
        "SELECT COUNT(*) FROM visits AS v CROSS JOIN (SELECT AVG(cost) AS m FROM visits) AS t WHERE v.cost > 2 * t.m",
        (MEAN,),
        "SELECT COUNT(*) FROM visits WHERE cost > 2 * 120.5",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day > (SELECT MAX(day) FROM visits WHERE minutes > 5)",
        (((20_000,),),),
        "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-10-04'",
    ),
    (
        f"SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits WHERE code IN (SELECT code FROM ({TOP}) AS t))",
        ((("I10",),), MEAN),
        "SELECT COUNT(*) FROM visits WHERE cost > 120.5",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING SUM(cost) > (SELECT AVG(cost) FROM visits)) AS t",
        (MEAN,),
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING SUM(cost) > 120.5) AS t",
    ),
)
"""A statement, what its answers among rows released, and the statement with constants."""


@pytest.mark.parametrize(("text", "decided", "constants"), SAME)
def test_decided_is_the_statement_with_constants(text: str, decided: tuple[DecidedRows, ...], constants: str) -> None:
    whole = bound(text, decided=decided)
    assert whole.privates == bound(constants).privates
    assert len(whole.first) == len(decided)


@pytest.mark.parametrize(("text", "decided"), [(text, decided) for text, decided, _ in SAME])
def test_what_comes_first_is_a_statement_of_its_own(text: str, decided: tuple[DecidedRows, ...]) -> None:
    """Until it is bought, conditions that it decides are left out, so the statement is over no fewer rows."""
    supposed = bound(text)
    assert len(supposed.first) == len(decided)
    assert [len(statement.privates) for statement in supposed.first] == [1] * len(decided)
    assert all(not statement.first for statement in supposed.first)
    assert [query.keys for query in supposed.privates] == [query.keys for query in bound(text, decided=decided).privates]


def test_the_first_of_two_decides_the_second() -> None:
    text = f"SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits WHERE code IN (SELECT code FROM ({TOP}) AS t))"
    _, second = bound(text, decided=((("I10",),),)).first
    assert second.privates == bound("SELECT AVG(cost) FROM visits WHERE code IN ('I10')").privates


def test_an_answer_that_is_shown_and_decides_is_asked_for_both() -> None:
    text = f"WITH top AS ({TOP}) SELECT COUNT(*), (SELECT MAX(n) FROM top) AS most FROM visits WHERE code IN (SELECT code FROM top)"
    whole = bound(text, decided=((("I10",), ("J10",)),))
    assert len(whole.privates) == 2 and len(whole.first) == 1
    assert whole.first[0].privates == (whole.privates[1],)


def test_rows_used_around_and_inside_an_answer_are_bound_for_each() -> None:
    """The number of statements divides the price, so stored answers depend on it."""
    rows = "SELECT * FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"
    answer = f"WITH a AS ({rows}) SELECT COUNT(*) FROM a WHERE cost > (SELECT AVG(cost) FROM a)"
    around, inside, last = bound(answer, decided=(MEAN, MEAN)).first
    assert around.privates == inside.privates == bound("SELECT AVG(cost) FROM visits").privates != last.privates
    assert len(bound(f"WITH a AS ({rows}) SELECT COUNT(*) FROM a WHERE patient_id IN (SELECT patient_id FROM a)").first) == 1


def test_a_withheld_value_meets_no_row() -> None:
    whole = bound("SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", decided=(((None,),),))
    (condition,) = expressions_of(whole.private.source)
    assert not isinstance(condition, Literal) and "null_if" in repr(condition).lower()


REFUSED = (
    (
        "join-not-on-key",
        "SELECT COUNT(*) FROM visits AS v JOIN (SELECT code, clinic_id, COUNT(*) AS n FROM visits GROUP BY ALL) AS t ON v.code = t.code",
    ),
    ("join-not-on-key", "SELECT COUNT(*) FROM visits AS v JOIN (SELECT COUNT(*) AS n FROM visits GROUP BY code) AS t ON v.minutes = t.n"),
    ("join-not-on-key", "SELECT COUNT(*) FROM visits AS v CROSS JOIN (SELECT code, COUNT(*) AS n FROM visits GROUP BY code) AS t"),
    ("join-not-on-key", f"SELECT COUNT(*) FROM visits AS v JOIN ({TOP}) AS t ON v.code >= t.code"),
    ("join-unsupported", f"SELECT COUNT(*) FROM ({TOP}) AS t LEFT JOIN visits AS v ON v.code = t.code"),
    ("join-unsupported", f"SELECT COUNT(*) FROM visits AS v LEFT JOIN ({TOP}) AS t ON v.code = t.code AND v.minutes > t.n"),
    ("type-mismatch", f"SELECT COUNT(*) FROM visits AS v JOIN ({TOP}) AS t ON v.minutes = t.code"),
    ("type-mismatch", f"SELECT COUNT(*) FROM visits WHERE minutes IN (SELECT code FROM ({TOP}) AS t)"),
    ("sql-unsupported", f"SELECT COUNT(*) FROM visits WHERE code IN ({TOP})"),
    ("sql-unsupported", "SELECT COUNT(*) FROM visits WHERE minutes > (SELECT COUNT(*) FROM visits GROUP BY code)"),
    ("sql-unsupported", f"SELECT COUNT(*) FROM visits WHERE minutes > ({TOP.replace('LIMIT 2', 'LIMIT 1')})"),
    ("subquery-private", "SELECT COUNT(*) FROM visits AS v WHERE cost > (SELECT AVG(w.cost) FROM visits AS w WHERE w.code = v.code)"),
    ("subquery-private", "SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits)"),
    ("statement-too-large", "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["cost > (SELECT AVG(cost) FROM visits)"] * 9)),
)


@pytest.mark.parametrize(("code", "text"), REFUSED)
def test_refused_before_anything_is_bought(code: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        bound(text)
    assert caught.value.code == code
    assert caught.value.span is not None
