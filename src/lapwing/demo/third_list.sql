-- Statements that people and tools write about a made-up shop. `lapwing conformance --list third` runs them.
-- Each has its kind, its name, its dialect and what becomes of it: answered (the result is that of the bare engine), the code of its
-- refusal, or known-wrong, with the reason in the next line. What became answerable or right is written down with
-- LAPWING_WRITE_GOLDEN=1 LAPWING_TIER=nightly pytest tests/unit/audit/test_third_list.py

-- case case-1 duckdb: answered
SELECT CASE WHEN amount IS NULL THEN 'missing' WHEN amount < 0 THEN 'refund' WHEN amount = 0 THEN 'free' WHEN amount < 50 THEN '<50' WHEN amount BETWEEN 50 AND 199.99 THEN '50-199' ELSE '200+' END AS bucket, COUNT(*) AS n, SUM(amount) AS revenue FROM orders GROUP BY 1 ORDER BY 2 DESC;

-- case case-2 duckdb: answered
SELECT CASE channel WHEN 'web' THEN 'online' WHEN 'App' THEN 'online' WHEN 'store' THEN 'offline' END AS kind, COUNT(*) FROM orders GROUP BY 1;

-- case case-3 duckdb: null-constant
SELECT CASE channel WHEN 'web' THEN 'online' WHEN NULL THEN 'none' ELSE 'rest' END AS kind, COUNT(*) FROM orders GROUP BY kind;

-- case case-4 duckdb: answered
SELECT SUM(CASE WHEN status = 'cancelled' THEN 0 ELSE amount END) AS net, SUM(CASE WHEN is_gift THEN 1 ELSE 0 END) AS gifts, SUM(CASE WHEN NOT is_gift THEN 1 END) AS nongifts, COUNT(CASE WHEN is_gift IS NOT TRUE THEN 1 END) AS not_true FROM orders;

-- case case-5 duckdb: answered
SELECT country, 100.0 * SUM(CASE WHEN opted_in THEN 1 ELSE 0 END) / COUNT(*) AS optin_rate, 100.0 * COUNT(CASE WHEN opted_in THEN 1 END) / NULLIF(COUNT(opted_in), 0) AS optin_known FROM customers GROUP BY country;

-- case case-6 duckdb: function-unsupported
SELECT CASE WHEN EXTRACT(year FROM AGE(DATE '2024-12-31', birth_date)) < 30 THEN 'young' ELSE 'old' END AS a, COUNT(*) FROM customers GROUP BY 1;

-- case case-7 duckdb: answered
SELECT CASE WHEN DATE_DIFF('year', birth_date, DATE '2024-12-31') < 30 THEN '<30' WHEN DATE_DIFF('year', birth_date, DATE '2024-12-31') < 60 THEN '30-59' WHEN birth_date IS NULL THEN 'unknown' ELSE '60+' END AS age_group, COUNT(*) AS customers, AVG(credit_limit) FROM customers GROUP BY 1;

-- case case-8 duckdb: answered
SELECT FLOOR(loyalty_points / 100.0) * 100 AS bin, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;

-- case case-9 duckdb: answered
SELECT loyalty_points // 250 AS b, COUNT(*), MIN(segment) IS NULL FROM customers GROUP BY 1 ORDER BY 1;

-- case case-10 duckdb: answered
SELECT CASE WHEN is_gift THEN 'gift' WHEN NOT is_gift THEN 'own' ELSE 'unknown' END AS g, CASE WHEN priority IN (1, 2) THEN 'high' ELSE 'low' END AS p, COUNT(*) AS n, ROUND(AVG(amount), 2) AS avg_amount FROM orders GROUP BY ALL ORDER BY ALL;

-- case case-11 duckdb: answered
SELECT IF(amount > 100, 'big', 'small') AS size, COUNT(*) FROM orders GROUP BY size;

-- case case-12 duckdb: answered
SELECT COUNT(*) FILTER (WHERE CASE WHEN discount IS NULL THEN TRUE WHEN discount > 0.2 THEN FALSE END) FROM orders;

-- case case-13 duckdb: answered
SELECT segment, SUM(CASE WHEN country = 'DE' THEN 1 ELSE 0 END) AS de, SUM(CASE WHEN country <> 'DE' THEN 1 ELSE 0 END) AS not_de, SUM(CASE WHEN country IS NULL THEN 1 ELSE 0 END) AS unknown, COUNT(*) AS total FROM customers GROUP BY segment;

-- case case-14 duckdb: answered
SELECT CASE WHEN visits_2023 = 0 THEN 'none' WHEN visits_2023 <= 2 THEN 'some' WHEN visits_2023 > 2 THEN 'many' END v, AVG(loyalty_points * 1.0) FROM customers GROUP BY v;

-- filter filter-1 duckdb: answered
SELECT COUNT(*) FILTER (WHERE status = 'delivered') AS delivered, COUNT(*) FILTER (WHERE status <> 'delivered') AS other, SUM(amount) FILTER (WHERE amount > 0) AS pos, SUM(amount) FILTER (WHERE amount < 0) AS neg, AVG(discount) FILTER (WHERE discount > 0) FROM orders;

-- filter filter-2 duckdb: answered
SELECT channel, COUNT(*) FILTER (WHERE is_gift) AS g, COUNT(*) FILTER (WHERE NOT is_gift) AS ng, COUNT(*) FILTER (WHERE is_gift IS NULL) AS un FROM orders GROUP BY channel ORDER BY channel NULLS FIRST;

-- filter filter-3 duckdb: answered
SELECT COUNT(*) FROM customers WHERE country NOT IN ('DE', 'FR');

-- filter filter-4 duckdb: list-not-constant
SELECT COUNT(*) FROM customers WHERE country NOT IN ('DE', NULL);

-- filter filter-5 duckdb: answered
SELECT COUNT(*) FROM customers WHERE NOT (country = 'DE' OR segment = 'consumer');

-- filter filter-6 duckdb: answered
SELECT COUNT(*) FROM customers WHERE country IS DISTINCT FROM 'DE';

-- filter filter-7 duckdb: answered
SELECT COUNT(*) FROM customers WHERE segment = '' OR country = '';

-- filter filter-8 duckdb: answered
SELECT COUNT(*) FROM customers WHERE segment <> '' AND country > 'F';

-- filter filter-9 duckdb: answered
SELECT COUNT(*) FROM orders WHERE amount BETWEEN 100 AND 50;

-- filter filter-10 duckdb: answered
SELECT COUNT(*) FROM orders WHERE amount NOT BETWEEN 0 AND 100;

-- filter filter-11 duckdb: answered
SELECT COUNT(*) FROM orders WHERE discount = 0.1;

-- filter filter-12 duckdb: answered
SELECT COUNT(*) FROM orders WHERE discount * 100 = 25;

-- filter filter-13 duckdb: answered
SELECT COUNT(*) FROM orders WHERE amount * (1 - discount) > 40.5;

-- filter filter-14 duckdb: answered
SELECT COUNT(*) FROM orders WHERE is_gift = TRUE AND is_gift <> FALSE;

-- filter filter-15 duckdb: answered
SELECT COUNT(*) FROM orders WHERE is_gift IS NOT TRUE;

-- filter filter-16 duckdb: answered
SELECT COUNT(*) FROM orders WHERE NOT is_gift IS NULL AND (is_gift OR priority > 3);

-- filter filter-17 duckdb: answered
SELECT COUNT(*), COUNT(birth_date), COUNT(DISTINCT birth_date) FROM customers WHERE birth_date < '1990-01-01';

-- filter filter-18 duckdb: sql-unsupported
SELECT COUNT(*) FROM orders WHERE (status, channel) IN (('placed', 'web'), ('shipped', 'store'));

-- filter filter-19 duckdb: sql-unsupported
SELECT COUNT(*) FROM orders WHERE priority % 2 = 1 AND priority & 1 = 1;

-- filter filter-20 duckdb: answered
SELECT COUNT(*) FROM orders WHERE coupon IS NULL OR coupon = '';

-- filter filter-21 duckdb: answered
SELECT COUNT(*) FROM orders WHERE COALESCE(channel, 'web') = 'web' AND COALESCE(discount, 0) = 0;

-- filter filter-22 duckdb: answered
SELECT SUM(amount) FROM orders WHERE 1 = 1 AND TRUE;

-- filter filter-23 duckdb: answered
SELECT COUNT(*) FROM orders WHERE status = 'Delivered';

-- filter filter-24 duckdb: answered
SELECT COUNT(*) FROM orders WHERE ship_date - order_date > 5;

-- filter filter-25 duckdb: answered
SELECT AVG(ship_date - order_date), SUM(ship_date - order_date), COUNT(ship_date - order_date) FROM orders;

-- filter filter-26 duckdb: answered
SELECT COUNT(*) FROM orders WHERE status LIKE '%ed' AND status NOT LIKE 'c%';

-- date date-1 duckdb: answered
SELECT DATE_TRUNC('month', ordered_at) AS m, COUNT(*), SUM(amount) FROM orders GROUP BY 1 ORDER BY 1;

-- date date-2 duckdb: answered
SELECT DATE_TRUNC('week', order_date) AS w, COUNT(DISTINCT customer_id) FROM orders GROUP BY 1 ORDER BY 1;

-- date date-3 duckdb: answered
SELECT DATE_TRUNC('quarter', order_date) AS q, status, COUNT(*) FROM orders GROUP BY 1, 2 ORDER BY 1, 2;

-- date date-4 duckdb: answered
SELECT EXTRACT(isodow FROM order_date) AS dow, EXTRACT(hour FROM ordered_at) AS h, COUNT(*) FROM orders GROUP BY 1, 2;

-- date date-5 duckdb: answered
SELECT EXTRACT(week FROM order_date) AS w, EXTRACT(isoyear FROM order_date) AS y, COUNT(*) FROM orders GROUP BY 1, 2 ORDER BY 2, 1;

-- date date-6 duckdb: answered
SELECT DAYNAME(order_date) AS d, MONTHNAME(order_date) AS m, COUNT(*) FROM orders GROUP BY 1, 2;

-- date date-7 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_date = DATE '2024-02-29';

-- date date-8 duckdb: answered
SELECT COUNT(*) FROM customers WHERE EXTRACT(month FROM birth_date) = 2 AND EXTRACT(day FROM birth_date) = 29;

-- date date-9 duckdb: answered
SELECT YEAR(birth_date + INTERVAL 1 YEAR) AS y, COUNT(*) FROM customers WHERE birth_date IS NOT NULL AND MONTH(birth_date) = 2 GROUP BY 1 ORDER BY 1;

-- date date-10 duckdb: answered
SELECT order_date + INTERVAL '1 month' AS due, COUNT(*) FROM orders WHERE order_date BETWEEN '2024-01-28' AND '2024-02-02' GROUP BY 1 ORDER BY 1;

-- date date-11 duckdb: answered
SELECT COUNT(*) FROM orders WHERE ordered_at >= '2024-03-31 02:00:00' AND ordered_at < '2024-03-31 03:00:00';

-- date date-12 duckdb: answered
SELECT COUNT(*) FROM orders WHERE ordered_at::date = '2024-10-27';

-- date date-13 duckdb: answered
SELECT COUNT(*) FROM orders WHERE CAST(ordered_at AS DATE) = order_date;

-- date date-14 duckdb: answered
SELECT DATE_DIFF('month', signup_date, DATE '2024-12-31') AS tenure, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;

-- date date-15 duckdb: answered
SELECT DATE_DIFF('week', order_date, ship_date) AS w, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1;

-- date date-16 duckdb: answered
SELECT AVG(DATE_DIFF('hour', ordered_at, TIMESTAMP '2025-01-01 00:00:00')) FROM orders;

-- date date-17 duckdb: answered
SELECT LAST_DAY(order_date) AS eom, COUNT(*) FROM orders GROUP BY 1;

-- date date-18 duckdb: answered
SELECT STRFTIME(order_date, '%Y-%m') AS ym, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1;

-- date date-19 duckdb: answered
SELECT STRFTIME(ordered_at, '%Y-%m-%d') AS ymd, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1;

-- date date-20 duckdb: date-part-unsupported
SELECT STRFTIME(ordered_at, '%H:00') AS hh, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1;

-- date date-21 duckdb: answered
SELECT DATE_PART('epoch', ordered_at) > 1720000000 AS late, COUNT(*) FROM orders GROUP BY 1;

-- date date-22 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_date >= DATE '2024-12-31' - INTERVAL '30 days';

-- date date-23 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_date > DATE '2024-06-30' - 7 AND order_date <= DATE '2024-06-30';

-- date date-24 duckdb: answered
SELECT EXTRACT(quarter FROM order_date) AS q, COUNT(*) FROM orders WHERE EXTRACT(dow FROM order_date) IN (0, 6) GROUP BY q ORDER BY q;

-- date date-25 duckdb: answered
SELECT DATE_TRUNC('hour', ordered_at) AS h, COUNT(*) FROM orders WHERE order_date = '2024-03-10' GROUP BY 1 ORDER BY 1;

-- date date-26 duckdb: answered
SELECT TIME_BUCKET(INTERVAL '6 hours', ordered_at) AS b, COUNT(*) FROM orders WHERE ordered_at < '2024-01-08' GROUP BY b ORDER BY b;

-- date date-27 duckdb: answered
SELECT EXTRACT(year FROM signup_date) * 100 + EXTRACT(month FROM signup_date) AS ym, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;

-- date date-28 duckdb: answered
SELECT COUNT(*) FROM orders WHERE ordered_at BETWEEN '2024-12-31' AND '2024-12-31';

-- date date-29 duckdb: answered
SELECT COUNT(*) FROM orders WHERE ordered_at BETWEEN TIMESTAMP '2024-02-29 00:00:00' AND TIMESTAMP '2024-02-29 23:59:59.999999';

-- date date-30 duckdb: key-constant
SELECT MAKE_DATE(YEAR(order_date), 1, 1) AS y, COUNT(*) FROM orders GROUP BY 1;

-- date date-31 duckdb: answered
SELECT DATE_DIFF('day', signup_date, order_date) // 30 AS months_since, COUNT(*) FROM orders o JOIN customers c USING (customer_id) GROUP BY 1 ORDER BY 1;

-- date date-32 duckdb: function-unsupported
SELECT DATE_SUB('month', signup_date, DATE '2024-12-31') AS full_months, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;

-- date date-33 duckdb: answered
SELECT DATEPART('dayofyear', order_date) AS doy, COUNT(*) FROM orders WHERE order_date >= '2024-12-25' GROUP BY 1 ORDER BY 1;

-- date date-34 duckdb: answered
SELECT COUNT(*) FROM orders WHERE DATE_TRUNC('month', order_date) = DATE_TRUNC('month', DATE '2024-06-15');

-- date date-35 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_date >= CURRENT_DATE - INTERVAL '1000 days';

-- date date-36 duckdb: answered
SELECT ISODOW(order_date) IN (6, 7) AS weekend, COUNT(*), SUM(amount) / COUNT(DISTINCT order_date) AS per_day FROM orders GROUP BY 1;

-- date date-37 duckdb: function-unsupported
SELECT DECADE(birth_date) AS d, COUNT(*) FROM customers GROUP BY 1;

-- date date-38 duckdb: answered
SELECT EXTRACT(decade FROM birth_date) * 10 AS d, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;

-- date date-39 duckdb: answered
SELECT MIN(order_date) AS first, MAX(order_date) AS last FROM orders;

-- string string-1 duckdb: answered
SELECT LOWER(country) AS c, COUNT(*) FROM customers GROUP BY 1;

-- string string-2 duckdb: answered
SELECT UPPER(segment) AS s, LENGTH(segment) AS l, COUNT(*) FROM customers GROUP BY 1, 2;

-- string string-3 duckdb: answered
SELECT COUNT(*) FROM customers WHERE segment ILIKE 'GROSS%' OR segment ILIKE '%KUNDE';

-- string string-4 duckdb: answered
SELECT COUNT(*) FROM customers WHERE country ILIKE 'são%';

-- string string-5 duckdb: answered
SELECT COUNT(*) FROM customers WHERE country ILIKE 'SÃO%';

-- string string-6 duckdb: answered
SELECT SUBSTRING(segment, 1, 3) AS s3, COUNT(*) FROM customers GROUP BY 1;

-- string string-7 duckdb: answered
SELECT SUBSTRING(segment, -3) AS s3, RIGHT(segment, 2) AS r2, LEFT(segment, -1) AS l, COUNT(*) FROM customers GROUP BY 1, 2, 3;

-- string string-8 duckdb: answered
SELECT COALESCE(NULLIF(TRIM(country), ''), 'unknown') AS c, COUNT(*) FROM customers GROUP BY 1 ORDER BY 2 DESC;

-- string string-9 duckdb: answered
SELECT CONCAT(country, '-', segment) AS k, COUNT(*) FROM customers GROUP BY 1;

-- string string-10 duckdb: answered
SELECT country || '/' || segment AS k, COUNT(*) FROM customers GROUP BY 1;

-- string string-11 duckdb: answered
SELECT REPLACE(segment, ' ', '_') AS k, COUNT(*) FROM customers GROUP BY 1;

-- string string-12 duckdb: answered
SELECT LPAD(country, 4, '*') AS k, RPAD(country, 3) AS r, COUNT(*) FROM customers GROUP BY 1, 2;

-- string string-13 duckdb: function-unsupported
SELECT REVERSE(country) AS k, COUNT(*) FROM customers GROUP BY 1;

-- string string-14 duckdb: answered
SELECT SPLIT_PART(status, 'e', 1) AS k, COUNT(*) FROM orders GROUP BY 1;

-- string string-15 duckdb: answered
SELECT STRPOS(segment, 'k') AS p, COUNT(*) FROM customers GROUP BY 1;

-- string string-16 duckdb: answered
SELECT COUNT(*) FROM orders WHERE coupon LIKE 'SPRING%';

-- string string-17 duckdb: answered
SELECT COUNT(*) FROM orders WHERE coupon ILIKE 'spring%';

-- string string-18 duckdb: answered
SELECT COUNT(*) FROM orders WHERE coupon LIKE '%\_5\%' ESCAPE '\';

-- string string-19 duckdb: answered
SELECT COUNT(*) FROM orders WHERE LOWER(coupon) = 'spring10';

-- string string-20 duckdb: text-undeclared
SELECT COUNT(*) FROM orders WHERE coupon LIKE 'VIP-____';

-- string string-21 duckdb: answered
SELECT UPPER(coupon) AS c, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY n DESC;

-- string string-22 duckdb: answered
SELECT COUNT(*) FROM orders WHERE REGEXP_MATCHES(coupon, '^VIP');

-- string string-23 duckdb: text-undeclared
SELECT COUNT(*) FROM orders WHERE REGEXP_MATCHES(coupon, '[0-9]+$');

-- string string-24 duckdb: function-unsupported
SELECT COUNT(*) FROM orders WHERE coupon ~ '^[A-Z]+[0-9]{2}$';

-- string string-25 duckdb: answered
SELECT COUNT(*) FROM orders WHERE status SIMILAR TO '(placed|ship.*)';

-- string string-26 duckdb: answered
SELECT REGEXP_REPLACE(segment, '[aeiou]', '', 'g') AS k, COUNT(*) FROM customers GROUP BY 1;

-- string string-27 duckdb: answered
SELECT REGEXP_EXTRACT(status, '^(..)', 1) AS k, COUNT(*) FROM orders GROUP BY 1;

-- string string-28 duckdb: answered
SELECT AVG(LENGTH(coupon)), SUM(LENGTH(coupon)), MAX(LENGTH(status)) FROM orders;

-- string string-29 duckdb: answered
SELECT AVG(LENGTH(note)) FROM order_lines WHERE note <> '';

-- string string-30 duckdb: answered
SELECT CASE WHEN page LIKE '/p/%' THEN 'product' WHEN page ILIKE '/search%' THEN 'search' WHEN page = '/' THEN 'home' WHEN page IS NULL THEN 'none' ELSE 'other' END AS page_type, COUNT(*) AS views, COUNT(DISTINCT customer_id) AS users FROM events GROUP BY 1 ORDER BY 2 DESC;

-- string string-31 duckdb: answered
SELECT SPLIT_PART(page, '?', 1) AS path, COUNT(*) FROM events GROUP BY 1;

-- string string-32 duckdb: answered
SELECT SPLIT_PART(page, '/', 2) AS p1, COUNT(*) FROM events GROUP BY 1;

-- string string-33 duckdb: answered
SELECT COUNT(*) FROM order_lines WHERE note = 'it''s late';

-- string string-34 duckdb: text-undeclared
SELECT COUNT(*) FROM order_lines WHERE TRIM(LOWER(note)) = 'gift wrap';

-- string string-35 duckdb: answered
SELECT COUNT(DISTINCT LOWER(referrer)) FROM customers;

-- string string-36 duckdb: answered
SELECT COUNT(DISTINCT referrer), COUNT(DISTINCT country), COUNT(DISTINCT segment) FROM customers;

-- string string-37 duckdb: answered
SELECT LEFT(referrer, 3) AS r, COUNT(*) FROM customers GROUP BY 1 ORDER BY 2 DESC;

-- string string-38 duckdb: answered
SELECT INITCAP(status) AS s, COUNT(*) FROM orders GROUP BY 1;

-- string string-39 duckdb: answered
SELECT POSITION('a' IN status) AS p, COUNT(*) FROM orders GROUP BY 1;

-- string string-40 duckdb: answered
SELECT CONCAT_WS('|', country, segment, "group") AS k, COUNT(*) FROM customers GROUP BY 1;

-- string string-41 duckdb: function-unsupported
SELECT CHR(65) || country AS x, COUNT(*) FROM customers GROUP BY 1;

-- string string-42 duckdb: answered
SELECT COUNT(*) FROM customers WHERE CONTAINS(referrer, 'ads') AND STARTS_WITH(referrer, 'ads/');

-- string string-43 duckdb: answered
SELECT COUNT(*) FROM customers WHERE referrer IN ('friend', 'Friend', '');

-- string string-44 duckdb: answered
SELECT COUNT(*) FROM customers WHERE referrer > 'a';

-- string string-45 duckdb: answered
SELECT ASCII(segment) AS a, COUNT(*) FROM customers GROUP BY 1;

-- string string-46 duckdb: function-unsupported
SELECT STATUS AS s, MD5(status) AS h, COUNT(*) FROM orders GROUP BY status;

-- string string-47 duckdb: answered
SELECT TRANSLATE(status, 'aeiou', '12345') AS t, COUNT(*) FROM orders GROUP BY 1;

-- string string-48 duckdb: text-undeclared
SELECT COUNT(*) FROM orders WHERE LENGTH(TRIM(COALESCE(coupon, ''))) = 0;

-- join join-1 duckdb: answered
SELECT c.country, COUNT(*) AS orders, SUM(o.amount) AS revenue, SUM(o.amount) / COUNT(DISTINCT o.customer_id) AS arpu FROM orders o INNER JOIN customers c ON c.customer_id = o.customer_id GROUP BY c.country;

-- join join-2 duckdb: answered
SELECT c.country, COUNT(o.order_id) AS orders, COUNT(DISTINCT c.customer_id) AS custs FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.country;

-- join join-3 duckdb: answered
SELECT c.country, COUNT(o.order_id) AS orders, COUNT(DISTINCT c.customer_id) AS custs FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.status = 'cancelled' GROUP BY c.country;

-- join join-4 duckdb: answered
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.order_id IS NULL;

-- join join-5 duckdb: answered
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.amount > 300 WHERE o.customer_id IS NULL;

-- join join-6 duckdb: answered
SELECT COUNT(*) FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id WHERE o.status <> 'cancelled';

-- join join-7 duckdb: answered
SELECT COUNT(*) FROM customers c LEFT JOIN orders o USING (customer_id) WHERE COALESCE(o.amount, 0) = 0;

-- join join-8 duckdb: answered
SELECT p.category, SUM(l.qty * l.unit_price) AS revenue, SUM(l.qty) AS units FROM order_lines l JOIN products p ON p.product_id = l.product_id GROUP BY p.category ORDER BY revenue DESC;

-- join join-9 duckdb: answered
SELECT COALESCE(p.category, 'none') AS category, COUNT(*) FROM order_lines l LEFT JOIN products p ON p.product_id = l.product_id GROUP BY 1;

-- join join-10 duckdb: answered
SELECT p.category, p.active, COUNT(*) FROM order_lines l LEFT JOIN products p USING (product_id) GROUP BY 1, 2;

-- join join-11 duckdb: table-public
SELECT p.category, COUNT(*) FROM products p LEFT JOIN order_lines l ON l.product_id = p.product_id GROUP BY 1;

-- join join-12 duckdb: answered
SELECT o.channel, p.category, SUM(l.qty) AS q FROM order_lines l JOIN orders o ON o.order_id = l.order_id JOIN products p ON p.product_id = l.product_id WHERE o.status NOT IN ('cancelled') GROUP BY 1, 2;

-- join join-13 duckdb: answered
SELECT c.segment, p.subcategory, COUNT(DISTINCT o.customer_id) AS buyers FROM order_lines l JOIN orders o USING (order_id) JOIN customers c USING (customer_id) JOIN products p USING (product_id) GROUP BY 1, 2;

-- join join-14 duckdb: answered
SELECT r.reason, COUNT(*) AS n, AVG(r.refund) AS avg_refund, AVG(r.returned_on - o.order_date) AS days FROM returns r JOIN orders o ON r.order_id = o.order_id GROUP BY r.reason;

-- join join-15 duckdb: answered
SELECT 1.0 * COUNT(DISTINCT r.order_id) / COUNT(DISTINCT o.order_id) AS return_rate FROM orders o LEFT JOIN returns r ON r.order_id = o.order_id;

-- join join-16 duckdb: answered
SELECT o.channel, COUNT(r.return_id) * 100.0 / COUNT(*) AS pct FROM orders o LEFT JOIN returns r ON r.order_id = o.order_id GROUP BY o.channel;

-- join join-17 duckdb: answered
SELECT cal.fiscal_year, cal.fiscal_quarter, SUM(o.amount) FROM orders o JOIN calendar cal ON cal.day = o.order_date GROUP BY 1, 2 ORDER BY 1, 2;

-- join join-18 duckdb: answered
SELECT cal.is_holiday, COUNT(*) FROM orders o JOIN calendar cal ON cal.day = CAST(o.ordered_at AS DATE) GROUP BY 1;

-- join join-19 duckdb: table-public
SELECT cal.day, COUNT(o.order_id) AS n FROM calendar cal LEFT JOIN orders o ON o.order_date = cal.day WHERE cal.day BETWEEN '2024-01-01' AND '2024-01-31' GROUP BY cal.day ORDER BY cal.day;

-- join join-20 duckdb: answered
SELECT cal.day, COALESCE(d.n, 0) AS n FROM calendar cal LEFT JOIN (SELECT order_date, COUNT(*) AS n FROM orders GROUP BY order_date) d ON d.order_date = cal.day WHERE cal.day BETWEEN '2024-02-20' AND '2024-03-05' ORDER BY 1;

-- join join-21 duckdb: answered
SELECT COUNT(*) FROM orders o JOIN products p ON p.product_id = o.priority WHERE p.active;

-- join join-22 duckdb: answered
SELECT COUNT(*) FROM orders o, customers c WHERE o.customer_id = c.customer_id AND c.country = 'DE';

-- join join-23 duckdb: type-mismatch
SELECT COUNT(*) FROM orders a JOIN orders b ON a.customer_id = b.customer_id AND a.order_id < b.order_id;

-- join join-24 duckdb: answered
SELECT COUNT(*) FROM orders a JOIN orders b ON a.customer_id = b.customer_id AND b.order_date > a.order_date AND b.order_date <= a.order_date + 30;

-- join join-25 duckdb: answered
SELECT COUNT(DISTINCT a.customer_id) FROM events a JOIN events b ON a.customer_id = b.customer_id AND a.event_name = 'view' AND b.event_name = 'purchase' AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL '1 day';

-- join join-26 duckdb: join-private
SELECT a.event_name, b.event_name, COUNT(*) FROM events a JOIN events b ON a.session_id = b.session_id AND a.ts < b.ts GROUP BY 1, 2;

-- join join-27 duckdb: join-unsupported
SELECT COUNT(*) FROM orders o NATURAL JOIN customers c;

-- join join-28 duckdb: join-unsupported
SELECT COUNT(*) FROM customers c FULL OUTER JOIN orders o ON c.customer_id = o.customer_id;

-- join join-29 duckdb: join-unsupported
SELECT COUNT(*) FROM orders o RIGHT JOIN customers c ON c.customer_id = o.customer_id WHERE o.order_id IS NULL;

-- join join-30 duckdb: answered
SELECT c.country, cnt.n AS orders, COUNT(*) AS customers FROM customers c LEFT JOIN (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) cnt ON cnt.customer_id = c.customer_id GROUP BY 1, 2;

-- join join-31 duckdb: answered
SELECT c.country, SUM(COALESCE(cnt.n, 0)) AS orders, AVG(COALESCE(cnt.n, 0)) AS per_customer FROM customers c LEFT JOIN (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) cnt ON cnt.customer_id = c.customer_id GROUP BY 1;

-- join join-32 duckdb: answered
SELECT p.name, SUM(l.qty) FROM order_lines l JOIN products p ON l.product_id = p.product_id AND p.active GROUP BY p.name HAVING SUM(l.qty) > 100 ORDER BY 2 DESC LIMIT 5;

-- join join-33 duckdb: answered
SELECT COUNT(*) FROM order_lines l JOIN products p ON l.product_id = p.product_id WHERE l.unit_price > p.list_price;

-- join join-34 duckdb: answered
SELECT p.category, AVG(l.unit_price - p.list_price) AS margin, SUM(CASE WHEN l.unit_price >= p.list_price THEN l.qty ELSE 0 END) FROM order_lines l JOIN products p ON l.product_id = p.product_id GROUP BY p.category;

-- join join-35 duckdb: answered
SELECT o.order_date - p.launched > 500 AS old, COUNT(*) FROM order_lines l JOIN orders o ON o.order_id = l.order_id JOIN products p ON p.product_id = l.product_id GROUP BY 1;

-- join join-36 duckdb: answered
SELECT COUNT(*) FROM customers c JOIN orders o ON c.customer_id = o.customer_id LEFT JOIN returns r ON r.order_id = o.order_id LEFT JOIN order_lines l ON l.order_id = o.order_id WHERE r.return_id IS NOT NULL;

-- join join-37 duckdb: answered
SELECT SUM(o.amount), SUM(l.qty * l.unit_price) FROM orders o JOIN order_lines l ON l.order_id = o.order_id;

-- semi semi-1 duckdb: answered
SELECT COUNT(*) FROM customers WHERE customer_id IN (SELECT customer_id FROM orders WHERE status = 'returned');

-- semi semi-2 duckdb: answered
SELECT COUNT(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders);

-- semi semi-3 duckdb: answered
SELECT country, COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND o.amount > 200) AND NOT EXISTS (SELECT 1 FROM returns r JOIN orders o2 ON o2.order_id = r.order_id WHERE o2.customer_id = c.customer_id) GROUP BY country;

-- semi semi-4 duckdb: answered
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM returns r WHERE r.order_id = o.order_id);

-- semi semi-5 duckdb: answered
SELECT COUNT(*) FROM orders o WHERE NOT EXISTS (SELECT * FROM order_lines l WHERE l.order_id = o.order_id AND l.qty > 1);

-- semi semi-6 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_id IN (SELECT order_id FROM order_lines WHERE product_id IN (SELECT product_id FROM products WHERE category = 'toys'));

-- semi semi-7 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_id NOT IN (SELECT order_id FROM returns);

-- semi semi-8 duckdb: answered
SELECT COUNT(*) FROM order_lines WHERE product_id IN (SELECT product_id FROM products WHERE NOT active);

-- semi semi-9 duckdb: answered
SELECT COUNT(*) FROM order_lines WHERE product_id NOT IN (SELECT product_id FROM products WHERE category = 'books');

-- semi semi-10 duckdb: subquery-unsupported
SELECT COUNT(*) FROM order_lines l WHERE NOT EXISTS (SELECT 1 FROM products p WHERE p.product_id = l.product_id);

-- semi semi-11 duckdb: answered
SELECT COUNT(*) FROM orders o WHERE o.amount > (SELECT AVG(o2.amount) FROM orders o2 WHERE o2.customer_id = o.customer_id);

-- semi semi-12 duckdb: answered
SELECT COUNT(*) FROM orders o WHERE o.order_date = (SELECT MIN(o2.order_date) FROM orders o2 WHERE o2.customer_id = o.customer_id);

-- semi semi-13 duckdb: answered
SELECT COUNT(*) FROM orders WHERE amount > (SELECT AVG(amount) FROM orders);

-- semi semi-14 duckdb: answered
SELECT COUNT(*) FROM customers c WHERE (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.customer_id) >= 5;

-- semi semi-15 duckdb: answered
SELECT COUNT(*) FROM customers c WHERE (SELECT SUM(amount) FROM orders o WHERE o.customer_id = c.customer_id AND o.status = 'delivered') > 500;

-- semi semi-16 duckdb: answered
SELECT AVG((SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.customer_id)) FROM customers c;

-- semi semi-17 duckdb: answered
SELECT COUNT(*) FROM orders WHERE order_date IN (SELECT day FROM calendar WHERE is_holiday);

-- semi semi-18 duckdb: answered
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM events e WHERE e.customer_id = o.customer_id AND e.ts < o.ordered_at AND e.event_name = 'purchase');

-- semi semi-19 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id FROM orders INTERSECT SELECT customer_id FROM events) t;

-- semi semi-20 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id FROM customers EXCEPT SELECT customer_id FROM events WHERE event_name = 'purchase') t;

-- semi semi-21 duckdb: answered
SELECT COUNT(*) FROM customers WHERE customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING COUNT(*) > 3 AND SUM(amount) > 200);

-- semi semi-22 duckdb: join-unsupported
SELECT COUNT(*) FROM customers c SEMI JOIN orders o ON c.customer_id = o.customer_id;

-- semi semi-23 duckdb: join-unsupported
SELECT COUNT(*) FROM customers c ANTI JOIN orders o ON c.customer_id = o.customer_id;

-- semi semi-24 duckdb: sql-unsupported
SELECT COUNT(*) FROM orders o WHERE o.amount >= ALL (SELECT amount FROM orders x WHERE x.customer_id = o.customer_id AND amount IS NOT NULL);

-- semi semi-25 duckdb: list-not-constant
SELECT COUNT(*) FROM customers c WHERE 'returned' = ANY (SELECT status FROM orders o WHERE o.customer_id = c.customer_id);

-- semi semi-26 duckdb: answered
SELECT COUNT(DISTINCT customer_id) FROM orders WHERE status = 'delivered' AND customer_id NOT IN (SELECT customer_id FROM orders WHERE status = 'cancelled');

-- semi semi-27 duckdb: subquery-private
SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id) OR c.loyalty_points > 1000;

-- cte cte-1 duckdb: answered
WITH per_customer AS (SELECT customer_id, COUNT(*) AS orders, SUM(amount) AS spend, MAX(order_date) AS last_order FROM orders WHERE status <> 'cancelled' GROUP BY customer_id), tiers AS (SELECT customer_id, CASE WHEN spend >= 1000 THEN 'gold' WHEN spend >= 300 THEN 'silver' ELSE 'bronze' END AS tier, orders, spend FROM per_customer) SELECT tier, COUNT(*) AS customers, AVG(orders) AS avg_orders, SUM(spend) AS spend FROM tiers GROUP BY tier ORDER BY spend DESC;

-- cte cte-2 duckdb: answered
WITH base AS (SELECT * FROM orders WHERE status = 'delivered'), enriched AS (SELECT b.*, c.country FROM base b JOIN customers c ON b.customer_id = c.customer_id), final AS (SELECT country, DATE_TRUNC('month', order_date) AS month, SUM(amount) AS revenue FROM enriched GROUP BY 1, 2) SELECT * FROM final ORDER BY 1, 2;

-- cte cte-3 duckdb: answered
with source as (select * from orders), renamed as (select order_id, customer_id as cust, order_date as ordered_on, amount * 100 as amount_cents, lower(status) as order_status from source) select order_status, count(*) as n, sum(amount_cents) / 100 as amount from renamed group by order_status;

-- cte cte-4 duckdb: answered
WITH x AS (SELECT customer_id, SUM(amount) AS s FROM orders GROUP BY 1) SELECT COUNT(*), SUM(s), AVG(s) FROM x WHERE s IS NOT NULL;

-- cte cte-5 duckdb: answered
WITH x AS (SELECT customer_id, SUM(amount) AS s FROM orders GROUP BY 1) SELECT COUNT(*) FROM x WHERE s IS NULL OR s <= 0;

-- cte cte-6 duckdb: answered
WITH monthly AS (SELECT customer_id, DATE_TRUNC('month', order_date) AS m, SUM(amount) AS s FROM orders GROUP BY 1, 2) SELECT m, COUNT(*) AS active, AVG(s) AS avg_spend FROM monthly GROUP BY m ORDER BY m;

-- cte cte-7 duckdb: answered
WITH f AS (SELECT customer_id, MIN(order_date) AS first_order FROM orders GROUP BY customer_id), s AS (SELECT o.customer_id, MIN(o.order_date) AS second_order FROM orders o JOIN f ON f.customer_id = o.customer_id WHERE o.order_date > f.first_order GROUP BY o.customer_id) SELECT AVG(s.second_order - f.first_order) AS days FROM f JOIN s ON s.customer_id = f.customer_id;

-- cte cte-8 duckdb: answered
WITH t AS (SELECT status, COUNT(*) AS n FROM orders GROUP BY status), total AS (SELECT SUM(n) AS n FROM t) SELECT t.status, ROUND(100.0 * t.n / total.n, 1) AS pct FROM t, total ORDER BY pct DESC;

-- cte cte-9 duckdb: answered
WITH a AS (SELECT channel, COUNT(*) AS n FROM orders WHERE order_date < '2024-07-01' GROUP BY channel), b AS (SELECT channel, COUNT(*) AS n FROM orders WHERE order_date >= '2024-07-01' GROUP BY channel) SELECT COALESCE(a.channel, b.channel) AS channel, a.n AS h1, b.n AS h2, b.n - a.n AS delta FROM a FULL OUTER JOIN b ON a.channel = b.channel;

-- cte cte-10 duckdb: with-unsupported
WITH RECURSIVE d AS (SELECT DATE '2024-01-01' AS day UNION ALL SELECT day + 1 FROM d WHERE day < DATE '2024-01-10') SELECT d.day, COUNT(o.order_id) FROM d LEFT JOIN orders o ON o.order_date = d.day GROUP BY 1 ORDER BY 1;

-- cte cte-11 duckdb: function-unsupported
WITH spine AS (SELECT UNNEST(GENERATE_SERIES(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month'))::DATE AS m), n AS (SELECT DATE_TRUNC('month', signup_date) AS m, COUNT(*) AS signups FROM customers GROUP BY 1) SELECT spine.m, COALESCE(n.signups, 0) AS signups FROM spine LEFT JOIN n ON n.m = spine.m ORDER BY 1;

-- cte cte-12 duckdb: answered
SELECT d.m, COALESCE(n.signups, 0) AS signups FROM generate_series(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month') AS d(m) LEFT JOIN (SELECT DATE_TRUNC('month', signup_date) AS m, COUNT(*) AS signups FROM customers GROUP BY 1) n ON n.m = d.m ORDER BY 1;

-- cte cte-13 duckdb: sql-unsupported
WITH o AS MATERIALIZED (SELECT customer_id, amount FROM orders WHERE amount > 0) SELECT COUNT(*), AVG(amount) FROM o;

-- cte cte-14 duckdb: answered
WITH lines AS (SELECT order_id, SUM(qty * unit_price) AS total, COUNT(*) AS n_lines FROM order_lines GROUP BY order_id) SELECT n_lines, COUNT(*) AS orders, AVG(total) AS aov FROM lines GROUP BY n_lines ORDER BY n_lines;

-- cte cte-15 duckdb: answered
WITH lines AS (SELECT order_id, SUM(qty * unit_price) AS total FROM order_lines GROUP BY order_id) SELECT o.channel, COUNT(*) AS n, SUM(l.total - o.amount) AS gap FROM orders o JOIN lines l ON l.order_id = o.order_id WHERE o.amount IS NOT NULL GROUP BY o.channel;

-- cte cte-16 duckdb: answered
WITH rfm AS (SELECT customer_id, DATE '2024-12-31' - MAX(order_date) AS recency, COUNT(*) AS frequency, SUM(amount) AS monetary FROM orders GROUP BY customer_id) SELECT CASE WHEN recency <= 30 THEN 'R1' WHEN recency <= 90 THEN 'R2' ELSE 'R3' END AS r, CASE WHEN frequency >= 8 THEN 'F1' WHEN frequency >= 3 THEN 'F2' ELSE 'F3' END AS f, COUNT(*) AS n, AVG(monetary) AS m FROM rfm GROUP BY 1, 2;

-- cte cte-17 duckdb: answered
WITH x AS (SELECT customer_id, COUNT(DISTINCT DATE_TRUNC('month', order_date)) AS active_months, COUNT(DISTINCT channel) AS channels FROM orders GROUP BY customer_id) SELECT active_months, channels, COUNT(*) FROM x GROUP BY 1, 2;

-- cte cte-18 duckdb: answered
SELECT COUNT(*) FROM (SELECT DISTINCT customer_id, channel FROM orders) t;

-- cte cte-19 duckdb: answered
SELECT channel, COUNT(*) FROM (SELECT DISTINCT customer_id, channel FROM orders) t GROUP BY channel;

-- cte cte-20 duckdb: answered
SELECT COUNT(*) FROM (SELECT DISTINCT * FROM events) t;

-- cte cte-21 duckdb: groups-by-unit
SELECT COUNT(*) FROM (SELECT DISTINCT event_id FROM events) t;

-- cte cte-22 duckdb: answered
SELECT COUNT(DISTINCT event_id), COUNT(event_id) FROM events;

-- cte cte-23 duckdb: answered
SELECT COUNT(DISTINCT session_id), COUNT(DISTINCT order_id) FROM events JOIN orders USING (customer_id);

-- cte cte-24 duckdb: answered
SELECT COUNT(DISTINCT session_id) FROM events;

-- cohort cohort-1 duckdb: answered
WITH firsts AS (SELECT customer_id, DATE_TRUNC('month', MIN(order_date)) AS cohort FROM orders GROUP BY 1), act AS (SELECT DISTINCT o.customer_id, DATE_TRUNC('month', o.order_date) AS m FROM orders o) SELECT f.cohort, DATE_DIFF('month', f.cohort, a.m) AS k, COUNT(DISTINCT a.customer_id) AS n FROM firsts f JOIN act a ON a.customer_id = f.customer_id GROUP BY 1, 2 ORDER BY 1, 2;

-- cohort cohort-2 duckdb: answered
WITH c AS (SELECT customer_id, DATE_TRUNC('quarter', signup_date) AS cohort FROM customers), size AS (SELECT cohort, COUNT(*) AS n FROM c GROUP BY cohort), act AS (SELECT c.cohort, DATE_DIFF('quarter', c.cohort, o.order_date) AS q, COUNT(DISTINCT o.customer_id) AS active FROM orders o JOIN c ON c.customer_id = o.customer_id WHERE o.order_date >= c.cohort GROUP BY 1, 2) SELECT act.cohort, act.q, 100.0 * act.active / size.n AS pct FROM act JOIN size ON size.cohort = act.cohort ORDER BY 1, 2;

-- cohort cohort-3 duckdb: answered
SELECT DATE_TRUNC('month', c.signup_date) AS cohort, COUNT(DISTINCT c.customer_id) AS signups, COUNT(DISTINCT CASE WHEN o.order_date <= c.signup_date + 30 AND o.order_date >= c.signup_date THEN c.customer_id END) AS ordered_30d FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY 1 ORDER BY 1;

-- cohort cohort-4 duckdb: answered
SELECT k, SUM(spend) FROM (SELECT DATE_DIFF('month', f.d0, o.order_date) AS k, o.amount AS spend FROM orders o JOIN (SELECT customer_id, MIN(order_date) AS d0 FROM orders GROUP BY customer_id) f ON f.customer_id = o.customer_id) t GROUP BY k ORDER BY k;

-- cohort cohort-5 duckdb: answered
SELECT cohort, COUNT(*) AS users, SUM(CASE WHEN n >= 2 THEN 1 ELSE 0 END) AS repeaters, AVG(CASE WHEN n >= 2 THEN 1.0 ELSE 0.0 END) AS repeat_rate FROM (SELECT customer_id, DATE_TRUNC('month', MIN(order_date)) AS cohort, COUNT(*) AS n FROM orders GROUP BY customer_id) t GROUP BY cohort ORDER BY cohort;

-- cohort cohort-6 duckdb: join-unsupported
WITH m AS (SELECT DISTINCT customer_id, DATE_TRUNC('month', order_date) AS mon FROM orders) SELECT a.mon, COUNT(DISTINCT a.customer_id) AS active, COUNT(DISTINCT b.customer_id) AS retained FROM m a LEFT JOIN m b ON b.customer_id = a.customer_id AND b.mon = a.mon + INTERVAL '1 month' GROUP BY 1 ORDER BY 1;

-- cohort cohort-7 duckdb: answered
WITH m AS (SELECT DISTINCT customer_id, DATE_TRUNC('month', order_date) AS mon FROM orders), l AS (SELECT customer_id, mon, LAG(mon) OVER (PARTITION BY customer_id ORDER BY mon) AS prev FROM m) SELECT mon, COUNT(*) FILTER (WHERE prev IS NULL) AS new, COUNT(*) FILTER (WHERE prev = mon - INTERVAL '1 month') AS retained, COUNT(*) FILTER (WHERE prev < mon - INTERVAL '1 month') AS resurrected FROM l GROUP BY mon ORDER BY mon;

-- funnel funnel-1 duckdb: answered
SELECT COUNT(DISTINCT CASE WHEN event_name = 'view' THEN customer_id END) AS v, COUNT(DISTINCT CASE WHEN event_name = 'add_to_cart' THEN customer_id END) AS a, COUNT(DISTINCT CASE WHEN event_name = 'purchase' THEN customer_id END) AS p FROM events;

-- funnel funnel-2 duckdb: answered
SELECT utm_source, COUNT(DISTINCT session_id) AS sessions, COUNT(DISTINCT session_id) FILTER (WHERE event_name = 'purchase') AS buying FROM events GROUP BY utm_source;

-- funnel funnel-3 duckdb: groups-by-unit
WITH s AS (SELECT session_id, MAX(CASE WHEN event_name = 'view' THEN 1 ELSE 0 END) AS v, MAX(CASE WHEN event_name = 'checkout' THEN 1 ELSE 0 END) AS c, MAX(CASE WHEN event_name = 'purchase' THEN 1 ELSE 0 END) AS p FROM events GROUP BY session_id) SELECT SUM(v) AS viewed, SUM(c) AS checked_out, SUM(p) AS purchased, SUM(p) * 1.0 / NULLIF(SUM(v), 0) AS rate FROM s;

-- funnel funnel-4 duckdb: answered
WITH s AS (SELECT customer_id, session_id, MIN(ts) AS t0, MAX(ts) AS t1, COUNT(*) AS n FROM events GROUP BY customer_id, session_id) SELECT COUNT(*) AS sessions, AVG(n) AS events_per_session, AVG(EPOCH(t1) - EPOCH(t0)) AS seconds, COUNT(*) FILTER (WHERE n = 1) * 1.0 / COUNT(*) AS bounce FROM s;

-- funnel funnel-5 duckdb: answered
WITH s AS (SELECT customer_id, session_id, MIN(ts) AS t0, MAX(ts) AS t1 FROM events GROUP BY customer_id, session_id) SELECT AVG(DATE_DIFF('second', t0, t1)) FROM s;

-- funnel funnel-6 duckdb: answered
WITH s AS (SELECT customer_id, session_id, MIN(ts) AS t0, MAX(ts) AS t1 FROM events GROUP BY customer_id, session_id) SELECT AVG(EXTRACT(EPOCH FROM (t1 - t0))) FROM s;

-- funnel funnel-7 duckdb: answered
WITH v AS (SELECT customer_id, MIN(ts) AS t FROM events WHERE event_name = 'view' GROUP BY 1), a AS (SELECT e.customer_id, MIN(e.ts) AS t FROM events e JOIN v ON v.customer_id = e.customer_id WHERE e.event_name = 'add_to_cart' AND e.ts > v.t GROUP BY 1), p AS (SELECT e.customer_id, MIN(e.ts) AS t FROM events e JOIN a ON a.customer_id = e.customer_id WHERE e.event_name = 'purchase' AND e.ts > a.t GROUP BY 1) SELECT (SELECT COUNT(*) FROM v) AS v, (SELECT COUNT(*) FROM a) AS a, (SELECT COUNT(*) FROM p) AS p;

-- funnel funnel-8 duckdb: answered
SELECT step, COUNT(*) FROM (SELECT customer_id, MAX(CASE event_name WHEN 'view' THEN 1 WHEN 'search' THEN 2 WHEN 'add_to_cart' THEN 3 WHEN 'checkout' THEN 4 WHEN 'purchase' THEN 5 END) AS step FROM events GROUP BY customer_id) t GROUP BY step ORDER BY step;

-- funnel funnel-9 duckdb: sql-unsupported
SELECT 'view' AS step, COUNT(DISTINCT customer_id) AS n FROM events WHERE event_name = 'view' UNION ALL SELECT 'checkout', COUNT(DISTINCT customer_id) FROM events WHERE event_name = 'checkout' UNION ALL SELECT 'purchase', COUNT(DISTINCT customer_id) FROM events WHERE event_name = 'purchase' ORDER BY n DESC;

-- funnel funnel-10 duckdb: answered
SELECT device, COUNT(*) FILTER (WHERE next_event = 'purchase') * 1.0 / COUNT(*) FROM (SELECT device, event_name, LEAD(event_name) OVER (PARTITION BY customer_id, session_id ORDER BY ts, event_id) AS next_event FROM events) t WHERE event_name = 'checkout' GROUP BY device;

-- funnel funnel-11 duckdb: window-unsupported
SELECT prev, event_name, COUNT(*) FROM (SELECT event_name, LAG(event_name, 1, 'start') OVER (PARTITION BY session_id ORDER BY ts) AS prev FROM events) t GROUP BY 1, 2;

-- window window-1 duckdb: answered
SELECT status, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS rk, SUM(COUNT(*)) OVER () AS total FROM orders GROUP BY status ORDER BY rk;

-- window window-2 duckdb: answered
SELECT DATE_TRUNC('month', order_date) AS m, SUM(amount) AS r, SUM(SUM(amount)) OVER (ORDER BY DATE_TRUNC('month', order_date)) AS cum FROM orders GROUP BY 1 ORDER BY 1;

-- window window-3 duckdb: answered
SELECT m, r, LAG(r) OVER (ORDER BY m) AS prev, 100.0 * (r - LAG(r) OVER (ORDER BY m)) / LAG(r) OVER (ORDER BY m) AS growth FROM (SELECT DATE_TRUNC('month', order_date) AS m, SUM(amount) AS r FROM orders GROUP BY 1) t ORDER BY m;

-- window window-4 duckdb: answered
SELECT channel, status, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY channel ORDER BY COUNT(*) DESC) AS rn FROM orders GROUP BY 1, 2 QUALIFY rn <= 2 ORDER BY 1, rn;

-- window window-5 duckdb: answered
SELECT * FROM (SELECT country, segment, COUNT(*) AS n, DENSE_RANK() OVER (PARTITION BY country ORDER BY COUNT(*) DESC) AS dr FROM customers GROUP BY country, segment) t WHERE dr = 1;

-- window window-6 duckdb: answered
SELECT order_date, n, AVG(n) OVER (ORDER BY order_date ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS ma7 FROM (SELECT order_date, COUNT(*) AS n FROM orders GROUP BY order_date) d ORDER BY order_date;

-- window window-7 duckdb: answered
SELECT order_date, n, SUM(n) OVER (ORDER BY order_date RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS s7 FROM (SELECT order_date, COUNT(*) AS n FROM orders WHERE channel = 'phone' GROUP BY order_date) d ORDER BY order_date;

-- window window-8 duckdb: answered
SELECT q, COUNT(*), MIN(n), MAX(n) FROM (SELECT order_date, COUNT(*) AS n, NTILE(4) OVER (ORDER BY order_date) AS q FROM orders GROUP BY order_date) t GROUP BY q ORDER BY q;

-- window window-9 duckdb: answered
SELECT priority, n, FIRST_VALUE(n) OVER w AS f, LAST_VALUE(n) OVER w AS l, NTH_VALUE(n, 2) OVER w AS s FROM (SELECT priority, COUNT(*) AS n FROM orders GROUP BY priority) t WINDOW w AS (ORDER BY priority) ORDER BY priority;

-- window window-10 duckdb: answered
SELECT priority, COUNT(*) AS n, PERCENT_RANK() OVER (ORDER BY COUNT(*)) AS pr, CUME_DIST() OVER (ORDER BY COUNT(*)) AS cd FROM orders GROUP BY priority ORDER BY priority;

-- window window-11 duckdb: answered
SELECT country, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share, COUNT(*) - AVG(COUNT(*)) OVER () AS above FROM customers GROUP BY country;

-- window window-12 duckdb: answered
SELECT customer_rank, COUNT(*) FROM (SELECT customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) AS customer_rank FROM orders) t GROUP BY 1 ORDER BY 1;

-- window window-13 duckdb: answered
SELECT SUM(amount) FROM (SELECT customer_id, amount, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) AS rn FROM orders) t WHERE rn = 1;

-- window window-14 duckdb: answered
SELECT channel, COUNT(*) FROM (SELECT customer_id, channel, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at DESC, order_id DESC) AS rn FROM orders) t WHERE rn = 1 GROUP BY channel;

-- window window-15 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id, SUM(amount) OVER (PARTITION BY customer_id ORDER BY order_date) AS running FROM orders) t WHERE running > 500;

-- window window-16 duckdb: answered
SELECT AVG(running) FROM (SELECT SUM(amount) OVER (PARTITION BY customer_id ORDER BY order_date) AS running FROM orders) t;

-- window window-17 duckdb: answered
SELECT AVG(running) FROM (SELECT SUM(amount) OVER (PARTITION BY customer_id ORDER BY order_date, order_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM orders) t;

-- window window-18 duckdb: window-unsupported
SELECT AVG(ma) FROM (SELECT AVG(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ma FROM orders) t;

-- window window-19 duckdb: answered
SELECT AVG(gap) FROM (SELECT DATE_DIFF('day', LAG(order_date) OVER (PARTITION BY customer_id ORDER BY order_date, order_id), order_date) AS gap FROM orders) t;

-- window window-20 duckdb: answered
SELECT COUNT(*) FILTER (WHERE amount > prev) AS up, COUNT(*) FILTER (WHERE amount < prev) AS down, COUNT(*) FILTER (WHERE prev IS NULL) AS none FROM (SELECT amount, LAG(amount) OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) AS prev FROM orders) t;

-- window window-21 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id, RANK() OVER (PARTITION BY customer_id ORDER BY order_date) AS r, DENSE_RANK() OVER (PARTITION BY customer_id ORDER BY order_date) AS d FROM orders) t WHERE r <> d;

-- window window-22 duckdb: answered
SELECT COUNT(*) FROM (SELECT COUNT(*) OVER (PARTITION BY customer_id ORDER BY order_date) AS c, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY order_date) AS r FROM orders) t WHERE c <> r;

-- window window-23 duckdb: answered
SELECT COUNT(*), SUM(share) FROM (SELECT amount / SUM(amount) OVER (PARTITION BY customer_id) AS share FROM orders WHERE amount > 0) t WHERE share > 0.5;

-- window window-24 duckdb: answered
SELECT COUNT(*) FROM (SELECT MAX(amount) OVER (PARTITION BY customer_id) AS mx, amount FROM orders) t WHERE amount = mx;

-- window window-25 duckdb: answered
SELECT first_channel, COUNT(*) FROM (SELECT FIRST_VALUE(channel) OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) AS first_channel FROM orders) t GROUP BY 1;

-- window window-26 duckdb: answered
SELECT COUNT(*) AS sessions FROM (SELECT customer_id, ts, LAG(ts) OVER (PARTITION BY customer_id ORDER BY ts) AS prev FROM events) t WHERE prev IS NULL OR ts - prev > INTERVAL '30 minutes';

-- window window-27 duckdb: answered
SELECT AVG(n) FROM (SELECT customer_id, s, COUNT(*) AS n FROM (SELECT customer_id, SUM(CASE WHEN prev IS NULL OR DATE_DIFF('minute', prev, ts) > 30 THEN 1 ELSE 0 END) OVER (PARTITION BY customer_id ORDER BY ts) AS s FROM (SELECT customer_id, ts, LAG(ts) OVER (PARTITION BY customer_id ORDER BY ts) AS prev FROM events) a) b GROUP BY 1, 2) c;

-- window window-28 duckdb: window-unsupported
SELECT quartile, COUNT(*), AVG(amount) FROM (SELECT amount, NTILE(4) OVER (ORDER BY amount) AS quartile FROM orders WHERE amount IS NOT NULL) t GROUP BY 1;

-- window window-29 duckdb: window-unsupported
SELECT decile, AVG(spend) FROM (SELECT customer_id, SUM(amount) AS spend, NTILE(10) OVER (ORDER BY SUM(amount) DESC) AS decile FROM orders GROUP BY customer_id) t GROUP BY 1 ORDER BY 1;

-- window window-30 duckdb: not-grouped
SELECT COUNT(*) FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at) = 1;

-- window window-31 duckdb: answered
SELECT AVG(amount) FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY ordered_at DESC, order_id DESC) = 1) t;

-- window window-32 duckdb: answered
SELECT AVG(amount) FROM (SELECT DISTINCT ON (customer_id) customer_id, amount FROM orders ORDER BY customer_id, ordered_at DESC, order_id DESC) t;

-- window window-33 duckdb: answered
SELECT status, COUNT(*) FROM (SELECT customer_id, ARG_MAX(status, ordered_at) AS status FROM orders GROUP BY customer_id) t GROUP BY status;

-- window window-34 duckdb: answered
SELECT SUM(n) FROM (SELECT LEAD(amount, 2, 0) OVER (PARTITION BY customer_id ORDER BY ordered_at, order_id) AS n FROM orders) t;

-- window window-35 duckdb: answered
SELECT d, COUNT(DISTINCT customer_id) FROM (SELECT customer_id, order_date - CAST(ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY order_date) AS INTEGER) AS d FROM (SELECT DISTINCT customer_id, order_date FROM orders) x) t GROUP BY d ORDER BY 2 DESC LIMIT 5;

-- window window-36 duckdb: answered
SELECT AVG(CASE WHEN rn % 2 = 0 THEN amount END) FROM (SELECT amount, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY order_id) AS rn FROM orders) t;

-- active active-1 duckdb: answered
SELECT order_date, COUNT(DISTINCT customer_id) AS dau FROM orders GROUP BY order_date ORDER BY order_date;

-- active active-2 duckdb: join-not-on-key
SELECT d.day, COUNT(DISTINCT o.customer_id) AS wau FROM calendar d JOIN orders o ON o.order_date BETWEEN d.day - 6 AND d.day WHERE d.day BETWEEN '2024-06-01' AND '2024-06-10' GROUP BY d.day ORDER BY d.day;

-- active active-3 duckdb: answered
SELECT DATE_TRUNC('month', ts) AS m, COUNT(DISTINCT customer_id) AS mau, COUNT(DISTINCT session_id) AS sessions, COUNT(*) AS events, COUNT(*) * 1.0 / COUNT(DISTINCT customer_id) AS per_user FROM events GROUP BY 1 ORDER BY 1;

-- active active-4 duckdb: answered
SELECT COUNT(DISTINCT customer_id) AS wau FROM orders WHERE order_date > DATE '2024-06-30' - INTERVAL '7 days' AND order_date <= DATE '2024-06-30';

-- active active-5 duckdb: answered
SELECT AVG(dau) FROM (SELECT order_date, COUNT(DISTINCT customer_id) AS dau FROM orders GROUP BY 1) t;

-- active active-6 duckdb: answered
SELECT a.m, a.mau, d.dau, d.dau / a.mau AS stickiness FROM (SELECT DATE_TRUNC('month', order_date) AS m, COUNT(DISTINCT customer_id) AS mau FROM orders GROUP BY 1) a JOIN (SELECT DATE_TRUNC('month', day) AS m, AVG(n) AS dau FROM (SELECT order_date AS day, COUNT(DISTINCT customer_id) AS n FROM orders GROUP BY 1) x GROUP BY 1) d ON d.m = a.m ORDER BY 1;

-- active active-7 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id FROM orders UNION SELECT customer_id FROM events) t;

-- active active-8 duckdb: answered
SELECT COUNT(DISTINCT customer_id) FROM (SELECT customer_id, order_date AS d FROM orders UNION ALL SELECT customer_id, CAST(ts AS DATE) AS d FROM events) t WHERE d >= '2024-12-01';

-- sets sets-1 duckdb: answered
SELECT country, segment, COUNT(*) FROM customers GROUP BY GROUPING SETS ((country), (segment), ());

-- sets sets-2 duckdb: answered
SELECT channel, status, COUNT(*), SUM(amount) FROM orders GROUP BY ROLLUP (channel, status);

-- sets sets-3 duckdb: answered
SELECT channel, is_gift, GROUPING(channel) AS g1, GROUPING(is_gift) AS g2, COUNT(*) FROM orders GROUP BY CUBE (channel, is_gift);

-- sets sets-4 duckdb: answered
SELECT COALESCE(channel, 'Total') AS channel, COUNT(*) FROM orders WHERE channel IS NOT NULL GROUP BY ROLLUP (channel);

-- sets sets-5 duckdb: answered
SELECT CASE WHEN GROUPING(status) = 1 THEN 'All' ELSE status END AS s, AVG(amount) FROM orders GROUP BY ROLLUP (status);

-- sets sets-6 duckdb: groups-unsupported
SELECT country, COUNT(DISTINCT customer_id) FROM customers GROUP BY ROLLUP (country);

-- sets sets-7 duckdb: answered
SELECT DATE_TRUNC('quarter', order_date) AS q, channel, SUM(amount) AS s FROM orders GROUP BY ROLLUP (1, 2) ORDER BY 1, 2;

-- sets sets-8 duckdb: answered
SELECT status, COUNT(*) FROM orders GROUP BY status UNION ALL SELECT 'total', COUNT(*) FROM orders;

-- sets sets-9 duckdb: union-unsupported
SELECT status AS k, COUNT(*) AS n FROM orders GROUP BY 1 UNION SELECT channel, COUNT(*) FROM orders GROUP BY 1;

-- sets sets-10 duckdb: union-unsupported
SELECT country FROM customers GROUP BY country EXCEPT SELECT country FROM customers WHERE opted_in GROUP BY country HAVING COUNT(*) > 30;

-- sets sets-11 duckdb: answered
SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM orders UNION ALL SELECT COUNT(*) FROM events) t;

-- sets sets-12 duckdb: answered
SELECT src, COUNT(*) FROM (SELECT customer_id, 'order' AS src FROM orders UNION ALL SELECT customer_id, 'event' FROM events) t GROUP BY src;

-- agg agg-1 duckdb: answered
SELECT COUNT(*), COUNT(amount), COUNT(DISTINCT channel), SUM(amount), AVG(amount), MIN(priority), MAX(priority) FROM orders;

-- agg agg-2 duckdb: answered
SELECT STDDEV(amount), VAR_POP(amount), STDDEV_POP(priority), VAR_SAMP(priority) FROM orders;

-- agg agg-3 duckdb: answered
SELECT CORR(priority, amount), COVAR_POP(priority, amount), REGR_SLOPE(amount, priority), REGR_INTERCEPT(amount, priority), REGR_R2(amount, priority) FROM orders;

-- agg agg-4 duckdb: answered
SELECT MEDIAN(priority), QUANTILE_CONT(loyalty, 0.5) FROM (SELECT o.priority, c.loyalty_points AS loyalty FROM orders o JOIN customers c USING (customer_id)) t;

-- agg agg-5 duckdb: known-wrong
-- why: QUANTILE_DISC is off by one rank
SELECT segment, MEDIAN(loyalty_points), QUANTILE_DISC(loyalty_points, 0.9), PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY credit_limit) FROM customers GROUP BY segment;

-- agg agg-6 duckdb: quantile-invalid
SELECT QUANTILE_CONT(amount, [0.25, 0.5, 0.75]) FROM orders;

-- agg agg-7 duckdb: answered
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY order_date) FROM orders;

-- agg agg-8 duckdb: answered
SELECT MODE(status), MODE(channel) FROM orders;

-- agg agg-9 duckdb: answered
SELECT SUM(amount) / COUNT(*) AS a, SUM(amount) / COUNT(amount) AS b, AVG(COALESCE(amount, 0)) AS c FROM orders;

-- agg agg-10 duckdb: answered
SELECT SUM(qty * unit_price) / SUM(qty) AS weighted FROM order_lines;

-- agg agg-11 duckdb: answered
SELECT SUM(amount * (1 - COALESCE(discount, 0))) AS net, SUM(amount) - SUM(amount * COALESCE(discount, 0)) AS net2 FROM orders;

-- agg agg-12 duckdb: answered
SELECT COUNT(DISTINCT (channel, status)) FROM orders;

-- agg agg-13 duckdb: answered
SELECT COUNT(DISTINCT channel || status) FROM orders;

-- agg agg-14 duckdb: distinct-unsupported
SELECT SUM(DISTINCT priority), AVG(DISTINCT priority) FROM orders;

-- agg agg-15 duckdb: aggregate-unsupported
SELECT BOOL_OR(is_gift), BOOL_AND(is_gift) FROM orders;

-- agg agg-16 duckdb: aggregate-unsupported
SELECT channel, STRING_AGG(DISTINCT status, ',') FROM orders GROUP BY channel;

-- agg agg-17 duckdb: aggregate-unsupported
SELECT ARRAY_AGG(DISTINCT status) FROM orders;

-- agg agg-18 duckdb: sql-unsupported
SELECT ANY_VALUE(status) FROM orders;

-- agg agg-19 duckdb: sql-unsupported
SELECT status, ANY_VALUE(status), COUNT(*) FROM orders GROUP BY status;

-- agg agg-20 duckdb: aggregate-misplaced
SELECT COUNT(*) / COUNT(DISTINCT customer_id) AS opc, COUNT(*) // COUNT(DISTINCT customer_id) AS opi FROM orders;

-- agg agg-21 duckdb: answered
SELECT AVG(amount) FROM orders WHERE amount > 100000;

-- agg agg-22 duckdb: answered
SELECT channel, AVG(amount) FROM orders WHERE status = 'cancelled' AND amount < 0 GROUP BY channel;

-- agg agg-23 duckdb: answered
SELECT COUNT(*) FROM orders WHERE FALSE;

-- agg agg-24 duckdb: answered
SELECT SUM(amount) FROM orders WHERE 1 = 0;

-- agg agg-25 duckdb: cast-unsupported
SELECT AVG(CAST(is_gift AS INTEGER)), SUM(is_gift::INT), AVG(is_gift::DOUBLE) FROM orders;

-- agg agg-26 duckdb: answered
SELECT ROUND(SUM(amount), 0), FLOOR(AVG(amount)), CEIL(AVG(amount)), ROUND(AVG(amount)::DOUBLE, 1), CAST(AVG(amount) AS INTEGER) FROM orders;

-- agg agg-27 duckdb: answered
SELECT GREATEST(COUNT(*), 100), LEAST(AVG(amount), 5), ABS(SUM(amount) * -1), SQRT(COUNT(*)), LN(COUNT(*)), EXP(1) FROM orders;

-- agg agg-28 duckdb: answered
SELECT SUM(SQRT(ABS(amount))), AVG(LN(GREATEST(amount, 1))), SUM(POWER(priority, 2)), AVG(EXP(priority)) FROM orders;

-- agg agg-29 duckdb: answered
SELECT SUM(priority % 3), SUM(MOD(-priority, 3)), SUM(-priority // 2), SUM(ROUND(amount)), SUM(TRUNC(amount)), SUM(FLOOR(amount)) FROM orders;

-- agg agg-30 duckdb: answered
SELECT SUM(CAST(amount AS INTEGER)), SUM(amount::BIGINT), AVG(CAST(priority AS DOUBLE) / 2) FROM orders;

-- agg agg-31 duckdb: answered
SELECT ROUND(amount, -1) AS r, COUNT(*) FROM orders WHERE amount BETWEEN 0 AND 60 GROUP BY 1 ORDER BY 1;

-- agg agg-32 duckdb: aggregate-unsupported
SELECT SKEWNESS(amount), KURTOSIS(amount) FROM orders;

-- agg agg-33 duckdb: function-unsupported
SELECT GEOMEAN(priority), PRODUCT(priority) FROM orders WHERE priority < 2;

-- agg agg-34 duckdb: function-unsupported
SELECT HISTOGRAM(status) FROM orders;

-- agg agg-35 duckdb: function-unsupported
SELECT ENTROPY(status) FROM orders;

-- agg agg-36 duckdb: answered
SELECT COUNT(*) AS "Total Orders", SUM(amount) AS "Revenue (€)" FROM orders;

-- agg agg-37 duckdb: answered
SELECT SUM(amount) FILTER (WHERE order_date >= '2024-07-01') / NULLIF(SUM(amount) FILTER (WHERE order_date < '2024-07-01'), 0) - 1 AS growth FROM orders;

-- agg agg-38 duckdb: answered
SELECT APPROX_COUNT_DISTINCT(product_id), COUNT(DISTINCT product_id) FROM order_lines;

-- agg agg-39 duckdb: aggregate-unsupported
SELECT FIRST(status ORDER BY ordered_at) FROM orders;

-- agg agg-40 duckdb: answered
SELECT MAX(amount) - MIN(amount) AS rng FROM orders;

-- agg agg-41 duckdb: answered
SELECT MIN(status), MAX(status), MIN(channel), MAX(country) FROM orders JOIN customers USING (customer_id);

-- agg agg-42 duckdb: distinct-unsupported
SELECT COUNT(DISTINCT amount) FROM orders;

-- agg agg-43 duckdb: answered
SELECT COUNT(DISTINCT priority * 2), COUNT(DISTINCT order_date), COUNT(DISTINCT DATE_TRUNC('week', order_date)) FROM orders;

-- agg agg-44 duckdb: answered
SELECT COUNT(DISTINCT CASE WHEN amount > 100 THEN channel END) FROM orders;

-- having having-1 duckdb: answered
SELECT country, COUNT(*) AS n FROM customers GROUP BY country HAVING COUNT(*) > 20 AND AVG(loyalty_points) > 800 ORDER BY n DESC;

-- having having-2 duckdb: answered
SELECT status FROM orders GROUP BY status HAVING SUM(amount) > (SELECT SUM(amount) / 5 FROM orders);

-- having having-3 duckdb: answered
SELECT product_id, SUM(qty) AS q FROM order_lines GROUP BY product_id HAVING SUM(qty) > 250 ORDER BY q DESC NULLS LAST;

-- having having-4 duckdb: answered
SELECT product_id, SUM(qty) AS q FROM order_lines GROUP BY product_id ORDER BY q DESC LIMIT 3 OFFSET 2;

-- having having-5 duckdb: answered
SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel HAVING channel IS NOT NULL ORDER BY channel DESC;

-- having having-6 duckdb: answered
SELECT channel, COUNT(*) AS n FROM orders GROUP BY channel HAVING COUNT(DISTINCT customer_id) > 100 OR channel IS NULL;

-- having having-7 duckdb: sql-syntax
SELECT TOP 3 status, COUNT(*) FROM orders GROUP BY status;

-- having having-8 duckdb: answered
SELECT country, COUNT(*) FROM customers GROUP BY country ORDER BY COUNT(*) DESC FETCH FIRST 2 ROWS ONLY;

-- having having-9 duckdb: answered
SELECT COUNT(*) FROM orders HAVING COUNT(*) > 10;

-- having having-10 duckdb: answered
SELECT country, opted_in, COUNT(*) FROM customers GROUP BY country, opted_in ORDER BY country DESC, opted_in;

-- having having-11 duckdb: answered
SELECT DISTINCT country, segment FROM customers ORDER BY 1, 2;

-- having having-12 duckdb: answered
SELECT DISTINCT status FROM orders WHERE amount > 500;

-- subq subq-1 duckdb: answered
SELECT (SELECT COUNT(*) FROM orders WHERE status = 'returned') * 100.0 / (SELECT COUNT(*) FROM orders) AS pct;

-- subq subq-2 duckdb: answered
SELECT country, AVG(loyalty_points) - (SELECT AVG(loyalty_points) FROM customers) AS diff FROM customers GROUP BY country;

-- subq subq-3 duckdb: answered
SELECT o.status, COUNT(*) FROM (SELECT status FROM (SELECT status, amount FROM orders WHERE amount > 10) a WHERE amount < 100) o GROUP BY o.status;

-- subq subq-4 duckdb: answered
SELECT status, n FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) t WHERE n = (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY status) u);

-- subq subq-5 duckdb: answered
SELECT COUNT(*) FROM orders WHERE channel IN (SELECT channel FROM orders GROUP BY channel ORDER BY COUNT(*) DESC LIMIT 2);

-- subq subq-6 duckdb: answered
SELECT c.segment, t.orders FROM (SELECT segment, COUNT(*) AS n FROM customers GROUP BY segment) c JOIN (SELECT c.segment, COUNT(*) AS orders FROM orders o JOIN customers c USING (customer_id) GROUP BY c.segment) t ON t.segment = c.segment;

-- subq subq-7 duckdb: rows-not-aggregates
SELECT c.segment, l.total FROM customers c, LATERAL (SELECT SUM(amount) AS total FROM orders o WHERE o.customer_id = c.customer_id) l;

-- subq subq-8 duckdb: answered
SELECT c.segment, AVG(l.total), COUNT(*) FROM customers c, LATERAL (SELECT SUM(amount) AS total FROM orders o WHERE o.customer_id = c.customer_id) l GROUP BY c.segment;

-- subq subq-9 duckdb: subquery-unsupported
SELECT AVG(x.n) FROM (SELECT c.customer_id, (SELECT COUNT(*) FROM events e WHERE e.customer_id = c.customer_id AND e.ts >= c.signup_date) AS n FROM customers c) x;

-- subq subq-10 duckdb: answered
SELECT n_orders, COUNT(*) FROM (SELECT c.customer_id, COUNT(o.order_id) AS n_orders FROM customers c LEFT JOIN orders o ON o.customer_id = c.customer_id GROUP BY c.customer_id) t GROUP BY n_orders ORDER BY n_orders;

-- subq subq-11 duckdb: answered
SELECT AVG(mx) FROM (SELECT customer_id, MAX(amount) AS mx FROM orders GROUP BY customer_id HAVING COUNT(*) > 2) t;

-- subq subq-12 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id, BOOL_AND(status = 'delivered') AS all_ok, BOOL_OR(is_gift) AS any_gift FROM orders GROUP BY customer_id) t WHERE all_ok AND any_gift IS NOT TRUE;

-- subq subq-13 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id, MIN(amount) AS lo, MAX(amount) AS hi, AVG(amount) AS mean FROM orders GROUP BY customer_id) t WHERE hi > 3 * mean AND lo < 0;

-- subq subq-14 duckdb: answered
SELECT AVG(t.a) FROM (SELECT customer_id, AVG(amount) AS a FROM orders GROUP BY customer_id) t;

-- subq subq-15 duckdb: answered
SELECT MEDIAN(n), MAX(n), MIN(n) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) t;

-- subq subq-16 duckdb: answered
SELECT SUM(CASE WHEN n = 1 THEN 1 ELSE 0 END) * 1.0 / COUNT(*) FROM (SELECT customer_id, COUNT(*) n FROM orders GROUP BY 1) t;

-- subq subq-17 duckdb: answered
SELECT o.status, COUNT(*) FROM orders AS o JOIN (SELECT DISTINCT order_id FROM order_lines WHERE qty < 0) AS neg ON neg.order_id = o.order_id GROUP BY o.status;

-- subq subq-18 duckdb: answered
SELECT COUNT(*) FROM (SELECT customer_id, order_date, COUNT(*) AS n FROM orders GROUP BY 1, 2 HAVING COUNT(*) > 1) t;

-- subq subq-19 duckdb: answered
SELECT COUNT(*) FROM (SELECT *, amount > 100 AS big FROM orders) t WHERE big;

-- subq subq-20 duckdb: answered
SELECT COUNT(*) FROM (SELECT * EXCLUDE (note) FROM order_lines) t WHERE qty > 1;

-- subq subq-21 duckdb: sql-unsupported
SELECT COUNT(*) FROM (SELECT * REPLACE (amount * 2 AS amount) FROM orders) t WHERE amount > 200;

-- json json-1 duckdb: answered
SELECT COUNT(*) FROM events WHERE LIST_CONTAINS(['view', 'search'], event_name);

-- json json-2 duckdb: answered
SELECT COUNT(*) FROM events WHERE event_name = ANY(['view', 'search']);

-- json json-3 duckdb: answered
SELECT COUNT(*) FROM events WHERE event_name = ANY(ARRAY['view', 'search']);

-- json json-4 duckdb: table-unsupported
SELECT x, COUNT(*) FROM events CROSS JOIN UNNEST(['a', 'b']) AS t(x) GROUP BY x;

-- json json-5 duckdb: function-unsupported
SELECT TO_JSON(status), COUNT(*) FROM orders GROUP BY status;

-- json json-6 duckdb: sql-unsupported
SELECT STRING_SPLIT(page, '/')[2] AS p, COUNT(*) FROM events GROUP BY 1;

-- json json-7 duckdb: function-unsupported
SELECT {'s': status} AS s, COUNT(*) FROM orders GROUP BY status;

-- json json-8 duckdb: aggregate-unsupported
SELECT status, LIST(n ORDER BY n) FROM (SELECT status, channel, COUNT(*) AS n FROM orders GROUP BY 1, 2) t GROUP BY status;

-- pgtools pgtools-1 postgres: answered
SELECT "orders"."status" AS "status", SUM(1) AS "cnt:orders:ok" FROM "public"."orders" "orders" GROUP BY 1 HAVING (COUNT(1) > 0);

-- pgtools pgtools-2 postgres: answered
SELECT CAST(EXTRACT(YEAR FROM "orders"."order_date") AS INTEGER) AS "yr:order_date:ok", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1;

-- pgtools pgtools-3 postgres: answered
SELECT CAST(TRUNC(EXTRACT(MONTH FROM "orders"."order_date")) AS INTEGER) AS "mn:order_date:ok", AVG(CAST("orders"."priority" AS DOUBLE PRECISION)) AS "avg" FROM "public"."orders" "orders" GROUP BY 1;

-- pgtools pgtools-4 postgres: answered
SELECT DATE_TRUNC('MONTH', CAST("orders"."ordered_at" AS TIMESTAMP)) AS "tmn:ordered_at:ok", COUNT(DISTINCT "orders"."customer_id") AS "ctd" FROM "public"."orders" "orders" GROUP BY 1;

-- pgtools pgtools-5 postgres: answered
SELECT "t0"."segment" AS "segment", SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" INNER JOIN "public"."customers" "t0" ON ("orders"."customer_id" = "t0"."customer_id") WHERE (("t0"."country" IN ('DE', 'FR')) AND ("orders"."order_date" >= (DATE '2024-03-01')) AND ("orders"."order_date" <= (DATE '2024-09-30'))) GROUP BY 1;

-- pgtools pgtools-6 postgres: answered
SELECT (CASE WHEN ("orders"."amount" >= 100) THEN 'High' WHEN NOT ("orders"."amount" >= 100) THEN 'Low' ELSE NULL END) AS "Calculation_1", COUNT("orders"."order_id") AS "cnt" FROM "public"."orders" "orders" GROUP BY 1;

-- pgtools pgtools-7 postgres: answered
SELECT MIN("orders"."order_date") AS "TEMP(min)", MAX("orders"."order_date") AS "TEMP(max)" FROM "public"."orders" "orders" HAVING (COUNT(1) > 0);

-- pgtools pgtools-8 postgres: answered
SELECT ((CAST("orders"."order_date" AS DATE)) + (-1 * EXTRACT(DOW FROM "orders"."order_date")) * INTERVAL '1 DAY') AS "twk:order_date:ok", COUNT(1) AS "n" FROM "public"."orders" "orders" GROUP BY 1;

-- pgtools pgtools-9 postgres: answered
SELECT FLOOR(("customers"."loyalty_points") / 250.0) AS "bin", COUNT(*) FROM "public"."customers" "customers" GROUP BY 1;

-- pgtools pgtools-10 postgres: answered
select "_"."status" as "c1", sum("_"."amount") as "a0", count(*) as "a1" from "public"."orders" "_" group by "_"."status" limit 1000001;

-- pgtools pgtools-11 postgres: answered
select "rows"."status" as "status", sum("rows"."amount") as "a0" from (select "_"."status", "_"."amount" from "public"."orders" "_" where "_"."channel" = 'web' and "_"."channel" is not null) "rows" group by "status";

-- pgtools pgtools-12 postgres: answered
select "t"."c" as "c", count(distinct "t"."u") as "n" from (select "$Outer"."status" as "c", "$Inner"."customer_id" as "u" from "public"."orders" "$Outer" inner join "public"."customers" "$Inner" on ("$Outer"."customer_id" = "$Inner"."customer_id")) "t" group by "t"."c" order by "t"."c";

-- pgtools pgtools-13 postgres: answered
SELECT (TO_CHAR(DATE_TRUNC('month', orders.ordered_at), 'YYYY-MM')) AS "orders.created_month", COALESCE(SUM(orders.amount), 0) AS "orders.total" FROM public.orders AS orders GROUP BY (DATE_TRUNC('month', orders.ordered_at)) ORDER BY 1 DESC FETCH NEXT 500 ROWS ONLY;

-- pgtools pgtools-14 postgres: answered
SELECT (DATE(orders.ordered_at)) AS "orders.created_date", COUNT(*) AS "orders.count" FROM public.orders AS orders WHERE ((( orders.ordered_at ) >= ((TIMESTAMP '2024-06-01')) AND ( orders.ordered_at ) < (TIMESTAMP '2024-06-08'))) GROUP BY 1 ORDER BY 1 DESC LIMIT 500;

-- pgtools pgtools-15 postgres: type-mismatch
SELECT COUNT(*) FROM orders WHERE ((( ordered_at ) >= ((SELECT (DATE_TRUNC('month', DATE_TRUNC('day', CURRENT_TIMESTAMP)) + (-40 || ' month')::INTERVAL)))));

-- pgtools pgtools-16 postgres: distinct-unsupported
SELECT COUNT(DISTINCT CASE WHEN (orders.status = 'delivered') THEN orders.order_id ELSE NULL END) AS delivered, COALESCE(COALESCE(CAST( ( SUM(DISTINCT (CAST(FLOOR(COALESCE( orders.amount ,0)*(1000000*1.0)) AS DECIMAL(65,0))) )) AS DOUBLE PRECISION), 0), 0) AS total FROM orders;

-- pgtools pgtools-17 postgres: answered
SELECT CAST("public"."orders"."order_date" AS date) AS "order_date", COUNT(*) AS "count" FROM "public"."orders" WHERE ("public"."orders"."order_date" >= CAST((NOW() + (INTERVAL '-2000 day')) AS date)) AND ("public"."orders"."order_date" < CAST(NOW() AS date)) GROUP BY CAST("public"."orders"."order_date" AS date) ORDER BY CAST("public"."orders"."order_date" AS date) ASC;

-- pgtools pgtools-18 postgres: answered
SELECT CAST(EXTRACT(quarter FROM "public"."orders"."order_date") AS integer) AS "q", COUNT(*) FROM "public"."orders" GROUP BY CAST(EXTRACT(quarter FROM "public"."orders"."order_date") AS integer) ORDER BY 1;

-- pgtools pgtools-19 postgres: answered
SELECT (CAST(date_trunc('week', CAST((CAST("public"."orders"."order_date" AS timestamp) + (INTERVAL '1 day')) AS timestamp)) AS timestamp) + (INTERVAL '-1 day')) AS "w", COUNT(*) AS "count" FROM "public"."orders" GROUP BY 1 ORDER BY 1;

-- pgtools pgtools-20 postgres: answered
SELECT "source"."country" AS "country", AVG("source"."count") AS "avg" FROM (SELECT "public"."customers"."country" AS "country", "public"."customers"."segment" AS "segment", COUNT(*) AS "count" FROM "public"."customers" GROUP BY "public"."customers"."country", "public"."customers"."segment") AS "source" GROUP BY "source"."country" ORDER BY "source"."country" ASC;

-- pgtools pgtools-21 postgres: answered
SELECT COUNT(*) AS "count" FROM "public"."customers" WHERE (NOT (LOWER("public"."customers"."referrer") LIKE '%ads%') OR ("public"."customers"."referrer" IS NULL));

-- pgtools pgtools-22 postgres: answered
SELECT DATE_TRUNC('day', ordered_at) AS ordered_at, status AS status, sum(amount) AS "SUM(amount)" FROM public.orders WHERE ordered_at >= TO_TIMESTAMP('2024-05-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND ordered_at < TO_TIMESTAMP('2024-05-08 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') GROUP BY DATE_TRUNC('day', ordered_at), status ORDER BY "SUM(amount)" DESC LIMIT 10000;

-- pgtools pgtools-23 postgres: answered
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( select customer_id from customers where segment is null ) dbt_internal_test;

-- pgtools pgtools-24 postgres: answered
with all_values as ( select status as value_field, count(*) as n_records from orders group by status ) select * from all_values where value_field not in ( 'placed','shipped' );

-- pgtools pgtools-25 postgres: answered
with child as ( select customer_id as from_field from orders where customer_id is not null ), parent as ( select customer_id as to_field from customers ) select count(*) from child left join parent on child.from_field = parent.to_field where parent.to_field is null;

-- pgtools pgtools-26 postgres: answered
select count(*) from ( select order_id as unique_field, count(*) as n_records from orders where order_id is not null group by order_id having count(*) > 1 ) t;

-- pgtools pgtools-27 postgres: sql-syntax
with orders_ as (select * from {{ ref('orders') }}) select count(*) from orders_;

-- pgtools pgtools-28 postgres: function-unsupported
select md5(cast(coalesce(cast(status as TEXT), '_dbt_utils_surrogate_key_null_') as TEXT)) as sk, count(*) from orders group by 1;

-- pgtools pgtools-29 postgres: answered
select status, count(*) as n, round(avg(amount)::numeric, 2) as avg_amount, round((100.0 * count(*) / sum(count(*)) over ())::numeric, 1) as pct from orders group by status order by n desc;

-- pgtools pgtools-30 postgres: answered
select to_char(order_date, 'YYYY-MM') as ym, sum(amount)::numeric(12,2) as revenue from orders group by 1 order by 1;

-- pgtools pgtools-31 postgres: date-part-unsupported
select to_char(order_date, 'Day') as d, count(*) from orders group by 1;

-- pgtools pgtools-32 postgres: date-part-unsupported
select to_char(ordered_at, 'HH24') as h, count(*) from orders group by 1 order by 1;

-- pgtools pgtools-33 postgres: date-part-unsupported
select to_char(order_date, 'IYYY-IW') as w, count(*) from orders group by 1;

-- pgtools pgtools-34 postgres: function-unsupported
select date_part('year', age(date '2024-12-31', birth_date))::int as age, count(*) from customers group by 1 order by 1;

-- pgtools pgtools-35 postgres: function-unsupported
select count(*) from customers where age(date '2024-12-31', birth_date) > interval '30 years';

-- pgtools pgtools-36 postgres: answered
select extract(epoch from (ship_date::timestamp - ordered_at)) / 86400 > 3 as late, count(*) from orders group by 1;

-- pgtools pgtools-37 postgres: answered
select count(*) from orders where ordered_at >= now() - interval '5 years';

-- pgtools pgtools-38 postgres: sql-unsupported
select count(*) from orders where order_date between symmetric date '2024-12-31' and date '2024-12-01';

-- pgtools pgtools-39 postgres: quantile-invalid
select percentile_cont(array[0.25, 0.5, 0.75]) within group (order by amount) from orders;

-- pgtools pgtools-40 postgres: function-unsupported
select count(*) from orders where coupon ~* '^spring';

-- pgtools pgtools-41 postgres: function-unsupported
select count(*) from orders where coupon !~ '^VIP' ;

-- pgtools pgtools-42 postgres: function-unsupported
select count(*) from orders where status ~ '^(placed|shipped)$';

-- pgtools pgtools-43 postgres: aggregate-unsupported
select array_agg(distinct status order by status) from orders;

-- pgtools pgtools-44 postgres: aggregate-unsupported
select status, json_agg(n) from (select status, channel, count(*) as n from orders group by 1, 2) t group by 1;

-- pgtools pgtools-45 postgres: answered
select loyalty_points / 100 as b, count(*) from customers group by 1 order by 1;

-- pgtools pgtools-46 postgres: answered
select loyalty_points / 100 * 100 as b, count(*) from customers group by 1 order by 1;

-- pgtools pgtools-47 postgres: answered
select sum(loyalty_points / 7) from customers;

-- pgtools pgtools-48 postgres: aggregate-misplaced
select count(*) / 7 as a, count(*) % 7 as m from customers;

-- pgtools pgtools-49 postgres: answered
select (extract(year from order_date)::int - 2000) / 10 as dec, count(*) from orders group by 1;

-- pgtools pgtools-50 postgres: answered
select sum(case when is_gift then 1 else 0 end) / count(*) as share from orders;

-- pgtools pgtools-51 postgres: function-unsupported
select generate_series(1, 3) as g, count(*) from orders group by 1;

-- pgtools pgtools-52 postgres: table-unsupported
select d::date as day, coalesce(n, 0) as n from generate_series('2024-01-01'::date, '2024-01-10'::date, '1 day'::interval) d left join (select order_date, count(*) as n from orders group by 1) o on o.order_date = d::date order by 1;

-- pgtools pgtools-53 postgres: answered
select count(*) filter (where o.order_date <= c.signup_date + interval '90 days') from orders o join customers c using (customer_id);

-- pgtools pgtools-54 postgres: answered
select distinct on (status) status, channel, count(*) as n from orders group by 1, 2 order by status, n desc;

-- pgtools pgtools-55 postgres: table-unsupported
select c.country, x.cnt from (select country, count(*) as c from customers group by country) c left join lateral (select count(*) as cnt from orders) x on true;

-- pgtools pgtools-56 postgres: known-wrong
-- why: groups of one size are in an order of PostgreSQL's own
select segment, string_agg(country, ', ' order by n desc) from (select segment, country, count(*) as n from customers group by 1, 2) t group by segment;

-- pgtools pgtools-57 postgres: function-unsupported
select status, count(*) from orders group by status order by status collate "C";

-- pgtools pgtools-58 postgres: answered
select channel, count(*) from orders group by channel order by channel desc;

-- pgtools pgtools-59 postgres: answered
select channel, count(*) from orders group by channel order by channel;

-- pgtools pgtools-60 postgres: answered
select coalesce(channel, 'n/a') as channel, count(*) from orders group by coalesce(channel, 'n/a') order by 2 desc;

-- pgtools pgtools-61 postgres: groups-by-real
select greatest(amount, discount), count(*) from orders group by 1 limit 1;

-- pgtools pgtools-62 postgres: answered
select width_bucket(loyalty_points, 0, 2000, 4) as b, count(*) from customers group by 1 order by 1;

-- pgtools pgtools-63 postgres: answered
select substring(status from 1 for 2) as s, count(*) from orders group by 1;

-- pgtools pgtools-64 postgres: answered
select position('e' in status) as p, count(*) from orders group by 1;

-- pgtools pgtools-65 postgres: sql-unsupported
select count(*) from orders where is_gift is unknown;

-- pgtools pgtools-66 postgres: answered
select count(*) from orders where order_date >= date_trunc('year', date '2024-05-05') + interval '1 month' * 3;

-- pgtools pgtools-67 postgres: sql-unsupported
select count(*) from orders where ordered_at at time zone 'UTC' at time zone 'Europe/Berlin' >= '2024-03-31 03:00:00';

-- pgtools pgtools-68 postgres: sql-unsupported
select date_trunc('day', ordered_at at time zone 'Europe/Berlin') as d, count(*) from orders group by 1;

-- pgtools pgtools-69 postgres: function-unsupported
select date_bin('15 minutes', ts, timestamp '2024-01-01') as b, count(*) from events where ts < '2024-01-02' group by 1;

-- pgtools pgtools-70 postgres: sql-unsupported
select (array['a','b'])[priority] as x, count(*) from orders group by 1;

-- pgtools pgtools-71 postgres: rows-not-aggregates
select sum(amount) over () from orders limit 1;

-- pgtools pgtools-72 postgres: answered
select cast(priority as text) as p, count(*) from orders group by 1;

-- pgtools pgtools-73 postgres: answered
select priority::varchar || '-' || status as k, count(*) from orders group by 1;

-- pgtools pgtools-74 postgres: answered
select count(*) as "count", avg(amount) as "avg" from "orders" where "status" in ('placed');

-- pgtools pgtools-75 postgres: answered
select nullif(channel, 'web') as c, count(*) from orders group by 1;

-- pgtools pgtools-76 postgres: answered
select extract(hour from ordered_at)::int as h, (extract(minute from ordered_at)::int / 15) as quarter_hour, count(*) from orders where order_date < '2024-01-04' group by 1, 2;

-- pgtools pgtools-77 postgres: answered
select "group", count(*) from customers group by "group";

-- pgtools pgtools-78 postgres: aggregate-unsupported
select bool_or(amount > 3000) from orders;

-- pgtools pgtools-79 postgres: function-unsupported
select every(amount > -200) from orders;

-- pgtools pgtools-80 postgres: aggregate-unsupported
select mode() within group (order by channel) from orders;

-- pgtools pgtools-81 postgres: date-unreadable
select count(*) from orders where order_date = '2024-02-30';

-- pgtools pgtools-82 postgres: cast-unsupported
select sum(amount)::money from orders ;

-- pgtools pgtools-83 postgres: answered
select round(amount / 50) * 50 as bin, count(*) from orders where amount > 0 group by 1 order by 1;

-- pgtools pgtools-84 postgres: answered
select date '2024-12-31' - order_date as age_days, count(*) from orders where order_date > '2024-12-25' group by 1 order by 1;

-- pgtools pgtools-85 postgres: function-unsupported
select justify_days(max(ordered_at) - min(ordered_at)) from orders;

-- pgtools pgtools-86 postgres: sql-unsupported
select count(*) from orders where (order_date, ship_date) overlaps (date '2024-02-01', date '2024-02-10');

-- tools2 tools2-1 postgres: answered
select "basetable0"."c28" as "c28", "basetable0"."a0" as "a0" from ( select "t0"."status" as "c28", sum("t0"."amount") as "a0" from "public"."orders" "t0" group by "t0"."status" ) "basetable0" where not "basetable0"."a0" is null limit 1000001;

-- tools2 tools2-2 postgres: answered
SELECT "orders"."status" AS "status" FROM "public"."orders" "orders" INNER JOIN ( SELECT "orders"."channel" AS "channel", SUM("orders"."amount") AS "__measure__0" FROM "public"."orders" "orders" GROUP BY 1 ORDER BY 2 DESC LIMIT 2 ) "t0" ON ("orders"."channel" = "t0"."channel") GROUP BY 1;

-- tools2 tools2-3 postgres: join-private
SELECT "orders"."status" AS "status", SUM("t0"."x") AS "s" FROM "public"."orders" "orders" INNER JOIN ( SELECT "orders"."customer_id" AS "customer_id", COUNT("orders"."priority") AS "x" FROM "public"."orders" "orders" GROUP BY 1 ) "t0" ON ("orders"."customer_id" IS NOT DISTINCT FROM "t0"."customer_id") GROUP BY 1;

-- tools2 tools2-4 postgres: answered
SELECT "orders"."channel" AS "channel", COUNT(*) AS n FROM "public"."orders" "orders" WHERE (NOT (("orders"."channel" IN ('web')) OR ("orders"."channel" IS NULL))) GROUP BY 1;

-- tools2 tools2-5 postgres: answered
SELECT SUM(CAST("orders"."amount" AS DOUBLE PRECISION)) AS s, COUNT(DISTINCT "orders"."order_id") AS c FROM "public"."orders" "orders";

-- tools2 tools2-6 postgres: answered
SELECT (CAST(EXTRACT(dow FROM "public"."orders"."order_date") AS integer) + 1) AS "dow", COUNT(*) FROM "public"."orders" WHERE CAST("public"."orders"."order_date" AS date) BETWEEN date '2024-01-01' AND date '2024-03-31' GROUP BY 1 ORDER BY 1;

-- tools2 tools2-7 postgres: answered
SELECT * FROM ( SELECT *, MIN(z___rank) OVER (PARTITION BY "orders.status") AS z___min_rank FROM ( SELECT *, RANK() OVER (ORDER BY "orders.count" DESC, "orders.status") AS z___rank FROM ( SELECT orders.status AS "orders.status", orders.channel AS "orders.channel", COUNT(*) AS "orders.count" FROM orders GROUP BY 1, 2 ) ww ) aa ) xx WHERE z___min_rank <= 500;

-- tools2 tools2-8 postgres: answered
SELECT customers.country AS "customers.country", COUNT(DISTINCT orders.order_id) AS "orders.count", COALESCE(SUM(orders.amount), 0) AS total FROM orders LEFT JOIN customers ON orders.customer_id = customers.customer_id WHERE customers.country IS NOT NULL GROUP BY 1 HAVING COUNT(DISTINCT orders.order_id) > 50 ORDER BY 2 DESC LIMIT 500;

-- tools2 tools2-9 postgres: answered
select date_trunc('month', order_date)::date as month, count(*) as orders, sum(amount) as revenue, lag(sum(amount)) over (order by date_trunc('month', order_date)) as prev_revenue, round(100.0 * (sum(amount) - lag(sum(amount)) over (order by date_trunc('month', order_date))) / nullif(lag(sum(amount)) over (order by date_trunc('month', order_date)), 0), 2) as growth_pct from orders group by 1 order by 1;

-- tools2 tools2-10 postgres: answered
select count(*) over () as total, status from orders group by status;

-- tools2 tools2-11 postgres: answered
select status, count(*) as cnt, count(*) * 100.0 / (select count(*) from orders) as pct from orders group by status order by cnt desc;

-- tools2 tools2-12 postgres: answered
with ranked as ( select *, row_number() over (partition by customer_id order by ordered_at desc, order_id desc) as rn from orders ) select status, count(*) from ranked where rn = 1 group by status;

-- tools2 tools2-13 postgres: answered
with final as ( select o.order_id, o.customer_id, coalesce(r.refund, 0) as refund, case when r.return_id is not null then true else false end as was_returned from orders o left join returns r on o.order_id = r.order_id ) select was_returned, count(*), sum(refund) from final group by 1;

-- tools2 tools2-14 postgres: answered
select 'orders' as src, count(*) as n from orders union all select 'customers' as src, count(*) from customers union all select 'events', count(*) from events;

-- tools2 tools2-15 postgres: answered
select c.country, o.status, count(*) from customers c join orders o on c.customer_id = o.customer_id and o.order_date between '2024-01-01' and '2024-06-30' where c.signup_date < o.order_date group by c.country, o.status having count(*) >= 10 order by c.country, count(*) desc;

-- tools2 tools2-16 postgres: answered
select extract(year from order_date) as yr, extract(month from order_date) as mo, sum(sum(amount)) over (partition by extract(year from order_date) order by extract(month from order_date)) as ytd from orders group by 1, 2 order by 1, 2;

-- tools2 tools2-17 postgres: answered
select p.category, sum(l.qty * l.unit_price) as revenue, rank() over (order by sum(l.qty * l.unit_price) desc) as rnk, sum(l.qty * l.unit_price) / sum(sum(l.qty * l.unit_price)) over () as share from order_lines l join products p on l.product_id = p.product_id group by p.category;

-- tools2 tools2-18 postgres: answered
select corr(o.amount, o.priority), stddev(o.amount) / avg(o.amount) as cv from orders o;

-- tools2 tools2-19 postgres: answered
select case when amount < 0 then 'neg' when amount >= 0 and amount < 100 then 'low' else 'high' end as bucket, round(avg(priority), 2) as p, min(order_date), max(order_date) from orders group by case when amount < 0 then 'neg' when amount >= 0 and amount < 100 then 'low' else 'high' end;

-- tools2 tools2-20 postgres: groups-by-unit
select c.customer_id, count(*) as n from customers c join orders o using (customer_id) group by c.customer_id order by n desc limit 10;

-- tools2 tools2-21 postgres: answered
select avg(cnt) as avg_orders, percentile_cont(0.5) within group (order by cnt) as median_orders, max(cnt) from (select customer_id, count(*) as cnt from orders group by customer_id) s;

-- tools2 tools2-22 postgres: answered
select churned, count(*) from (select customer_id, max(order_date) < date '2024-10-01' as churned from orders group by customer_id) t group by churned;

-- tools2 tools2-23 postgres: answered
select coalesce(sum(amount) filter (where status = 'delivered'), 0) as delivered, coalesce(sum(amount) filter (where status = 'cancelled'), 0) as cancelled from orders;

-- tools2 tools2-24 postgres: answered
select date_trunc('week', ts) as week, count(distinct customer_id) filter (where event_name = 'purchase') as buyers, count(distinct customer_id) as users, round(count(distinct customer_id) filter (where event_name = 'purchase') * 100.0 / count(distinct customer_id), 2) as conv from events group by 1 order by 1;

-- tools2 tools2-25 postgres: answered
select event_name, avg(duration_ms) / 1000.0 as secs, percentile_cont(0.95) within group (order by duration_ms) as p95 from events group by event_name order by secs desc;

-- tools2 tools2-26 postgres: answered
select device, utm_source, count(*) as n, count(*) filter (where bounced)::float / count(*) as bounce_rate from events group by device, utm_source order by n desc limit 10;

-- tools2 tools2-27 postgres: answered
select count(*) from events e where exists (select 1 from events f where f.customer_id = e.customer_id and f.session_id = e.session_id and f.event_name = 'purchase');

-- tools2 tools2-28 postgres: answered
select e.utm_source, count(distinct o.customer_id) from events e join orders o on o.customer_id = e.customer_id and o.ordered_at > e.ts and o.ordered_at < e.ts + interval '7 days' group by 1;

-- tools2 tools2-29 postgres: sql-unsupported
select first_utm, count(*) as customers, sum(spend) as ltv from (select e.customer_id, (array_agg(utm_source order by ts))[1] as first_utm from events e group by e.customer_id) f join (select customer_id, sum(amount) as spend from orders group by customer_id) o using (customer_id) group by 1;

-- tools2 tools2-30 postgres: answered
select hour, avg(n) from (select order_date, extract(hour from ordered_at) as hour, count(*) as n from orders group by 1, 2) t group by hour order by hour;

-- tools2 tools2-31 postgres: answered
select to_char(order_date, 'Mon YYYY') as m, count(*) from orders group by 1;

-- tools2 tools2-32 postgres: answered
select to_char(order_date, 'YYYY"Q"Q') as q, count(*) from orders group by 1;

-- tools2 tools2-33 postgres: answered
select date_trunc('month', order_date) as m, sum(amount) as rev from orders where order_date >= date_trunc('year', current_date) - interval '3 years' group by 1 order by 1;

-- tools2 tools2-34 postgres: answered
select sum(l.qty * l.unit_price) / count(distinct l.order_id) as aov, sum(l.qty)::float / count(distinct l.order_id) as upt from order_lines l;

-- tools2 tools2-35 postgres: answered
select count(*) filter (where n = 1) as one_time, count(*) filter (where n > 1) as repeat, round(100.0 * count(*) filter (where n > 1) / count(*), 1) as repeat_rate from (select customer_id, count(distinct order_id) as n from orders group by 1) t;

-- tools2 tools2-36 postgres: answered
select p.category, count(distinct o.customer_id) from orders o join order_lines l on l.order_id = o.order_id join products p on p.product_id = l.product_id where o.customer_id in (select o2.customer_id from orders o2 join order_lines l2 on l2.order_id = o2.order_id join products p2 on p2.product_id = l2.product_id where p2.category = 'books') and p.category <> 'books' group by 1;

-- tools2 tools2-37 postgres: answered
select a.product_id as a, b.product_id as b, count(*) as together from order_lines a join order_lines b on a.order_id = b.order_id and a.product_id < b.product_id group by 1, 2 order by 3 desc limit 10;

-- tools2 tools2-38 postgres: window-unsupported
select o.order_date, sum(o.amount) over (order by o.order_date) from orders o;

-- tools2 tools2-39 postgres: answered
select segment, sum(case when rn = 1 then amount end) as first_order, sum(case when rn > 1 then amount end) as later from (select c.segment, o.amount, row_number() over (partition by o.customer_id order by o.ordered_at, o.order_id) as rn from orders o join customers c on c.customer_id = o.customer_id) t group by segment;

-- tools2 tools2-40 postgres: answered
select nth, avg(amount) from (select amount, row_number() over (partition by customer_id order by ordered_at, order_id) as nth from orders) t where nth <= 5 group by nth order by nth;

-- tools2 tools2-41 postgres: answered
select count(*) as at_risk from customers c left join (select customer_id, max(order_date) as last from orders group by customer_id) l on l.customer_id = c.customer_id where l.last is null or l.last < date '2024-09-01';

-- tools2 tools2-42 postgres: answered
select c.country, coalesce(avg(l.n), 0) from customers c left join (select customer_id, count(*) as n from orders group by 1) l on l.customer_id = c.customer_id group by 1;

-- tools2 tools2-43 postgres: answered
select status, count(*) from orders where lower(coupon) like '%spring%' or coupon is null group by status;

-- tools2 tools2-44 postgres: answered
select distinct customers.country from customers inner join orders on orders.customer_id = customers.customer_id where orders.amount > 300;

-- tools2 tools2-45 postgres: answered
select count(*) from (select customer_id from orders group by customer_id having count(distinct date_trunc('month', order_date)) >= 6) loyal;

-- tools2 tools2-46 postgres: answered
select min(amount), max(amount), avg(amount), count(*), count(distinct channel), sum(case when amount is null then 1 else 0 end) as nulls from orders;

-- tools2 tools2-47 postgres: answered
select date_trunc('month', returned_on) as m, count(*)::float / nullif((select count(*) from orders), 0) from returns group by 1 order by 1;

-- tools2 tools2-48 postgres: answered
select extract(week from order_date) as w, count(*), avg(count(*)) over (order by extract(week from order_date) rows between 3 preceding and current row) as ma4 from orders group by 1 order by 1;

-- tools2 tools2-49 postgres: answered
select c."group" as variant, count(*) as n, avg(case when o.n > 0 then 1.0 else 0 end) as conv, stddev(coalesce(o.n, 0)) as sd from customers c left join (select customer_id, count(*) as n from orders where status <> 'cancelled' group by customer_id) o on o.customer_id = c.customer_id group by 1;
