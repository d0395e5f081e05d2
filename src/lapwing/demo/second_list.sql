-- Statements that tools and people write, on the demonstration data set. `lapwing conformance --list second` runs them.
-- Each has its kind, its name and what becomes of it: answered (the result is that of the bare engine), the code of its refusal, or
-- known-wrong, with the reason in the next line. What became answerable or right is written down with
-- LAPWING_WRITE_GOLDEN=1 LAPWING_TIER=nightly pytest tests/unit/audit/test_second_list.py

-- bi superset-01: answered
SELECT COUNT(*) AS count FROM public.visits LIMIT 50000;

-- bi superset-02: answered
SELECT DATE_TRUNC('month', started) AS started, COUNT(*) AS count FROM public.visits WHERE started >= TO_TIMESTAMP('2024-06-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND started < TO_TIMESTAMP('2025-06-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('month', started) ORDER BY count DESC LIMIT 10000;

-- bi superset-03: answered
SELECT region AS region, sex AS sex, AVG(income) AS "AVG(income)" FROM public.patients GROUP BY region, sex ORDER BY "AVG(income)" DESC LIMIT 10000;

-- bi superset-04: answered
SELECT city AS city, sum(cost) AS "SUM(cost)" FROM (SELECT v.*, c.city, c.kind FROM visits v JOIN clinics c ON v.clinic_id = c.clinic_id ) AS virtual_table GROUP BY city ORDER BY "SUM(cost)" DESC LIMIT 10000;

-- bi superset-05: answered
SELECT DATE_TRUNC('month', day) AS day, code AS code, COUNT(*) AS count FROM public.visits JOIN (SELECT code AS code__, COUNT(*) AS mme_inner__ FROM public.visits WHERE day >= TO_DATE('2024-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2025-01-01', 'YYYY-MM-DD') GROUP BY code ORDER BY mme_inner__ DESC LIMIT 5) AS series_limit ON code = code__ WHERE day >= TO_DATE('2024-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2025-01-01', 'YYYY-MM-DD') GROUP BY DATE_TRUNC('month', day), code ORDER BY count DESC LIMIT 10000;

-- bi superset-06: answered
SELECT region AS region, SUM(CASE WHEN smoker THEN 1 ELSE 0 END)::float / COUNT(*) AS smoking_rate FROM public.patients GROUP BY region ORDER BY smoking_rate DESC LIMIT 10000;

-- bi superset-07: answered
SELECT region AS region FROM public.patients GROUP BY region LIMIT 1000;

-- bi superset-08: rows-not-aggregates
SELECT patient_id AS patient_id, region AS region, income AS income FROM public.patients LIMIT 1000;

-- bi superset-09: answered
SELECT DATE_TRUNC('hour', started) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM started) / 15) AS started, COUNT(*) AS count FROM public.visits WHERE started >= TO_TIMESTAMP('2025-06-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND started < TO_TIMESTAMP('2025-06-02 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('hour', started) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM started) / 15) ORDER BY count DESC LIMIT 10000;

-- bi superset-10: answered
SELECT DATE_TRUNC('week', day) AS day, COUNT(DISTINCT patient_id) AS "COUNT_DISTINCT(patient_id)" FROM public.visits WHERE day >= TO_DATE('2025-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2025-04-01', 'YYYY-MM-DD') GROUP BY DATE_TRUNC('week', day) ORDER BY "COUNT_DISTINCT(patient_id)" DESC LIMIT 10000;

-- bi superset-11: answered
SELECT code AS code, percentile_cont(0.9) WITHIN GROUP (ORDER BY cost) AS p90 FROM public.visits GROUP BY code ORDER BY p90 DESC LIMIT 100;

-- bi superset-12: answered
SELECT EXTRACT(DOW FROM started) AS dow, EXTRACT(HOUR FROM started) AS hour, COUNT(*) AS count FROM public.visits GROUP BY EXTRACT(DOW FROM started), EXTRACT(HOUR FROM started) ORDER BY count DESC LIMIT 10000;

-- bi superset-13: answered
SELECT min(day) AS "MIN(day)", max(day) AS "MAX(day)" FROM public.visits LIMIT 10000;

-- bi superset-14: answered
WITH __cte AS (SELECT v.patient_id, v.cost, p.region FROM visits v JOIN patients p ON p.patient_id = v.patient_id) SELECT region AS region, sum(cost) AS "SUM(cost)" FROM (SELECT * FROM __cte) AS virtual_table GROUP BY region ORDER BY "SUM(cost)" DESC LIMIT 10000;

-- bi superset-15: answered
SELECT region AS region, COUNT(*) AS count FROM public.patients WHERE region IN ('northam', 'ashford') AND sex NOT IN ('x') AND income IS NOT NULL AND region ILIKE '%a%' GROUP BY region HAVING COUNT(*) > 10 ORDER BY count DESC LIMIT 10000;

-- bi superset-16: answered
SELECT COUNT(*) AS rowcount FROM (SELECT region AS region, COUNT(*) AS count FROM public.patients GROUP BY region) AS rowcount_qry LIMIT 50000;

-- bi metabase-01: answered
SELECT COUNT(*) AS "count" FROM "public"."visits";

-- bi metabase-02: answered
SELECT CAST(DATE_TRUNC('month', "public"."visits"."started") AS date) AS "started", COUNT(*) AS "count" FROM "public"."visits" GROUP BY CAST(DATE_TRUNC('month', "public"."visits"."started") AS date) ORDER BY CAST(DATE_TRUNC('month', "public"."visits"."started") AS date) ASC;

-- bi metabase-03: answered
SELECT "source"."region" AS "region", COUNT(*) AS "count" FROM (SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."region" AS "region", "public"."patients"."sex" AS "sex", "public"."patients"."income" AS "income" FROM "public"."patients" WHERE "public"."patients"."sex" = 'f') AS "source" WHERE "source"."income" > 1000 GROUP BY "source"."region" ORDER BY "source"."region" ASC;

-- bi metabase-04: answered
SELECT "Clinics - Clinic"."city" AS "Clinics - Clinic__city", SUM("public"."visits"."cost") AS "sum" FROM "public"."visits" LEFT JOIN "public"."clinics" AS "Clinics - Clinic" ON "public"."visits"."clinic_id" = "Clinics - Clinic"."clinic_id" GROUP BY "Clinics - Clinic"."city" ORDER BY "sum" DESC, "Clinics - Clinic"."city" ASC;

-- bi metabase-05: answered
SELECT ((FLOOR((("public"."visits"."cost" - 0.0) / 250.0)) * 250.0) + 0.0) AS "cost", COUNT(*) AS "count" FROM "public"."visits" GROUP BY ((FLOOR((("public"."visits"."cost" - 0.0) / 250.0)) * 250.0) + 0.0) ORDER BY ((FLOOR((("public"."visits"."cost" - 0.0) / 250.0)) * 250.0) + 0.0) ASC;

-- bi metabase-06: answered
SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE ("public"."visits"."started" >= DATE_TRUNC('day', (NOW() + INTERVAL '-30 day'))) AND ("public"."visits"."started" < DATE_TRUNC('day', NOW()));

-- bi metabase-07: answered
SELECT "public"."visits"."clinic_id" AS "clinic_id", COUNT(DISTINCT "public"."visits"."patient_id") AS "count" FROM "public"."visits" GROUP BY "public"."visits"."clinic_id" ORDER BY "public"."visits"."clinic_id" ASC;

-- bi metabase-08: answered
SELECT "source"."started" AS "started", SUM("source"."count") OVER (ORDER BY "source"."started" ASC ROWS UNBOUNDED PRECEDING) AS "count" FROM (SELECT CAST(DATE_TRUNC('month', "public"."visits"."started") AS date) AS "started", COUNT(*) AS "count" FROM "public"."visits" GROUP BY CAST(DATE_TRUNC('month', "public"."visits"."started") AS date)) AS "source" ORDER BY "source"."started" ASC;

-- bi metabase-09: answered
SELECT "public"."patients"."region" AS "region", CAST(SUM(CASE WHEN "public"."patients"."vaccinated" = TRUE THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(CAST(COUNT(*) AS DOUBLE PRECISION), 0.0) AS "share" FROM "public"."patients" GROUP BY "public"."patients"."region" ORDER BY "public"."patients"."region" ASC;

-- bi metabase-10: answered
SELECT CAST((DATE_TRUNC('week', ("public"."visits"."started" + INTERVAL '1 day')) + INTERVAL '-1 day') AS date) AS "started", COUNT(*) AS "count" FROM "public"."visits" GROUP BY CAST((DATE_TRUNC('week', ("public"."visits"."started" + INTERVAL '1 day')) + INTERVAL '-1 day') AS date) ORDER BY CAST((DATE_TRUNC('week', ("public"."visits"."started" + INTERVAL '1 day')) + INTERVAL '-1 day') AS date) ASC;

-- bi metabase-11: answered
SELECT "public"."patients"."region" AS "region" FROM "public"."patients" GROUP BY "public"."patients"."region" ORDER BY "public"."patients"."region" ASC LIMIT 1000;

-- bi metabase-12: answered
SELECT COUNT(*) AS "count" FROM "public"."patients" WHERE (LOWER("public"."patients"."region") LIKE '%north%');

-- bi metabase-13: answered
SELECT CAST(EXTRACT(hour FROM "public"."visits"."started") AS integer) AS "started", AVG("public"."visits"."cost") AS "avg" FROM "public"."visits" GROUP BY CAST(EXTRACT(hour FROM "public"."visits"."started") AS integer) ORDER BY CAST(EXTRACT(hour FROM "public"."visits"."started") AS integer) ASC;

-- bi metabase-14: rows-not-aggregates
SELECT "public"."visits"."visit_id" AS "visit_id", "public"."visits"."day" AS "day", "public"."visits"."cost" AS "cost" FROM "public"."visits" LIMIT 2000;

-- bi tableau-01: answered
SELECT SUM(1) AS "cnt:visits:ok" FROM "public"."visits" "visits" HAVING (COUNT(1) > 0);

-- bi tableau-02: answered
SELECT "visits"."clinic_id" AS "clinic_id", SUM("visits"."cost") AS "sum:cost:ok" FROM "public"."visits" "visits" GROUP BY 1;

-- bi tableau-03: answered
SELECT SUM("visits"."cost") AS "sum:cost:ok", DATE_TRUNC( 'MONTH', CAST("visits"."day" AS TIMESTAMP) ) AS "tmn:day:ok" FROM "public"."visits" "visits" GROUP BY 2;

-- bi tableau-04: answered
SELECT CAST(TRUNC(EXTRACT(YEAR FROM "visits"."day")) AS INTEGER) AS "yr:day:ok", SUM(CAST("visits"."minutes" AS BIGINT)) AS "sum:minutes:ok" FROM "public"."visits" "visits" GROUP BY 1;

-- bi tableau-05: answered
SELECT MIN("visits"."cost") AS "TEMP(none:cost:qk lower)(290714814)(0)", MAX("visits"."cost") AS "TEMP(none:cost:qk upper)(290714814)(0)" FROM "public"."visits" "visits" HAVING (COUNT(1) > 0);

-- bi tableau-06: answered
SELECT "patients"."region" AS "region", AVG("t0"."__measure__0") AS "avg:Calculation_1:ok" FROM "public"."patients" "patients" INNER JOIN ( SELECT "visits"."patient_id" AS "patient_id", COUNT(1) AS "__measure__0" FROM "public"."visits" "visits" GROUP BY 1 ) "t0" ON ("patients"."patient_id" = "t0"."patient_id") GROUP BY 1;

-- bi tableau-07: answered
SELECT "visits"."code" AS "code", SUM("visits"."cost") AS "sum:cost:ok" FROM "public"."visits" "visits" INNER JOIN ( SELECT "visits"."code" AS "code", SUM("visits"."cost") AS "$__alias__0" FROM "public"."visits" "visits" GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 10 ) "t0" ON ("visits"."code" = "t0"."code") GROUP BY 1;

-- bi tableau-08: answered
SELECT "patients"."sex" AS "sex", SUM(1) AS "sum:Number of Records:ok" FROM "public"."patients" "patients" WHERE (CASE WHEN ("patients"."sex" = 'x') THEN FALSE ELSE TRUE END) GROUP BY 1;

-- bi tableau-09: answered
SELECT "visits"."clinic_id" AS "clinic_id", COUNT(DISTINCT (CASE WHEN ("visits"."cost" > 100) THEN "visits"."patient_id" ELSE NULL END)) AS "usr:Calculation_2:ok" FROM "public"."visits" "visits" GROUP BY 1;

-- bi tableau-10: answered
SELECT "Custom SQL Query"."region" AS "region", SUM("Custom SQL Query"."cost") AS "sum:cost:ok" FROM ( select p.region, v.cost, v.patient_id from visits v inner join patients p on p.patient_id = v.patient_id where v.day >= '2025-01-01' ) "Custom SQL Query" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST;

-- bi tableau-11: answered
SELECT (CASE WHEN ("visits"."clinic_id" IN (1, 2, 3)) THEN 'Group A' ELSE CAST("visits"."clinic_id" AS TEXT) END) AS "Clinic (group)", COUNT("visits"."visit_id") AS "cnt:visit_id:ok" FROM "public"."visits" "visits" WHERE (("visits"."day" >= CAST('2024-03-01' AS DATE)) AND ("visits"."day" <= CAST('2024-12-31' AS DATE)) AND (NOT ("visits"."cost" IS NULL))) GROUP BY 1;

-- bi tableau-12: answered
SELECT "clinics"."city" AS "city", "patients"."sex" AS "sex", COUNT(DISTINCT "visits"."patient_id") AS "ctd:patient_id:ok", SUM("visits"."cost") AS "sum:cost:ok" FROM "public"."visits" "visits" INNER JOIN "public"."clinics" "clinics" ON ("visits"."clinic_id" = "clinics"."clinic_id") INNER JOIN "public"."patients" "patients" ON ("visits"."patient_id" = "patients"."patient_id") GROUP BY 1, 2;

-- bi tableau-13: answered
SELECT "t0"."clinic_id" AS "clinic_id", ("t0"."__measure__0" / "t1"."__measure__1") AS "usr:pct:ok" FROM ( SELECT "visits"."clinic_id" AS "clinic_id", SUM("visits"."cost") AS "__measure__0" FROM "public"."visits" "visits" GROUP BY 1 ) "t0" CROSS JOIN ( SELECT SUM("visits"."cost") AS "__measure__1" FROM "public"."visits" "visits" HAVING (COUNT(1) > 0) ) "t1";

-- bi tableau-14: answered
SELECT CAST("visits"."clinic_id" AS BIGINT) AS "clinic_id", SUM(CAST("visits"."minutes" AS BIGINT)) AS "sum:minutes:ok" FROM "visits" WHERE (CAST("visits"."clinic_id" AS BIGINT) IN (1, 2, 3)) GROUP BY "visits"."clinic_id", "visits"."clinic_id";

-- bi looker-01: answered
SELECT (DATE(visits.started )) AS "visits.started_date", COUNT(*) AS "visits.count", COUNT(DISTINCT visits.patient_id ) AS "visits.count_patients" FROM public.visits AS visits WHERE ((( visits.started ) >= (TIMESTAMP '2025-01-01') AND ( visits.started ) < (TIMESTAMP '2025-02-01'))) GROUP BY 1 ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY;

-- bi looker-02: answered
SELECT (TO_CHAR(DATE_TRUNC('month', visits.started ), 'YYYY-MM')) AS "visits.started_month", COALESCE(SUM(visits.cost ), 0) AS "visits.total_cost" FROM public.visits AS visits GROUP BY (DATE_TRUNC('month', visits.started )) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY;

-- bi looker-03: answered
SELECT clinics.city AS "clinics.city", CASE WHEN visits.minutes > 30 THEN 'Yes' ELSE 'No' END AS "visits.is_long", AVG(visits.cost ) AS "visits.average_cost" FROM public.visits AS visits LEFT JOIN public.clinics AS clinics ON visits.clinic_id = clinics.clinic_id GROUP BY 1, 2 ORDER BY 3 DESC FETCH NEXT 500 ROWS ONLY;

-- bi looker-04: answered
SELECT CASE WHEN 2025 - patients.birth_year < 18 THEN 'Below 18' WHEN 2025 - patients.birth_year >= 18 AND 2025 - patients.birth_year < 65 THEN '18 to 64' WHEN 2025 - patients.birth_year >= 65 THEN '65 or Above' ELSE 'Undefined' END AS "patients.age_tier", COUNT(*) AS "patients.count" FROM public.patients AS patients GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY;

-- bi looker-05: answered
SELECT patients.region AS "patients.region", COUNT(DISTINCT patients.patient_id ) AS "patients.count", COALESCE(SUM(visits.cost ), 0) AS "visits.total_cost" FROM public.patients AS patients LEFT JOIN public.visits AS visits ON patients.patient_id = visits.patient_id GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY;

-- bi looker-06: answered
SELECT * FROM ( SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) as z___pivot_row_rank, RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) as z__pivot_col_ordering, CASE WHEN z___min_rank = z___rank THEN 1 ELSE 0 END AS z__is_highest_ranked_cell FROM ( SELECT *, MIN(z___rank) OVER (PARTITION BY "patients.region") as z___min_rank FROM ( SELECT *, RANK() OVER (ORDER BY CASE WHEN z__pivot_col_rank=1 THEN (CASE WHEN "patients.count" IS NOT NULL THEN 0 ELSE 1 END) ELSE 2 END, "patients.count" DESC, z__pivot_col_rank, "patients.region") AS z___rank FROM ( SELECT *, DENSE_RANK() OVER (ORDER BY CASE WHEN "patients.sex" IS NULL THEN 1 ELSE 0 END, "patients.sex") AS z__pivot_col_rank FROM ( SELECT patients.sex AS "patients.sex", patients.region AS "patients.region", COUNT(*) AS "patients.count" FROM public.patients AS patients GROUP BY 1, 2) ww ) bb WHERE z__pivot_col_rank <= 16384 ) aa ) xx ) zz WHERE (z__pivot_col_rank <= 50 OR z__is_highest_ranked_cell = 1) AND (z___pivot_row_rank <= 500 OR z__pivot_col_ordering = 1) ORDER BY z___pivot_row_rank;

-- bi powerbi-01: answered
select "rows"."region" as "region", sum("rows"."income") as "a0" from ( select "region", "income" from "public"."patients" "$Table" ) "rows" group by "region" limit 1000001;

-- bi powerbi-02: answered
select "_"."region", "_"."a0" from ( select "rows"."region" as "region", count(distinct("rows"."patient_id")) + max(case when "rows"."patient_id" is null then 1 else 0 end) as "a0" from ( select "patient_id", "region" from "public"."patients" "$Table" ) "rows" group by "region" ) "_" where not "_"."a0" is null limit 1000001;

-- bi powerbi-03: answered
select count(1) as "a0" from ( select "day" from "public"."visits" "$Table" ) "rows" where "day" >= date '2025-01-01' and "day" < date '2025-02-01';

-- bi powerbi-04: answered
select "rows"."city" as "city", sum("rows"."cost") as "a0" from ( select "$Outer"."cost", "$Inner"."city" from "public"."visits" "$Outer" left outer join "public"."clinics" "$Inner" on ("$Outer"."clinic_id" = "$Inner"."clinic_id") ) "rows" group by "city" limit 1000001;

-- bi dbt-01: answered
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( select visit_id from "clinic"."public"."visits" where visit_id is null ) dbt_internal_test;

-- bi dbt-02: answered
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( select visit_id as unique_field, count(*) as n_records from "clinic"."public"."visits" where visit_id is not null group by visit_id having count(*) > 1 ) dbt_internal_test;

-- bi dbt-03: answered
with all_values as ( select sex as value_field, count(*) as n_records from "clinic"."public"."patients" group by sex ) select * from all_values where value_field not in ( 'f','m','x' );

-- bi dbt-04: answered
SELECT DATE_TRUNC('month', visits_src_1.day) AS metric_time__month , SUM(visits_src_1.cost) AS total_cost FROM "clinic"."public"."visits" visits_src_1 LEFT OUTER JOIN "clinic"."public"."patients" patients_src_2 ON visits_src_1.patient_id = patients_src_2.patient_id WHERE patients_src_2.sex = 'f' GROUP BY DATE_TRUNC('month', visits_src_1.day);

-- bi dbt-05: answered
with child as ( select patient_id as from_field from "clinic"."public"."visits" where patient_id is not null ), parent as ( select patient_id as to_field from "clinic"."public"."patients" ) select count(*) as failures from child left join parent on child.from_field = parent.to_field where parent.to_field is null;

-- idioms cohort-1-first-month-per-user: answered
WITH first AS (SELECT patient_id, MIN(day) AS first_day FROM visits GROUP BY patient_id) SELECT DATE_TRUNC('month', first_day) AS cohort, COUNT(*) AS users FROM first GROUP BY 1 ORDER BY 1;

-- idioms cohort-2-retention-matrix: answered
WITH first AS (SELECT patient_id, DATE_TRUNC('month', MIN(day)) AS cohort FROM visits GROUP BY patient_id) SELECT f.cohort, DATE_DIFF('month', f.cohort, DATE_TRUNC('month', v.day)) AS k, COUNT(DISTINCT v.patient_id) AS users FROM visits v JOIN first f ON v.patient_id = f.patient_id GROUP BY 1, 2 ORDER BY 1, 2;

-- idioms cohort-3-retention-share: answered
WITH first AS (SELECT patient_id, MIN(day) AS d0 FROM visits GROUP BY patient_id), m AS (SELECT DATE_TRUNC('quarter', f.d0) AS cohort, DATE_DIFF('quarter', f.d0, v.day) AS k, COUNT(DISTINCT v.patient_id) AS users FROM visits v JOIN first f ON v.patient_id = f.patient_id GROUP BY 1, 2), size AS (SELECT DATE_TRUNC('quarter', d0) AS cohort, COUNT(*) AS n FROM first GROUP BY 1) SELECT m.cohort, m.k, m.users * 1.0 / size.n AS retention FROM m JOIN size ON m.cohort = size.cohort ORDER BY 1, 2;

-- idioms cohort-4-d30-retention: answered
SELECT AVG(CASE WHEN returned THEN 1.0 ELSE 0 END) FROM (SELECT f.patient_id, MAX(CASE WHEN v.day > f.d0 AND v.day <= f.d0 + 30 THEN 1 ELSE 0 END) = 1 AS returned FROM visits v JOIN (SELECT patient_id, MIN(day) AS d0 FROM visits GROUP BY patient_id) f ON v.patient_id = f.patient_id GROUP BY f.patient_id) t;

-- idioms funnel-1-bool-flags: answered
SELECT COUNT(*) AS visited, COUNT(*) FILTER (WHERE s2 > 0) AS chronic, COUNT(*) FILTER (WHERE s2 > 0 AND s3 > 0) AS expensive FROM (SELECT patient_id, COUNT(*) AS s1, COUNT(*) FILTER (WHERE code = 'E11') AS s2, COUNT(*) FILTER (WHERE cost > 1000) AS s3 FROM visits GROUP BY patient_id) t;

-- idioms funnel-2-bool-or: answered
SELECT COUNT_IF(a), COUNT_IF(a AND b) FROM (SELECT patient_id, BOOL_OR(code = 'E11') AS a, BOOL_OR(cost > 1000) AS b FROM visits GROUP BY patient_id) t;

-- idioms funnel-3-ordered-steps: answered
WITH s1 AS (SELECT patient_id, MIN(day) AS t1 FROM visits WHERE code = 'E11' GROUP BY patient_id), s2 AS (SELECT v.patient_id, MIN(v.day) AS t2 FROM visits v JOIN s1 ON v.patient_id = s1.patient_id AND v.day > s1.t1 WHERE v.cost > 100 GROUP BY v.patient_id) SELECT (SELECT COUNT(*) FROM s1) AS step1, (SELECT COUNT(*) FROM s2) AS step2;

-- idioms funnel-4-self-join: answered
SELECT COUNT(DISTINCT a.patient_id) FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND b.day > a.day AND b.day <= a.day + 30 WHERE a.code = 'E11' AND b.cost > 100;

-- idioms funnel-5-left-joins: answered
SELECT COUNT(DISTINCT a.patient_id) AS s1, COUNT(DISTINCT b.patient_id) AS s2 FROM visits a LEFT JOIN visits b ON a.patient_id = b.patient_id AND b.day > a.day WHERE a.code = 'E11';

-- idioms session-1-lag-gap: answered
SELECT COUNT(*) AS sessions FROM (SELECT patient_id, started, LAG(started) OVER (PARTITION BY patient_id ORDER BY started) AS prev FROM visits) t WHERE prev IS NULL OR started > prev + INTERVAL '30 days';

-- idioms session-2-running-sum: answered
SELECT AVG(n) FROM (SELECT patient_id, sid, COUNT(*) AS n FROM (SELECT patient_id, SUM(new) OVER (PARTITION BY patient_id ORDER BY started) AS sid FROM (SELECT patient_id, started, CASE WHEN started - LAG(started) OVER (PARTITION BY patient_id ORDER BY started) > INTERVAL '30 days' THEN 1 ELSE 0 END AS new FROM visits) a) b GROUP BY patient_id, sid) c;

-- idioms session-3-mean-gap: answered
SELECT AVG(DATE_DIFF('day', prev, day)) FROM (SELECT day, LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS prev FROM visits) t;

-- idioms pct-1: answered
SELECT region, QUANTILE_CONT(income, 0.5), QUANTILE_CONT(income, 0.95) FROM patients GROUP BY region;

-- idioms pct-2-list: quantile-invalid
SELECT region, QUANTILE_CONT(income, [0.25, 0.5, 0.75]) FROM patients GROUP BY region;

-- idioms pct-3-approx: answered
SELECT clinic_id, APPROX_QUANTILE(cost, 0.9) FROM visits GROUP BY clinic_id;

-- idioms pct-4-within-group-by: answered
SELECT c.city, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v.cost) FROM visits v JOIN clinics c USING (clinic_id) GROUP BY c.city;

-- idioms pct-5-iqr: answered
SELECT region, QUANTILE_CONT(income, 0.75) - QUANTILE_CONT(income, 0.25) AS iqr FROM patients GROUP BY region;

-- idioms topn-1-row-number: answered
SELECT city, code, n FROM (SELECT c.city, v.code, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY c.city ORDER BY COUNT(*) DESC) AS rn FROM visits v JOIN clinics c ON v.clinic_id = c.clinic_id GROUP BY c.city, v.code) t WHERE rn <= 3 ORDER BY city, rn;

-- idioms topn-2-qualify: answered
SELECT clinic_id, code, COUNT(*) AS n FROM visits GROUP BY clinic_id, code QUALIFY ROW_NUMBER() OVER (PARTITION BY clinic_id ORDER BY COUNT(*) DESC) <= 3;

-- idioms topn-3-distinct-on: answered
SELECT DISTINCT ON (clinic_id) clinic_id, code, COUNT(*) AS n FROM visits GROUP BY clinic_id, code ORDER BY clinic_id, n DESC;

-- idioms topn-4-arg-max: answered
SELECT clinic_id, ARG_MAX(code, n) FROM (SELECT clinic_id, code, COUNT(*) AS n FROM visits GROUP BY clinic_id, code) t GROUP BY clinic_id;

-- idioms topn-5-mode: answered
SELECT region, MODE(sex) FROM patients GROUP BY region;

-- idioms topn-6-per-unit-first-row: answered
SELECT code, COUNT(*) FROM (SELECT patient_id, code, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY started) AS rn FROM visits) t WHERE rn = 1 GROUP BY code;

-- idioms topn-7-per-unit-arg-min: answered
SELECT first_code, COUNT(*) FROM (SELECT patient_id, ARG_MIN(code, started) AS first_code FROM visits GROUP BY patient_id) t GROUP BY first_code;

-- idioms topn-8-latest-record: answered
SELECT AVG(cost) FROM (SELECT DISTINCT ON (patient_id) patient_id, cost FROM visits ORDER BY patient_id, started DESC) t;

-- idioms ma-1-rows-frame: answered
SELECT day, COUNT(*) AS n, AVG(COUNT(*)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM visits GROUP BY day ORDER BY day;

-- idioms ma-2-range-interval: answered
SELECT day, SUM(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS s7 FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) t ORDER BY day;

-- idioms ma-3-cumulative: answered
SELECT m, n, SUM(n) OVER (ORDER BY m) AS cum FROM (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1) t ORDER BY m;

-- idioms ma-4-lag: answered
SELECT m, n, n - LAG(n) OVER (ORDER BY m) AS diff, n * 1.0 / LAG(n, 1) OVER (ORDER BY m) - 1 AS growth FROM (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1) t ORDER BY m;

-- idioms ma-5-self-join-answers: answered
WITH d AS (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1) SELECT a.m, a.n, b.n AS prev FROM d a LEFT JOIN d b ON b.m = a.m - INTERVAL '1 month' ORDER BY 1;

-- idioms yoy-1-filter: answered
SELECT MONTH(day) AS m, COUNT(*) FILTER (WHERE YEAR(day) = 2024) AS y24, COUNT(*) FILTER (WHERE YEAR(day) = 2025) AS y25, COUNT(*) FILTER (WHERE YEAR(day) = 2025) * 1.0 / COUNT(*) FILTER (WHERE YEAR(day) = 2024) - 1 AS yoy FROM visits GROUP BY 1 ORDER BY 1;

-- idioms yoy-2-lag-12: answered
WITH m AS (SELECT DATE_TRUNC('month', day) AS mon, SUM(cost) AS c FROM visits GROUP BY 1) SELECT mon, c, LAG(c, 12) OVER (ORDER BY mon) AS prev FROM m ORDER BY mon;

-- idioms yoy-3-join: answered
SELECT a.m, a.n, b.n FROM (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits WHERE YEAR(day) = 2025 GROUP BY 1) a JOIN (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits WHERE YEAR(day) = 2024 GROUP BY 1) b USING (m);

-- idioms share-1-window: answered
SELECT region, COUNT(*) AS n, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM patients GROUP BY region ORDER BY pct DESC;

-- idioms share-2-scalar: answered
SELECT region, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM patients) AS share FROM patients GROUP BY region;

-- idioms share-3-cte: answered
WITH t AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) SELECT region, n * 1.0 / (SELECT SUM(n) FROM t) AS share FROM t;

-- idioms share-4-cross-join: answered
WITH t AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region), s AS (SELECT SUM(n) AS total FROM t) SELECT region, n * 1.0 / total AS share FROM t CROSS JOIN s;

-- idioms share-5-partition: answered
SELECT region, sex, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY region) AS p FROM patients GROUP BY region, sex;

-- idioms share-6-ratio-to-cumulative-pareto: answered
SELECT code, n, SUM(n) OVER (ORDER BY n DESC) * 1.0 / SUM(n) OVER () AS cum FROM (SELECT code, COUNT(*) AS n FROM visits GROUP BY code) t ORDER BY n DESC;

-- idioms dau-1: answered
SELECT day, COUNT(DISTINCT patient_id) AS dau FROM visits GROUP BY day ORDER BY day;

-- idioms dau-2-rolling-7-self-join-spine: join-not-on-key
SELECT d.day, COUNT(DISTINCT v.patient_id) AS wau FROM (SELECT CAST(range AS DATE) AS day FROM range(DATE '2025-01-01', DATE '2025-02-01', INTERVAL 1 DAY)) d JOIN visits v ON v.day > d.day - 7 AND v.day <= d.day GROUP BY d.day ORDER BY d.day;

-- idioms dau-3-wau-mau: answered
SELECT DATE_TRUNC('week', day) AS w, COUNT(DISTINCT patient_id) AS wau, COUNT(*) * 1.0 / COUNT(DISTINCT patient_id) AS per_user FROM visits GROUP BY 1 ORDER BY 1;

-- idioms dau-4-approx: answered
SELECT APPROX_COUNT_DISTINCT(patient_id) FROM visits;

-- idioms dau-5-new-vs-returning: answered
WITH f AS (SELECT patient_id, MIN(day) AS d0 FROM visits GROUP BY patient_id) SELECT DATE_TRUNC('month', v.day) AS m, COUNT(DISTINCT CASE WHEN DATE_TRUNC('month', f.d0) = DATE_TRUNC('month', v.day) THEN v.patient_id END) AS new, COUNT(DISTINCT CASE WHEN f.d0 < DATE_TRUNC('month', v.day) THEN v.patient_id END) AS returning_ FROM visits v JOIN f ON f.patient_id = v.patient_id GROUP BY 1 ORDER BY 1;

-- idioms pivot-1-filter: answered
SELECT region, COUNT(*) FILTER (WHERE sex = 'f') AS f, COUNT(*) FILTER (WHERE sex = 'm') AS m, COUNT(*) FILTER (WHERE sex = 'x') AS x FROM patients GROUP BY region;

-- idioms pivot-2-case: answered
SELECT region, SUM(CASE WHEN sex = 'f' THEN income ELSE 0 END) AS f, SUM(CASE WHEN sex = 'm' THEN income ELSE 0 END) AS m FROM patients GROUP BY region;

-- idioms pivot-3-pivot: statement-unsupported
PIVOT patients ON sex USING COUNT(*) GROUP BY region;

-- idioms pivot-4-pivot-in-from: answered
SELECT * FROM (SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex) PIVOT (SUM(n) FOR sex IN ('f', 'm', 'x'));

-- idioms pivot-5-avg-case: answered
SELECT region, AVG(CASE WHEN sex = 'f' THEN income END) AS f, AVG(CASE WHEN sex = 'm' THEN income END) AS m FROM patients GROUP BY region;

-- idioms hist-1-width-bucket: answered
SELECT WIDTH_BUCKET(income, 0, 200000, 10) AS b, COUNT(*) FROM patients GROUP BY 1 ORDER BY 1;

-- idioms hist-2-floor-int: answered
SELECT FLOOR(cost / 100) AS b, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1;

-- idioms hist-3-floor-times: answered
SELECT FLOOR(cost / 100) * 100 AS b, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1;

-- idioms hist-4-floor-times-real: answered
SELECT FLOOR(cost / 100.0) * 100.0 AS b, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1;

-- idioms hist-5-round-neg: answered
SELECT ROUND(income, -4) AS b, COUNT(*) FROM patients GROUP BY 1;

-- idioms hist-6-case-buckets: answered
SELECT CASE WHEN cost < 50 THEN '0-50' WHEN cost < 200 THEN '50-200' ELSE '200+' END AS b, COUNT(*) FROM visits GROUP BY 1;

-- idioms hist-7-int-division: answered
SELECT birth_year // 10 * 10 AS decade, COUNT(*) FROM patients GROUP BY 1;

-- idioms hist-8-age: answered
SELECT DATE_DIFF('year', MAKE_DATE(birth_year, 1, 1), DATE '2025-01-01') AS age, COUNT(*) FROM patients GROUP BY 1;

-- idioms hist-9-ntile-per-unit: window-unsupported
SELECT q, AVG(total) FROM (SELECT patient_id, SUM(cost) AS total, NTILE(4) OVER (ORDER BY SUM(cost)) AS q FROM visits GROUP BY patient_id) t GROUP BY q;

-- idioms hist-10-visits-per-user-histogram: answered
SELECT n, COUNT(*) AS users FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t GROUP BY n ORDER BY n;

-- idioms hist-11-capped: answered
SELECT LEAST(n, 10) AS n, COUNT(*) AS users FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t GROUP BY 1 ORDER BY 1;

-- idioms lag-1: answered
SELECT AVG(cost - prev) FROM (SELECT cost, LAG(cost) OVER (PARTITION BY patient_id ORDER BY started) AS prev FROM visits) t;

-- idioms lag-2-transitions: answered
SELECT prev, code, COUNT(*) FROM (SELECT code, LAG(code) OVER (PARTITION BY patient_id ORDER BY started) AS prev FROM visits) t GROUP BY 1, 2;

-- idioms lag-3-first-value: answered
SELECT AVG(cost) FROM (SELECT cost, FIRST_VALUE(clinic_id) OVER (PARTITION BY patient_id ORDER BY started) AS c FROM visits) t WHERE c = 1;

-- idioms lag-4-row-share-of-unit-total: known-wrong
-- why: a quotient of wide range is rounded to a coarse grid: 2.8 % too low
SELECT AVG(cost / total) FROM (SELECT v.cost, s.total FROM visits v JOIN (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) s ON v.patient_id = s.patient_id WHERE s.total > 0) t;

-- idioms lag-5-sum-over-partition: answered
SELECT COUNT(*) FROM (SELECT patient_id, SUM(cost) OVER (PARTITION BY patient_id) AS total FROM visits) t WHERE total > 1000;

-- idioms json-1: function-unsupported
SELECT COUNT(*) FROM prescriptions WHERE drug ->> '$.name' = 'x';

-- idioms json-2: function-unsupported
SELECT json_extract_string(drug, '$.a') AS a, COUNT(*) FROM prescriptions GROUP BY 1;

-- idioms array-1: answered
SELECT COUNT(*) FROM visits WHERE list_contains([1, 2, 3], clinic_id);

-- idioms array-2: answered
SELECT COUNT(*) FROM visits WHERE clinic_id = ANY([1, 2, 3]);

-- idioms array-3: aggregate-unsupported
SELECT ARRAY_AGG(DISTINCT region) FROM patients;

-- idioms array-4-unnest: function-unsupported
SELECT u, COUNT(*) FROM (SELECT UNNEST(STRING_SPLIT(drug, ' ')) AS u FROM prescriptions) t GROUP BY u;

-- idioms regex-1: answered
SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(code, '^[A-E]');

-- idioms regex-2: answered
SELECT REGEXP_EXTRACT(code, '^[A-Z]') AS l, COUNT(*) FROM visits GROUP BY 1;

-- idioms regex-3: answered
SELECT REGEXP_REPLACE(region, '[0-9]+', '') AS r, COUNT(*) FROM patients GROUP BY 1;

-- idioms regex-4-open-text: answered
SELECT COUNT(*) FROM prescriptions WHERE drug ILIKE '%pril%';

-- idioms regex-5-similar-to: answered
SELECT COUNT(*) FROM visits WHERE code SIMILAR TO '[A-E].*';

-- idioms str-1: answered
SELECT UPPER(LEFT(region, 3)) AS r, COUNT(*) FROM patients GROUP BY 1;

-- idioms str-2-concat-two-columns: answered
SELECT region || '-' || sex AS k, COUNT(*) FROM patients GROUP BY 1;

-- idioms str-3-split: answered
SELECT SPLIT_PART(region, 'o', 1) AS r, COUNT(*) FROM patients GROUP BY 1;

-- idioms str-4-open-text: answered
SELECT LOWER(drug) AS d, COUNT(*) AS n FROM prescriptions GROUP BY 1 ORDER BY n DESC LIMIT 10;

-- idioms str-5-length-open: answered
SELECT AVG(LENGTH(drug)) FROM prescriptions;

-- idioms str-6-left-open: answered
SELECT LEFT(drug, 1) AS l, COUNT(*) FROM prescriptions GROUP BY 1;

-- idioms str-7-in-list-open: answered
SELECT CASE WHEN drug IN ('efuratan', 'lorurapril') THEN 'a' ELSE 'b' END AS g, COUNT(*) FROM prescriptions GROUP BY 1;

-- idioms str-8-format: answered
SELECT PRINTF('%02d', clinic_id) AS c, COUNT(*) FROM visits GROUP BY 1;

-- idioms str-9-cast-text: answered
SELECT CAST(clinic_id AS VARCHAR) AS c, COUNT(*) FROM visits GROUP BY 1;

-- idioms spine-1-generate-series-left-join: answered
SELECT s.d, COALESCE(v.n, 0) AS n FROM (SELECT CAST(generate_series AS DATE) AS d FROM generate_series(DATE '2025-01-01', DATE '2025-01-31', INTERVAL 1 DAY)) s LEFT JOIN (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) v ON s.d = v.day ORDER BY 1;

-- idioms spine-2-values: answered
SELECT t.k, v.n FROM (VALUES (1), (2), (3)) AS t(k) LEFT JOIN (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) v ON v.clinic_id = t.k;

-- idioms spine-3-public-left-join-answer: answered
SELECT c.city, COALESCE(a.n, 0) AS n FROM clinics c LEFT JOIN (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) a ON a.clinic_id = c.clinic_id;

-- idioms misc-1-group-by-all: answered
SELECT region, sex, COUNT(*) FROM patients GROUP BY ALL;

-- idioms misc-2-order-by-all: answered
SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY ALL;

-- idioms misc-3-any-value: sql-unsupported
SELECT region, ANY_VALUE(sex), COUNT(*) FROM patients GROUP BY region;

-- idioms misc-4-having-per-unit: answered
SELECT COUNT(*) FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 5) t;

-- idioms misc-5-in-group-having: answered
SELECT region, COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits GROUP BY patient_id HAVING SUM(cost) > 1000) GROUP BY region;

-- idioms misc-6-not-in: answered
SELECT COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits WHERE code = 'E11');

-- idioms misc-7-anti-join: answered
SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id WHERE v.patient_id IS NULL;

-- idioms misc-8-not-exists: answered
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.day >= DATE '2025-06-01');

-- idioms misc-9-union-of-metrics: answered
SELECT 'visits' AS metric, COUNT(*) AS v FROM visits UNION ALL SELECT 'patients', COUNT(*) FROM patients;

-- idioms misc-10-except: answered
SELECT COUNT(*) FROM (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits) t;

-- idioms misc-11-intersect: answered
SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE code = 'E11' INTERSECT SELECT patient_id FROM visits WHERE cost > 500) t;

-- idioms misc-12-distinct-subquery: answered
SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, clinic_id FROM visits) t;

-- idioms misc-13-distinct-pairs: answered
SELECT clinic_id, COUNT(*) FROM (SELECT DISTINCT patient_id, clinic_id, day FROM visits) t GROUP BY clinic_id;

-- idioms misc-14-count-distinct-pair: answered
SELECT COUNT(DISTINCT (clinic_id, code)) FROM visits;

-- idioms misc-15-sum-distinct: distinct-unsupported
SELECT SUM(DISTINCT minutes) FROM visits;

-- idioms misc-16-group-per-unit-and-month: answered
SELECT m, AVG(n) FROM (SELECT patient_id, DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY patient_id, m) t GROUP BY m ORDER BY m;

-- idioms misc-17-per-visit-agg: answered
SELECT AVG(n) FROM (SELECT visit_id, COUNT(*) AS n FROM prescriptions GROUP BY visit_id) t;

-- idioms misc-18-geometric-mean: answered
SELECT EXP(AVG(LN(cost))) FROM visits WHERE cost > 0;

-- idioms misc-19-weighted-avg: answered
SELECT SUM(cost * minutes) / SUM(minutes) FROM visits;

-- idioms misc-20-gini-lateral: answered
SELECT COUNT(*) FROM patients p, LATERAL (SELECT MAX(cost) AS m FROM visits v WHERE v.patient_id = p.patient_id) t WHERE t.m > 500;

-- idioms misc-21-entropy: answered
SELECT -SUM(p * LN(p)) FROM (SELECT COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS p FROM patients GROUP BY region) t;

-- idioms misc-22-kurtosis: aggregate-unsupported
SELECT SKEWNESS(income), KURTOSIS(income) FROM patients;

-- idioms misc-23-zscore: answered
SELECT region, (AVG(income) - 50000) / NULLIF(STDDEV(income), 0) AS z FROM patients GROUP BY region;

-- idioms misc-24-correlated-scalar: answered
SELECT AVG((SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)) FROM patients p;

-- idioms misc-25-current-date-filter: answered
SELECT COUNT(*) FROM visits WHERE day >= CURRENT_DATE - INTERVAL '30 days';

-- idioms misc-26-timestamps-diff: answered
SELECT AVG(EXTRACT(EPOCH FROM (started - CAST(day AS TIMESTAMP)))) FROM visits;

-- idioms misc-27-time-bucket: answered
SELECT TIME_BUCKET(INTERVAL '15 minutes', started) AS b, COUNT(*) FROM visits WHERE day = DATE '2025-03-03' GROUP BY 1;

-- idioms misc-28-grouping-sets: answered
SELECT region, sex, COUNT(*) FROM patients GROUP BY GROUPING SETS ((region), (sex), ());

-- idioms misc-29-having-on-total: answered
SELECT clinic_id, SUM(cost) AS c FROM visits GROUP BY clinic_id HAVING SUM(cost) > (SELECT SUM(cost) / 24 FROM visits);

-- idioms misc-30-max-group: answered
SELECT clinic_id, n FROM (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) t WHERE n = (SELECT MAX(n) FROM (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) u);

-- idioms misc-31-limit-with-ties: answered
SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC LIMIT 10%;

-- idioms misc-32-try-cast: answered
SELECT AVG(TRY_CAST(SUBSTRING(code, 2, 2) AS INTEGER)) FROM visits;

-- idioms misc-33-exclude-star: answered
SELECT COUNT(*) FROM (SELECT * EXCLUDE (cost) FROM visits) t;

-- idioms misc-34-lateral-alias: answered
SELECT minutes / 60 AS h, FLOOR(h) AS fh, COUNT(*) FROM visits GROUP BY ALL;

-- idioms misc-35-filter-on-both: answered
SELECT AVG(cost) FILTER (WHERE minutes > 30) / AVG(cost) AS r FROM visits;

-- idioms misc-36-median-absolute: answered
SELECT MEDIAN(ABS(cost - 100)) FROM visits;

-- idioms misc-37-bool-and: aggregate-unsupported
SELECT region, BOOL_AND(vaccinated) FROM patients GROUP BY region;

-- idioms misc-38-string-agg-over-answers: answered
SELECT STRING_AGG(region, ', ') FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region HAVING COUNT(*) > 200) t;

-- idioms misc-39-conversion-by-segment: answered
SELECT p.region, COUNT(DISTINCT v.patient_id) * 1.0 / COUNT(DISTINCT p.patient_id) AS conv FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.code = 'E11' GROUP BY p.region;

-- idioms misc-40-ltv-by-cohort: answered
SELECT DATE_TRUNC('quarter', d0) AS c, AVG(total) AS ltv FROM (SELECT patient_id, MIN(day) AS d0, SUM(cost) AS total FROM visits GROUP BY patient_id) t GROUP BY 1;

-- idioms misc-41-rfm: answered
SELECT CASE WHEN last_day >= DATE '2025-10-01' THEN 'active' ELSE 'lapsed' END AS r, CASE WHEN n >= 5 THEN 'often' ELSE 'rare' END AS f, COUNT(*) AS users, AVG(total) FROM (SELECT patient_id, MAX(day) AS last_day, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY patient_id) t GROUP BY 1, 2;

-- idioms misc-42-basket-pairs: answered
SELECT a.code, b.code, COUNT(DISTINCT a.patient_id) FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.code < b.code GROUP BY 1, 2;

-- idioms misc-43-ab-test: answered
SELECT p.vaccinated, COUNT(*) AS n, AVG(x.total) AS mean, VAR_SAMP(x.total) AS var FROM patients p JOIN (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) x USING (patient_id) GROUP BY 1;

-- introspection intro-01: answered
SELECT 1;

-- introspection intro-02: answered
SELECT version();

-- introspection intro-03: answered
select pg_catalog.version();

-- introspection intro-04: answered
SELECT current_schema();

-- introspection intro-05: answered
show standard_conforming_strings;

-- introspection intro-06: answered
SHOW TRANSACTION ISOLATION LEVEL;

-- introspection intro-07: answered
SET extra_float_digits = 3;

-- introspection intro-08: answered
BEGIN;

-- introspection intro-09: answered
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname;

-- introspection intro-10: answered
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind in ('r', 'p');

-- introspection intro-11: answered
SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE';

-- introspection intro-12: answered
SELECT column_name, data_type FROM information_schema.columns WHERE table_schema='public' AND table_name='visits' ORDER BY ordinal_position;

-- introspection intro-13: answered
SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid WHERE typname = 'hstore';

-- introspection intro-14: answered
SELECT * FROM public.visits LIMIT 0;

-- introspection intro-15: answered
SELECT * FROM visits WHERE 1 = 0;

-- introspection intro-16: answered
SELECT "COL" FROM (SELECT 1 AS "COL") AS "SUBQUERY";

-- introspection intro-17: answered
EXPLAIN SELECT COUNT(*) FROM visits;

-- introspection intro-18: answered
select current_database();

-- introspection intro-19: answered
DISCARD ALL;

-- introspection intro-20: answered
SELECT CURRENT_TIMESTAMP;
