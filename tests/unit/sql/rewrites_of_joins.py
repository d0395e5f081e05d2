"""Joins and subqueries that are refused with a hint, and what somebody types who follows it."""

# ruff: noqa: E501  (a statement stands on one line)

from __future__ import annotations

JOINS: tuple[tuple[str, str], ...] = (
    (
        "SELECT c.city, COUNT(v.visit_id) FROM clinics c LEFT JOIN visits v USING (clinic_id) GROUP BY 1",
        "SELECT c.city, COUNT(v.visit_id) FROM visits v JOIN clinics c USING (clinic_id) GROUP BY 1",
    ),
    (
        "SELECT a.n FROM (SELECT COUNT(*) AS n FROM visits) AS a LEFT JOIN (SELECT COUNT(*) AS n FROM patients) AS b",
        "SELECT a.n FROM (SELECT COUNT(*) AS n FROM visits) AS a LEFT JOIN (SELECT COUNT(*) AS n FROM patients) AS b ON a.n > b.n",
    ),
    (
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1) AS t",
        "SELECT n, COUNT(*) AS c FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t GROUP BY n QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1",
    ),
    ("SELECT COUNT(*) FROM patients p, visits v", "SELECT COUNT(*) FROM patients p JOIN visits v USING (patient_id)"),
    (
        "SELECT COUNT(*) FROM visits v JOIN clinics c ON v.code = c.city",
        "SELECT COUNT(*) FROM visits v JOIN clinics c ON (v.clinic_id = c.clinic_id)",
    ),
    ("SELECT COUNT(*) FROM visits JOIN clinics USING (city)", "SELECT COUNT(*) FROM visits JOIN clinics USING (clinic_id)"),
    (
        "SELECT COUNT(*) FROM visits v LEFT JOIN clinics c ON v.clinic_id = c.clinic_id AND c.kind = 'practice'",
        "SELECT COUNT(*) FILTER (WHERE c.kind = 'practice') FROM visits v LEFT JOIN clinics c ON v.clinic_id = c.clinic_id",
    ),
    (
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.clinic_id = b.clinic_id",
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.clinic_id = b.clinic_id AND a.patient_id = b.patient_id",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions a JOIN patients b ON a.dose_mg = b.income",
        "SELECT COUNT(*) FROM prescriptions a JOIN visits v ON a.visit_id = v.visit_id JOIN patients b ON v.patient_id = b.patient_id",
    ),
    (
        "SELECT COUNT(*) FROM visits v RIGHT JOIN clinics c ON v.clinic_id = c.clinic_id",
        "SELECT COUNT(*) FROM visits v LEFT JOIN clinics c ON v.clinic_id = c.clinic_id",
    ),
    ("SELECT COUNT(*) FROM visits NATURAL JOIN clinics", "SELECT COUNT(*) FROM visits JOIN clinics USING (clinic_id)"),
    (
        "SELECT COUNT(*) FROM visits JOIN patients USING (patient_id) JOIN (SELECT patient_id, cost FROM visits) AS w USING (patient_id, cost)",
        "SELECT COUNT(*) FROM visits JOIN patients USING (patient_id) JOIN (SELECT patient_id, day FROM visits) AS w USING (patient_id, day)",
    ),
    (
        "SELECT COUNT(*) FROM visits v JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t ON v.visit_id = t.patient_id",
        "SELECT COUNT(*) FROM visits v JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t ON v.patient_id = t.patient_id",
    ),
    (
        "SELECT COUNT(DISTINCT t.patient_id) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t"
        " ON p.patient_id = t.patient_id",
        "SELECT COUNT(t.n) FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t"
        " ON p.patient_id = t.patient_id",
    ),
    (
        "SELECT SUM(t.patient_id) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
        "SELECT COUNT(DISTINCT t.patient_id) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE cost > (SELECT AVG(w.cost) FROM visits w WHERE w.code = v.code)",
        "SELECT COUNT(*) FROM visits v JOIN (SELECT code, AVG(cost) AS mean FROM visits GROUP BY code) AS t ON t.code = v.code"
        " WHERE v.cost > t.mean",
    ),
    (
        "SELECT COUNT(*) FROM visits v JOIN (SELECT code, clinic_id, COUNT(*) AS n FROM visits GROUP BY ALL) AS t ON v.code = t.code",
        "SELECT COUNT(*) FROM visits v JOIN (SELECT code, COUNT(*) AS n FROM visits GROUP BY code) AS t ON v.code = t.code",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT code FROM visits GROUP BY code LIMIT 3) AS t LEFT JOIN visits v ON v.code = t.code",
        "SELECT COUNT(*) FROM visits v LEFT JOIN (SELECT code FROM visits GROUP BY code LIMIT 3) AS t ON v.code = t.code",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions WHERE drug IN (SELECT drug FROM prescriptions GROUP BY drug)",
        "SELECT COUNT(*) FROM prescriptions WHERE drug IN (SELECT drug FROM prescriptions GROUP BY drug ORDER BY COUNT(*) DESC LIMIT 5)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE minutes > (SELECT COUNT(*) FROM visits GROUP BY code)",
        "SELECT COUNT(*) FROM visits WHERE minutes > (SELECT COUNT(*) AS n FROM visits GROUP BY code ORDER BY n LIMIT 1)",
    ),
    (
        "SELECT COUNT(*) FROM patients WHERE smoker OR EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = patients.patient_id)",
        "SELECT COUNT(*) FROM patients WHERE smoker AND EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = patients.patient_id)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE minutes > 5 OR clinic_id IN (SELECT clinic_id FROM clinics)",
        "SELECT COUNT(*) FROM visits WHERE minutes > 5 AND clinic_id IN (SELECT clinic_id FROM clinics)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE clinic_id IN (SELECT clinic_id FROM visits WHERE minutes > 5)",
        "SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE minutes > 5)",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions WHERE dose_mg IN (SELECT dose_mg FROM prescriptions)",
        "SELECT COUNT(*) FROM prescriptions WHERE visit_id IN (SELECT visit_id FROM visits WHERE minutes > 5)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits) WITH PRIVACY (error = 50)",
        "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits) WITH PRIVACY (epsilon = 1)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE clinic_id IN (SELECT city FROM clinics)",
        "SELECT COUNT(*) FROM visits WHERE clinic_id IN (SELECT clinic_id FROM clinics)",
    ),
    (
        "SELECT COUNT(*) FROM visits v LEFT JOIN prescriptions r ON v.visit_id = r.visit_id WHERE r.visit_id NOT IN (SELECT visit_id FROM visits)",
        "SELECT COUNT(*) FROM visits v LEFT JOIN prescriptions r ON v.visit_id = r.visit_id"
        " WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.visit_id = r.visit_id)",
    ),
    ("SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost) AS t", "SELECT COUNT(*) FROM (SELECT * FROM visits) AS t"),
    ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5) AS t", "SELECT COUNT(*) FROM (SELECT * FROM visits) AS t"),
    ("SELECT COUNT(*) FROM (SELECT * FROM visits OFFSET 5) AS t", "SELECT COUNT(*) FROM (SELECT * FROM visits) AS t"),
    (
        "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT DISTINCT 1 FROM visits v WHERE v.patient_id = p.patient_id)",
        "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)",
    ),
    (
        "SELECT COUNT(*) FROM patients p WHERE EXISTS (WITH w AS (SELECT * FROM visits) SELECT 1 FROM w WHERE w.patient_id = p.patient_id)",
        "WITH w AS (SELECT * FROM visits) SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM w WHERE w.patient_id = p.patient_id)",
    ),
    (
        "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) PIVOT (SUM(n), MAX(n) FOR sex IN ('f', 'm'))",
        "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) PIVOT (SUM(n) FOR sex IN ('f', 'm'))",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT * EXCLUDE (visits.cost) FROM visits) AS t",
        "SELECT COUNT(*) FROM (SELECT * EXCLUDE (cost) FROM visits) AS t",
    ),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT", "SELECT COUNT(*) FROM visits"),
    (
        "SELECT * FROM visits PIVOT (COUNT(*) FOR clinic_id IN (1, 2))",
        "SELECT COUNT(*) FILTER (WHERE clinic_id = 1), COUNT(*) FILTER (WHERE clinic_id = 2) FROM visits",
    ),
)
"""Refused, and typed after the hint."""
