"""Lapwing's own words: read where they stand, refused where they do not fit, and never in the way of a name that is like them."""

from __future__ import annotations

import random
import re
from fractions import Fraction

import pytest

from lapwing.answers.display.refusal_text import render_refusal
from lapwing.catalog import Settings
from lapwing.errors import Refused
from lapwing.sql import bind
from lapwing.sql.text.privacy_clause import statement_tokens
from lapwing.sql.text.privacy_terms import Clause, EpsilonTerm, ErrorTerm, RhoTerm, ShareTerm
from lapwing.sql.text.privacy_words import Question, ShowBudget, Words, read_words
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import FACTS, MOMENT, REFERENCES, UNIT_COLUMNS
from tests.unit.sql.mutations import mutated

SETTINGS = Settings()
COUNT = "SELECT COUNT(*) FROM visits"
DIALECTS = ("duckdb", "postgres")


def read(text: str, dialect: str = "duckdb") -> Words:
    return read_words(text, settings=SETTINGS, dialect=dialect)


def question(text: str, dialect: str = "duckdb") -> Question:
    found = read(text, dialect)
    assert isinstance(found, Question)
    return found


def clause(text: str) -> Clause:
    found = question(text).clause
    assert found is not None
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text", ["SHOW PRIVACY BUDGET", "show privacy\n budget ;;", "/* a */ SHOW -- b\nPRIVACY /* /* c */ */ BUDGET; -- d"]
)
def test_show_privacy_budget(text: str, dialect: str) -> None:
    assert read(text, dialect) == ShowBudget()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_explain_privacy_is_blanked_and_keeps_every_place(dialect: str) -> None:
    text = "EXPLAIN /* the price */ privacy\n  SELECT COUNT(*) FROM visits -- all"
    found = question(text, dialect)
    assert found.explain and found.clause is None
    assert found.statement == "        /* the price */        \n  SELECT COUNT(*) FROM visits -- all"
    assert len(found.statement) == len(text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_clause_is_blanked_and_keeps_every_place(dialect: str) -> None:
    text = f"{COUNT}\nWITH PRIVACY (epsilon = 0.2, -- a fifth\n confidence = .9);"
    found = question(text, dialect)
    assert not found.explain and len(found.statement) == len(text)
    assert found.statement.split() == [*COUNT.split(), "--", "a", "fifth", ";"]
    assert [place.start() for place in re.finditer("\n", found.statement)] == [place.start() for place in re.finditer("\n", text)]
    assert found.clause is not None and isinstance(found.clause.asked, EpsilonTerm) and found.clause.asked.epsilon == Fraction(1, 5)
    assert found.clause.confidence is not None and found.clause.confidence.value == Fraction(9, 10)
    span = found.clause.asked.span
    assert text[span.start : span.end] == "epsilon = 0.2" and (span.line, span.column) == (2, 15)


@pytest.mark.parametrize(
    ("terms", "kind", "value"),
    [
        ("epsilon = 1", EpsilonTerm, Fraction(1)),
        ("EPSILON=1e-3", EpsilonTerm, Fraction(1, 1000)),
        ("rho = 0.001", RhoTerm, Fraction(1, 1000)),
        ("error = 100", ErrorTerm, Fraction(100)),
        ("error = '5%'", ShareTerm, Fraction(1, 20)),
        ("confidence = 0.99, error = ' 2.5 % '", ShareTerm, Fraction(1, 40)),
        ("Error = .5", ErrorTerm, Fraction(1, 2)),
    ],
)
def test_what_can_be_asked_for(terms: str, kind: type, value: Fraction) -> None:
    asked = clause(f"{COUNT} WITH PRIVACY ({terms})").asked
    assert isinstance(asked, kind)
    match asked:
        case EpsilonTerm(found) | RhoTerm(found) | ErrorTerm(found) | ShareTerm(found):
            assert found == value


REFUSED = {
    f"{COUNT} WITH PRIVACY": ("privacy-words", "WITH PRIVACY"),
    f"{COUNT} WITH PRIVACY;": ("privacy-words", "WITH PRIVACY"),
    f"{COUNT} WITH PRIVACY ()": ("privacy-words", "WITH PRIVACY ()"),
    f"{COUNT} WITH PRIVACY (epsilon)": ("privacy-words", "epsilon"),
    f"{COUNT} WITH PRIVACY (epsilon = )": ("privacy-words", "epsilon ="),
    f"{COUNT} WITH PRIVACY (epsilon 1)": ("privacy-words", "epsilon 1"),
    f"{COUNT} WITH PRIVACY (epsilon > 1)": ("privacy-words", "epsilon > 1"),
    f"{COUNT} WITH PRIVACY (epsilon = 1,)": ("privacy-words", ","),
    f"{COUNT} WITH PRIVACY (, epsilon = 1)": ("privacy-words", ","),
    f"{COUNT} WITH PRIVACY (delta = 0.1)": ("privacy-words", "delta"),
    f'{COUNT} WITH PRIVACY ("epsilon" = 1)': ("privacy-words", '"epsilon"'),
    f"{COUNT} WITH PRIVACY ('epsilon' = 1)": ("privacy-words", "'epsilon'"),
    f"{COUNT} WITH PRIVACY (epsilon = 1, epsilon = 1)": ("privacy-words", "epsilon = 1"),
    f"{COUNT} WITH PRIVACY (confidence = 0.9, confidence = 0.9)": ("privacy-words", "confidence = 0.9"),
    f"{COUNT} WITH PRIVACY (epsilon = 1, rho = 2)": ("privacy-contradiction", "rho = 2"),
    f"{COUNT} WITH PRIVACY (error = 5, epsilon = 1)": ("privacy-contradiction", "epsilon = 1"),
    f"{COUNT} WITH PRIVACY (epsilon = -1)": ("number-unreadable", "-1"),
    f"{COUNT} WITH PRIVACY (epsilon = '1')": ("number-unreadable", "'1'"),
    f"{COUNT} WITH PRIVACY (epsilon = 1 + 1)": ("number-unreadable", "1 + 1"),
    f"{COUNT} WITH PRIVACY (epsilon = (1))": ("number-unreadable", "(1)"),
    f"{COUNT} WITH PRIVACY (epsilon = 1e999999999)": ("number-unreadable", "1e999999999"),
    f"{COUNT} WITH PRIVACY (error = (SELECT 1))": ("number-unreadable", "(SELECT 1)"),
    f"{COUNT} WITH PRIVACY (epsilon = 0)": ("epsilon-invalid", "0"),
    f"{COUNT} WITH PRIVACY (epsilon = 1e10)": ("epsilon-invalid", "1e10"),
    f"{COUNT} WITH PRIVACY (rho = 0)": ("rho-invalid", "0"),
    f"{COUNT} WITH PRIVACY (error = 0)": ("error-invalid", "0"),
    f"{COUNT} WITH PRIVACY (error = '5')": ("error-invalid", "'5'"),
    f"{COUNT} WITH PRIVACY (error = '0%')": ("error-invalid", "'0%'"),
    f"{COUNT} WITH PRIVACY (error = '101%')": ("error-invalid", "'101%'"),
    f"{COUNT} WITH PRIVACY (error = 'about 5%')": ("error-invalid", "'about 5%'"),
    f"{COUNT} WITH PRIVACY (error = '5%' '6%')": ("error-invalid", "'5%' '6%'"),
    f"{COUNT} WITH PRIVACY (error = 5%)": ("number-unreadable", "5%"),
    f"{COUNT} WITH PRIVACY (confidence = 1)": ("confidence-invalid", "1"),
    f"{COUNT} WITH PRIVACY (confidence = 0.9999999999)": ("confidence-invalid", "0.9999999999"),
    f"{COUNT} WITH PRIVACY (scaled_groups = 1)": ("privacy-words", "1"),
    f"{COUNT} WITH PRIVACY (scaled_groups = 'true')": ("privacy-words", "'true'"),
    f"{COUNT} WITH PRIVACY (scaled_groups = true false)": ("privacy-words", "true false"),
    f"{COUNT} WITH PRIVACY (scaled_groups)": ("privacy-words", "scaled_groups"),
    f"{COUNT} WITH PRIVACY (reuse = 'only')": ("privacy-words", "'only'"),
    f"{COUNT} WITH PRIVACY (reuse = sometimes)": ("privacy-words", "sometimes"),
    f"{COUNT} WITH PRIVACY (reuse = only never)": ("privacy-words", "only never"),
    f"{COUNT} WITH PRIVACY (reuse)": ("privacy-words", "reuse"),
    f"{COUNT} WITH PRIVACY (scaled_groups = true, scaled_groups = true)": ("privacy-words", "scaled_groups = true"),
    f"{COUNT} WITH PRIVACY (epsilon = 1) LIMIT 3": ("privacy-misplaced", "WITH PRIVACY"),
    f"{COUNT} WITH PRIVACY (epsilon = 1) WITH PRIVACY (epsilon = 1)": ("privacy-misplaced", "WITH PRIVACY"),
    f"SELECT COUNT(*) FROM ({COUNT} WITH PRIVACY (epsilon = 1)) x": ("privacy-misplaced", "WITH PRIVACY"),
    f"{COUNT} WITH PRIVACY (epsilon = 1": ("privacy-misplaced", "WITH PRIVACY"),
    "SHOW PRIVACY BUDGET now": ("privacy-words", "now"),
    f"SHOW PRIVACY BUDGET; {COUNT}": ("privacy-words", COUNT),
    "SHOW TABLES": ("statement-unsupported", "SHOW"),
    "SHOW PRIVACY": ("statement-unsupported", "SHOW"),
    f"EXPLAIN ANALYZE {COUNT}": ("statement-unsupported", "EXPLAIN"),
    f"EXPLAIN /*+ x */ PRIVACY {COUNT}": ("statement-unsupported", "EXPLAIN"),
}


@pytest.mark.parametrize(("text", "expected"), REFUSED.items())
def test_refusals_point_at_the_word(text: str, expected: tuple[str, str]) -> None:
    code, pointed = expected
    with pytest.raises(Refused) as caught:
        read(text)
    span = caught.value.span
    assert caught.value.code == code and span is not None
    assert text[span.start : span.end] == pointed
    assert "^" * len(pointed) in render_refusal(text, caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "WITH privacy AS (SELECT COUNT(*) AS n FROM visits) SELECT n FROM privacy",
        "WITH privacy (n) AS (SELECT COUNT(*) FROM visits) SELECT n FROM privacy",
        "SELECT COUNT(*) AS privacy FROM visits",
        "SELECT COUNT(*) AS epsilon FROM visits privacy WHERE privacy.cost > 1",
        "SELECT COUNT(*) FROM visits WHERE code = 'WITH PRIVACY (epsilon = 1)'",
        "SELECT COUNT(*) FROM visits -- WITH PRIVACY (epsilon = 1)",
        'SELECT COUNT(*) AS "WITH PRIVACY (epsilon = 1)" FROM visits',
    ],
)
def test_names_and_texts_that_look_like_the_words_are_left_alone(text: str) -> None:
    assert read(text) == Question(text, None, explain=False)


def test_a_table_expression_called_privacy_and_the_clause() -> None:
    text = "WITH privacy AS (SELECT COUNT(*) AS n FROM visits) SELECT n FROM privacy WITH PRIVACY (rho = 1e-3)"
    found = question(text)
    assert found.statement.rstrip() == text[: text.rindex("WITH PRIVACY")].rstrip()
    bound = bind(found.statement, FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS, references=REFERENCES, moment=MOMENT)
    assert [output.name for output in bound.post.outputs] == ["n"]


@pytest.mark.parametrize("prefix", ["", "EXPLAIN PRIVACY ", "explain\n\tprivacy\n"])
def test_a_later_refusal_points_into_the_text_as_written(prefix: str) -> None:
    text = f"{prefix}SELECT COUNT(*)\n FROM visits WHERE nonsense > 1 WITH PRIVACY (epsilon = 1)"
    with pytest.raises(Refused) as caught:
        bind(question(text).statement, FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS)
    span = caught.value.span
    assert span is not None and text[span.start : span.end] == "nonsense"


def test_limits_are_left_to_the_binder() -> None:
    long = f"EXPLAIN PRIVACY {COUNT} -- {'x' * SETTINGS.statement_bytes_max}"
    assert question(long) == Question(long, None, explain=False)
    open_text = f"{COUNT} WHERE code = 'privacy"
    assert question(open_text) == Question(open_text, None, explain=False)


def test_the_same_statement_whatever_its_comments_and_spaces() -> None:
    assert statement_tokens("SELECT  1 -- a\n;") == statement_tokens("SELECT 1") != statement_tokens("SELECT 2")
    assert statement_tokens("SELECT 'a") is None


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", sorted(ACCEPTED)[::4])
def test_words_around_a_statement_do_not_change_it(name: str, dialect: str) -> None:
    text = ACCEPTED[name]
    found = question(f"EXPLAIN PRIVACY {text}\nWITH PRIVACY (error = 5)", dialect)
    assert statement_tokens(found.statement) == statement_tokens(text)
    assert found.explain and found.clause is not None and isinstance(found.clause.asked, ErrorTerm)


TERMS = ["epsilon", "rho", "error", "confidence", "scaled_groups", "true", "reuse", "only", "=", ",", "'5%'", "0.95"]
WORDS = ["EXPLAIN", "PRIVACY", "SHOW", "BUDGET", "WITH", "(", ")", ";", "AS", *TERMS]


def test_words_in_odd_places_are_read_or_refused_with_a_place() -> None:
    """3,000 statements with our words strewn in: nothing crashes, and what is left has the length and the lines of the text."""
    rng = random.Random(20)
    texts = [ACCEPTED[name] for name in sorted(ACCEPTED)]
    refused = clauses = 0
    for _ in range(3_000):
        words = rng.choice(texts).split()
        for _ in range(rng.choice([1, 2, 3, 6])):
            words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS))
        text = " ".join(words)
        if rng.random() < 0.5:
            text = f"{text} WITH PRIVACY ({rng.choice(['epsilon = 1', 'error = 5, confidence = 0.9', rng.choice(WORDS)])})"
        if rng.random() < 0.2:
            text = mutated(text, rng)
        try:
            found = read(text, rng.choice(DIALECTS))
        except Refused as error:
            assert error.span is not None and 0 <= error.span.start < error.span.end <= len(text), text
            refused += 1
            continue
        if isinstance(found, Question):
            assert len(found.statement) == len(text) and found.statement.count("\n") == text.count("\n")
            kept = [(a, b) for a, b in zip(found.statement, text, strict=True) if a != b]
            assert all(a == " " for a, _ in kept)
            clauses += found.clause is not None
    assert refused > 300 and clauses > 300
