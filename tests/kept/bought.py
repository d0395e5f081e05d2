"""What is bought of the kept data sets: statements of every kind, releases, and a session of weights.

Read by ``make.py`` alone. What is kept says for itself what was asked; changing a line here changes nothing that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lapwing.releases.request import Marginals, QuantileRequest, RangeTree, SyntheticTable

SECOND_ANALYST = "bo"
"""Somebody other than who asks by default."""


@dataclass(frozen=True, slots=True)
class Purchase:
    """A statement and all that is said when it is asked."""

    kind: str
    sql: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReleasePurchase:
    """A release, and statements that it answers."""

    name: str
    wanted: tuple[QuantileRequest, ...]
    table: str
    epsilon: str
    options: dict[str, Any]
    queries: tuple[str, ...]


def _one(kind: str, sql: str, epsilon: str | None = "2", **options: Any) -> Purchase:
    return Purchase(kind, sql, options if epsilon is None else {"epsilon": epsilon, **options})


_SPEND = "SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id"
_FREQUENT = "SELECT clinic_id FROM visits GROUP BY clinic_id ORDER BY COUNT(*) DESC LIMIT 3"
_LATEST = "SELECT minutes, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY started DESC) AS place FROM visits"
_DEAR = "SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND cost > 300"

ANY_ACCOUNT = (
    _one("count", "SELECT COUNT(*) AS n FROM patients WHERE smoker"),
    _one(
        "known groups",
        "SELECT sex, smoker, COUNT(*) AS n, SUM(income) AS income, AVG(birth_year) AS born FROM patients GROUP BY sex, smoker",
    ),
    _one("quantile", "SELECT sex, MEDIAN(income) AS middle, QUANTILE_CONT(birth_year, 0.9) AS young FROM patients GROUP BY sex"),
    _one("extremes", "SELECT MIN(birth_year) AS first, MAX(birth_year) AS last FROM patients"),
    _one("moments", "SELECT VAR_SAMP(birth_year) AS v, STDDEV(income) AS s FROM patients"),
    _one("distinct", "SELECT COUNT(DISTINCT patient_id) AS patients FROM visits WHERE minutes > 20"),
    _one("subtotals", "SELECT sex, vaccinated, COUNT(*) AS n FROM patients GROUP BY ROLLUP (sex, vaccinated)"),
    _one(
        "computed",
        "SELECT 100.0 * SUM(CASE WHEN vaccinated THEN 1 ELSE 0 END) / COUNT(*) AS pct, ROUND(AVG(income) / 12) AS monthly FROM patients",
    ),
    _one("per unit", f"SELECT COUNT(*) FILTER (WHERE total > 500) AS dear, MEDIAN(total) AS middle FROM ({_SPEND}) AS spend"),
    _one("deciding", f"SELECT clinic_id, COUNT(*) AS n FROM visits WHERE clinic_id IN ({_FREQUENT}) GROUP BY clinic_id", "4"),
    _one("named", "SELECT vaccinated, COUNT(*) AS n FROM patients GROUP BY vaccinated", request_id="report-2026-01"),
    _one("another analyst", "SELECT AVG(income) AS income FROM patients", analyst=SECOND_ANALYST),
    _one("target", "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex WITH PRIVACY (error = 40, confidence = 0.9)", None, reuse="never"),
    _one("target", "SELECT COUNT(*) AS n FROM patients WHERE vaccinated WITH PRIVACY (error = '15%')", None, reuse="never"),
)
"""What an account of every kind can pay for."""

APPROXIMATE_ONLY = (
    _one("count", "SELECT COUNT(*) AS n, COUNT(cost) AS billed, SUM(cost) AS cost, AVG(minutes) AS minutes FROM visits"),
    _one("known groups", "SELECT clinic_id, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY clinic_id ORDER BY n DESC"),
    _one("dates", "SELECT DATE_TRUNC('quarter', day) AS quarter, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1"),
    _one("dates", "SELECT EXTRACT(YEAR FROM day) AS y, MAX(started) AS latest FROM visits GROUP BY y", dialect="postgres"),
    _one("found keys", "SELECT drug, COUNT(*) AS n, AVG(dose_mg) AS dose FROM prescriptions GROUP BY drug ORDER BY n DESC LIMIT 20", "9"),
    _one("quantile", "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY minutes) AS quarter, MEDIAN(cost) AS middle FROM visits"),
    _one("extremes", "SELECT MIN(cost) AS least, MAX(cost) AS most FROM visits"),
    _one(
        "regression", "SELECT CORR(minutes, cost) AS r, COVAR_SAMP(minutes, cost) AS c, REGR_SLOPE(cost, minutes) AS slope FROM visits", "4"
    ),
    _one("distinct", "SELECT COUNT(DISTINCT clinic_id) AS clinics, COUNT(DISTINCT code) AS codes FROM visits", "4"),
    _one("subtotals", "SELECT region, sex, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY CUBE (region, sex)"),
    _one("join", "SELECT c.city, COUNT(*) AS n, SUM(v.cost) AS cost FROM visits v JOIN clinics c USING (clinic_id) GROUP BY c.city"),
    _one("join", "SELECT p.sex, AVG(v.cost) AS cost FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex"),
    _one("join", "SELECT p.sex, COUNT(v.visit_id) AS n FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.sex"),
    _one(
        "per unit", f"SELECT p.sex, AVG(s.total) AS spent FROM patients p JOIN ({_SPEND}) s ON p.patient_id = s.patient_id GROUP BY p.sex"
    ),
    _one("deciding", "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", "4"),
    _one(
        "over groups",
        "WITH m AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) SELECT MAX(n) AS most, SUM(n) AS total FROM m",
    ),
    _one(
        "over groups",
        "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM patients GROUP BY region HAVING n > 5",
    ),
    _one("over groups", "SELECT (SELECT COUNT(*) FROM patients WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM patients) AS share"),
    _one(
        "exists",
        f"SELECT COUNT(*) AS n FROM patients p WHERE EXISTS ({_DEAR})",
    ),
    _one("union", "SELECT COUNT(*) AS n FROM visits WHERE minutes < 20 UNION ALL SELECT COUNT(*) FROM visits WHERE minutes >= 20"),
    _one("window", f"SELECT COUNT(*) AS n, AVG(minutes) AS minutes FROM ({_LATEST}) AS r WHERE place = 1"),
    _one("scaled groups", "SELECT code, SUM(minutes) AS minutes FROM visits GROUP BY code", "6", scaled_groups=True),
    _one("named", "SELECT sex, SUM(cost) AS cost FROM visits JOIN patients USING (patient_id) GROUP BY sex", request_id="report-2026-02"),
    _one("another analyst", "SELECT region, COUNT(*) AS n FROM patients GROUP BY region", "1", analyst=SECOND_ANALYST, confidence="0.99"),
    _one("target", "SELECT COUNT(*) AS n FROM visits WHERE minutes > 5 WITH PRIVACY (error = '60%')", None, reuse="never"),
    _one("target", "SELECT COUNT(*) AS n FROM visits WITH PRIVACY (error = '60%', confidence = 0.9)", None, reuse="never"),
)

LATER = (
    _one("count", "SELECT COUNT(*) AS n FROM patients WHERE smoker"),
    _one("known groups", "SELECT clinic_id, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY clinic_id ORDER BY n DESC"),
    _one("quantile", "SELECT sex, MEDIAN(income) AS middle FROM patients GROUP BY sex"),
    _one("deciding", "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)", "4"),
    _one("named", "SELECT vaccinated, COUNT(*) AS n FROM patients GROUP BY vaccinated", request_id="report-2026-03"),
    _one("another analyst", "SELECT AVG(income) AS income FROM patients", analyst=SECOND_ANALYST),
    _one("target", "SELECT COUNT(*) AS n FROM visits WHERE minutes > 5 WITH PRIVACY (error = '60%')", None, reuse="never"),
)
"""On the appended version; some of it was asked on the first one too."""

FREE = (
    _one("declared", "SELECT DISTINCT region FROM patients", None),
    _one("from a release", "SELECT sex, COUNT(*) AS n FROM patients WHERE vaccinated GROUP BY sex", None, reuse="only"),
    _one("from a release", "SELECT COUNT(*) AS n FROM patients WHERE birth_year < 1970", None, reuse="only"),
    _one("from a release", "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex WITH PRIVACY (error = 40, confidence = 0.9)", None),
    _one("bought by another", "SELECT AVG(income) AS income FROM patients"),
)
"""What needs no charge of its own, once the releases are there."""

RELEASES = (
    ReleasePurchase(
        "pairs",
        (Marginals("sex", "smoker", "vaccinated", ways=2),),
        *("patients", "3", {}),
        (
            "SELECT sex, COUNT(*) AS n FROM patients WHERE vaccinated GROUP BY sex",
            "SELECT COUNT(*) AS n FROM patients WHERE smoker IS NULL",
        ),
    ),
    ReleasePurchase(
        "years",
        (RangeTree("birth_year", by="sex"),),
        *("patients", "3", {}),
        (
            "SELECT COUNT(*) AS n FROM patients WHERE birth_year < 1970",
            "SELECT sex, MEDIAN(birth_year) AS middle FROM patients GROUP BY sex",
        ),
    ),
    ReleasePurchase(
        "rows",
        (SyntheticTable("sex", "smoker", "income", bins={"income": 8}),),
        *("patients", "3", {"analyst": SECOND_ANALYST}),
        ("SELECT smoker, COUNT(*) AS n FROM patients GROUP BY smoker",),
    ),
)

VISITS_RELEASE = ReleasePurchase(
    "parts",
    (Marginals("clinic_id", "code", ways=1), RangeTree("minutes", bins=24)),
    *("visits", "6", {"rows_per_unit": 20, "shares": ("1", "2")}),
    ("SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id", "SELECT COUNT(*) AS n FROM visits WHERE minutes >= 0"),
)
"""Of a table of which a unit may have many rows, in two parts."""

WEIGHED = (
    "SELECT COUNT(*) FROM patients WHERE sex = 'x'",
    "SELECT COUNT(*) FROM patients WHERE sex = 'f'",
    "SELECT COUNT(*) FROM patients WHERE smoker",
    "SELECT COUNT(*) FROM patients WHERE sex = 'm' AND smoker IS NULL",
)
"""The counts asked in the session of weights over ``sex`` and ``smoker``."""
