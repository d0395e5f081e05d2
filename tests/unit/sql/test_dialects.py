"""A statement in PostgreSQL spelling is the statement in DuckDB spelling: same private queries, same post-processing, same plan."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.answers.post_processing import evaluate
from lapwing.errors import Refused
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_statement
from lapwing.planning.planned import GroupLimits, Price
from lapwing.sql import DIALECTS, bind
from lapwing.statements import Output, PostProcess, Statement
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import FACTS, MOMENT, REFERENCES, SETTINGS, UNIT_COLUMNS, bound

POSTGRES: dict[str, str] = {
    "c01": 'SELECT count(*) FROM "visits"',
    "c02": "SELECT count(cost), sum(cost), avg(cost) FROM visits",
    "c03": "SELECT count(DISTINCT patient_id) FROM visits WHERE day >= '2025-01-01'::date",
    "c04": "SELECT var_samp(cost), stddev(cost) FROM visits",
    "c05": """SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY cost), percentile_cont(0.9) WITHIN GROUP (ORDER BY cost)
              FROM visits""",
    "c06": "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY minutes) FROM visits",
    "c12": "SELECT min(cost), max(cost) FROM visits",
    "c23": "SELECT region, percentile_cont(0.5) WITHIN GROUP (ORDER BY income) FROM patients GROUP BY region",
    "c46": """WITH spend AS (SELECT patient_id, sum(cost) AS total FROM visits GROUP BY patient_id)
              SELECT count(*) FILTER (WHERE total > 2000), percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM spend""",
    "c07": "SELECT avg(CASE WHEN smoker THEN 1.0 ELSE 0 END) AS smoking_rate FROM patients",
    "c08": 'SELECT count(*) FILTER (WHERE "vaccinated") AS vaccinated, count(*) AS everyone FROM "patients"',
    "c09": "SELECT count(*) FILTER (WHERE smoker), sum(CASE WHEN birth_year < 1960 THEN 1 ELSE 0 END) FROM patients",
    "c10": "SELECT 100.0 * sum(CASE WHEN vaccinated THEN 1 ELSE 0 END) / count(*) AS pct FROM patients",
    "c11": "SELECT count(DISTINCT clinic_id) FROM visits",
    "c13": 'SELECT "patients"."region", count(*) FROM "patients" GROUP BY "patients"."region"',
    "c14": "SELECT sex, smoker, count(*) AS n, avg(income) FROM patients GROUP BY 1, 2",
    "c15": "SELECT drug, count(*) AS n FROM prescriptions GROUP BY drug ORDER BY n DESC NULLS LAST LIMIT 20",
    "c16": "SELECT date_trunc('month', day) AS month, count(*) FROM visits GROUP BY 1 ORDER BY 1",
    "c17": "SELECT date_part('year', day) AS y, extract(dow FROM day) AS dow, sum(cost) FROM visits GROUP BY y, dow",
    "c18": "SELECT (2025 - birth_year) / 10 * 10 AS decade, count(*) FROM patients GROUP BY decade",
    "c19": """SELECT CASE WHEN minutes < 15 THEN 'short' WHEN minutes < 60 THEN 'medium' ELSE 'long' END AS length, count(*)
              FROM visits GROUP BY length""",
    "c20": "SELECT region, count(*) AS n FROM patients GROUP BY region HAVING count(*) > 5 ORDER BY n DESC NULLS LAST",
    "c21": "SELECT region, sex, count(*) FROM patients GROUP BY ROLLUP (region, sex)",
    "c22": "SELECT region, count(*) AS n, rank() OVER (ORDER BY count(*) DESC NULLS LAST) AS place FROM patients GROUP BY region",
    "c24": 'SELECT DISTINCT "region" FROM "patients"',
    "c25": "SELECT code, count(DISTINCT patient_id) AS patients FROM visits GROUP BY code HAVING count(DISTINCT patient_id) >= 20",
    "c26": "SELECT width_bucket(cost, 0, 5000, 20) AS bin, count(*) FROM visits GROUP BY bin",
    "c27": """SELECT count(*) FROM visits WHERE day BETWEEN '2025-03-01'::date AND CAST('2025-03-31' AS date)
              AND code IN ('J10', 'J11')""",
    "c28": "SELECT count(*) FROM patients WHERE region LIKE 'north%' OR (smoker IS NULL AND NOT vaccinated)",
    "c29": "SELECT sum(least(cost, 1000)) FROM visits WHERE minutes > 0",
    "c30": "SELECT avg(cost / nullif(minutes, 0)) FROM visits",
    "c31": "SELECT sum(coalesce(cost, 0) * 1.19) FROM visits",
    "c32": "SELECT avg(ln(1 + income)) FROM patients WHERE income IS NOT NULL",
    "c33": "SELECT count(*) FROM visits WHERE started >= '2025-06-01 08:00:00'::timestamp AND extract(hour FROM started) < 12",
    "c34": "SELECT lower(substr(code, 1, 1)) AS letter, count(*) FROM visits GROUP BY letter",
    "c35": "SELECT avg(round(cost, 1)) FROM visits WHERE abs(minutes - 30) <= 10",
    "c36": "SELECT c.city, count(*) FROM visits v INNER JOIN clinics c ON v.clinic_id = c.clinic_id GROUP BY c.city",
    "c37": "SELECT d.chapter, sum(v.cost) FROM visits v JOIN diagnoses d USING (code) WHERE d.chronic GROUP BY d.chapter",
    "c38": 'SELECT p."region", avg(v."cost") FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id GROUP BY p."region"',
    "c39": """SELECT p.sex, count(*) FROM prescriptions r JOIN visits v ON r.visit_id = v.visit_id
              JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex""",
    "c40": """SELECT c.city, p.sex, count(DISTINCT v.patient_id) FROM visits v JOIN clinics c USING (clinic_id)
              JOIN patients p USING (patient_id) GROUP BY c.city, p.sex""",
    "c41": """SELECT p.region, count(v.visit_id) FROM patients p LEFT OUTER JOIN visits v ON v.patient_id = p.patient_id
              GROUP BY p.region""",
    "c42": "SELECT count(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE code = 'C50')",
    "c43": """SELECT count(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id
              AND v.cost > 1000)""",
    "c44": "SELECT count(*) FROM visits WHERE clinic_id IN (SELECT clinic_id FROM clinics WHERE kind = 'hospital')",
    "c45": "SELECT avg(n) FROM (SELECT patient_id, count(*) AS n FROM visits GROUP BY patient_id) AS per_patient",
    "c47": """WITH last AS (SELECT patient_id, max(day) AS last_day FROM visits GROUP BY patient_id)
              SELECT date_trunc('month', last_day) AS m, count(*) FROM last GROUP BY m""",
    "c48": """SELECT p.sex, avg(s.total) FROM patients p JOIN (SELECT patient_id, sum(cost) AS total FROM visits
              GROUP BY patient_id) s ON p.patient_id = s.patient_id GROUP BY p.sex""",
    "c49": "WITH m AS (SELECT region, count(*) AS n FROM patients GROUP BY region) SELECT max(n), sum(n) FROM m",
    "c51": """SELECT count(*) FROM visits WHERE day < date '2025-01-01' UNION ALL
              SELECT count(*) FROM visits WHERE day >= date '2025-01-01'""",
    "c53": "SELECT (SELECT count(*) FROM patients WHERE smoker) * 1.0 / (SELECT count(*) FROM patients)",
    "c54": "SELECT corr(minutes, cost), covar_samp(minutes, cost), regr_slope(cost, minutes) FROM visits",
}
"""The conformance list as PostgreSQL would have it: its casts, parts of dates, quotes and words."""

PAIRS: dict[str, tuple[str, str]] = {
    "casts": ("SELECT SUM(minutes::DOUBLE), SUM(CAST(cost AS INTEGER)) FROM visits",
              "SELECT sum(minutes::float8), sum(cost::int4) FROM visits"),
    "double": ("SELECT SUM(CAST(minutes AS DOUBLE)) FROM visits", "SELECT sum(minutes::double precision) FROM visits"),
    "numeric": ("SELECT SUM(minutes::DOUBLE) FROM visits", "SELECT sum(minutes::numeric) FROM visits"),
    "integer quotient": ("SELECT SUM(minutes // 7) FROM visits", "SELECT sum(div(minutes, 7)) FROM visits"),
    "moment": ("SELECT COUNT(*) FROM visits WHERE started > TIMESTAMP '2025-06-01 08:00:00'",
               "SELECT count(*) FROM visits WHERE started > '2025-06-01 08:00:00'::timestamp"),
    "day of a moment": ("SELECT CAST(started AS DATE) AS d, COUNT(*) FROM visits GROUP BY d",
                        "SELECT started::date AS d, count(*) FROM visits GROUP BY d"),
    "interval": ("SELECT COUNT(*) FROM visits WHERE day >= DATE '2025-12-31' - INTERVAL 30 DAY",
                 "SELECT count(*) FROM visits WHERE day >= '2025-12-31'::date - INTERVAL '30 day'"),
    "ilike": ("SELECT COUNT(*) FROM patients WHERE region ILIKE '%NORTH%'", "SELECT count(*) FROM patients WHERE region ILIKE '%NORTH%'"),
    "month as text": ("SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY m",
                      "SELECT to_char(day, 'YYYY-MM') AS m, count(*) FROM visits GROUP BY m"),
    "position": ("SELECT COUNT(*) FROM patients WHERE STRPOS(region, 'o') = 2",
                 "SELECT count(*) FROM patients WHERE position('o' IN region) = 2"),
    "power": ("SELECT SUM(POW(minutes, 2)) FROM visits", "SELECT sum(power(minutes, 2)) FROM visits"),
    "distinct from": ("SELECT COUNT(*) FROM visits WHERE cost IS DISTINCT FROM 3",
                      "SELECT count(*) FROM visits WHERE cost IS DISTINCT FROM 3"),
    "median": ("SELECT MEDIAN(cost) AS m FROM visits", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) AS m FROM visits"),
    "quantile": ("SELECT QUANTILE_CONT(cost, 0.9) AS m FROM visits",
                 "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY cost) AS m FROM visits"),
}  # fmt: skip
"""DuckDB's spelling and PostgreSQL's."""


def in_postgres(text: str) -> Statement:
    return bind(text, FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS, references=REFERENCES, dialect="postgres", moment=MOMENT)


def unnamed(post: PostProcess) -> PostProcess:
    """Without the names of columns: one that has no alias is named by its text."""
    return replace(post, outputs=tuple(Output("", output.sql, output.derivation) for output in post.outputs))


def unsorted(post: PostProcess) -> PostProcess:
    """Without the place of NULLs in an order that does not say it: PostgreSQL puts them first when it goes down."""
    outputs = tuple(replace(output, sql=output.sql.replace("NULLS FIRST", "NULLS LAST")) for output in unnamed(post).outputs)
    return replace(post, outputs=outputs, order_by=tuple(order.replace("NULLS FIRST", "NULLS LAST") for order in post.order_by))


def same(one: Statement, other: Statement) -> None:
    assert one.privates == other.privates
    assert unnamed(one.post) == unnamed(other.post)


@pytest.mark.parametrize("name", POSTGRES)
def test_the_conformance_list_in_postgresql_spelling(name: str) -> None:
    same(bound(ACCEPTED[name]), in_postgres(POSTGRES[name]))


@pytest.mark.parametrize("name", PAIRS)
def test_spellings_that_differ(name: str) -> None:
    duckdb, postgres = PAIRS[name]
    same(bound(duckdb), in_postgres(postgres))


def test_at_least_thirty_statements_are_spelt_twice() -> None:
    assert len(POSTGRES) >= 30
    assert POSTGRES.keys() <= ACCEPTED.keys()


@pytest.mark.parametrize("name", ["c02", "c03", "c17", "c26", "c33", "c38"])
def test_both_spellings_have_one_plan(name: str) -> None:
    """The digest decides what is the same question: an answer bought in one spelling is free in the other."""

    def digest(statement: Statement) -> str:
        planned = plan_statement(
            statement.privates, FACTS, Price(Fraction(1, 10), Fraction(0)), contributions={}, units=None,
            limits=GroupLimits(SETTINGS.known_cells_max, SETTINGS.groups_max), finder=GroupFinder(evaluate),
        )  # fmt: skip
        return planned.certified.digest

    assert digest(bound(ACCEPTED[name])) == digest(in_postgres(POSTGRES[name]))


def test_a_quotient_of_integers_is_real_in_every_dialect() -> None:
    same(bound("SELECT AVG(minutes / 7) FROM visits"), in_postgres("SELECT avg(minutes / 7) FROM visits"))
    same(bound("SELECT COUNT(*) / 7 FROM visits"), in_postgres("SELECT count(*) / 7 FROM visits"))


def test_a_decimal_is_limited_in_duckdb_and_refused() -> None:
    with pytest.raises(Refused) as caught:
        bound("SELECT SUM(minutes::NUMERIC) FROM visits")
    assert caught.value.code == "cast-unsupported"


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_no_statement_of_one_dialect_means_something_else_in_the_other(name: str) -> None:
    """Read as PostgreSQL, a statement of DuckDB's is refused or the same statement."""
    try:
        found = in_postgres(ACCEPTED[name])
    except Refused as refusal:
        assert refusal.span is not None
        return
    expected = bound(ACCEPTED[name])
    assert found.privates == expected.privates
    assert unsorted(found.post) == unsorted(expected.post)


def test_an_unknown_dialect_is_refused() -> None:
    assert DIALECTS == ("duckdb", "postgres")
    with pytest.raises(Refused) as caught:
        bind("SELECT COUNT(*) FROM visits", FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS, dialect="tsql")
    assert caught.value.code == "dialect-unknown"
