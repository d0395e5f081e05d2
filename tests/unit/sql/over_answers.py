"""Statements over answers that are answered, by name: what is computed from released tables, as the bare engine computes it."""

from __future__ import annotations

_BY_REGION = "(SELECT region, COUNT(*) AS n, AVG(income) AS a FROM patients GROUP BY region) AS t"
_BY_DAY = "(SELECT day, COUNT(*) AS n, SUM(minutes) AS s FROM visits GROUP BY day) AS t"

OVER_ANSWERS: dict[str, str] = {
    # windows
    "frame-rows": """SELECT day, AVG(COUNT(*)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7
                     FROM visits GROUP BY day""",
    "frame-rows-short": f"SELECT day, SUM(n) OVER (ORDER BY day ROWS 2 PRECEDING) AS s FROM {_BY_DAY}",
    "frame-rows-ahead": f"""SELECT day, COUNT(*) OVER (ORDER BY day ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING) AS c,
                            MAX(n) OVER (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS m,
                            MIN(day) OVER (ORDER BY day ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS d FROM {_BY_DAY}""",
    "frame-range-days": f"""SELECT day, SUM(n) OVER (ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS s7
                            FROM {_BY_DAY}""",
    "frame-range-months": f"""SELECT day, SUM(s) OVER (ORDER BY day RANGE BETWEEN INTERVAL '1 month' PRECEDING
                              AND INTERVAL 2 WEEKS FOLLOWING) AS s FROM {_BY_DAY}""",
    "frame-range-numbers": """SELECT m, SUM(n) OVER (ORDER BY m RANGE BETWEEN 1.5 PRECEDING AND 1 FOLLOWING) AS s
                              FROM (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m) AS t""",
    "frame-range-peers": f"SELECT day, SUM(n) OVER (PARTITION BY n ORDER BY day RANGE UNBOUNDED PRECEDING) AS s FROM {_BY_DAY}",
    "window-values": f"""SELECT day, FIRST_VALUE(n) OVER (ORDER BY day) AS f, NTH_VALUE(n, 3) OVER (ORDER BY day) AS third,
                         LAST_VALUE(n) OVER (ORDER BY day ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS l FROM {_BY_DAY}""",
    "window-places": f"""SELECT day, NTILE(4) OVER (ORDER BY day) AS q, PERCENT_RANK() OVER (ORDER BY day) AS p,
                         CUME_DIST() OVER (ORDER BY n) AS c FROM {_BY_DAY}""",
    "window-lag-default": f"""SELECT day, LAG(n, 2, 0) OVER (ORDER BY day) AS b,
                              LEAD(day, 1, '2026-01-01') OVER (ORDER BY day) AS f FROM {_BY_DAY}""",
    "window-counts": f"SELECT region, COUNT(a) OVER (ORDER BY region) AS c, MIN(region) OVER () AS m FROM {_BY_REGION}",
    "window-named": f"""SELECT day, SUM(n) OVER w AS s, LAG(n) OVER w AS b, SUM(n) OVER (v ORDER BY day DESC) AS r, MAX(n) OVER v AS most
                        FROM {_BY_DAY} WINDOW w AS (PARTITION BY MONTH(day) ORDER BY day), v AS (PARTITION BY YEAR(day))""",
    "window-named-groups": "SELECT sex, RANK() OVER w AS place FROM patients GROUP BY sex WINDOW w AS (ORDER BY sex DESC)",
    "qualify": """SELECT clinic_id, code, COUNT(*) AS n FROM visits GROUP BY clinic_id, code
                  QUALIFY ROW_NUMBER() OVER (PARTITION BY clinic_id ORDER BY COUNT(*) DESC, code) <= 3""",
    "qualify-alias": f"""SELECT day, n, RANK() OVER (ORDER BY n DESC, day) AS place FROM {_BY_DAY} WHERE n > 0
                         QUALIFY place <= 5 AND n > 0 ORDER BY place LIMIT 3""",
    "qualify-selected": """SELECT sex, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total FROM patients GROUP BY sex HAVING COUNT(*) > 0
                           QUALIFY n > 1""",
    "distinct-on": """SELECT DISTINCT ON (clinic_id) clinic_id, code, COUNT(*) AS n FROM visits GROUP BY clinic_id, code
                      ORDER BY clinic_id, n DESC, code""",
    "distinct-on-alias": """SELECT DISTINCT ON (big, 1) m, n > 20 AS big, n FROM
                            (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m) AS t ORDER BY big, m DESC""",
    # joins and scalar subqueries
    "cross-join": """WITH t AS (SELECT region, COUNT(*) AS n FROM patients GROUP BY region), s AS (SELECT SUM(n) AS total FROM t)
                     SELECT region, n * 1.0 / total AS share FROM t CROSS JOIN s""",
    "join-moved": """WITH d AS (SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1)
                     SELECT a.n, b.n AS prev FROM d a LEFT JOIN d b ON b.m = a.m - INTERVAL '1 month'""",
    "join-range": """WITH d AS (SELECT day, COUNT(*) AS n FROM visits WHERE day < DATE '2024-03-01' GROUP BY day)
                     SELECT a.day, SUM(b.n) AS week FROM d a JOIN d b ON b.day > a.day - 7 AND b.day <= a.day GROUP BY a.day""",
    "scalar-top": """WITH t AS (SELECT region, COUNT(*) AS n FROM patients WHERE region IS NOT NULL GROUP BY region)
                     SELECT region, n - (SELECT n FROM t ORDER BY region DESC LIMIT 1) AS behind FROM t""",
    "dates-of-answers": f"""SELECT YEAR(day) AS y, EXTRACT(MONTH FROM day) AS m, SUM(n) AS s, MAX(day) - MIN(day) AS days FROM {_BY_DAY}
                            GROUP BY YEAR(day), EXTRACT(MONTH FROM day)""",
    # functions
    "functions-of-numbers": f"""SELECT region, POWER(n, 2) AS p, POW(a, 0.5) AS r, LOG10(n) AS l, LOG2(n) AS m, LOG(a) AS k
                                FROM {_BY_REGION} WHERE n > 0 AND a > 0""",
    "functions-of-text": f"""SELECT UPPER(region) AS u, LOWER(region) AS l, LENGTH(region) AS many, LEFT(region, 2) AS a,
                             RIGHT(region, 1) AS z, SUBSTRING(region, 2, 3) AS s, SUBSTRING(region, 3) AS t,
                             region || '-' || LEFT(region, 1) AS j FROM {_BY_REGION} WHERE region IS NOT NULL""",
    # aggregates
    "spreads": f"SELECT STDDEV(n), STDDEV_POP(n), VARIANCE(a), VAR_POP(a) FROM {_BY_REGION}",
    "medians": f"""SELECT MEDIAN(n), QUANTILE_CONT(a, 0.25), QUANTILE_DISC(n, 0.75), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY n DESC)
                   FROM {_BY_REGION}""",
    "chosen": f"""SELECT MONTH(day) AS m, ARG_MAX(s, day), MIN_BY(s, day), MODE(s - s) FROM {_BY_DAY}
                  GROUP BY MONTH(day)""",
    "truths": f"SELECT BOOL_AND(n > 0), BOOL_OR(n > 6), COUNT_IF(n > 4), COUNT(DISTINCT n) FROM {_BY_REGION}",
    "filtered": f"""SELECT SUM(n) FILTER (WHERE region < 'o'), COUNT(*) FILTER (WHERE n > 4), AVG(a) FILTER (WHERE n > 1000)
                    FROM {_BY_REGION}""",
    "texts": f"SELECT STRING_AGG(region, ', ' ORDER BY region DESC), STRING_AGG(region, '' ORDER BY region) FROM {_BY_REGION}",
    "order-by-all": "SELECT region, COUNT(*) FROM patients GROUP BY region ORDER BY ALL DESC LIMIT 3",
    # constants and public tables beside answers
    "values": """SELECT t.k, t.name, v.n FROM (VALUES (1, 'one'), (2, NULL), (13, 'none')) AS t(k, name)
                 LEFT JOIN (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) AS v ON v.clinic_id = t.k""",
    "series-of-days": """SELECT s.d, COALESCE(v.n, 0) AS n FROM
                         (SELECT CAST(generate_series AS DATE) AS d
                          FROM generate_series(DATE '2025-01-01', DATE '2025-01-31', INTERVAL 1 DAY)) AS s
                         LEFT JOIN (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) AS v ON s.d = v.day""",
    "series-of-numbers": """SELECT g.m, t.n FROM range(0, 14, 2) AS g(m)
                            LEFT JOIN (SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY 1) AS t ON t.m = g.m""",
    "series-of-months": """SELECT CAST(r.m AS DATE) AS month, SUM(v.n) AS n FROM
                           range(DATE '2024-01-01', DATE '2024-07-01', INTERVAL '1 month') AS r(m)
                           JOIN (SELECT day, COUNT(*) AS n FROM visits WHERE day < DATE '2024-05-01' GROUP BY day) AS v
                           ON v.day >= r.m AND v.day < r.m + INTERVAL '1 month' GROUP BY r.m""",
    "public-first": """SELECT c.city, c.kind, COALESCE(a.n, 0) AS n FROM clinics c
                       LEFT JOIN (SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY clinic_id) AS a ON a.clinic_id = c.clinic_id""",
    "public-last": """SELECT d.chapter, SUM(a.n) AS n FROM (SELECT code, COUNT(*) AS n FROM visits GROUP BY code) AS a
                      JOIN diagnoses AS d USING (code) WHERE d.chronic GROUP BY d.chapter""",
    # what tools write
    "limit-share": "SELECT clinic_id, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC, 1 LIMIT 25%",
    "limit-share-of-an-answer": f"SELECT region, n FROM {_BY_REGION} ORDER BY region DESC LIMIT 50%",
    "exclude-of-rows": "SELECT COUNT(*), SUM(minutes) FROM (SELECT * EXCLUDE (cost, code) FROM visits) AS t",
    "exclude-of-one-table": """SELECT region, COUNT(*) FROM (SELECT v.* EXCLUDE (patient_id), p.region FROM visits v
                               JOIN patients p ON p.patient_id = v.patient_id) AS t GROUP BY region""",
    "exclude-of-an-answer": f"SELECT * EXCLUDE (a) FROM {_BY_REGION}",
    "pivot": """SELECT * FROM (SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex)
                PIVOT (SUM(n) FOR sex IN ('f', 'm', 'x'))""",
    "pivot-once": """SELECT f + m AS both, q FROM (SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex)
                     PIVOT (MAX(n) FOR sex IN ('f', 'm', 'q')) AS p WHERE f > 0""",
    "pivot-of-numbers": """SELECT region, "2024" AS before, "2025" AS after FROM
                           (SELECT p.region, YEAR(v.day) AS y, COUNT(*) AS n, AVG(v.minutes) AS a
                           FROM visits v JOIN patients p ON p.patient_id = v.patient_id GROUP BY p.region, y) AS t
                           PIVOT (SUM(n * a) FOR y IN (2024, 2025))""",
    "sign": f"SELECT region, SIGN(n - 3) AS s, SIGN(a) AS b FROM {_BY_REGION}",
    "function-of-a-key": "SELECT UPPER(region) AS u, LEFT(region, 2) AS l, COUNT(*) AS n FROM patients GROUP BY region ORDER BY 1",
    "function-of-a-month": """SELECT STRFTIME(DATE_TRUNC('month', day), '%Y-%m') AS m, SUM(minutes) FROM visits
                              GROUP BY DATE_TRUNC('month', day) ORDER BY 1""",
    "function-of-two-keys": """SELECT CASE WHEN sex = 'f' THEN UPPER(region) ELSE region END AS r, COUNT(*) FROM patients
                               GROUP BY region, sex""",
}
