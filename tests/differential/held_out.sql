--# duckdb
SELECT status, SUM(amount * (1 - COALESCE(discount, 0))) AS net FROM orders GROUP BY status

SELECT COUNT(*) FROM order_lines WHERE qty * unit_price > 199.995

SELECT SUM(qty * unit_price) AS revenue, SUM(qty * unit_price * 0.19) AS vat FROM order_lines

SELECT CAST(FLOOR(unit_price / 10) AS INTEGER) * 10 AS bin, COUNT(*) FROM order_lines GROUP BY 1 ORDER BY 1

SELECT FLOOR(amount) AS whole, COUNT(*) AS n FROM orders WHERE amount BETWEEN 10 AND 20 GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1

SELECT COUNT(*) FILTER (WHERE amount - FLOOR(amount) = 0.5) AS half, COUNT(*) FILTER (WHERE amount - FLOOR(amount) = 0.99) AS ninety_nine FROM orders

SELECT ROUND(unit_price, 0) AS euros, COUNT(*) FROM order_lines WHERE unit_price < 5 GROUP BY 1 ORDER BY 1

SELECT SUM(ROUND(unit_price * 1.19, 2)) FROM order_lines WHERE qty > 0

SELECT SUM(CAST(unit_price AS INTEGER)), SUM(CAST(unit_price * 100 AS INTEGER)) FROM order_lines

SELECT country, AVG(credit_limit) AS a, SUM(credit_limit) / COUNT(credit_limit) AS b FROM customers GROUP BY country

SELECT MIN(amount), MAX(amount), MAX(amount) - MIN(amount) AS spread FROM orders

SELECT SUM(CASE WHEN amount >= 100 THEN amount * 0.9 ELSE amount END) AS discounted FROM orders

SELECT COUNT(*) FROM orders WHERE amount * 3 = 0.3 * 1000 OR amount * 2 IN (19.98, 39.98, 100.00)

SELECT channel, COUNT(*) FILTER (WHERE amount > 99.99) * 100.0 / COUNT(*) AS pct FROM orders GROUP BY channel ORDER BY pct DESC

SELECT COUNT(DISTINCT customer_id) FROM orders WHERE ABS(amount) >= 250.5

SELECT GREATEST(amount, 0.01) < 0.02 AS tiny, COUNT(*) FROM orders GROUP BY 1

SELECT SUM(LEAST(amount, 100)) AS capped, SUM(GREATEST(amount, 0)) AS positive FROM orders

SELECT COUNT(*) FROM returns r JOIN orders o USING (order_id) WHERE r.refund > o.amount

SELECT SUM(r.refund - 5.95) FROM returns r WHERE r.reason IS NOT NULL

SELECT date_trunc('month', order_date) AS m, SUM(amount) AS s, SUM(amount) - SUM(amount * 0.02) AS after_fees FROM orders GROUP BY 1 ORDER BY 1

WITH per_order AS (SELECT order_id, SUM(qty * unit_price) AS value FROM order_lines GROUP BY order_id) SELECT COUNT(*) FROM per_order WHERE value > 150

SELECT AVG(total) FROM (SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id) t

SELECT SIGN(amount) AS s, COUNT(*), SUM(amount) FROM orders GROUP BY 1 ORDER BY 1

SELECT NULLIF(discount, 0) IS NULL AS none, COUNT(*), SUM(amount) FROM orders GROUP BY 1

SELECT CAST(amount AS DOUBLE) / 3 > 33.333 AS above, COUNT(*) FROM orders WHERE amount IS NOT NULL GROUP BY 1

SELECT priority * 0.25 AS w, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1

SELECT SUM(loyalty_points % 7), SUM(loyalty_points // 7), SUM(loyalty_points / 8) FROM customers

SELECT segment, SUM(credit_limit) FROM customers WHERE country = 'JP' AND visits_2023 > 5 GROUP BY segment

SELECT MEDIAN(unit_price) FROM order_lines WHERE qty = 2

SELECT CAST(0.5 + priority AS INTEGER) AS r, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1

--# postgres
SELECT status, sum(amount)::numeric(12, 2) AS total, round(avg(amount), 2) AS mean FROM orders GROUP BY status ORDER BY status

SELECT loyalty_points / 250 AS bucket, count(*) FROM customers WHERE loyalty_points >= 0 GROUP BY 1 ORDER BY 1

SELECT sum(loyalty_points) / count(*) AS mean_points FROM customers

SELECT country, count(*) * 100 / 500 AS pct FROM customers GROUP BY country ORDER BY 2 DESC, 1

SELECT count(*) FILTER (WHERE opted_in) / count(*)::numeric AS share FROM customers

SELECT round(100.0 * count(*) FILTER (WHERE status = 'returned') / count(*), 1) AS pct_returned FROM orders

SELECT extract(month from order_date)::int / 4 AS third, count(*) FROM orders GROUP BY 1 ORDER BY 1

SELECT (priority + 1) / 2 AS half, count(*), sum(priority / 2) FROM orders GROUP BY 1 ORDER BY 1

SELECT -loyalty_points / 100 AS b, count(*) FROM customers WHERE loyalty_points BETWEEN -150 AND 150 GROUP BY 1 ORDER BY 1

SELECT count(*) FROM orders WHERE amount::int = 20

SELECT sum(trunc(unit_price)) AS whole, sum(unit_price - trunc(unit_price)) AS rest FROM order_lines

SELECT count(*) FROM order_lines WHERE mod((unit_price * 100)::int, 100) = 99

SELECT sum(floor(unit_price * 100)) FROM order_lines

SELECT ceil(unit_price / 25) AS band, count(*) FROM order_lines GROUP BY 1 ORDER BY 1

SELECT coalesce(sum(amount), 0) AS s, sum(amount) IS NULL AS empty FROM orders WHERE status = 'placed' AND order_date > date '2025-01-01'

SELECT device, sum(duration_ms) / 1000 AS seconds FROM events GROUP BY device

SELECT device, sum(duration_ms) / 1000.0 / 60 AS minutes FROM events WHERE event_name = 'view' GROUP BY device

SELECT avg(duration_ms / 1000) FROM events WHERE duration_ms IS NOT NULL

SELECT duration_ms / 60000 AS minute, count(*) FROM events GROUP BY 1 ORDER BY 1 NULLS LAST

SELECT reason, sum(refund) / nullif(count(*), 0) AS mean_refund FROM returns GROUP BY reason

SELECT (extract(year from signup_date)::int - 2020) / 2 AS p, count(*) FROM customers GROUP BY 1

SELECT round(amount / 7, 2) AS weekly, count(*) FROM orders WHERE amount BETWEEN 69 AND 71 GROUP BY 1 ORDER BY 1

SELECT sum(case when is_gift then amount else 0 end) / sum(amount) AS gift_share FROM orders

SELECT sum(case when is_gift then 1 else 0 end) * 100 / count(*) AS gift_pct FROM orders

SELECT count(*) FROM customers WHERE credit_limit / 1000 > loyalty_points / 100

SELECT date_trunc('quarter', order_date)::date AS q, count(*) AS n, count(*) / 13 AS per_week FROM orders GROUP BY 1 ORDER BY 1

SELECT o.channel, sum(l.qty * l.unit_price) AS value FROM orders o JOIN order_lines l ON l.order_id = o.order_id GROUP BY o.channel

SELECT avg(n) FROM (SELECT segment, "group", count(*) AS n FROM customers GROUP BY 1, 2) t

SELECT min(n), max(n), count(*) FROM (SELECT country, count(*) AS n FROM customers WHERE country IS NOT NULL GROUP BY country) t

SELECT cast(unit_price * qty AS numeric(10, 1)) AS v, count(*) FROM order_lines WHERE unit_price * qty BETWEEN 99.9 AND 100.4 GROUP BY 1 ORDER BY 1
