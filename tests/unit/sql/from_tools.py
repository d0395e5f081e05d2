"""Statements in the style of tools that write SQL themselves, in PostgreSQL's spelling: their names, quotes, brackets and paging.

Each is a text, or a pair of it and of what DuckDB calls the same, where that has another word.
"""

# ruff: noqa: E501  (a statement stands on one line)

from __future__ import annotations

from tests.unit.sql.inside_units import INSIDE

NAMES: dict[str, str | tuple[str, str]] = {
    "schema": "SELECT COUNT(*) AS count FROM public.visits LIMIT 50000",
    "schema in quotes": 'SELECT COUNT(*) AS "count" FROM "public"."visits"',
    "schema of DuckDB": "SELECT COUNT(*) FROM main.visits",
    "the data set as schema": "SELECT COUNT(*) FROM Clinic.Visits",
    "the data set as catalogue": ('SELECT COUNT(*) FROM "clinic"."public"."visits"', "SELECT COUNT(*) FROM public.visits"),
    "schema of columns": 'SELECT "public"."patients"."region" AS "region", AVG("public"."patients"."income") AS "avg" FROM "public"."patients" WHERE "public"."patients"."sex" = \'f\' GROUP BY "public"."patients"."region" ORDER BY "public"."patients"."region" ASC',
    "schema of columns, not of the table": (
        "SELECT public.patients.sex, COUNT(DISTINCT public.patients.patient_id) FROM patients GROUP BY public.patients.sex",
        "SELECT sex, COUNT(DISTINCT patient_id) FROM patients GROUP BY sex",
    ),
    "schema in a join": 'SELECT "Clinics - Clinic"."city" AS "Clinics - Clinic__city", SUM("public"."visits"."cost") AS "sum" FROM "public"."visits" LEFT JOIN "public"."clinics" AS "Clinics - Clinic" ON "public"."visits"."clinic_id" = "Clinics - Clinic"."clinic_id" GROUP BY "Clinics - Clinic"."city" ORDER BY "sum" DESC, "Clinics - Clinic"."city" ASC',
    "schema along the unit": 'SELECT "public"."patients"."sex", COUNT(*) FROM "public"."visits" JOIN "public"."patients" ON "public"."visits"."patient_id" = "public"."patients"."patient_id" GROUP BY "public"."patients"."sex"',
    "schema before a subquery": 'SELECT "source"."region" AS "region", COUNT(*) AS "count" FROM (SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."region" AS "region", "public"."patients"."income" AS "income" FROM "public"."patients") AS "source" WHERE "source"."income" > 1000 GROUP BY "source"."region" ORDER BY "source"."region" ASC',
    "schema in IN": "SELECT COUNT(*) FROM public.visits WHERE public.visits.clinic_id IN (SELECT public.clinics.clinic_id FROM public.clinics WHERE public.clinics.kind = 'hospital')",
    "schema in EXISTS": "SELECT COUNT(*) FROM public.patients WHERE EXISTS (SELECT 1 FROM public.visits WHERE public.visits.patient_id = public.patients.patient_id AND public.visits.cost > 20)",
    "schema of the unit": "SELECT AVG(n) FROM (SELECT public.visits.patient_id, COUNT(*) AS n FROM public.visits GROUP BY public.visits.patient_id) AS per_patient",
    "schema past a name of WITH": "WITH visits AS (SELECT cost FROM main.visits WHERE cost > 20) SELECT (SELECT COUNT(*) FROM visits) AS few, (SELECT COUNT(*) FROM public.visits) AS many",
    "an alias with punctuation": 'SELECT SUM(1) AS "cnt:visits:ok" FROM "public"."visits" "visits (1)" HAVING (COUNT(1) > 0)',
}

PAGING: dict[str, str | tuple[str, str]] = {
    "fetch": "SELECT sex, COUNT(*) FROM patients GROUP BY sex ORDER BY 1 FETCH NEXT 500 ROWS ONLY",
    "fetch one": "SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY 2 DESC, 1 FETCH FIRST ROW ONLY",
    "fetch after an offset": "SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY region NULLS FIRST OFFSET 1 ROW FETCH FIRST 2 ROWS ONLY",
    "fetch with ties": (
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC NULLS LAST FETCH FIRST 2 ROWS WITH TIES",
        "SELECT region, COUNT(*) AS n FROM patients GROUP BY region QUALIFY RANK() OVER (ORDER BY n DESC NULLS LAST) <= 2 ORDER BY n DESC NULLS LAST",
    ),
    "fetch in a subquery": "SELECT SUM(n) FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC, region FETCH FIRST 2 ROWS ONLY) AS t",
}

DATES: dict[str, str | tuple[str, str]] = {
    "day of a moment": (
        "SELECT (DATE(visits.started )) AS \"visits.started_date\", COUNT(*) AS \"visits.count\" FROM public.visits AS visits WHERE ((( visits.started ) >= (TIMESTAMP '2024-06-01') AND ( visits.started ) < (TIMESTAMP '2025-02-01'))) GROUP BY 1 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY",
        "SELECT started::DATE, COUNT(*) FROM visits WHERE started >= '2024-06-01' AND started < '2025-02-01' GROUP BY 1",
    ),
    "a text as a date": (
        "SELECT DATE_TRUNC('month', day) AS day, COUNT(DISTINCT patient_id) AS n FROM public.visits WHERE day >= TO_DATE('2024-02-01', 'YYYY-MM-DD') AND day < TO_DATE('2025-03-01', 'YYYY-MM-DD') GROUP BY DATE_TRUNC('month', day)",
        "SELECT DATE_TRUNC('month', day), COUNT(DISTINCT patient_id) FROM visits WHERE day >= DATE '2024-02-01' AND day < DATE '2025-03-01' GROUP BY 1",
    ),
    "a text as a moment": (
        "SELECT COUNT(*) FROM public.visits WHERE started >= TO_TIMESTAMP('2024-05-01 10:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND started < CAST('2025-02-01' AS timestamp)",
        "SELECT COUNT(*) FROM visits WHERE started >= TIMESTAMP '2024-05-01 10:00:00' AND started < TIMESTAMP '2025-02-01'",
    ),
    "ends of what is shown, with Z": (
        "SELECT COUNT(*) FROM visits WHERE started BETWEEN '2024-05-01T10:00:00Z' AND '2025-02-01T23:59:59.999Z' AND day BETWEEN '2024-06-01T10:00:00Z' AND '2025-01-15T10:00:00.5Z'",
        "SELECT COUNT(*) FROM visits WHERE started BETWEEN '2024-05-01 10:00:00' AND '2025-02-01 23:59:59.999' AND day BETWEEN '2024-06-01' AND '2025-01-15'",
    ),
    "moments with offsets": (
        "SELECT COUNT(*) FROM visits WHERE started >= '2024-05-01 10:00:00+05:30' AND started < '2025-02-01T10:00:00-0330' AND day >= '2024-06-01 00:30:00+02'",
        "SELECT COUNT(*) FROM visits WHERE started AT TIME ZONE 'UTC' >= TIMESTAMPTZ '2024-05-01 10:00:00+05:30' AND started AT TIME ZONE 'UTC' < TIMESTAMPTZ '2025-02-01T10:00:00-03:30' AND day >= DATE '2024-05-31'",
    ),
    "a month of a cast": "SELECT DATE_TRUNC('MONTH', CAST(day AS DATE)) AS m, COUNT(*) AS n FROM visits GROUP BY 1",
    "quarters of an hour": "SELECT DATE_TRUNC('hour', started) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM started) / 15) AS started, COUNT(*) AS count FROM public.visits GROUP BY DATE_TRUNC('hour', started) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM started) / 15)",
    "weeks from Sunday": "SELECT CAST((DATE_TRUNC('week', (public.visits.started + INTERVAL '1 day')) + INTERVAL '-1 day') AS date) AS started, COUNT(*) AS count FROM public.visits GROUP BY CAST((DATE_TRUNC('week', (public.visits.started + INTERVAL '1 day')) + INTERVAL '-1 day') AS date)",
    "the last month": (
        'SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE ("public"."visits"."started" >= DATE_TRUNC(\'day\', (NOW() + INTERVAL \'-30 day\'))) AND ("public"."visits"."started" < DATE_TRUNC(\'day\', NOW()))',
        "SELECT COUNT(*) FROM visits WHERE started >= TIMESTAMP '2024-06-15' AND started < TIMESTAMP '2024-07-15'",
    ),
    "until today": (
        "SELECT CURRENT_DATE AS asked, COUNT(*) AS n FROM visits WHERE day >= CURRENT_DATE - INTERVAL '90 days' AND day < CURRENT_DATE",
        "SELECT DATE '2024-07-15', COUNT(*) FROM visits WHERE day >= DATE '2024-04-16' AND day < DATE '2024-07-15'",
    ),
    "the years since": (
        "SELECT EXTRACT(YEAR FROM CURRENT_DATE) - birth_year AS age, COUNT(*) FROM patients GROUP BY 1",
        "SELECT 2024 - birth_year AS age, COUNT(*) FROM patients GROUP BY 1",
    ),
    "seconds between moments": "SELECT AVG(EXTRACT(EPOCH FROM (started - CAST(day AS TIMESTAMP)))) FROM visits WHERE started - CAST(day AS TIMESTAMP) < INTERVAL '400 days'",
    "periods of a quarter of an hour": (
        "SELECT TIME_BUCKET(INTERVAL '15 minutes', started) AS b, COUNT(*) FROM visits WHERE day < '2024-03-03' GROUP BY 1",
        "SELECT TIME_BUCKET(INTERVAL '15 minutes', started) AS b, COUNT(*) FROM visits WHERE day < '2024-03-03' GROUP BY 1",
    ),
    "ages from years": (
        "SELECT DATE_DIFF('year', MAKE_DATE(birth_year, 1, 1), DATE '2025-01-01') AS age, COUNT(*) FROM patients GROUP BY 1",
        "SELECT 2025 - birth_year, COUNT(*) FROM patients GROUP BY 1",
    ),
    "computed numbers of days": "SELECT COUNT(*) FROM visits WHERE started < day + 2 * (INTERVAL '1 hour') * minutes AND day > DATE '2025-02-01' - (INTERVAL '1 week' * clinic_id) AND INTERVAL '1 day' * 3 + day < '2025-06-01'",
}

WRITTEN: dict[str, str | tuple[str, str]] = {
    "two texts together": "SELECT region || '-' || sex AS k, COUNT(*) AS n FROM patients GROUP BY 1",
    "one of a list": (
        "SELECT COUNT(*) FROM visits WHERE clinic_id = ANY(ARRAY[1, 2, 3])",
        "SELECT COUNT(*) FROM visits WHERE clinic_id IN (1, 2, 3)",
    ),
    "bins of thousands": "SELECT ROUND(income, -4) AS b, COUNT(*) FROM patients GROUP BY 1",
    "numbers with noughts": (
        "SELECT PRINTF('%02d', clinic_id) AS c, COUNT(*) FROM visits GROUP BY 1",
        "SELECT LPAD(CAST(clinic_id AS VARCHAR), 2, '0') AS c, COUNT(*) FROM visits GROUP BY 1",
    ),
    "combinations counted once": "SELECT sex, COUNT(DISTINCT (region, smoker)), COUNT(DISTINCT (birth_year, smoker)) FROM patients GROUP BY sex",
    "combinations of days and moments": "SELECT COUNT(DISTINCT (day, code)), COUNT(DISTINCT (started, clinic_id)) FILTER (WHERE cost > 20) FROM visits",
    "distinct as other engines call it": (
        "SELECT APPROX_COUNT_DISTINCT(patient_id) AS n, APPROX_COUNT_DISTINCT(code) AS c FROM visits",
        "SELECT COUNT(DISTINCT patient_id), COUNT(DISTINCT code) FROM visits",
    ),
    "an alias used later": "SELECT minutes / 60 AS h, FLOOR(h) AS fh, COUNT(*) FROM visits GROUP BY ALL",
    "an alias used later among rows": "SELECT fh, SUM(h) FROM (SELECT minutes / 60 AS h, FLOOR(h) AS fh FROM visits) AS t GROUP BY fh",
    "an aggregate used later": "SELECT sex, COUNT(*) AS n, n * 2 AS twice, twice + n AS thrice FROM patients GROUP BY sex",
    "an alias inside an aggregate": "SELECT clinic_id % 3 AS third, SUM(third) AS s FROM visits GROUP BY third",
}

EXTREME_TEXT: dict[str, str | tuple[str, str]] = {
    "the first and last of a text": 'SELECT "patients"."sex" AS "sex", MIN("patients"."region") AS "min:region:nk", MAX(UPPER("patients"."region")) AS "max", COUNT(*) FROM "public"."patients" GROUP BY 1',
    "the same place of other words": "SELECT MIN(UPPER(sex)), MIN(LOWER(sex)), MAX(sex || '!'), MAX(sex) FILTER (WHERE smoker), MIN(CASE WHEN smoker THEN region END) FROM patients",
    "one value or an asterisk": "SELECT v.code, CASE WHEN MIN(p.sex) = MAX(p.sex) THEN MIN(p.sex) ELSE '*' END AS attr FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY v.code",
    "an attribute of what is grouped by": "SELECT region, MIN(region), MAX(LENGTH(region)), MIN(region || sex), COUNT(*) FROM patients GROUP BY region, sex",
    "a text of each unit": "SELECT c, d, COUNT(*) FROM (SELECT patient_id, MIN(code) AS c, MAX(code) FILTER (WHERE cost > 20) AS d FROM visits GROUP BY patient_id) AS t GROUP BY c, d",
    "a constant text of each unit": "SELECT c, COUNT(*) FROM (SELECT patient_id, MAX('x') AS c FROM visits GROUP BY patient_id) AS t GROUP BY c",
    "the greatest text so far": "SELECT m, COUNT(*) FROM (SELECT MAX(code) OVER (PARTITION BY patient_id ORDER BY day) AS m FROM visits) AS t GROUP BY m",
    "text of joined units": "SELECT r, SUM(n) FROM (SELECT p.patient_id, MIN(p.region) AS r, COUNT(*) AS n FROM patients p JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.patient_id) AS t GROUP BY r",
    "the first of the first": "SELECT MIN(m), MAX(m) FROM (SELECT sex, MIN(region) AS m FROM patients GROUP BY sex) AS t",
}

OPEN_TEXT: dict[str, str | tuple[str, str]] = {
    "open text in small letters": "SELECT LOWER(drug) AS d, COUNT(*) AS n FROM prescriptions GROUP BY 1",
    "the length of open text": "SELECT AVG(LENGTH(drug)), MAX(LENGTH(drug)), SUM(LEN(drug)) FILTER (WHERE dose_mg > 100) FROM prescriptions",
    "the first letters of open text": "SELECT LEFT(drug, 1) AS l, UPPER(SUBSTRING(drug, 2, 1)) AS m, COUNT(*) FROM prescriptions GROUP BY 1, 2",
    "a part of text, in the words of the standard": "SELECT SUBSTRING(drug FROM 1 FOR 2) AS l, SUBSTRING(drug FROM 3) AS r, COUNT(*) FROM prescriptions WHERE SUBSTRING(drug FROM 1 FOR 2) IN ('as', 'pa') GROUP BY 1, 2",
    "the last letters of open text": "SELECT RIGHT(drug, 2) AS l, LEFT(drug, -2) AS f, COUNT(*) FROM prescriptions GROUP BY 1, 2",
    "a part of open text": "SELECT SPLIT_PART(drug, 'i', 2) AS p, COUNT(*) FROM prescriptions GROUP BY 1",
    "a word in open text": "SELECT COUNT(*) FROM prescriptions WHERE drug LIKE '%in%' OR drug ILIKE 'A%P%' OR STRPOS(drug, 'ro') = 2",
    "no such word in open text": "SELECT COUNT(*), SUM(dose_mg) FROM prescriptions WHERE drug NOT LIKE 'a%i%n' AND NOT CONTAINS(drug, 'ol')",
    "plain texts as a regular expression": (
        "SELECT COUNT(*) FROM prescriptions WHERE REGEXP_LIKE(drug, '^as|in$') AND ENDS_WITH(LOWER(drug), 'n')",
        "SELECT COUNT(*) FROM prescriptions WHERE REGEXP_MATCHES(drug, '^as|in$') AND ENDS_WITH(LOWER(drug), 'n')",
    ),
    "open text of each unit": "SELECT w, COUNT(*) FROM (SELECT visit_id, MAX(LENGTH(drug)) AS w FROM prescriptions GROUP BY visit_id) AS t GROUP BY w",
}

BRACKETS: dict[str, str | tuple[str, str]] = {
    "brackets in a join on a key": 'SELECT "c"."city", SUM("v"."cost") FROM "public"."visits" "v" LEFT OUTER JOIN "public"."clinics" "c" ON (("v"."clinic_id") = ("c"."clinic_id")) GROUP BY ("c"."city")',
    "brackets in a join along the unit": "SELECT (p.sex), COUNT(DISTINCT ((v.patient_id))) FROM visits v INNER JOIN patients p ON (((v.patient_id)) = (p.patient_id)) GROUP BY 1",
    "brackets in EXISTS": "SELECT COUNT(*) FROM patients p WHERE (NOT (EXISTS (SELECT 1 FROM visits v WHERE ((v.patient_id) = (p.patient_id)) AND ((v.cost) > 20))))",
    "brackets in IN": "SELECT COUNT(*) FROM patients WHERE (patient_id) IN (SELECT (patient_id) FROM visits WHERE (clinic_id) IN ((1), (2), (3)))",
    "brackets of one unit": "SELECT AVG(n) FROM (SELECT (v.patient_id) AS p, COUNT((v.cost)) AS n FROM visits v GROUP BY (v.patient_id)) AS t",
    "brackets in sets": "SELECT (sex), COUNT(*) FROM patients GROUP BY GROUPING SETS ((sex), ())",
    "a distinct count of cases": 'SELECT "visits"."clinic_id" AS "clinic_id", COUNT(DISTINCT (CASE WHEN ("visits"."cost" > 10) THEN "visits"."patient_id" ELSE NULL END)) AS "usr:Calculation_2:ok" FROM "public"."visits" "visits" GROUP BY 1',
}

STARS: dict[str, str | tuple[str, str]] = {
    "all columns of one table": 'SELECT city AS city, sum(cost) AS "SUM(cost)" FROM (SELECT v.*, c.city, c.kind FROM visits v JOIN clinics c ON v.clinic_id = c.clinic_id) AS virtual_table GROUP BY city ORDER BY "SUM(cost)" DESC LIMIT 10000',
    "all columns of a table with its schema": (
        "SELECT COUNT(*), SUM(cost) FROM (SELECT public.visits.* FROM public.visits WHERE cost > 10) AS t",
        "SELECT COUNT(*), SUM(cost) FROM visits WHERE cost > 10",
    ),
    "all columns of a name of WITH": "WITH w AS (SELECT v.patient_id, v.cost, p.region FROM visits v JOIN patients p ON p.patient_id = v.patient_id) SELECT region, SUM(cost) FROM (SELECT w.* FROM w) AS virtual_table GROUP BY region",
    "all columns of an answer": "WITH all_values AS (SELECT sex AS value_field, COUNT(*) AS n_records FROM clinic.patients GROUP BY sex) SELECT * FROM all_values WHERE value_field NOT IN ('f')",
    "all columns of one of two answers": "SELECT t.*, u.n AS of_all FROM (SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex) AS t JOIN (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS u ON t.sex = u.sex",
    "all groups": "SELECT sex, UPPER(region) AS r, 'x' AS label, COUNT(*) AS n, AVG(income) / 2 FROM patients GROUP BY ALL",
    "all groups of an answer": "SELECT n > 2 AS many, SUM(n), COUNT(*) FROM (SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY ALL) AS t GROUP BY ALL",
    "all groups of one unit": "SELECT AVG(n), MAX(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY ALL) AS t",
    "all groups where there are none": "SELECT COUNT(*) FROM visits GROUP BY ALL",
}

ORDER: dict[str, str | tuple[str, str]] = {
    "the public table first": "SELECT c.city, COUNT(*), SUM(v.cost) FROM clinics c JOIN visits v ON c.clinic_id = v.clinic_id GROUP BY c.city",
    "the public table first, by name": "SELECT kind, clinic_id, COUNT(*) FROM clinics INNER JOIN visits USING (clinic_id) WHERE clinic_id < 5 GROUP BY kind, clinic_id",
    "the public table first, and more": "SELECT c.kind, p.sex, COUNT(*) FROM public.clinics c JOIN public.visits v ON (c.clinic_id = v.clinic_id AND v.cost > 10) LEFT JOIN diagnoses d ON d.code = v.code JOIN patients p ON p.patient_id = v.patient_id WHERE d.chronic GROUP BY 1, 2",
}

COMMAS: dict[str, str | tuple[str, str]] = {
    "commas between a table and a public one": "SELECT c.city, COUNT(*), SUM(v.cost) FROM visits v, clinics c WHERE v.clinic_id = c.clinic_id AND v.cost > 10 GROUP BY c.city",
    "commas, the public tables first": "SELECT kind, sex, COUNT(*) FROM clinics c, diagnoses d, patients p, visits v WHERE d.code = v.code AND p.patient_id = v.patient_id AND v.clinic_id = c.clinic_id AND d.chronic GROUP BY kind, sex",
    "commas along a declared key": "SELECT COUNT(*), SUM(dose_mg) FROM patients p, visits v, prescriptions r WHERE p.patient_id = v.patient_id AND v.visit_id = r.visit_id AND p.smoker",
    "commas and one join": "SELECT d.chapter, COUNT(*) FROM patients p, visits v JOIN clinics c ON v.clinic_id = c.clinic_id, diagnoses d WHERE p.patient_id = v.patient_id AND v.code = d.code AND c.kind = 'hospital' GROUP BY d.chapter",
    "commas inside": "SELECT y, SUM(cost) FROM (SELECT EXTRACT(YEAR FROM day) AS y, cost, city FROM clinics, visits WHERE visits.clinic_id = clinics.clinic_id) AS t GROUP BY y",
    "a cross join with WHERE": "SELECT c.city, COUNT(*) FROM visits v CROSS JOIN clinics c WHERE v.clinic_id = c.clinic_id GROUP BY c.city",
    "one public table twice": "SELECT a.kind, b.kind, COUNT(*) FROM visits v, visits w, clinics a, clinics b WHERE v.patient_id = w.patient_id AND v.clinic_id = a.clinic_id AND w.clinic_id = b.clinic_id AND v.cost > 100 AND w.cost > 100 GROUP BY a.kind, b.kind",
    "the key in every branch of OR": "SELECT SUM(minutes) FROM visits, clinics WHERE (visits.clinic_id = clinics.clinic_id AND kind = 'hospital' AND minutes > 60) OR (visits.clinic_id = clinics.clinic_id AND kind = 'practice' AND minutes < 20)",
    "commas between answers": "SELECT t.sex, t.n, u.n FROM (SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex) AS t, (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS u WHERE t.sex = u.sex",
    "a constant beside keys": "SELECT 1 AS one, sex, COUNT(*) FROM patients GROUP BY 1, sex",
    "constants are exact": "SELECT COUNT(*) FROM visits WHERE cost BETWEEN 100.06 - 0.01 AND 200.06 + 0.01",
    "many shifted sums": "SELECT SUM(minutes), SUM(minutes + 1), SUM(minutes - 2), SUM(minutes + 3) / COUNT(*) FROM visits",
    "an answer like a pattern": "SELECT region, n FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t WHERE region LIKE 'north%' AND region NOT LIKE '%field'",
    "an answer in another": "SELECT sex, n FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex) AS t WHERE sex IN (SELECT sex FROM (SELECT sex, COUNT(*) AS m FROM patients GROUP BY sex) AS u WHERE m > 5)",
}

CASTS: dict[str, str | tuple[str, str]] = {
    "a share": (
        "SELECT region AS region, SUM(CASE WHEN smoker THEN 1 ELSE 0 END)::float / COUNT(*) AS smoking_rate FROM public.patients GROUP BY region ORDER BY smoking_rate DESC LIMIT 10000",
        "SELECT region, SUM(CASE WHEN smoker THEN 1 ELSE 0 END)::double / COUNT(*) FROM patients GROUP BY region",
    ),
    "the name of a month": (
        "SELECT (TO_CHAR(DATE_TRUNC('month', visits.day ), 'YYYY-MM')) AS \"visits.month\", COALESCE(SUM(visits.minutes ), 0) AS \"visits.total\" FROM public.visits AS visits GROUP BY (DATE_TRUNC('month', visits.day )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY",
        "SELECT STRFTIME(DATE_TRUNC('month', day), '%Y-%m'), SUM(minutes) FROM visits GROUP BY DATE_TRUNC('month', day)",
    ),
    "a number as text": """SELECT (CASE WHEN ("visits"."clinic_id" IN (1, 2, 3)) THEN 'Group A' ELSE CAST("visits"."clinic_id" AS TEXT) END) AS "Clinic (group)", COUNT("visits"."visit_id") AS "cnt:visit_id:ok" FROM "public"."visits" "visits" WHERE (("visits"."day" >= CAST('2024-03-01' AS DATE)) AND (NOT ("visits"."cost" IS NULL))) GROUP BY 1""",
    "negative numbers as text": "SELECT CAST(minutes - 240 AS VARCHAR) AS m, COUNT(*) FROM visits GROUP BY 1",
    "parts of dates as text": "SELECT CAST(EXTRACT(YEAR FROM day) AS TEXT) || '-Q' || '1' AS q, COUNT(*) FROM visits WHERE EXTRACT(QUARTER FROM day) = 1 GROUP BY 1",
    "truth as text": "SELECT smoker::text AS s, COUNT(*) FROM patients WHERE CAST(vaccinated AS TEXT) = 'true' GROUP BY 1",
    "NULL as text": "SELECT CAST(NULLIF(clinic_id, 1) AS TEXT) AS c, COUNT(*) FROM visits GROUP BY 1",
    "a constant as text": "SELECT COUNT(*) FROM visits WHERE CAST(clinic_id AS TEXT) = CAST(3 AS TEXT)",
}

WITHIN_UNITS: dict[str, str | tuple[str, str]] = {
    "sessions by gap": "SELECT COUNT(*) AS sessions FROM (SELECT started, LAG(started) OVER (PARTITION BY patient_id ORDER BY started) AS before FROM visits) AS t WHERE before IS NULL OR started > before + INTERVAL '30 days'",
    "sessions numbered": "SELECT AVG(session), MAX(session) FROM (SELECT SUM(fresh) OVER (PARTITION BY patient_id ORDER BY day) AS session FROM (SELECT patient_id, day, CASE WHEN day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day) > 30 THEN 1 ELSE 0 END AS fresh FROM visits) AS s) AS t",
    "days between": "SELECT AVG(day - before) FROM (SELECT day, LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS before FROM visits) AS t",
    "change": "SELECT AVG(cost - before), COUNT(before) FROM (SELECT cost, LAG(cost) OVER (PARTITION BY patient_id ORDER BY started, visit_id) AS before FROM visits) AS t",
    "transitions": "SELECT before, code, COUNT(*) FROM (SELECT code, LAG(code) OVER (PARTITION BY patient_id ORDER BY started, visit_id) AS before FROM visits) AS t GROUP BY 1, 2",
    "two rows on": "SELECT SUM(later), COUNT(later) FROM (SELECT LEAD(minutes, 2) OVER (PARTITION BY v.patient_id ORDER BY day, visit_id) AS later FROM visits v WHERE clinic_id < 7) AS t",
    "nothing before": "SELECT before, COUNT(*) FROM (SELECT LAG(clinic_id, 1, 0) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS before FROM visits) AS t GROUP BY before",
    "nothing before, or unknown": "SELECT SUM(before), COUNT(before) FROM (SELECT LAG(cost, 1, -1) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS before FROM visits) AS t",
    "first row": "SELECT code, COUNT(*) FROM (SELECT patient_id, code, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY started, visit_id) AS rn FROM visits) AS t WHERE rn = 1 GROUP BY code",
    "first rows by clinic": "SELECT clinic_id, SUM(minutes) FROM (SELECT clinic_id, minutes, ROW_NUMBER() OVER (PARTITION BY clinic_id, patient_id ORDER BY day DESC, visit_id) AS rn FROM visits) AS t WHERE rn <= 2 GROUP BY 1",
    "ranks": "SELECT r, d, COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY patient_id ORDER BY clinic_id) AS r, DENSE_RANK() OVER (PARTITION BY patient_id ORDER BY clinic_id DESC) AS d FROM visits) AS t WHERE r <= 3 AND d BETWEEN 2 AND 3 GROUP BY r, d",
    "first and last value": "SELECT a, b, COUNT(*) FROM (SELECT FIRST_VALUE(clinic_id) OVER (PARTITION BY patient_id ORDER BY started, visit_id) AS a, LAST_VALUE(clinic_id) OVER (PARTITION BY patient_id ORDER BY started, visit_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS b FROM visits) AS t WHERE a < 4 GROUP BY 1, 2",
    "share of a total": "SELECT COUNT(*), AVG(share) FROM (SELECT patient_id, minutes * 1.0 / SUM(minutes) OVER (PARTITION BY patient_id) AS share FROM visits WHERE minutes > 0) AS t WHERE share > 0.2",
    "totals and means": "SELECT COUNT(*) FROM (SELECT cost, SUM(minutes) OVER (PARTITION BY patient_id) AS total, AVG(minutes) OVER (PARTITION BY patient_id) AS mean, MIN(day) OVER (PARTITION BY patient_id) AS first_day, COUNT(cost) FILTER (WHERE cost > 20) OVER (PARTITION BY patient_id) AS n FROM visits) AS t WHERE total > 500 AND mean < 200 AND first_day < DATE '2024-03-01' AND n > 1",
    "running totals": "SELECT SUM(a), SUM(b), SUM(c), MAX(c) FROM (SELECT SUM(minutes) OVER (PARTITION BY patient_id ORDER BY clinic_id) AS a, COUNT(*) OVER (PARTITION BY patient_id ORDER BY clinic_id, visit_id ROWS UNBOUNDED PRECEDING) AS b, MAX(minutes) OVER (PARTITION BY patient_id ORDER BY day, visit_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c FROM visits) AS t",
    "latest record": "SELECT AVG(cost), COUNT(*) FROM (SELECT DISTINCT ON (patient_id) patient_id, cost FROM visits ORDER BY patient_id, started DESC NULLS LAST, visit_id) AS t",
    "latest record of each clinic": "SELECT clinic_id, COUNT(*), SUM(minutes) FROM (SELECT DISTINCT ON (v.patient_id, clinic_id) clinic_id, minutes, visit_id AS last FROM visits v ORDER BY 1, v.patient_id, last DESC NULLS LAST) AS t GROUP BY clinic_id",
    "kept by a window": "SELECT code, COUNT(*) FROM (SELECT code FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day, visit_id) = 1) AS t GROUP BY code",
    "kept by its alias": "SELECT sex, COUNT(*) FROM (SELECT p.sex, ROW_NUMBER() OVER (PARTITION BY p.patient_id ORDER BY v.day, v.visit_id) AS n FROM visits v JOIN patients p ON p.patient_id = v.patient_id QUALIFY n BETWEEN 2 AND 3) AS t GROUP BY sex",
    "per unit after a window": "SELECT AVG(longest) FROM (SELECT patient_id, MAX(gap) AS longest FROM (SELECT patient_id, day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS gap FROM visits) AS t GROUP BY patient_id) AS u",
}

TOOLS: dict[str, str | tuple[str, str]] = {
    **NAMES,
    **PAGING,
    **DATES,
    **WRITTEN,
    **EXTREME_TEXT,
    **OPEN_TEXT,
    **BRACKETS,
    **STARS,
    **ORDER,
    **COMMAS,
    **CASTS,
    **INSIDE,
    **WITHIN_UNITS,
}
