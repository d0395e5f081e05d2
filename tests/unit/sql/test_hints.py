"""Every hint is typed: what follows it is accepted, and no hint of the code is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from tests.unit.sql.hints_in_code import collected, hints
from tests.unit.sql.rewrites import PURE_REWRITES, REWRITES
from tests.unit.sql.without_rewrite import WITHOUT_REWRITE


def _opened(directory: Path, *, delta: str) -> lapwing.DataSet:
    """A demonstration whose budget pays for the whole table."""
    write_demo(directory / "clinic", patients=300)
    catalogue = directory / "clinic" / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    for line, instead in (
        ("\nepsilon = 3 ", "\nepsilon = 100_000_000 "),
        ("ceiling = { epsilon = 6 }", "ceiling = { epsilon = 100_000_000 }"),
        ("\nepsilon = 0.1 ", "\nepsilon = 10 "),
        ('delta = "2^-40"', f"delta = {delta}"),
    ):
        assert text.count(line) == 1
        text = text.replace(line, instead)
    catalogue.write_text(text, encoding="utf-8")
    data_set = lapwing.open(directory / "clinic", home=directory / "home")
    data_set.prepare()
    return data_set


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lapwing.DataSet]:
    with _opened(tmp_path_factory.mktemp("ordinary"), delta='"2^-40"') as data_set:
        yield data_set


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lapwing.DataSet]:
    with _opened(tmp_path_factory.mktemp("pure"), delta="0") as data_set:
        yield data_set


def _typed(data_set: lapwing.DataSet, refused: str, rewrite: str) -> str:
    """The hint of a refusal, once what follows it was answered."""
    with pytest.raises(LapwingError) as caught:
        data_set.ask(refused)
    assert caught.value.hint, refused
    data_set.ask(rewrite)
    return caught.value.hint


@pytest.mark.slow
def test_every_hint_is_typed_and_accepted(ordinary: lapwing.DataSet, pure: lapwing.DataSet) -> None:
    typed = {_typed(ordinary, *pair) for pair in REWRITES} | {_typed(pure, *pair) for pair in PURE_REWRITES}
    patterns = collected()
    assert len(patterns) > 130
    assert [hint for hint in typed if not any(re.fullmatch(pattern, hint) for pattern in patterns)] == [], "not found in the source"
    known = typed | set(WITHOUT_REWRITE)
    assert {pattern: file for pattern, file in patterns.items() if not any(re.fullmatch(pattern, hint) for hint in known)} == {}
    assert [hint for hint in WITHOUT_REWRITE if not any(re.fullmatch(pattern, hint) for pattern in patterns)] == [], (
        "not in the code any more"
    )


def test_words_and_arguments_that_contradict_one_another(ordinary: lapwing.DataSet) -> None:
    sql = "SELECT COUNT(*) FROM visits WITH PRIVACY (epsilon = 1)"
    with pytest.raises(LapwingError) as caught:
        ordinary.ask(sql, epsilon=2)
    assert caught.value.hint == "leave one of the two out"
    ordinary.ask(sql)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        (
            "SELECT COUNT(*) FROM visits v LEFT JOIN prescriptions r ON r.visit_id = v.visit_id AND r.drug LIKE '_a%'",
            "compare its SUBSTRING",
        ),
        ("SELECT COUNT(*) FROM visits WHERE current_schema() = 'x'", "the SQL reference"),
        ("SELECT SUM(CAST(code AS INTEGER)) FROM visits", "none of its declared values"),
    ],
)
def test_the_real_reason_is_named(ordinary: lapwing.DataSet, sql: str, hint: str) -> None:
    with pytest.raises(LapwingError) as caught:
        ordinary.ask(sql)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits v JOIN clinics c ON (v.clinic_id = c.clinic_id)",
        "SELECT COUNT(*) FROM visits v JOIN patients p ON ((v.patient_id = p.patient_id) AND (p.smoker))",
        "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE (v.patient_id = p.patient_id))",
        "SELECT COUNT(DISTINCT (CASE WHEN cost > 5 THEN patient_id END)) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE cost > CAST('100.5' AS DOUBLE)",
        "SELECT COUNT(*) FROM visits WHERE cost > TRY_CAST('100.5' AS DOUBLE)",
        "SELECT EXP(AVG(LN(1 + minutes))), SQRT(COUNT(*)), LN(COUNT(*) - 1000000) FROM visits",
        "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
        "SELECT day, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY day) FROM visits GROUP BY day",
        "SELECT m, n - LAG(n) OVER (ORDER BY m) FROM (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m) AS t",
        "SELECT COUNT(*) FROM prescriptions a JOIN prescriptions b ON a.visit_id = b.visit_id",
    ],
)
def test_what_was_refused_for_no_reason_is_answered(ordinary: lapwing.DataSet, sql: str) -> None:
    ordinary.ask(sql)


def test_a_sum_too_noisy_is_told_of_clamping(ordinary: lapwing.DataSet) -> None:
    summed = ordinary.ask("SELECT code, SUM(cost) FROM visits GROUP BY code", epsilon=0.0001)
    assert any("LEAST" in note for note in summed.notes)
    counted = ordinary.ask("SELECT code, COUNT(*) FROM visits GROUP BY code", epsilon=0.0001)
    assert not any("LEAST" in note for note in counted.notes)


@pytest.mark.slow
def test_aggregates_over_groups_that_are_noise_say_so(ordinary: lapwing.DataSet) -> None:
    by_day = "(SELECT day, COUNT(*) AS n FROM visits GROUP BY day) AS t"
    assert any("731 groups that this is computed from are noise only" in note for note in _notes(ordinary, f"SELECT AVG(n) FROM {by_day}"))
    for sql in (f"SELECT day, n FROM {by_day}", "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits) AS t"):
        assert not any("computed from" in note for note in _notes(ordinary, sql))


def _notes(data_set: lapwing.DataSet, sql: str) -> tuple[str, ...]:
    return tuple(data_set.ask(sql, epsilon=0.0001).notes)


def test_hints_are_found_however_they_are_written() -> None:
    text = """
hint = "one" if x else f"two {y} and"
message, hint = "no", "three"
error.hint = "four"
refuse("c", "m", hint="five")
_A = Reason("c", "m", "six")
_INSTEAD = {"a": "seven"}
"""
    assert sorted(hints(text)) == sorted(["one", "two\\ .+\\ and", "three", "four", "five", "six", "seven"])
