-- Lapwing's own list of statements that analysts write, on the demonstration data set. `lapwing conformance` runs it.
-- Names that start with c are answered, names that start with r are refused.

-- c01: all rows
SELECT COUNT(*) FROM visits;

-- c02: count, sum and average of one column
SELECT COUNT(cost), SUM(cost), AVG(cost) FROM visits;

-- c03: distinct units
SELECT COUNT(DISTINCT patient_id) FROM visits WHERE day >= DATE '2025-01-01';

-- c04: variance and deviation
SELECT VAR_SAMP(cost), STDDEV(cost) FROM visits;

-- c05: median and a quantile
SELECT MEDIAN(cost), QUANTILE_CONT(cost, 0.9) FROM visits;

-- c06: quantile in standard spelling
SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY minutes) FROM visits;

-- c07: average of a condition
SELECT AVG(CASE WHEN smoker THEN 1.0 ELSE 0 END) AS smoking_rate FROM patients;

-- c08: FILTER
SELECT COUNT(*) FILTER (WHERE vaccinated) AS vaccinated, COUNT(*) AS everyone FROM patients;

-- c09: COUNT_IF and a sum of a condition
SELECT COUNT_IF(smoker), SUM(CASE WHEN birth_year < 1960 THEN 1 ELSE 0 END) FROM patients;

-- c10: a percentage
SELECT 100.0 * SUM(CASE WHEN vaccinated THEN 1 ELSE 0 END) / COUNT(*) AS pct FROM patients;

-- c11: distinct values
SELECT COUNT(DISTINCT clinic_id) FROM visits;

-- c12: smallest and largest, as extreme quantiles
SELECT MIN(cost), MAX(cost) FROM visits;

-- c13: declared groups
SELECT region, COUNT(*) FROM patients GROUP BY region;

-- c14: two keys, one with NULL
SELECT sex, smoker, COUNT(*) AS n, AVG(income) FROM patients GROUP BY sex, smoker;

-- c15: undeclared groups, the most frequent
SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug ORDER BY n DESC LIMIT 20;

-- c16: by month
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1;

-- c17: by year and weekday
SELECT EXTRACT(YEAR FROM day) AS y, EXTRACT(DOW FROM day) AS dow, SUM(cost) FROM visits GROUP BY y, dow;

-- c18: by a computed number
SELECT (2025 - birth_year) / 10 * 10 AS decade, COUNT(*) FROM patients GROUP BY decade;

-- c19: by CASE
SELECT CASE WHEN minutes < 15 THEN 'short' WHEN minutes < 60 THEN 'medium' ELSE 'long' END AS length, COUNT(*) FROM visits GROUP BY length;

-- c20: HAVING
SELECT region, COUNT(*) AS n FROM patients GROUP BY region HAVING COUNT(*) > 500 ORDER BY n DESC;

-- c21: ROLLUP
SELECT region, sex, COUNT(*) FROM patients GROUP BY ROLLUP (region, sex);

-- c22: a window over the noisy table
SELECT region, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM patients GROUP BY region;

-- c23: median by group
SELECT region, MEDIAN(income) FROM patients GROUP BY region;

-- c24: DISTINCT of a declared column: free
SELECT DISTINCT region FROM patients;

-- c25: HAVING by alias
SELECT code, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY code HAVING patients >= 100;

-- c26: histogram with width_bucket
SELECT width_bucket(cost, 0, 5000, 20) AS bin, COUNT(*) FROM visits GROUP BY bin;

-- c27: BETWEEN and IN
SELECT COUNT(*) FROM visits WHERE day BETWEEN DATE '2025-03-01' AND DATE '2025-03-31' AND code IN ('J10', 'J11');

-- c28: LIKE, IS NULL, NOT
SELECT COUNT(*) FROM patients WHERE region LIKE 'north%' OR (smoker IS NULL AND NOT vaccinated);

-- c29: sum of a clamped value
SELECT SUM(LEAST(cost, 1000)) FROM visits WHERE minutes > 0;

-- c30: average of a quotient
SELECT AVG(cost / NULLIF(minutes, 0)) FROM visits;

-- c31: sum of an expression
SELECT SUM(COALESCE(cost, 0) * 1.19) FROM visits;

-- c32: logarithm
SELECT AVG(LN(1 + income)) FROM patients WHERE income IS NOT NULL;

-- c33: timestamps
SELECT COUNT(*) FROM visits WHERE started >= TIMESTAMP '2025-06-01 08:00:00' AND EXTRACT(HOUR FROM started) < 12;

-- c34: text functions as a key
SELECT LOWER(SUBSTRING(code, 1, 1)) AS letter, COUNT(*) FROM visits GROUP BY letter;

-- c35: ROUND and ABS
SELECT AVG(ROUND(cost, 1)) FROM visits WHERE ABS(minutes - 30) <= 10;

-- c36: join to a public table
SELECT c.city, COUNT(*) FROM visits v JOIN clinics c ON v.clinic_id = c.clinic_id GROUP BY c.city;

-- c37: join with USING, filter on the public side
SELECT d.chapter, SUM(v.cost) FROM visits v JOIN diagnoses d USING (code) WHERE d.chronic GROUP BY d.chapter;

-- c38: join along the unit
SELECT p.region, AVG(v.cost) FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.region;

-- c39: join over two keys
SELECT p.sex, COUNT(*) FROM prescriptions r JOIN visits v ON r.visit_id = v.visit_id JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex;

-- c40: private and public joins
SELECT c.city, p.sex, COUNT(DISTINCT v.patient_id) FROM visits v JOIN clinics c USING (clinic_id) JOIN patients p USING (patient_id) GROUP BY c.city, p.sex;

-- c41: LEFT JOIN
SELECT p.region, COUNT(v.visit_id) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY p.region;

-- c42: IN over units
SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE code = 'C50');

-- c43: EXISTS over units
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.cost > 1000);

-- c44: IN over a public table
SELECT COUNT(*) FROM visits WHERE clinic_id IN (SELECT clinic_id FROM clinics WHERE kind = 'hospital');

-- c45: rows per unit
SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS per_patient;

-- c46: sums per unit, filtered, and their median
WITH spend AS (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) SELECT COUNT(*) FILTER (WHERE total > 2000), MEDIAN(total) FROM spend;

-- c47: last date per unit, by month
WITH last AS (SELECT patient_id, MAX(day) AS last_day FROM visits GROUP BY patient_id) SELECT DATE_TRUNC('month', last_day) AS m, COUNT(*) FROM last GROUP BY m;

-- c48: join to sums per unit
SELECT p.sex, AVG(s.total) FROM patients p JOIN (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) s ON p.patient_id = s.patient_id GROUP BY p.sex;

-- c49: aggregates of noisy groups
WITH m AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) SELECT MAX(n), SUM(n) FROM m;

-- c50: join of two noisy tables
SELECT a.region, a.n * 1.0 / b.n FROM (SELECT region, COUNT(*) AS n FROM patients WHERE smoker GROUP BY region) a JOIN (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) b ON a.region = b.region;

-- c51: UNION ALL over one relation: charged once
SELECT COUNT(*) FROM visits WHERE day < DATE '2025-01-01' UNION ALL SELECT COUNT(*) FROM visits WHERE day >= DATE '2025-01-01';

-- c52: UNION ALL of rows
SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT v.patient_id FROM prescriptions r JOIN visits v USING (visit_id)) AS events;

-- c53: a ratio of two scalar subqueries
SELECT (SELECT COUNT(*) FROM patients WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM patients);

-- c54: correlation, covariance, slope
SELECT CORR(minutes, cost), COVAR_SAMP(minutes, cost), REGR_SLOPE(cost, minutes) FROM visits;

-- c55: EXPLAIN PRIVACY: free
EXPLAIN PRIVACY SELECT region, AVG(income) FROM patients GROUP BY region;

-- c56: at an epsilon
SELECT region, COUNT(*) FROM patients GROUP BY region WITH PRIVACY (epsilon = 0.2);

-- c57: for an accuracy
SELECT AVG(cost) FROM visits WITH PRIVACY (error = '5%', confidence = 0.95);

-- c58: SHOW PRIVACY BUDGET: free
SHOW PRIVACY BUDGET;

-- r01: rows
SELECT * FROM patients;

-- r02: one row per unit
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id;

-- r03: a self-join not along the unit
SELECT COUNT(*) FROM visits a JOIN visits b ON a.clinic_id = b.clinic_id;

-- r04: a window over rows
SELECT cost, ROW_NUMBER() OVER (ORDER BY cost) FROM visits;

-- r05: a private value for each row in a private filter
SELECT COUNT(*) FROM visits v WHERE cost > (SELECT AVG(w.cost) FROM visits w WHERE w.code = v.code);

-- r06: recursion
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t;

-- r07: regular expressions
SELECT COUNT(*) FROM prescriptions WHERE regexp_matches(drug, '(a+)+$');

-- r08: texts put together
SELECT STRING_AGG(drug, ',') FROM prescriptions;

-- r09: TABLESAMPLE
SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT;

-- r10: an engine's own function
SELECT SUM(cost) FROM visits WHERE pg_sleep(1) IS NULL;

-- r11: SQL inside a text
SELECT COUNT(*) FROM query('SELECT * FROM patients');

-- r12: two statements
SELECT COUNT(*) FROM visits; DROP TABLE visits;

-- r13: a change
DELETE FROM visits;

-- r14: a cross join
SELECT COUNT(*) FROM patients p, visits v;

-- r15: a table that is no name
SELECT COUNT(*) FROM visits@x;

-- r16: CAST of text
SELECT SUM(CAST(code AS INTEGER)) FROM visits;

-- r17: randomness in a filter
SELECT AVG(cost) FROM visits WHERE random() < 0.5;

-- r18: the engine's catalogue
SELECT COUNT(*) FROM information_schema.tables, patients;

-- r19: a filter that other units decide
SELECT COUNT(*) FROM patients p JOIN visits v ON p.patient_id = v.patient_id WHERE v.clinic_id IN (SELECT clinic_id FROM visits WHERE code = 'C50');

-- r20: NOT EXISTS that other units decide
SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.clinic_id = v.clinic_id AND w.cost > 4000);

-- r21: a join on values
SELECT COUNT(*) FROM visits v JOIN prescriptions r ON v.cost = r.dose_mg;
