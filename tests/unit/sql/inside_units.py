"""Statements over groups within units: per person and month, per visit, distinct pairs."""

# ruff: noqa: E501  (a statement stands on one line)

from __future__ import annotations

INSIDE: dict[str, str | tuple[str, str]] = {
    "per person and month": "SELECT m, AVG(n), COUNT(*) FROM (SELECT patient_id, DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY patient_id, m) AS t GROUP BY m",
    "per person and day, by position": "SELECT n, COUNT(*) FROM (SELECT patient_id, day, COUNT(*) AS n FROM visits GROUP BY 1, 2) AS t GROUP BY n",
    "per person and a key that is computed on": "SELECT SUM(late), COUNT(DISTINCT patient_id) FROM (SELECT patient_id, clinic_id, clinic_id * 2 + COUNT(*) AS late FROM visits GROUP BY patient_id, clinic_id HAVING MAX(cost) > 10) AS t",
    "per person and all columns": "SELECT COUNT(*), MAX(n) FROM (SELECT patient_id, sex, region, COUNT(*) AS n FROM patients GROUP BY ALL) AS t",
    "per visit": "SELECT AVG(n) FROM (SELECT visit_id, COUNT(*) AS n FROM prescriptions GROUP BY visit_id) AS t",
    "per visit, joined to it": "SELECT v.clinic_id, SUM(p.n) FROM visits v JOIN (SELECT visit_id, COUNT(*) AS n FROM prescriptions GROUP BY visit_id) AS p ON p.visit_id = v.visit_id GROUP BY v.clinic_id",
    "per visit and drug": "SELECT COUNT(*) FROM (SELECT visit_id, drug, SUM(dose_mg) AS dose FROM prescriptions GROUP BY visit_id, drug) AS t WHERE t.dose > 10",
    "keys that are there twice": 'SELECT COUNT(*) AS failures FROM (SELECT visit_id AS unique_field, COUNT(*) AS n_records FROM "public"."visits" WHERE visit_id IS NOT NULL GROUP BY visit_id HAVING COUNT(*) > 1) AS dbt_test',
    "distinct pairs": "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, clinic_id FROM visits) AS t",
    "distinct rows of persons": "SELECT clinic_id, COUNT(*) FROM (SELECT DISTINCT patient_id, clinic_id, DATE_TRUNC('week', day) AS w FROM visits WHERE cost > 10) AS t GROUP BY clinic_id",
    "distinct and all columns": "WITH w AS (SELECT DISTINCT * FROM (SELECT patient_id, code FROM visits) AS inner_rows) SELECT code, COUNT(*) FROM w GROUP BY code",
    "distinct visits": "SELECT COUNT(*) FROM (SELECT DISTINCT visit_id FROM prescriptions WHERE dose_mg > 20) AS t",
    "units without": "SELECT COUNT(*) FROM (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits) AS t",
    "units of both": "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE code = 'E11' INTERSECT SELECT patient_id FROM visits WHERE cost > 50) AS t",
    "units of either": "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE cost > 50 UNION SELECT patient_id FROM patients WHERE smoker) AS t",
    "pairs without": "SELECT clinic_id, COUNT(*) FROM (SELECT patient_id, clinic_id FROM visits EXCEPT SELECT v.patient_id, v.clinic_id FROM visits v WHERE v.cost > 30) AS t GROUP BY clinic_id",
    "units without, then joined": "SELECT p.sex, COUNT(*) FROM patients p JOIN (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits WHERE cost > 20) AS few ON few.patient_id = p.patient_id GROUP BY p.sex",
    "three sets": "SELECT COUNT(*) FROM (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits WHERE cost > 80 EXCEPT SELECT patient_id FROM patients WHERE smoker) AS t",
    "a later row": "SELECT COUNT(*), COUNT(DISTINCT a.patient_id) FROM visits a WHERE EXISTS (SELECT 1 FROM visits b WHERE b.patient_id = a.patient_id AND b.day > a.day AND b.cost > 30)",
    "no dearer row within a month": "SELECT code, COUNT(*) FROM visits a WHERE NOT EXISTS (SELECT 1 FROM visits b WHERE b.patient_id = a.patient_id AND (cost > a.cost OR b.minutes = a.minutes + 1) AND b.day BETWEEN a.day AND a.day + 31) GROUP BY code",
    "a condition inside on rows outside": "SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND (p.smoker OR v.cost > 40))",
    "another row of the same visit": "SELECT COUNT(*) FROM prescriptions r WHERE EXISTS (SELECT * FROM prescriptions s WHERE s.visit_id = r.visit_id AND s.dose_mg <> r.dose_mg)",
    "steps of a funnel": "SELECT COUNT(DISTINCT a.patient_id) AS s1, COUNT(DISTINCT b.patient_id) AS s2 FROM visits a LEFT JOIN visits b ON a.patient_id = b.patient_id AND b.day > a.day WHERE a.code = 'E11'",
    "steps of a funnel, with more conditions": "SELECT p.sex, COUNT(*), COUNT(b.cost), SUM(b.cost) FROM patients p LEFT JOIN visits b ON p.patient_id = b.patient_id AND p.smoker AND b.minutes > 10 AND b.cost > p.birth_year - 1990 GROUP BY p.sex",
    "groups of groups": "SELECT months, COUNT(*) FROM (SELECT patient_id, COUNT(*) AS months FROM (SELECT patient_id, DATE_TRUNC('month', day) AS m FROM visits GROUP BY 1, 2) AS a GROUP BY patient_id) AS b GROUP BY months",
}
