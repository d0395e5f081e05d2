"""Statements that are answered, by name. The names c.. are those of the public conformance list."""

from __future__ import annotations

from tests.unit.sql.over_answers import OVER_ANSWERS

ACCEPTED: dict[str, str] = {
    # the conformance list
    "c01": "SELECT COUNT(*) FROM visits;",
    "c02": "SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits;",
    "c03": "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE day >= DATE '2025-01-01';",
    "c04": "SELECT VAR_SAMP(cost), STDDEV(cost) FROM visits;",
    "c54": "SELECT CORR(minutes, cost), COVAR_SAMP(minutes, cost), REGR_SLOPE(cost, minutes) FROM visits;",
    "c07": "SELECT AVG(CASE WHEN smoker THEN 1.0 ELSE 0 END) AS smoking_rate FROM patients;",
    "c08": "SELECT COUNT(*) FILTER (WHERE vaccinated) AS vaccinated, COUNT(*) AS everyone FROM patients;",
    "c09": "SELECT COUNT_IF(smoker), SUM(CASE WHEN birth_year < 1960 THEN 1 ELSE 0 END) FROM patients;",
    "c10": "SELECT 100.0 * SUM(CASE WHEN vaccinated THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM patients;",
    "c13": "SELECT region, COUNT(*) FROM patients GROUP BY region;",
    "c14": "SELECT sex, smoker, COUNT(*) AS n, AVG(income) FROM patients GROUP BY sex, smoker;",
    "c15": "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug ORDER BY n DESC LIMIT 20;",
    "c16": "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1;",
    "c16-cast": "SELECT DATE_TRUNC('month', CAST(started AS DATE)) AS month, COUNT(*) FROM visits GROUP BY 1",
    "c17": "SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(DOW FROM day) AS dow, SUM(cost) FROM visits GROUP BY y, dow;",
    "c18": "SELECT (2025 - birth_year) / 10 * 10 AS decade, COUNT(*) FROM patients GROUP BY decade;",
    "c19": """SELECT CASE WHEN minutes < 15 THEN 'short' WHEN minutes < 60 THEN 'medium' ELSE 'long' END AS length, COUNT(*)
              FROM visits GROUP BY length;""",
    "c20": "SELECT region, COUNT(*) AS n FROM patients GROUP BY region HAVING COUNT(*) > 5 ORDER BY n DESC;",
    "c25": "SELECT code, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY code HAVING patients >= 20;",
    "c26": "SELECT width_bucket(cost, 0, 5000, 20) AS bin, COUNT(*) FROM visits GROUP BY bin;",
    "c27": "SELECT COUNT(*) FROM visits WHERE day BETWEEN DATE '2025-03-01' AND DATE '2025-03-31' AND code IN ('J10', 'J11');",
    "c28": "SELECT COUNT(*) FROM patients WHERE region LIKE 'north%' OR (smoker IS NULL AND NOT vaccinated);",
    "c29": "SELECT SUM(LEAST(cost, 1000)) FROM visits WHERE minutes > 0;",
    "c30": "SELECT AVG(cost / NULLIF(minutes, 0)) FROM visits;",
    "c31": "SELECT SUM(COALESCE(cost, 0) * 1.19) FROM visits;",
    "c32": "SELECT AVG(LN(1 + income)) FROM patients WHERE income IS NOT NULL;",
    "c33": "SELECT COUNT(*) FROM visits WHERE started >= TIMESTAMP '2025-06-01 08:00:00' AND EXTRACT(HOUR FROM started) < 12;",
    "c34": "SELECT LOWER(SUBSTRING(code, 1, 1)) AS letter, COUNT(*) FROM visits GROUP BY letter;",
    "c35": "SELECT AVG(ROUND(cost, 1)) FROM visits WHERE ABS(minutes - 30) <= 10;",
    "c36": "SELECT c.city, COUNT(*) FROM visits v JOIN clinics c ON v.clinic_id = c.clinic_id GROUP BY c.city;",
    "c37": "SELECT d.chapter, SUM(v.cost) FROM visits v JOIN diagnoses d USING (code) WHERE d.chronic GROUP BY d.chapter;",
    "c11": "SELECT COUNT(DISTINCT clinic_id) FROM visits",
    "approximate-distinct": "SELECT APPROX_COUNT_DISTINCT(sex) FROM patients",
    "combinations": "SELECT COUNT(DISTINCT (region, smoker)), COUNT(DISTINCT (birth_year, sex, vaccinated)) FROM patients",
    "values-of-units": """SELECT AVG((SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)) FROM patients p
                          WHERE (SELECT MAX(cost) FROM visits v WHERE v.patient_id = p.patient_id AND code = 'J10') > 5""",
    "lateral": """SELECT sex, SUM(t.n) FROM patients p, LATERAL (SELECT COUNT(*) AS n, MIN(day) AS d FROM visits v
                  WHERE v.patient_id = p.patient_id) AS t WHERE t.d > DATE '2024-03-01' GROUP BY sex""",
    "values-of-first-rows": """SELECT c, COUNT(*), SUM(n) FROM (SELECT patient_id, ARG_MIN(code, started) AS c, MAX_BY(cost, day) AS d,
                               COUNT(DISTINCT code) AS n FROM visits GROUP BY patient_id) AS t GROUP BY c""",
    "a-later-row": """SELECT COUNT(*) FROM visits a WHERE NOT EXISTS
                    (SELECT 1 FROM visits b, clinics c WHERE b.patient_id = a.patient_id AND c.clinic_id = b.clinic_id AND day > a.day)""",
    "left-join-of-pairs": """SELECT COUNT(b.cost) FROM visits a LEFT JOIN visits b
                             ON a.patient_id = b.patient_id AND b.day > a.day AND b.cost > 5""",
    "answers-of-answers-around": """WITH t AS (SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex)
                                    SELECT sex FROM t WHERE n = (SELECT MAX(u.n) FROM t AS u WHERE u.region = t.region)""",
    "c21": "SELECT region, sex, COUNT(*) FROM patients GROUP BY ROLLUP (region, sex)",
    "rollup-avg": """SELECT region, sex, AVG(income) AS a, SUM(birth_year) AS s, COUNT(smoker) AS n, GROUPING(region, sex) AS g
                     FROM patients GROUP BY ROLLUP (region, sex) HAVING COUNT(*) > 0 ORDER BY g""",
    "averages-of-units": """SELECT AVG(a) AS mean, COUNT(a) AS n, COUNT(*) AS units FROM
                            (SELECT patient_id, AVG(cost) FILTER (WHERE minutes > 300) AS a FROM visits GROUP BY patient_id) AS s""",
    "cube": "SELECT sex, vaccinated, GROUPING(sex) AS total, COUNT(*) FROM patients GROUP BY CUBE (sex, vaccinated)",
    "grouping-sets": """SELECT sex, smoker, COUNT(*) AS n FROM patients WHERE birth_year > 1950
                        GROUP BY GROUPING SETS ((sex, smoker), (smoker), ()) ORDER BY n DESC, 1, 2""",
    "rollup-mixed": "SELECT sex AS s, region AS r, smoker, COUNT(*) FROM patients GROUP BY s, ROLLUP ((r, smoker))",
    "rollup-of-join": """SELECT c.city, EXTRACT(YEAR FROM day) AS y, SUM(cost) AS s FROM visits v JOIN clinics c USING (clinic_id)
                         GROUP BY ROLLUP (c.city, y)""",
    "rollup-inside": """SELECT MAX(n) AS largest, COUNT(*) AS rows FROM
                        (SELECT sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (sex)) AS m""",
    "c22": "SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM patients GROUP BY region",
    "keys-alone": "SELECT region FROM patients GROUP BY region",
    "c24": "SELECT DISTINCT region FROM patients",
    "c38": "SELECT p.region, AVG(v.cost) FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.region",
    "c39": (
        "SELECT p.sex, COUNT(*) FROM prescriptions r JOIN visits v ON r.visit_id = v.visit_id JOIN patients p ON "
        "v.patient_id = p.patient_id GROUP BY p.sex"
    ),
    "c40": (
        "SELECT c.city, p.sex, COUNT(DISTINCT v.patient_id) FROM visits v JOIN clinics c USING (clinic_id) JOIN "
        "patients p USING (patient_id) GROUP BY c.city, p.sex"
    ),
    "c41": ("SELECT p.region, COUNT(v.visit_id) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.region"),
    "c42": "SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE code = 'C50')",
    "c43": ("SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.cost > 1000)"),
    "c44": "SELECT COUNT(*) FROM visits WHERE clinic_id IN (SELECT clinic_id FROM clinics WHERE kind = 'hospital')",
    "c45": "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS per_patient",
    "c47": (
        "WITH last AS (SELECT patient_id, MAX(day) AS last_day FROM visits GROUP BY patient_id) SELECT "
        "DATE_TRUNC('month', last_day) AS m, COUNT(*) FROM last GROUP BY m"
    ),
    "c48": (
        "SELECT p.sex, AVG(s.total) FROM patients p JOIN (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY "
        "patient_id) s ON p.patient_id = s.patient_id GROUP BY p.sex"
    ),
    "c49": "WITH m AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) SELECT MAX(n), SUM(n) FROM m",
    "c50": (
        "SELECT a.region, a.n * 1.0 / b.n FROM (SELECT region, COUNT(*) AS n FROM patients WHERE smoker GROUP BY "
        "region) a JOIN (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) b ON a.region = b.region"
    ),
    "c51": (
        "SELECT COUNT(*) FROM visits WHERE day < DATE '2025-01-01' UNION ALL SELECT COUNT(*) FROM visits WHERE day >= DATE '2025-01-01'"
    ),
    "c52": (
        "SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT v.patient_id FROM prescriptions r JOIN "
        "visits v USING (visit_id)) AS events"
    ),
    "c53": "SELECT (SELECT COUNT(*) FROM patients WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM patients)",
    # relations: what generated statements once met a refusal with
    "scalar-arithmetic": "SELECT (SELECT COUNT(*) FROM patients) - (SELECT COUNT(*) FROM visits WHERE minutes > 9) AS d",
    "scalar-beside-groups": "SELECT region, COUNT(*) - (SELECT COUNT(*) FROM visits) AS d FROM patients GROUP BY region",
    "in-of-one-row-per-unit": """SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM
                                 (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t WHERE n > 7)""",
    "columns-without-name": """SELECT s.c, COUNT(*) FROM (SELECT v.clinic_id AS c, v.patient_id FROM prescriptions r
                               JOIN visits v ON r.visit_id = v.visit_id) s JOIN visits w ON s.patient_id = w.patient_id
                               WHERE w.minutes > 30 GROUP BY s.c""",
    # names, aliases, layout
    "any-case": 'select Count(*) AS "N" from VISITS as V where v.MINUTES > 5',
    "from-first": "FROM visits SELECT COUNT(*)",
    "comments": "SELECT COUNT(*) /* everything */ FROM visits -- all of it\n",
    "quoted": 'SELECT "region", COUNT(*) FROM "patients" GROUP BY "region"',
    "same-name-twice": "SELECT COUNT(*), SUM(cost), count(*) FROM visits",
    "alias-is-a-column": "SELECT COUNT(*) AS cost, SUM(cost) AS day FROM visits ORDER BY cost",
    "alias-of-key-in-having": "SELECT sex AS s, COUNT(*) FROM patients GROUP BY s HAVING s <> 'x' ORDER BY s",
    # aggregates
    "count-constant": "SELECT COUNT(1), COUNT('x') FROM visits",
    "count-case": "SELECT COUNT(CASE WHEN cost > 50 THEN 1 END) FROM visits",
    "distinct-identifiers": "SELECT COUNT(DISTINCT visit_id) FROM visits",
    "distinct-identifiers-filter": "SELECT code, COUNT(DISTINCT visit_id) FILTER (WHERE cost > 50) AS n FROM visits GROUP BY code",
    "distinct-identifiers-case": """SELECT COUNT(DISTINCT CASE WHEN cost > 50 THEN visit_id END) AS dear,
                                    COUNT(DISTINCT CASE WHEN cost > 50 THEN NULL ELSE visit_id END) AS others FROM visits""",
    "identifier-there": """SELECT v.visit_id IS NOT NULL AS been, COUNT(*) AS n FROM patients p
                           LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.cost > 4000 GROUP BY v.visit_id IS NOT NULL""",
    "identifier-there-named": """SELECT CASE WHEN v.visit_id IS NULL THEN 'none' ELSE 'some' END AS visits, COUNT(*) AS n FROM patients p
                                 LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.cost > 4000 GROUP BY 1""",
    "units-case": "SELECT COUNT(DISTINCT CASE WHEN cost > 50 THEN patient_id END) AS dear FROM visits",
    "sum-case-null": "SELECT SUM(CASE WHEN minutes > 30 THEN cost ELSE NULL END) FROM visits",
    "filters": """SELECT SUM(cost) FILTER (WHERE minutes > 30), AVG(cost) FILTER (WHERE code = 'J10'), COUNT_IF(cost > 9) FILTER
                  (WHERE minutes < 99), COUNT(code) FILTER (WHERE day < '2025-01-01') FROM visits""",
    "moments": """SELECT sex, VARIANCE(income) AS a, VAR_POP(income) AS b, STDDEV_SAMP(birth_year) AS c, STDDEV_POP(birth_year) AS d,
                  COVAR_POP(income, birth_year) AS e, AVG(income) AS f FROM patients GROUP BY sex HAVING STDDEV(income) > 5""",
    "regressions": """SELECT REGR_INTERCEPT(cost, minutes) AS a, REGR_R2(cost, minutes) AS b, REGR_COUNT(cost, minutes) AS c,
                      REGR_AVGX(cost, minutes) AS d, REGR_AVGY(cost, minutes) AS e FROM visits WHERE minutes > 5""",
    "moments-filtered": """SELECT VAR_SAMP(cost) FILTER (WHERE minutes > 30) AS a, CORR(cost, minutes * 1.5) FILTER (WHERE cost > 9) AS b,
                           STDDEV(CASE WHEN minutes > 30 THEN cost END) AS c, COVAR_SAMP(cost / 3, LN(1 + cost)) AS d FROM visits""",
    "no-group-having": "SELECT COUNT(*) FROM visits HAVING COUNT(*) > 3",
    "order-by-other": """SELECT region FROM patients GROUP BY region
                         ORDER BY AVG(income) DESC NULLS FIRST, COUNT(*), region LIMIT 3 OFFSET 1""",
    "having-other": "SELECT region, COUNT(*) FROM patients GROUP BY region HAVING SUM(income) > 9 AND region IS NOT NULL",
    "having-lists": """SELECT DATE_TRUNC('month', day) AS m, code, COUNT(*) AS n FROM visits GROUP BY m, code
                       HAVING code IN ('J10', 'I10') AND n NOT IN (-1, 3) AND m IN ('2024-05-01', DATE '2024-06-01')""",
    # expressions over aggregates
    "linear": "SELECT SUM(cost) * 1.19 + 1 AS a, -COUNT(*) AS b, SUM(cost) / 4 AS c, 3 - 2 * COUNT(*) AS d FROM visits",
    "ratios": """SELECT SUM(cost) / NULLIF(COUNT(cost), 0) AS a, 1000 * COUNT(*) FILTER (WHERE minutes > 9) / COUNT(*) AS b,
                 SUM(cost)::DOUBLE / COUNT(*) AS c, COUNT(*) * 1.0 / (2 * COUNT(cost)) / 5 AS d FROM visits""",
    "computed": """SELECT ROUND(AVG(cost), 2) AS a, COUNT(*) - SUM(minutes) AS b, LEAST(COUNT(*), 5) AS c, GREATEST(SUM(minutes), 0.5) AS d,
                   COALESCE(SUM(cost), 0) AS e, ABS(-AVG(cost)) AS f, FLOOR(AVG(cost)) AS g, CEIL(AVG(cost)) AS h,
                   COUNT(*) > 5 AS i, COUNT(*) BETWEEN 1 AND 5 AS j, NOT COUNT(*) > 3 AS k, COUNT(*) IS NULL AS l,
                   CASE WHEN COUNT(*) > 100 THEN 'many' WHEN COUNT(*) > 1 OR AVG(cost) > 3 THEN 'few' ELSE NULL END AS m,
                   CAST(AVG(cost) AS BIGINT) AS n, NULLIF(COUNT(*), 3) AS o, COUNT(*) * COUNT(*) AS p FROM visits""",
    "of-keys": """SELECT year(day) + 1 AS next, CASE month(day) WHEN 1 THEN 'first' ELSE 'other' END AS which, COUNT(*)
                  FROM visits GROUP BY year(day), month(day)""",
    "date-keys": """SELECT DATE_TRUNC('month', day) AS m, COUNT(*) FROM visits GROUP BY m
                    HAVING m >= DATE '2024-05-01' AND m < '2025-06-01' ORDER BY m DESC""",
    "timestamp-keys": """SELECT DATE_TRUNC('quarter', started) AS q, COUNT(*) FROM visits GROUP BY q
                         HAVING q >= TIMESTAMP '2024-04-01 00:00:00' OR q < '2024-02-01'""",
    "division-by-zero": "SELECT 1 / (COUNT(*) - COUNT(*)) AS none FROM visits",
    # keys
    "ordinals": "SELECT sex, region, COUNT(*) FROM patients GROUP BY 2, 1 ORDER BY 3 DESC, 2, 1",
    "same-key-twice": "SELECT sex, COUNT(*) FROM patients GROUP BY sex, patients.sex, 1",
    "expression-keys": "SELECT birth_year % 10 AS digit, AVG(income) FROM patients GROUP BY birth_year % 10",
    "boolean-keys": "SELECT cost > 20 AS dear, COUNT(*) FROM visits GROUP BY dear",
    "day-keys": "SELECT started::DATE AS d, COUNT(*) FROM visits GROUP BY d",
    # joins
    "left-join": "SELECT kind, COUNT(*) FROM visits v LEFT JOIN clinics c ON c.clinic_id = v.clinic_id GROUP BY kind",
    "two-joins": """SELECT COUNT(*) FROM visits JOIN clinics USING (clinic_id)
                    JOIN diagnoses USING (code) WHERE chronic AND city = 'Ambridge'""",
    "join-and-more": """SELECT COUNT(*) FROM visits v
                        JOIN clinics c ON (c.clinic_id = v.clinic_id AND c.kind = 'practice') WHERE v.minutes > 3""",
    "same-table-twice": """SELECT a.city, b.city, COUNT(*) FROM visits v JOIN clinics a ON v.clinic_id = a.clinic_id
                           JOIN clinics b ON 13 - v.clinic_id = b.clinic_id GROUP BY a.city, b.city""",
    "key-of-public": "SELECT d.code, COUNT(*) FROM visits v JOIN diagnoses d ON d.code = v.code GROUP BY d.code",
    "join-on-text": "SELECT COUNT(*) FROM visits v INNER JOIN diagnoses d ON UPPER(v.code) = d.code WHERE d.chapter = 'X'",
    # conditions
    "dates": """SELECT COUNT(*) FROM visits WHERE day = '2024-05-01' OR started BETWEEN '2024-05-01' AND TIMESTAMP '2024-08-02 10:00'
                OR started < DATE '2024-02-01' OR day > TIMESTAMP '2025-12-01 00:00:00'""",
    "logic": """SELECT COUNT(*) FROM patients WHERE smoker IS TRUE
                OR NOT (smoker IS NOT FALSE) OR vaccinated = TRUE AND smoker <> vaccinated""",
    "lists": """SELECT COUNT(*) FROM visits WHERE minutes IN (-1, 5, 7, 5)
                OR code NOT IN ('J10') OR day IN ('2024-05-01', DATE '2024-05-02')""",
    "integers": """SELECT COUNT(*) FROM visits WHERE minutes % 7 = 3 OR minutes // 7 < 5 OR mod(minutes, 2) = 1 OR -minutes < -400
                   OR (minutes - 240) % 7 = -3 OR (minutes - 240) // 7 = -2""",
    "text-functions": """SELECT UPPER(LEFT(region, 1)) || '-' || RIGHT(region, 1) AS x, COUNT(*) FROM patients
                         WHERE LENGTH(region) > 6 OR region IS NULL GROUP BY x""",
    "more-text": """SELECT TRIM(region) AS a, LTRIM(region) AS b, CONCAT(region, '.', region || 'x') AS c, COUNT(*) FROM patients
                    WHERE CONTAINS(region, 'o') OR ends_with(region, '1') OR suffix(region, '0') OR prefix(region, 'n') GROUP BY a, b, c""",
    "concat-null": """SELECT CONCAT(region, '!') AS a, region || '!' AS b, REPLACE(substr(region, 2), 'o', '') AS c, COUNT(*)
                      FROM patients GROUP BY 1, 2, 3""",
    "likes": """SELECT COUNT(*) FROM patients WHERE region LIKE '%t_' OR region NOT LIKE '%o%' OR region ILIKE 'EAST%'
                OR NOT region NOT ILIKE 'NORTH%'
                OR region LIKE 'west!-%' ESCAPE '!' OR region LIKE '%'""",
    "undeclared-text": """SELECT COUNT(*) FROM prescriptions WHERE drug LIKE 'asp%'
                          OR drug = 'x' OR starts_with(drug, 'pa') OR drug LIKE 'y'""",
    "try-cast": "SELECT SUM(TRY_CAST(RIGHT(region, 1) AS INTEGER)) AS a, SUM(TRY_CAST(SUBSTR(region, 6) AS DOUBLE)) AS b FROM patients",
    "named-texts": """SELECT SPLIT_PART(region, '-', 1) AS a, LPAD(UPPER(region), 9, '.') AS b, COUNT(*) FROM patients
                      WHERE STRPOS(region, 'o') > 2 OR POSITION('1' IN REPEAT(region, 2)) = 6 OR RTRIM(region, '0123') = 'west-'
                      GROUP BY a, b""",
    # dates by name and intervals
    "named-dates": """SELECT DAYNAME(day) AS a, STRFTIME(day, '%Y-%m') AS b, COUNT(*) FROM visits WHERE WEEK(day) < 20
                      OR DATE_DIFF('day', DATE '2024-06-01', day) > 30 OR LAST_DAY(day) = DATE '2024-02-29' GROUP BY a, b""",
    "intervals": """SELECT COUNT(*) FROM visits WHERE day >= DATE '2025-12-31' - INTERVAL '90 days' OR day + INTERVAL 1 MONTH < '2024-03-01'
                    OR started < day + INTERVAL '8 hours' OR day > TIMESTAMP '2025-02-01 10:00:00'
                    OR day - DATE '2024-01-01' < 30 OR started - INTERVAL '1' YEAR > '2024-11-05'""",
    "dates-of-tools": """SELECT DATE(started) AS d, DATE_TRUNC('hour', started) + INTERVAL '15 minutes' * FLOOR(MINUTE(started) / 15) AS q,
                         COUNT(*) FROM visits GROUP BY 1, 2 ORDER BY 1, 2 OFFSET 1 ROW FETCH FIRST 5 ROWS ONLY""",
    "null-safe": """SELECT COUNT(*) FROM visits WHERE cost IS DISTINCT FROM 20 AND code IS NOT DISTINCT FROM 'J10'
                    OR GREATEST(started, day) IS NOT DISTINCT FROM started""",
    "named-numbers": """SELECT FLOOR(LOG10(1 + minutes)) AS magnitude, SUM(POWER(minutes, 2)) AS a, AVG(COS(RADIANS(minutes))) AS b
                        FROM visits WHERE TRUNC(cost / 7) < 100 GROUP BY magnitude""",
    # quantiles and extremes
    "c05": "SELECT MEDIAN(cost), QUANTILE_CONT(cost, 0.9) FROM visits;",
    "c06": "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY minutes) FROM visits;",
    "c12": "SELECT MIN(cost), MAX(cost) FROM visits;",
    "c23": "SELECT region, MEDIAN(income) FROM patients GROUP BY region;",
    "c46": """WITH spend AS (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id)
              SELECT COUNT(*) FILTER (WHERE total > 2000), MEDIAN(total) FROM spend;""",
    "quantile-days": """SELECT MIN(day), MAX(day), MEDIAN(day), QUANTILE_DISC(day, 0.3), MAX(started), QUANTILE_CONT(started, 0.1)
                        FROM visits""",
    "quantile-approximate": "SELECT APPROX_QUANTILE(minutes, 0.5) FROM visits WHERE minutes = 7 OR cost = 20",
    "quantile-words": """SELECT quantile(minutes, 0.1) AS a, QUANTILE_DISC(minutes, 0.85) AS b,
                         PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY cost) AS c, QUANTILE_CONT(minutes, 0) AS d FROM visits""",
    "quantile-descending": """SELECT code, PERCENTILE_CONT(0.2) WITHIN GROUP (ORDER BY minutes DESC) FILTER (WHERE cost > 10) AS a
                              FROM visits GROUP BY code""",
    "quantile-computed": """SELECT MEDIAN(CASE WHEN minutes > 5 THEN cost * 2 END) AS a, MAX(minutes) - MIN(minutes) AS b,
                            2 * MEDIAN(minutes) + 1 AS c FROM visits HAVING MAX(minutes) > 0 ORDER BY MEDIAN(cost)""",
    # numbers
    "precedence": """SELECT SUM(-minutes % 7) AS a, SUM(minutes - 3 - 2 * minutes % 5) AS b, SUM(-minutes::INTEGER) AS c,
                     COUNT_IF(NOT minutes = 5 OR cost > 3 AND NOT code = 'J10') AS d, COUNT_IF(minutes BETWEEN 1 AND 30 AND cost > 3) AS e,
                     COUNT_IF(cost IS NULL = (minutes > 9)) AS f, COUNT_IF(NOT cost IS NULL) AS g, SUM(2 - - minutes) AS h,
                     COUNT_IF((minutes > 5) = TRUE) AS i, COUNT_IF(code || 'x' LIKE 'J%' || 'x') AS j, SUM(minutes * 7 % 5 * 2) AS k
                     FROM visits""",
    "functions": """SELECT SUM(IF(smoker, income, 0)) AS a, SUM(smoker::INT) AS b, SUM(CAST(income / 7 AS INTEGER)) AS c,
                    SUM(SIGN(income - 50000) + SQRT(income) + EXP(income / 200000) + CEIL(income / 3) + FLOOR(income / 7)) AS d,
                    SUM(GREATEST(income, 30000, birth_year) - LEAST(income, birth_year)) AS e, SUM(ROUND(income / 13)) AS f,
                    SUM(CASE sex WHEN 'f' THEN 1 WHEN 'm' THEN 2.5 END) AS g, AVG(CAST(birth_year AS DOUBLE)) AS h,
                    SUM(CASE WHEN smoker THEN NULL ELSE income END) AS i, SUM(IFNULL(income, -1)) AS j FROM patients""",
    "numbers": "SELECT SUM(cost * 1e2 + .5 - 5. / 2.0 + 1_000) AS a FROM visits WHERE cost >= 12.34 AND cost < 1.5e3",
    "parts": """SELECT date_part('isodow', day) AS a, quarter(day) AS b, dayofweek(day) AS c, EXTRACT('minute' FROM started) AS d, COUNT(*)
                FROM visits WHERE day(day) < 20 AND hour(started) > 3 AND minute(started) < 50
                AND dayofmonth(day) > 2 GROUP BY a, b, c, d""",
    "truncations": """SELECT DATE_TRUNC('week', day) AS a, date_trunc('year', started) AS b, datetrunc('day', started) AS c, COUNT(*)
                      FROM visits GROUP BY 1, 2, 3""",
    "moment-of-asking": """SELECT COUNT(*) FROM visits WHERE day < CURRENT_DATE + INTERVAL '100 years' AND
                  started < LOCALTIMESTAMP + INTERVAL '100 years'
                  AND CAST(CURRENT_TIMESTAMP AS TIMESTAMP) > started - INTERVAL '100 years'""",
    "similar": "SELECT COUNT(*) FROM visits WHERE code SIMILAR TO '(J|C).*'",
    "lists-of-constants": "SELECT COUNT(*) FROM visits WHERE clinic_id = ANY([1, 2, 3]) AND LIST_CONTAINS(['J10', 'J11'], code)",
    "durations": "SELECT COUNT(*) FROM visits WHERE started - day > INTERVAL '3 days' OR EXTRACT(EPOCH FROM (started - day)) < -5",
    **OVER_ANSWERS,
}
