"""Statements that are refused with a hint, and what somebody types who follows it.

Every hint of the code stands here, in ``rewrites_of_joins`` or in ``without_rewrite``.
"""

# ruff: noqa: E501  (a statement stands on one line)

from __future__ import annotations

from tests.unit.sql.rewrites_of_joins import JOINS

REWRITES: tuple[tuple[str, str], ...] = (
    (
        "SELECT REPLACE(drug, 'a', 'b') AS d, COUNT(*) FROM prescriptions GROUP BY d",
        "SELECT LEFT(drug, 3) AS d, COUNT(*) FROM prescriptions GROUP BY d",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions WHERE SUBSTRING(drug, -2) = 'in'",
        "SELECT COUNT(*) FROM prescriptions WHERE RIGHT(drug, 2) = 'in'",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions WHERE drug LIKE '%a%b%c%d%'",
        "SELECT COUNT(*) FROM prescriptions WHERE drug LIKE '%a%b%' AND drug LIKE '%c%d%'",
    ),
    (
        "SELECT SPLIT_PART(drug, 'i', -1) AS d, COUNT(*) FROM prescriptions GROUP BY d",
        "SELECT SPLIT_PART(drug, 'i', 2) AS d, COUNT(*) FROM prescriptions GROUP BY d",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions WHERE drug LIKE 'a_p%'",
        "SELECT COUNT(*) FROM prescriptions WHERE LEFT(drug, 1) = 'a' AND SUBSTRING(drug, 3, 1) = 'p'",
    ),
    (
        "SELECT COUNT(*) FROM prescriptions WHERE REGEXP_MATCHES(drug, 'as.*in')",
        "SELECT COUNT(*) FROM prescriptions WHERE drug ILIKE '%as%in%'",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE (SELECT COUNT(*) FROM visits w WHERE w.patient_id = v.patient_id AND w.day < v.day) > 2",
        "SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t WHERE n > 3",
    ),
    (
        "SELECT SUM((SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)) FROM patients p",
        "SELECT SUM((SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)) FROM patients p",
    ),
    (
        "SELECT t.n FROM (SELECT COUNT(*) AS n FROM visits) AS s, LATERAL (SELECT COUNT(*) AS n FROM patients) AS t",
        "SELECT t.n FROM (SELECT COUNT(*) AS n FROM visits) AS s CROSS JOIN (SELECT COUNT(*) AS n FROM patients) AS t",
    ),
    ("SELECT COUNT(DISTINCT clinic_id, code) FROM visits", "SELECT COUNT(DISTINCT (clinic_id, code)) FROM visits"),
    ("SELECT COUNT(DISTINCT (code, cost)) FROM visits", "SELECT COUNT(DISTINCT code) FROM visits"),
    (
        "SELECT COUNT(DISTINCT (patient_id, code)) FROM visits",
        "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, code FROM visits) AS t",
    ),
    ("SELECT MIN(drug) FROM prescriptions", "SELECT drug, COUNT(*) FROM prescriptions GROUP BY drug ORDER BY drug LIMIT 1"),
    (
        "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, income / 7 AS part FROM patients) AS t",
        "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, FLOOR(income / 7) AS part FROM patients) AS t",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT clinic_id FROM visits UNION SELECT clinic_id FROM visits) AS t",
        "SELECT COUNT(*) FROM (SELECT patient_id, clinic_id FROM visits UNION SELECT patient_id, clinic_id FROM visits) AS t",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT clinic_id FROM visits EXCEPT SELECT clinic_id FROM visits WHERE cost > 9) AS t",
        "SELECT COUNT(*) FROM (SELECT patient_id, clinic_id FROM visits EXCEPT SELECT patient_id, clinic_id FROM visits WHERE cost > 9) AS t",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT patient_id, code FROM visits EXCEPT SELECT patient_id, code FROM visits WHERE cost > 9) AS t",
        "SELECT COUNT(*) FROM (SELECT patient_id, COALESCE(code, 'E11') AS c FROM visits EXCEPT SELECT patient_id, COALESCE(code, 'E11') AS c FROM visits WHERE cost > 9) AS t",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits EXCEPT ALL SELECT patient_id FROM visits WHERE cost > 9) AS t",
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits EXCEPT SELECT patient_id FROM visits WHERE cost > 9) AS t",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex EXCEPT SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex) AS t",
        "SELECT a.sex, a.n FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS a JOIN (SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex) AS b ON a.sex = b.sex AND a.n <> b.n",
    ),
    (
        "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex UNION SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex",
        "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex UNION ALL SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex",
    ),
    # names
    ("SELECT COUNT(*) FROM visit", "SELECT COUNT(*) FROM visits"),
    ("SELECT SUM(costs) FROM visits", "SELECT SUM(cost) FROM visits"),
    ("SELECT COUNT(*) FROM query('SELECT 1')", "SELECT COUNT(*) FROM visits"),
    ("SELECT COUNT(*) FROM staging.visits", "SELECT COUNT(*) FROM public.visits"),
    (
        "SELECT region, COUNT(*) FROM patients GROUP BY 1 FETCH FIRST 3 ROWS WITH TIES",
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY n DESC FETCH FIRST 3 ROWS WITH TIES",
    ),
    (
        "SELECT INITCAP(region), COUNT(*) FROM patients GROUP BY ROLLUP (region)",
        "SELECT INITCAP(region), COUNT(*) FROM patients GROUP BY INITCAP(region)",
    ),
    (
        "SELECT region, MODE(sex) FROM patients GROUP BY ROLLUP (region)",
        "SELECT region, MODE(sex) FROM patients GROUP BY region",
    ),
    (
        "SELECT region, COUNT(*) FROM patients GROUP BY 1 ORDER BY 2 FETCH FIRST 50 PERCENT ROWS ONLY",
        "SELECT region, COUNT(*) FROM patients GROUP BY 1 ORDER BY 2 FETCH FIRST 3 ROWS ONLY",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day < DATE '2025-01-01' + INTERVAL '1 month' * minutes",
        "SELECT COUNT(*) FROM visits WHERE day < DATE '2025-01-01' + INTERVAL '1 day' * minutes",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day < TO_DATE('1 May 2025', 'DD Mon YYYY')",
        "SELECT COUNT(*) FROM visits WHERE day < TO_DATE('01 05 2025', 'DD MM YYYY')",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day < TO_DATE('2025-5-1', 'YYYY-MM-DD')",
        "SELECT COUNT(*) FROM visits WHERE day < TO_DATE('2025-05-01', 'YYYY-MM-DD')",
    ),
    (
        "SELECT CAST(minutes * 3 AS VARCHAR) AS m, COUNT(*) FROM visits GROUP BY m",
        "SELECT CAST(LEAST(minutes * 3, 900) AS VARCHAR) AS m, COUNT(*) FROM visits GROUP BY m",
    ),
    ("SELECT COUNT(*) FROM warehouse.public.visits", "SELECT COUNT(*) FROM clinic.public.visits"),
    ("SELECT COUNT(*) FROM 'visits'", 'SELECT COUNT(*) FROM "visits"'),
    ("SELECT COUNT(*) FROM visits@x", "SELECT COUNT(*) FROM visits"),
    ("SELECT COUNT(*) group FROM visits", "SELECT COUNT(*) AS group FROM visits"),
    ("SELECT COUNT(*) FROM visits c JOIN clinics c USING (clinic_id)", "SELECT COUNT(*) FROM visits v JOIN clinics c USING (clinic_id)"),
    (
        "SELECT COUNT(*) FROM (SELECT cost AS x, minutes AS x FROM visits) AS t",
        "SELECT COUNT(*) FROM (SELECT cost AS x, minutes AS y FROM visits) AS t",
    ),
    (
        "SELECT COUNT(*) FROM visits v JOIN diagnoses d ON v.code = d.code WHERE code IS NULL",
        "SELECT COUNT(*) FROM visits v JOIN diagnoses d ON v.code = d.code WHERE v.code IS NULL",
    ),
    # rows and groups
    ("SELECT * FROM visits LIMIT 5", "SELECT COUNT(*) FROM visits"),
    ("SELECT cost FROM visits ORDER BY cost DESC", "SELECT WIDTH_BUCKET(cost, 0, 5000, 20), COUNT(*) FROM visits GROUP BY 1"),
    ("SELECT v.* FROM visits v", "SELECT COUNT(*) FROM visits v"),
    ("SELECT v.*, COUNT(*) FROM visits v", "SELECT COUNT(*) FROM visits v"),
    (
        "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id ORDER BY 2",
        "SELECT clinic_id, COUNT(*) FROM visits GROUP BY clinic_id ORDER BY 2",
    ),
    (
        "SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id",
        "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS per_unit",
    ),
    ("SELECT patient_id, COUNT(*) FROM visits GROUP BY ROLLUP (patient_id)", "SELECT sex, COUNT(*) FROM patients GROUP BY ROLLUP (sex)"),
    ("SELECT patient_id, code, COUNT(*) FROM visits GROUP BY patient_id, code", "SELECT code, COUNT(*) FROM visits GROUP BY code"),
    (
        "SELECT AVG(n) FROM (SELECT patient_id, code, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
        "SELECT AVG(n) FROM (SELECT patient_id, MAX(minutes), COUNT(*) AS n FROM visits GROUP BY patient_id) AS t",
    ),
    ("SELECT region, COUNT(*) FROM patients", "SELECT region, COUNT(*) FROM patients GROUP BY region"),
    ("SELECT UPPER(sex), COUNT(*) FROM patients GROUP BY region", "SELECT UPPER(sex), COUNT(*) FROM patients GROUP BY UPPER(sex)"),
    ("SELECT COUNT(*) FROM visits GROUP BY 'x'", "SELECT COUNT(*) FROM visits GROUP BY clinic_id"),
    ("SELECT cost, COUNT(*) FROM visits GROUP BY cost", "SELECT FLOOR(cost / 10), COUNT(*) FROM visits GROUP BY 1"),
    (
        "SELECT sex, GROUPING(sex), COUNT(*) FROM patients GROUP BY sex",
        "SELECT sex, GROUPING(sex), COUNT(*) FROM patients GROUP BY ROLLUP (sex)",
    ),
    (
        "SELECT sex, COUNT(*) FROM patients GROUP BY sex WITH ROLLUP",
        "SELECT sex, smoker, COUNT(*) FROM patients GROUP BY ROLLUP (sex, smoker)",
    ),
    ("SELECT sex, MEDIAN(income) FROM patients GROUP BY ROLLUP (sex)", "SELECT sex, MEDIAN(income) FROM patients GROUP BY sex"),
    (
        "SELECT sex, COUNT(DISTINCT v.patient_id) FROM visits v JOIN patients p USING (patient_id) GROUP BY ROLLUP (sex)",
        "SELECT sex, COUNT(*) FROM visits v JOIN patients p USING (patient_id) GROUP BY ROLLUP (sex)",
    ),
    (
        "SELECT COUNT(*) FROM patients GROUP BY CUBE (region, sex, smoker, vaccinated, birth_year, birth_year % 2, birth_year % 3)",
        "SELECT COUNT(*) FROM patients GROUP BY CUBE (sex, smoker)",
    ),
    (
        "SELECT sex, SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS m GROUP BY ROLLUP (sex)",
        "SELECT sex, SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (sex)) AS m GROUP BY sex",
    ),
    # aggregates
    ("SELECT STRING_AGG(drug, ',') FROM prescriptions", "SELECT drug, COUNT(*) FROM prescriptions GROUP BY drug"),
    ("SELECT SUM(smoker) FROM patients", "SELECT COUNT_IF(smoker) FROM patients"),
    ("SELECT SUM(smoker) FROM patients", "SELECT SUM(CASE WHEN smoker THEN 1.0 ELSE 0 END) FROM patients"),
    ("SELECT SUM(smoker + vaccinated) FROM patients", "SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) FROM patients"),
    ("SELECT COUNT(DISTINCT cost) FROM visits", "SELECT COUNT(DISTINCT FLOOR(cost)) FROM visits"),
    ("SELECT SUM(DISTINCT cost) FROM visits", "SELECT COUNT(DISTINCT patient_id) FROM visits"),
    ("SELECT COUNT(*) FROM visits WHERE SUM(cost) > 10", "SELECT COUNT(*) FROM visits HAVING SUM(cost) > 10"),
    ("SELECT SUM(COUNT(*)) FROM visits", "SELECT COUNT(*) FROM visits"),
    ("SELECT QUANTILE_CONT(cost, [0.1, 0.5]) FROM visits", "SELECT QUANTILE_CONT(cost, 0.1), QUANTILE_CONT(cost, 0.5) FROM visits"),
    ("SELECT QUANTILE_CONT(cost, 1.5) FROM visits", "SELECT QUANTILE_CONT(cost, 0.9) FROM visits"),
    ("SELECT QUANTILE_CONT(cost) FROM visits", "SELECT QUANTILE_CONT(cost, 0.5) FROM visits"),
    ("SELECT PERCENTILE_CONT(0.5) FROM visits", "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits"),
    (
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost, minutes) FROM visits",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits",
    ),
    (
        "SELECT AVG(m) FROM (SELECT patient_id, MODE() WITHIN GROUP (ORDER BY cost) AS m FROM visits GROUP BY patient_id) AS t",
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits",
    ),
    # answers of answers
    (
        "SELECT LIST(n) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
        "SELECT MEDIAN(n), ARG_MAX(sex, n) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
    ),
    (
        "SELECT MAX(SUM(n)) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
        "SELECT MAX(m) FROM (SELECT sex, SUM(n) AS m FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t GROUP BY sex) AS u",
    ),
    (
        "SELECT STRING_AGG(n, ', ') FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
        "SELECT STRING_AGG(sex, ', ') FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
    ),
    (
        "SELECT COUNT(DISTINCT sex, n) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
        "SELECT COUNT(DISTINCT n) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t",
    ),
    (
        "SELECT day + n FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) AS t",
        "SELECT day - 7 FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) AS t",
    ),
    (
        "WITH d AS (SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug) SELECT COUNT(*) FROM d AS a CROSS JOIN d AS b",
        "WITH d AS (SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug) SELECT COUNT(*) FROM d AS a JOIN d AS b ON a.drug = b.drug",
    ),
    (
        "SELECT g.d FROM range(1, 5, -1) AS g(d) JOIN (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) AS t ON t.n = g.d",
        "SELECT g.d, t.n FROM generate_series(DATE '2025-01-01', DATE '2025-01-31', INTERVAL 1 DAY) AS g(d) LEFT JOIN (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) AS t ON t.day = g.d",
    ),
    (
        "WITH m AS (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) SELECT sex, n * 1.0 / (SELECT n FROM m) FROM m",
        "WITH m AS (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) SELECT sex, n * 1.0 / (SELECT MAX(n) FROM m) FROM m",
    ),
    ("SELECT (SELECT cost FROM visits), COUNT(*) FROM patients", "SELECT (SELECT COUNT(*) FROM visits), COUNT(*) FROM patients"),
    (
        "SELECT COUNT(*) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t WHERE SUM(n) > 5",
        "SELECT COUNT(*) FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t HAVING SUM(n) > 5",
    ),
    (
        "SELECT COUNT(*) FROM visits v JOIN (VALUES (1), (2)) AS t(clinic_id) ON v.clinic_id = t.clinic_id",
        "SELECT COUNT(*) FROM visits v WHERE v.clinic_id IN (1, 2)",
    ),
    (
        "SELECT t.n FROM (SELECT COUNT(*) AS n FROM visits) AS t JOIN (SELECT COUNT(*) AS m FROM visits) AS t ON t.n = t.m",
        "SELECT t.n FROM (SELECT COUNT(*) AS n FROM visits) AS t JOIN (SELECT COUNT(*) AS m FROM visits) AS u ON t.n = u.m",
    ),
    (
        "SELECT sex, COUNT(*) FROM patients GROUP BY sex HAVING (COUNT(*) > 5) IS TRUE",
        "SELECT sex, COUNT(*) FROM patients GROUP BY sex HAVING COUNT(*) = 5",
    ),
    (
        "SELECT sex, COUNT(*) FROM patients GROUP BY sex HAVING sex IN ('f', NULL)",
        "SELECT sex, COUNT(*) FROM patients GROUP BY sex HAVING sex = 'f' OR sex IS NULL",
    ),
    ("SELECT COUNT(*) FROM visits HAVING COUNT(*)", "SELECT COUNT(*) FROM visits HAVING COUNT(*) > 0"),
    ("SELECT COUNT(*) FROM visits HAVING COUNT(*) = NULL", "SELECT COUNT(*) FROM visits HAVING COUNT(*) IS NULL"),
    ("SELECT COUNT(*)::VARCHAR FROM visits", "SELECT COUNT(*)::DOUBLE FROM visits"),
    ("SELECT sex, COUNT(*) FROM patients GROUP BY sex ORDER BY 'x'", "SELECT sex, COUNT(*) FROM patients GROUP BY sex ORDER BY sex"),
    # windows
    (
        "SELECT cost, ROW_NUMBER() OVER (ORDER BY cost) FROM visits",
        "SELECT code, RANK() OVER (ORDER BY COUNT(*)) FROM visits GROUP BY code",
    ),
    (
        "SELECT AVG(gap) FROM (SELECT day - LAG(day) OVER (ORDER BY day) AS gap FROM visits) AS t",
        "SELECT AVG(gap) FROM (SELECT day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS gap FROM visits) AS t",
    ),
    (
        "SELECT AVG(gap) FROM (SELECT day - LAG(day) OVER (PARTITION BY clinic_id ORDER BY day) AS gap FROM (SELECT day, clinic_id FROM visits) AS v) AS t",
        "SELECT AVG(gap) FROM (SELECT day - LAG(day) OVER (PARTITION BY patient_id, clinic_id ORDER BY day) AS gap FROM (SELECT patient_id, day, clinic_id FROM visits) AS v) AS t",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) = 1",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS t WHERE n = 1",
    ),
    (
        "SELECT MAX(s) FROM (SELECT SUM(minutes) OVER (PARTITION BY patient_id ORDER BY day ROWS 2 PRECEDING) AS s FROM visits) AS t",
        "SELECT MAX(s) FROM (SELECT SUM(minutes) OVER (PARTITION BY patient_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM visits) AS t",
    ),
    (
        "SELECT AVG(s) FROM (SELECT LAST_VALUE(minutes) OVER (PARTITION BY patient_id ORDER BY day) AS s FROM visits) AS t",
        "SELECT AVG(s) FROM (SELECT LAST_VALUE(minutes) OVER (PARTITION BY patient_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM visits) AS t",
    ),
    (
        "SELECT AVG(s) FROM (SELECT NTILE(4) OVER (PARTITION BY patient_id ORDER BY day) AS s FROM visits) AS t",
        "SELECT AVG(s) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) AS s FROM visits) AS t",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT cost FROM visits QUALIFY cost > 10) AS t",
        "SELECT COUNT(*) FROM (SELECT cost FROM visits WHERE cost > 10) AS t",
    ),
    ("SELECT sex, RANK() OVER () FROM patients GROUP BY sex", "SELECT sex, RANK() OVER (ORDER BY sex) FROM patients GROUP BY sex"),
    (
        "SELECT sex, MODE(sex) OVER (ORDER BY sex) FROM patients GROUP BY sex",
        "SELECT sex, DENSE_RANK() OVER (ORDER BY sex) FROM patients GROUP BY sex",
    ),
    (
        "SELECT sex, RANK() OVER v FROM patients GROUP BY sex WINDOW w AS (ORDER BY sex)",
        "SELECT day, RANK() OVER w FROM visits GROUP BY day WINDOW w AS (ORDER BY day)",
    ),
    (
        "SELECT AVG(c) FROM (SELECT LAG(cost) OVER w AS c FROM visits WINDOW w AS (PARTITION BY patient_id ORDER BY day)) AS t",
        "SELECT AVG(c) FROM (SELECT LAG(cost) OVER (PARTITION BY patient_id ORDER BY day) AS c FROM visits) AS t",
    ),
    (
        "SELECT sex, RANK() OVER (w ORDER BY sex) FROM patients GROUP BY sex WINDOW w AS (ORDER BY sex)",
        "SELECT sex, RANK() OVER (ORDER BY sex) FROM patients GROUP BY sex",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT cost FROM visits QUALIFY ROW_NUMBER() OVER (ORDER BY cost) <= 3) AS t",
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY region QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) <= 3",
    ),
    (
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY region QUALIFY n > 3",
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY region HAVING n > 3",
    ),
    (
        "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) FROM patients GROUP BY sex",
        "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM patients GROUP BY sex",
    ),
    (
        "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex GROUPS 1 PRECEDING) FROM patients GROUP BY sex",
        "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS 1 PRECEDING) FROM patients GROUP BY sex",
    ),
    (
        "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex RANGE BETWEEN 6 PRECEDING AND CURRENT ROW) FROM patients GROUP BY sex",
        "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) FROM visits GROUP BY day",
    ),
    (
        "SELECT DISTINCT ON (patient_id) code FROM visits ORDER BY patient_id, day DESC",
        "SELECT DISTINCT ON (sex) sex, smoker, COUNT(*) AS n FROM patients GROUP BY sex, smoker ORDER BY sex, n DESC",
    ),
    (
        "SELECT DISTINCT ON (sex) sex, smoker, COUNT(*) AS n FROM patients GROUP BY sex, smoker",
        "SELECT DISTINCT ON (sex) sex, smoker, COUNT(*) AS n FROM patients GROUP BY sex, smoker ORDER BY sex, n DESC",
    ),
    # conditions and values
    ("SELECT COUNT(*) FROM visits WHERE minutes", "SELECT COUNT(*) FROM visits WHERE minutes > 5"),
    ("SELECT COUNT(*) FROM visits WHERE cost = NULL", "SELECT COUNT(*) FROM visits WHERE cost IS NULL"),
    ("SELECT COUNT(*) FROM visits WHERE cost IS DISTINCT FROM NULL", "SELECT COUNT(*) FROM visits WHERE cost IS NOT NULL"),
    ("SELECT COUNT(*) FROM visits WHERE clinic_id IN (5, NULL)", "SELECT COUNT(*) FROM visits WHERE clinic_id = 5 OR clinic_id IS NULL"),
    ("SELECT COUNT(*) FROM visits WHERE clinic_id IN clinic_id", "SELECT COUNT(*) FROM visits WHERE clinic_id IN (1, 2)"),
    ("SELECT COUNT(*) FROM visits WHERE minutes IS 5", "SELECT COUNT(*) FROM visits WHERE minutes = 5"),
    ("SELECT COUNT(*) FROM visits WHERE 1 < minutes < 5", "SELECT COUNT(*) FROM visits WHERE 1 < minutes AND minutes < 5"),
    ("SELECT COUNT(*) FROM visits WHERE cost > ?", "SELECT COUNT(*) FROM visits WHERE cost > 5"),
    ("SELECT SUM(cost * 1e99999999) FROM visits", "SELECT SUM(cost * 1e2) FROM visits"),
    ("SELECT COUNT(*) FROM visits WHERE patient_id = 5", "SELECT COUNT(DISTINCT patient_id) FROM visits"),
    ("SELECT SUM(CAST(SUBSTR(code, 2) AS INTEGER)) FROM visits", "SELECT SUM(TRY_CAST(SUBSTR(code, 2) AS INTEGER)) FROM visits"),
    ("SELECT COUNT(*) FROM visits WHERE cost > CAST('much' AS DOUBLE)", "SELECT COUNT(*) FROM visits WHERE cost > 100.5"),
    ("SELECT SUM(cost::FLOAT(24)) FROM visits", "SELECT SUM(CAST(cost AS DOUBLE)) FROM visits"),
    ("SELECT SUM(CAST(minutes AS DECIMAL(39, 1))) FROM visits", "SELECT SUM(CAST(minutes AS DECIMAL(38, 1))) FROM visits"),
    (
        "SELECT SUM(minutes * 0.0000000000001) FROM visits",
        "SELECT SUM(CAST(minutes AS DOUBLE) * 0.0000000000001) FROM visits",
    ),
    ("SELECT SUM(minutes * 4611686018427387903) FROM visits", "SELECT SUM(LEAST(GREATEST(minutes, 0), 60) * 1000) FROM visits"),
    ("SELECT SUM(EXP(minutes)) FROM visits", "SELECT SUM(EXP(LEAST(minutes, 5))) FROM visits"),
    ("SELECT COUNT(*) FROM visits WHERE regexp_count(code, 'a+') > 1", "SELECT COUNT(*) FROM visits WHERE regexp_matches(code, 'a.*a')"),
    ("SELECT COUNT(*) FROM visits WHERE regexp_matches(code, '(?=J)')", "SELECT COUNT(*) FROM visits WHERE regexp_matches(code, '^(J|I)')"),
    (
        "SELECT COUNT(*) FROM visits WHERE regexp_matches(code, 'j', 'x')",
        "SELECT COUNT(*) FROM visits WHERE regexp_matches(code, 'j', 'i')",
    ),
    (
        "SELECT REGEXP_REPLACE(code, 'J', 'a\\b') AS c, COUNT(*) FROM visits GROUP BY c",
        "SELECT REGEXP_REPLACE(code, 'J', 'a\\\\b') AS c, COUNT(*) FROM visits GROUP BY c",
    ),
    ("SELECT COUNT(*) FROM visits WHERE code SIMILAR TO 'J%'", "SELECT COUNT(*) FROM visits WHERE code SIMILAR TO 'J.*'"),
    ("SELECT AVG(cost) FROM visits WHERE random() < 0.5", "SELECT AVG(cost) FROM visits"),
    ("SELECT COUNT(*) FROM visits WHERE rand() < 0.5", "SELECT COUNT(*) FROM visits"),
    # dates
    ("SELECT COUNT(*) FROM visits WHERE started > clock_timestamp()", "SELECT COUNT(*) FROM visits WHERE started > NOW()"),
    ("SELECT COUNT(*) FROM visits WHERE LOCALTIME() > 5", "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE"),
    (
        "SELECT COUNT(*) FROM visits WHERE started - day > INTERVAL '1 month'",
        "SELECT COUNT(*) FROM visits WHERE started - CAST(day AS TIMESTAMP) > INTERVAL '30 days'",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE minutes > INTERVAL '3 days'",
        "SELECT COUNT(*) FROM visits WHERE EXTRACT(EPOCH FROM started - day) > 300",
    ),
    ("SELECT COUNT(*) FROM visits WHERE clinic_id = ANY('{1,2}')", "SELECT COUNT(*) FROM visits WHERE clinic_id = ANY([1, 2])"),
    ("SELECT COUNT(*) FROM visits WHERE LIST_CONTAINS([], clinic_id)", "SELECT COUNT(*) FROM visits WHERE LIST_CONTAINS([3], clinic_id)"),
    (
        "SELECT COUNT(*) FROM visits WHERE MAKE_DATE(2020 + clinic_id, 1, minutes) < day",
        "SELECT COUNT(*) FROM visits WHERE MAKE_DATE(2020 + clinic_id, 1, LEAST(GREATEST(minutes, 1), 28)) < day",
    ),
    (
        "SELECT TIME_BUCKET(INTERVAL '2 months', day) AS p, COUNT(*) FROM visits GROUP BY p",
        "SELECT TIME_BUCKET(INTERVAL '3 months', day) AS p, COUNT(*) FROM visits GROUP BY p",
    ),
    (
        "SELECT PRINTF('%.2f', cost) AS c, COUNT(*) FROM visits GROUP BY c",
        "SELECT PRINTF('%03d', clinic_id) AS c, COUNT(*) FROM visits GROUP BY c",
    ),
    ("SELECT COUNT(*) FROM visits WHERE day = '2025-02-30'", "SELECT COUNT(*) FROM visits WHERE day = '2025-03-31'"),
    (
        "SELECT COUNT(*) FROM visits WHERE started > TIMESTAMP '2025-02-01 10:00:00+02'",
        "SELECT COUNT(*) FROM visits WHERE started > TIMESTAMP '2025-02-01 08:00:00'",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE started > '2025-02-01 25:00:00'",
        "SELECT COUNT(*) FROM visits WHERE started > '2025-03-31 08:30:00'",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day + INTERVAL '1 month 2 days' > '2024-05-05'",
        "SELECT COUNT(*) FROM visits WHERE day + INTERVAL '30 days' > '2024-05-05'",
    ),
    ("SELECT EXTRACT(CENTURY FROM day), COUNT(*) FROM visits GROUP BY 1", "SELECT EXTRACT(YEAR FROM day), COUNT(*) FROM visits GROUP BY 1"),
    (
        "SELECT DATE_TRUNC('century', day), COUNT(*) FROM visits GROUP BY 1",
        "SELECT DATE_TRUNC('year', day), COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "SELECT AVG(DATE_DIFF('century', DATE '2024-01-01', day)) FROM visits",
        "SELECT AVG(DATE_DIFF('month', DATE '2024-01-01', day)) FROM visits",
    ),
    ("SELECT STRFTIME(day, '%H'), COUNT(*) FROM visits GROUP BY 1", "SELECT STRFTIME(day, '%Y-%m'), COUNT(*) FROM visits GROUP BY 1"),
    (
        "SELECT AVG(started - TIMESTAMP '2024-01-01 00:00:00') FROM visits",
        "SELECT AVG(DATE_DIFF('day', TIMESTAMP '2024-01-01 00:00:00', started)) FROM visits",
    ),
    (
        "SELECT STRFTIME(COALESCE(day, DATE '2090-01-01'), '%Y-%m-%d'), COUNT(*) FROM visits GROUP BY 1",
        "SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1",
    ),
    *JOINS,
    # whole statements
    (
        "SELECT COUNT(*) FROM (SELECT code FROM visits UNION SELECT code FROM visits) AS u",
        "SELECT COUNT(*) FROM (SELECT code FROM visits UNION ALL SELECT code FROM visits) AS u",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT code FROM visits EXCEPT SELECT code FROM visits) AS u",
        "SELECT COUNT(*) FROM (SELECT code FROM visits UNION ALL SELECT code FROM visits) AS u",
    ),
    (
        "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex UNION ALL SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY n",
        "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex UNION ALL SELECT region, COUNT(*) FROM patients GROUP BY region) AS t ORDER BY n",
    ),
    (
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM (SELECT cost FROM visits UNION ALL SELECT cost FROM visits) AS t",
    ),
    ("SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM patients", "SELECT COUNT(*) FROM patients"),
    ("(SELECT COUNT(*) FROM visits)", "SELECT COUNT(*) FROM visits"),
    ("SELECT /*+ parallel */ COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits"),
    ("EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits"),
    ("SHOW me the rows", "SHOW TABLES"),
    ("SHOW memory_limit", "SHOW TABLES"),
    ("DESCRIBE nothing", "SHOW TABLES"),
    ("DESCRIBE SELECT 1", "DESCRIBE visits"),
    ("SELECT nothing FROM pg_class", "SHOW TABLES"),
    ("SELECT relname, SQRT(oid) FROM pg_class", "DESCRIBE visits"),
    ("SHOW PRIVACY BUDGET please", "SHOW PRIVACY BUDGET"),
    ("SELECT COUNT(*) FROM visits WITH PRIVACY", "SELECT COUNT(*) FROM visits WITH PRIVACY (epsilon = 0.2)"),
    (
        "SELECT COUNT(*) FROM (SELECT * FROM visits WITH PRIVACY (epsilon = 1)) AS t",
        "SELECT COUNT(*) FROM (SELECT * FROM visits) AS t WITH PRIVACY (epsilon = 1)",
    ),
    ("SELECT COUNT(*) FROM visits WITH PRIVACY (error = 'much')", "SELECT COUNT(*) FROM visits WITH PRIVACY (error = 1000)"),
    ("SELECT COUNT(*) FROM visits WITH PRIVACY (epsilon = 1, rho = 1)", "SELECT COUNT(*) FROM visits WITH PRIVACY (epsilon = 1)"),
    ("SELECT MEDIAN(cost) FROM visits WITH PRIVACY (error = 5)", "SELECT COUNT(*) FROM visits WITH PRIVACY (error = 5000)"),
    ("SELECT COUNT(*) FROM visits WITH PRIVACY (scaled_groups = true)", "SELECT COUNT(*) FROM visits"),
    (
        "SELECT drug, COUNT(*) FROM prescriptions GROUP BY drug WITH PRIVACY (scaled_groups = true)",
        "SELECT code, COUNT(*) FROM visits GROUP BY code WITH PRIVACY (scaled_groups = true)",
    ),
    (
        "SELECT code, COUNT(*) FROM visits GROUP BY ROLLUP (code) WITH PRIVACY (scaled_groups = true)",
        "SELECT code, COUNT(*) FROM visits GROUP BY code WITH PRIVACY (scaled_groups = true)",
    ),
)
"""Refused, and typed after the hint."""

LONG = "REPLACE(" * 20 + "region" + ", 'a', 'aaaaaaaaaa')" * 20
REWRITES += ((f"SELECT COUNT(*) FROM patients WHERE {LONG} = 'x'", "SELECT COUNT(*) FROM patients WHERE region = 'northam'"),)

PURE_REWRITES: tuple[tuple[str, str], ...] = (
    ("SELECT drug, COUNT(*) FROM prescriptions GROUP BY drug", "SELECT code, COUNT(*) FROM visits GROUP BY code"),
    ("SELECT COUNT(*) FROM visits WITH PRIVACY (rho = 0.001)", "SELECT COUNT(*) FROM visits WITH PRIVACY (epsilon = 0.2)"),
)
"""The same on a data set without delta."""
