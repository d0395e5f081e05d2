"""Refusals: the right code, a span inside the text, and a printed form with the caret under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from lapwing.answers.display.refusal_text import render_refusal
from lapwing.errors import Refused, Span
from lapwing.kernel.expressions import Value
from lapwing.sql import bind
from lapwing.statements import Statement
from tests.unit.sql.clinic import FACTS, REFERENCES, SETTINGS, UNIT_COLUMNS, bound
from tests.unit.sql.refused import REFUSED


def refusal(text: str) -> Refused:
    with pytest.raises(Refused) as caught:
        bound(text)
    return caught.value


def pointed(text: str) -> str:
    """The text a refusal points at."""
    span = refusal(text).span
    assert span is not None
    return text[span.start : span.end]


@pytest.mark.parametrize("name", REFUSED)
def test_a_statement_is_refused_with_its_code_and_a_span(name: str) -> None:
    code, text = REFUSED[name]
    error = refusal(text)
    assert error.code == code
    assert error.span is not None
    assert 0 <= error.span.start < error.span.end <= len(text)
    lines = text[: error.span.start].split("\n")
    assert (error.span.line, error.span.column) == (len(lines), len(lines[-1]) + 1)
    assert len(error.message) > 10


@pytest.mark.parametrize(
    ("text", "offending"),
    [
        ("SELECT SUM(costs) FROM visits", "costs"),
        ("SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits)", "(SELECT cost FROM visits)"),
        ("SELECT COUNT(*) FROM visits WHERE random() < 0.5", "random()"),
        ("SELECT SUM(CAST(code AS INTEGER)) FROM visits", "CAST(code AS INTEGER)"),
        ("SELECT COUNT(*) FROM visits\nWHERE code = 'J10' AND\n  regexp_count(code, 'x')", "regexp_count(code, 'x')"),
        ("SELECT COUNT(CASE WHEN cost > 5 THEN 1 ELSE 'x' END) FROM visits", "CASE WHEN cost > 5 THEN 1 ELSE 'x' END"),
        ("SELECT COUNT(*) FROM visits WHERE day > DATE '2025-02-30'", "'2025-02-30'"),
        ("SELECT COUNT(*) FROM visits WHERE day > CURRENT_TIME", "CURRENT_TIME"),
        ("SELECT COUNT(*) FROM visits v JOIN patients p ON p.region = v.code", "p.region = v.code"),
        ("SELECT COUNT(*), EXTRACT(CENTURY FROM day) FROM visits GROUP BY 2", "EXTRACT(CENTURY FROM day)"),
        ("SELECT COUNT(*) FROM visits WHERE NOT (minutes + 1)", "(minutes + 1)"),
        ("SELECT \N{LATIN SMALL LETTER U WITH DIAERESIS}, COUNT(*) FROM visits", "\N{LATIN SMALL LETTER U WITH DIAERESIS}"),
    ],
)
def test_a_refusal_points_at_the_offending_text(text: str, offending: str) -> None:
    assert pointed(text) == offending


def test_a_misspelt_column_gets_the_nearest_name() -> None:
    assert refusal("SELECT SUM(costs) FROM visits").hint == "did you mean 'cost'?"


def test_a_column_that_another_table_has_is_named_with_that_table() -> None:
    """It was: there is no column 'chapter' here, did you mean 'chapter'?"""
    refused = refusal("SELECT v.chapter, COUNT(*) FROM visits v JOIN diagnoses d ON v.code = d.code GROUP BY 1")
    assert (refused.message, refused.hint) == ("there is no column 'chapter' in v", "did you mean 'd.chapter'?")
    refused = refusal("SELECT v.chaptre, COUNT(*) FROM visits v JOIN diagnoses d ON v.code = d.code GROUP BY 1")
    assert refused.hint == "did you mean 'd.chapter'?"


def test_a_misspelt_first_word_is_not_taken_for_a_change_of_data() -> None:
    assert refusal("SELEC COUNT(*) FROM visits").hint == "did you mean SELECT?"
    assert refusal("DELETE FROM visits").hint == "data is never changed"


def test_the_printed_form_shows_the_line_the_caret_and_the_hint() -> None:
    text = "SELECT COUNT(*)\nFROM visits\nWHERE costs > 5"
    assert render_refusal(text, refusal(text)) == (
        "[unknown-column] there is no column 'costs' here\n   3 | WHERE costs > 5\n     |       ^^^^^\nhint: did you mean 'cost'?"
    )


def test_the_printed_form_cuts_long_lines_and_hides_control_characters() -> None:
    text = f"SELECT COUNT(*) FROM visits WHERE code IN ('{'x' * 500}') AND\tcosts > 5"
    shown = render_refusal(text, refusal(text)).split("\n")
    assert shown[1].endswith(" AND costs > 5") and len(shown[1]) < 140
    assert shown[1][shown[2].index("^") : shown[2].rindex("^") + 1] == "costs"


def test_the_printed_form_of_an_error_without_a_span_is_its_message() -> None:
    assert render_refusal("SELECT", Refused("some-code", "no")) == "[some-code] no"
    assert render_refusal("SELECT", Refused("some-code", "no", hint="yes", span=Span(0, 6, 1, 1))).endswith("^^^^^^\nhint: yes")


def test_a_message_never_repeats_a_text_constant() -> None:
    """A constant may be somebody's name; the excerpt that the analyst sees is the analyst's own text, the message goes to logs."""
    secret = "Mrs-Canary"
    for template in ("code = '{}' + 1", "minutes = '{}'", "day = '{}'", "drug LIKE '%_{}%'", "code LIKE '{}' ESCAPE 'xx'"):
        table = "prescriptions" if "drug" in template else "visits"
        error = refusal(f"SELECT COUNT(*) FROM {table} WHERE {template.format(secret)}")
        assert secret not in error.message + error.hint


def test_a_refused_statement_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The parser would log the text of statements that it falls back on, and warn about brackets."""
    with caplog.at_level("DEBUG"):
        for text in ("WITH x AS (EXPLAIN SELECT 1) SELECT COUNT(*) FROM x", "SELECT COUNT(*) FROM visits WHERE code[1] = 'J'"):
            assert refusal(text).code != ""
    assert caplog.records == []


def test_a_public_table_too_long_is_not_written_into_a_statement() -> None:
    text = "SELECT c.city, a.n FROM clinics c JOIN (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) AS a USING (clinic_id)"
    long: dict[str, list[Value]] = {"clinic_id": [1] * 10_001, "city": ["Ambridge"] * 10_001, "kind": [None] * 10_001}

    def read(rows: Mapping[str, Sequence[Value]] | None) -> Statement:
        return bind(text, FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS, references=REFERENCES, public_rows=lambda _: rows)

    for rows in (None, long):
        with pytest.raises(Refused) as caught:
            read(rows)
        assert caught.value.code == "table-public"
    assert "WHERE FALSE" in read({name: [] for name in long}).post.source
