"""What is asked in every world: each kind of plan, each way to be refused, each interface's own words."""

from __future__ import annotations

FEW = (
    "SELECT kind, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a, COUNT(DISTINCT id) AS u FROM visits GROUP BY kind",
    "SELECT kind, MEDIAN(cost) AS m, MIN(cost) AS lo FROM visits GROUP BY kind",
    "SELECT code, COUNT(*) AS n, AVG(cost) AS a FROM visits GROUP BY code ORDER BY n DESC LIMIT 5",
    "SELECT sex, AVG(income) AS a, STDDEV(age) AS sd, COUNT_IF(smoker) AS c FROM people GROUP BY sex",
    "SELECT p.sex, COUNT(*) AS n, AVG(v.cost) AS a FROM visits v JOIN people p ON p.id = v.id GROUP BY p.sex HAVING COUNT(*) > 50",
    "SELECT AVG(gap) AS a, COUNT(*) AS n FROM (SELECT id, DATE_DIFF('day', LAG(day) OVER (PARTITION BY id ORDER BY ts), day) AS gap"
    " FROM visits) t",
    "SELECT d, COUNT(*) AS n FROM (SELECT id, COUNT(DISTINCT code) AS d FROM visits GROUP BY id) t GROUP BY d",
    "SELECT kind, COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits) GROUP BY kind",
    "SELECT SUM(fee) AS s, SUM(fee) / COUNT(*) AS q, SUM(place // 2) AS i FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE 1 / (place - 3) > 0 AND LN(cost) > 1",
)
"""For runs that must be short: one of each kind of plan that is most unlike the others."""

MORE = (
    "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS u, SUM(cost) AS s, AVG(cost) AS a FROM visits",
    "SELECT kind, place, COUNT(*) AS n FROM visits GROUP BY kind, place",
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind)",
    "SELECT city, SUM(cost) AS s FROM visits JOIN places USING (place) GROUP BY city",
    "SELECT MEDIAN(cost) AS m, MAX(cost) AS hi, QUANTILE_CONT(cost, 0.9) AS q, COUNT(*) AS n FROM visits",
    "SELECT MEDIAN(day) AS m, MIN(ts) AS first FROM visits WHERE kind = 'd'",
    "SELECT VARIANCE(cost) AS v, STDDEV_POP(fee) AS f FROM visits",
    "SELECT COUNT(DISTINCT code) AS d FROM visits",
    "SELECT COUNT(DISTINCT (kind, place)) AS d FROM visits",
    "SELECT CORR(cost, place) AS c, REGR_SLOPE(cost, place) AS b FROM visits",
    "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits WHERE day < DATE '2024-07-01' GROUP BY m",
    "SELECT EXTRACT(DOW FROM ts) AS w, AVG(hour(ts)) AS h FROM visits GROUP BY w ORDER BY h DESC",
    "SELECT LOWER(LEFT(note, 1)) AS l, COUNT(*) AS n FROM people GROUP BY l",
    "SELECT COUNT(*) AS n FROM people WHERE note LIKE '%a%b%' OR note ILIKE 'İ%'",
    "SELECT SUM(LENGTH(note)) AS s, AVG(LEAST(LENGTH(note), 40)) AS a FROM people",
    "SELECT code, COUNT(*) AS n FROM visits GROUP BY code",
    "SELECT code, kind, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY code, kind ORDER BY s DESC LIMIT 5",
    "SELECT LEFT(code, 1) AS c, place, COUNT(*) AS n, AVG(cost) AS a FROM visits WHERE cost > 3 GROUP BY c, place",
    "SELECT kind, SUM(cost * cost) AS n FROM visits GROUP BY kind",
    # decimals, typed numbers, division
    "SELECT kind, AVG(fee) AS a, SUM(CAST(cost AS DECIMAL(9, 1))) AS s FROM visits GROUP BY kind",
    "SELECT COUNT(*) AS n FROM visits WHERE fee - FLOOR(fee) = 0.29",
    "SELECT place % 4 AS r, SUM(place // 2) AS s, SUM(place / 2) AS h FROM visits GROUP BY r",
    # groups without rows, conditions that nobody meets
    "SELECT sex, smoker, COUNT(*) AS n FROM people WHERE age > 118 GROUP BY sex, smoker",
    "SELECT kind, COUNT(*) AS n FROM visits WHERE kind = 'b' GROUP BY kind",
    "SELECT SUM(cost) AS s, AVG(cost) AS a, MEDIAN(cost) AS m FROM visits WHERE kind = 'a' AND kind = 'b'",
    # windows, pairs and groups within units
    "SELECT kind, COUNT(*) AS n FROM (SELECT id, kind, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS r FROM visits) t"
    " WHERE r <= 2 GROUP BY kind",
    "SELECT m, COUNT(*) AS n, AVG(c) AS a FROM (SELECT id, DATE_TRUNC('month', day) AS m, COUNT(*) AS c FROM visits GROUP BY id, m) t"
    " GROUP BY m",
    "SELECT SUM(total) AS s, AVG(total) AS a FROM (SELECT id, SUM(cost) AS total FROM visits GROUP BY id) t",
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.id = b.id AND b.day > a.day WHERE a.kind = 'a' AND b.kind = 'b'",
    "SELECT a.kind, COUNT(*) AS n FROM visits a WHERE EXISTS (SELECT 1 FROM visits b WHERE b.id = a.id AND b.ts > a.ts) GROUP BY a.kind",
    "SELECT kind, SUM(r) AS s FROM (SELECT id, kind, SUM(cost) OVER (PARTITION BY id ORDER BY ts) AS r FROM visits) t GROUP BY kind",
    "SELECT c, COUNT(*) AS n FROM (SELECT id, ARG_MIN(code, ts) AS c FROM visits GROUP BY id) t GROUP BY c",
    # several tables
    "SELECT drug, COUNT(*) AS n, SUM(dose) AS s FROM drugs GROUP BY drug",
    "SELECT v.kind, SUM(r.dose) AS s FROM drugs r JOIN visits v ON r.visit = v.visit GROUP BY v.kind",
    "SELECT p.sex, AVG((SELECT COUNT(*) FROM visits v WHERE v.id = p.id)) AS a FROM people p GROUP BY p.sex",
    "SELECT sex, kind, COUNT(*) AS n FROM people p LEFT JOIN visits v ON p.id = v.id WHERE note NOT LIKE '%e%' GROUP BY sex, kind",
    # sets
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, code FROM visits) t",
    "SELECT kind, COUNT(*) AS n FROM (SELECT id, kind FROM visits UNION ALL SELECT id, sex AS kind FROM people) t GROUP BY kind",
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind UNION ALL SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n FROM (SELECT id FROM people EXCEPT SELECT id FROM visits) t",
    # answers that decide, and answers over answers
    "SELECT place, COUNT(*) AS n FROM visits WHERE kind IN (SELECT kind FROM visits GROUP BY kind ORDER BY COUNT(*) DESC LIMIT 2)"
    " GROUP BY place",
    "SELECT DATE_TRUNC('month', day) AS m, SUM(cost) AS s FROM visits WHERE code IN (SELECT code FROM visits GROUP BY code"
    " HAVING COUNT(*) > 60 ORDER BY code LIMIT 5) GROUP BY m",
    "SELECT MAX(n) AS top, AVG(n) AS a, COUNT(*) AS g FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) t",
    "WITH t AS (SELECT kind, SUM(cost) AS s FROM visits GROUP BY kind) SELECT kind, s / (SELECT SUM(s) FROM t) AS share FROM t",
    "SELECT kind, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) t",
    # everything at once
    "SELECT k, COUNT(*) AS n, SUM(g) AS s FROM (SELECT id, LOWER(LEFT(code, 1)) AS k, DATE_DIFF('day', LAG(day) OVER (PARTITION BY id"
    " ORDER BY ts), day) AS g, ROW_NUMBER() OVER (PARTITION BY id ORDER BY cost) AS r FROM visits WHERE code LIKE 'J%' OR code LIKE '%1%')"
    " t WHERE r BETWEEN 2 AND 6 AND g > (SELECT AVG(place) FROM visits) GROUP BY k",
)

TARGETS = (
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind WITH PRIVACY (error = 60)",
    "SELECT COUNT(*) AS n FROM visits WITH PRIVACY (error = '5%')",
    "SELECT SUM(cost) AS n FROM visits WITH PRIVACY (error = '10%')",
    "SELECT sex, AVG(income) AS n FROM people GROUP BY sex WITH PRIVACY (error = 900)",
    "SELECT COUNT(*) AS n FROM people WHERE age > 110 WITH PRIVACY (error = '20%')",
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind WITH PRIVACY (epsilon = 1, scaled_groups = true)",
    "SELECT kind, SUM(cost) AS s FROM visits GROUP BY kind WITH PRIVACY (epsilon = 0.01)",
    "SELECT COUNT(*) FROM people WITH PRIVACY (epsilon = 1000000)",
)
"""Statements that say their own terms."""

REFUSED = (
    "rubbish",
    "SELECT id, COUNT(*) FROM people GROUP BY id",
    "SELECT * FROM people WHERE age = 119",
    "SELECT STRING_AGG(note, ',') FROM people",
    "SELECT SUM(CAST(note AS INTEGER)) FROM people",
    "SELECT COUNT(*) FROM people WHERE note = (SELECT note FROM people)",
    "SELECT COUNT(*) FROM duckdb_tables()",
)

POSTGRES = (
    "SELECT kind, SUM(place) / COUNT(*) AS q FROM visits GROUP BY kind",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) AS m, SUM(fee::numeric(6, 1)) AS f FROM visits",
)
"""Spelt as PostgreSQL spells them."""

OWN_WORDS = ("SHOW PRIVACY BUDGET", "SHOW TABLES", "DESCRIBE visits", "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits")

REUSED = (
    "SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind",
    "SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 20 AND 39",
    "SELECT MEDIAN(age) AS m FROM people",
    "SELECT sex, COUNT(*) AS n FROM people WHERE smoker GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people WHERE income > 5",
)
REUSE_TERMS = (" WITH PRIVACY (reuse = only)", " WITH PRIVACY (reuse = auto, epsilon = 0.1)", " WITH PRIVACY (error = 100, reuse = auto)")

WEIGHED = ("kind = 'a'", "place < 3", "kind = 'b' AND place = 2", "kind IN ('c', 'd')", "place > 4", "kind = 'a'", "cost > 3")
