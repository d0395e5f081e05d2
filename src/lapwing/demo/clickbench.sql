-- Forty-three questions about page views, in our own words after a well-known web analytics benchmark.
-- The unit is the user. `lapwing conformance --list clickbench` runs them.

-- k01: all views
SELECT COUNT(*) FROM hits;

-- k02: views that came by an advertisement
SELECT COUNT(*) FROM hits WHERE adv_engine_id <> 0;

-- k03: a sum, a count and an average
SELECT SUM(adv_engine_id), COUNT(*), AVG(resolution_width) FROM hits;

-- k04: an average of identifiers
-- refused: type-mismatch
SELECT AVG(user_id) FROM hits;

-- k05: users
SELECT COUNT(DISTINCT user_id) FROM hits;

-- k06: different phrases
SELECT COUNT(DISTINCT search_phrase) FROM hits;

-- k07: first and last day
SELECT MIN(event_date), MAX(event_date) FROM hits;

-- k08: advertisements by engine
SELECT adv_engine_id, COUNT(*) FROM hits WHERE adv_engine_id <> 0 GROUP BY adv_engine_id ORDER BY COUNT(*) DESC;

-- k09: regions with the most users
SELECT region_id, COUNT(DISTINCT user_id) AS u FROM hits GROUP BY region_id ORDER BY u DESC LIMIT 10;

-- k10: figures of the busiest regions
SELECT region_id, SUM(adv_engine_id), COUNT(*) AS c, AVG(resolution_width), COUNT(DISTINCT user_id)
FROM hits GROUP BY region_id ORDER BY c DESC LIMIT 10;

-- k11: users by model of phone
SELECT mobile_phone_model, COUNT(DISTINCT user_id) AS u FROM hits WHERE mobile_phone_model <> ''
GROUP BY mobile_phone_model ORDER BY u DESC LIMIT 10;

-- k12: users by make and model of phone
SELECT mobile_phone, mobile_phone_model, COUNT(DISTINCT user_id) AS u FROM hits WHERE mobile_phone_model <> ''
GROUP BY mobile_phone, mobile_phone_model ORDER BY u DESC LIMIT 10;

-- k13: most frequent phrases
SELECT search_phrase, COUNT(*) AS c FROM hits WHERE search_phrase <> '' GROUP BY search_phrase ORDER BY c DESC LIMIT 10;

-- k14: phrases of the most users
SELECT search_phrase, COUNT(DISTINCT user_id) AS u FROM hits WHERE search_phrase <> '' GROUP BY search_phrase ORDER BY u DESC LIMIT 10;

-- k15: phrases by engine
SELECT search_engine_id, search_phrase, COUNT(*) AS c FROM hits WHERE search_phrase <> ''
GROUP BY search_engine_id, search_phrase ORDER BY c DESC LIMIT 10;

-- k16: users with the most views
-- refused: groups-by-unit
SELECT user_id, COUNT(*) FROM hits GROUP BY user_id ORDER BY COUNT(*) DESC LIMIT 10;

-- k17: what the busiest users searched for
-- refused: groups-by-unit
SELECT user_id, search_phrase, COUNT(*) FROM hits GROUP BY user_id, search_phrase ORDER BY COUNT(*) DESC LIMIT 10;

-- k18: what some users searched for
-- refused: groups-by-unit
SELECT user_id, search_phrase, COUNT(*) FROM hits GROUP BY user_id, search_phrase LIMIT 10;

-- k19: what users searched for, by the minute
-- refused: groups-by-unit
SELECT user_id, EXTRACT(MINUTE FROM event_time) AS m, search_phrase, COUNT(*) FROM hits
GROUP BY user_id, m, search_phrase ORDER BY COUNT(*) DESC LIMIT 10;

-- k20: one user
-- refused: type-mismatch
SELECT user_id FROM hits WHERE user_id = 435090932900;

-- k21: pages with a word in their address
SELECT COUNT(*) FROM hits WHERE url LIKE '%google%';

-- k22: phrases that lead to such pages, with one of them
SELECT search_phrase, MIN(url), COUNT(*) AS c FROM hits WHERE url LIKE '%google%' AND search_phrase <> ''
GROUP BY search_phrase ORDER BY c DESC LIMIT 10;

-- k23: phrases that lead to titles with a word
SELECT search_phrase, MIN(url), MIN(title), COUNT(*) AS c, COUNT(DISTINCT user_id) FROM hits
WHERE title LIKE '%Google%' AND url NOT LIKE '%.google.%' AND search_phrase <> ''
GROUP BY search_phrase ORDER BY c DESC LIMIT 10;

-- k24: whole rows
-- refused: rows-not-aggregates
SELECT * FROM hits WHERE url LIKE '%google%' ORDER BY event_time LIMIT 10;

-- k25: the first phrases
-- refused: rows-not-aggregates
SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY event_time LIMIT 10;

-- k26: phrases in their order
-- refused: rows-not-aggregates
SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY search_phrase LIMIT 10;

-- k27: the first phrases in their order
-- refused: rows-not-aggregates
SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY event_time, search_phrase LIMIT 10;

-- k28: how long addresses are, by site
SELECT counter_id, AVG(LENGTH(url)) AS l, COUNT(*) AS c FROM hits WHERE url <> '' GROUP BY counter_id
HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25;

-- k29: the hosts that users came from, with one address of each
-- refused: text-undeclared
SELECT REGEXP_REPLACE(referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS k, AVG(LENGTH(referer)) AS l, COUNT(*) AS c, MIN(referer)
FROM hits WHERE referer <> '' GROUP BY k HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25;
-- instead
SELECT SPLIT_PART(referer, '/', 3) AS k, AVG(LEAST(LENGTH(referer), 100)) AS l, COUNT(*) AS c
FROM hits WHERE referer <> '' GROUP BY k HAVING COUNT(*) > 100 ORDER BY l DESC LIMIT 25;

-- k30: many sums of shifted widths
SELECT SUM(resolution_width), SUM(resolution_width + 1), SUM(resolution_width + 2), SUM(resolution_width + 3), SUM(resolution_width +
    4), SUM(resolution_width + 5), SUM(resolution_width + 6), SUM(resolution_width + 7), SUM(resolution_width + 8), SUM(resolution_width +
    9), SUM(resolution_width + 10), SUM(resolution_width + 11), SUM(resolution_width + 12), SUM(resolution_width + 13), SUM(resolution_width
    + 14), SUM(resolution_width + 15), SUM(resolution_width + 16), SUM(resolution_width + 17), SUM(resolution_width + 18),
    SUM(resolution_width + 19), SUM(resolution_width + 20), SUM(resolution_width + 21), SUM(resolution_width + 22), SUM(resolution_width +
    23), SUM(resolution_width + 24), SUM(resolution_width + 25), SUM(resolution_width + 26), SUM(resolution_width + 27),
    SUM(resolution_width + 28), SUM(resolution_width + 29), SUM(resolution_width + 30), SUM(resolution_width + 31), SUM(resolution_width +
    32), SUM(resolution_width + 33), SUM(resolution_width + 34), SUM(resolution_width + 35), SUM(resolution_width + 36),
    SUM(resolution_width + 37), SUM(resolution_width + 38), SUM(resolution_width + 39), SUM(resolution_width + 40), SUM(resolution_width +
    41), SUM(resolution_width + 42), SUM(resolution_width + 43), SUM(resolution_width + 44), SUM(resolution_width + 45),
    SUM(resolution_width + 46), SUM(resolution_width + 47), SUM(resolution_width + 48), SUM(resolution_width + 49), SUM(resolution_width +
    50), SUM(resolution_width + 51), SUM(resolution_width + 52), SUM(resolution_width + 53), SUM(resolution_width + 54),
    SUM(resolution_width + 55), SUM(resolution_width + 56), SUM(resolution_width + 57), SUM(resolution_width + 58), SUM(resolution_width +
    59), SUM(resolution_width + 60), SUM(resolution_width + 61), SUM(resolution_width + 62), SUM(resolution_width + 63),
    SUM(resolution_width + 64), SUM(resolution_width + 65), SUM(resolution_width + 66), SUM(resolution_width + 67), SUM(resolution_width +
    68), SUM(resolution_width + 69), SUM(resolution_width + 70), SUM(resolution_width + 71), SUM(resolution_width + 72),
    SUM(resolution_width + 73), SUM(resolution_width + 74), SUM(resolution_width + 75), SUM(resolution_width + 76), SUM(resolution_width +
    77), SUM(resolution_width + 78), SUM(resolution_width + 79), SUM(resolution_width + 80), SUM(resolution_width + 81),
    SUM(resolution_width + 82), SUM(resolution_width + 83), SUM(resolution_width + 84), SUM(resolution_width + 85), SUM(resolution_width +
    86), SUM(resolution_width + 87), SUM(resolution_width + 88), SUM(resolution_width + 89) FROM hits;

-- k31: engines and addresses of machines
SELECT search_engine_id, client_ip, COUNT(*) AS c, SUM(is_refresh), AVG(resolution_width) FROM hits WHERE search_phrase <> ''
GROUP BY search_engine_id, client_ip ORDER BY c DESC LIMIT 10;

-- k32: single views of searches
-- refused: groups-by-unit
SELECT watch_id, client_ip, COUNT(*) AS c, SUM(is_refresh), AVG(resolution_width) FROM hits WHERE search_phrase <> ''
GROUP BY watch_id, client_ip ORDER BY c DESC LIMIT 10;

-- k33: single views
-- refused: groups-by-unit
SELECT watch_id, client_ip, COUNT(*) AS c, SUM(is_refresh), AVG(resolution_width) FROM hits
GROUP BY watch_id, client_ip ORDER BY c DESC LIMIT 10;

-- k34: most visited pages
SELECT url, COUNT(*) AS c FROM hits GROUP BY url ORDER BY c DESC LIMIT 10;

-- k35: the same with a constant
SELECT 1, url, COUNT(*) AS c FROM hits GROUP BY 1, url ORDER BY c DESC LIMIT 10;

-- k36: addresses of machines and their neighbours
SELECT client_ip, client_ip - 1, client_ip - 2, client_ip - 3, COUNT(*) AS c FROM hits
GROUP BY client_ip, client_ip - 1, client_ip - 2, client_ip - 3 ORDER BY c DESC LIMIT 10;

-- k37: pages of one site in a month
SELECT url, COUNT(*) AS page_views FROM hits WHERE counter_id = 2 AND event_date >= '2013-07-01' AND event_date <= '2013-07-31'
AND dont_count_hits = 0 AND is_refresh = 0 AND url <> '' GROUP BY url ORDER BY page_views DESC LIMIT 10;

-- k38: titles of one site in a month
SELECT title, COUNT(*) AS page_views FROM hits WHERE counter_id = 2 AND event_date >= '2013-07-01' AND event_date <= '2013-07-31'
AND dont_count_hits = 0 AND is_refresh = 0 AND title <> '' GROUP BY title ORDER BY page_views DESC LIMIT 10;

-- k39: links, further down the list
SELECT url, COUNT(*) AS page_views FROM hits WHERE counter_id = 2 AND event_date >= '2013-07-01' AND event_date <= '2013-07-31'
AND is_refresh = 0 AND is_link <> 0 AND is_download = 0 GROUP BY url ORDER BY page_views DESC LIMIT 10 OFFSET 10;

-- k40: ways to a page
SELECT traffic_source_id, search_engine_id, adv_engine_id,
    CASE WHEN search_engine_id = 0 AND adv_engine_id = 0 THEN referer ELSE '' END AS src, url AS dst, COUNT(*) AS page_views
FROM hits WHERE counter_id = 2 AND event_date >= '2013-07-01' AND event_date <= '2013-07-31' AND is_refresh = 0
GROUP BY traffic_source_id, search_engine_id, adv_engine_id, src, dst ORDER BY page_views DESC LIMIT 10 OFFSET 10;

-- k41: pages by day, from some sources
SELECT url, event_date, COUNT(*) AS page_views FROM hits WHERE counter_id = 2 AND event_date >= '2013-07-01'
AND event_date <= '2013-07-31' AND is_refresh = 0 AND traffic_source_id IN (-1, 6) AND referer <> ''
GROUP BY url, event_date ORDER BY page_views DESC LIMIT 10 OFFSET 10;

-- k42: sizes of windows
SELECT window_client_width, window_client_height, COUNT(*) AS page_views FROM hits WHERE counter_id = 2
AND event_date >= '2013-07-01' AND event_date <= '2013-07-31' AND is_refresh = 0 AND dont_count_hits = 0
GROUP BY window_client_width, window_client_height ORDER BY page_views DESC LIMIT 10;

-- k43: views by the minute
SELECT DATE_TRUNC('minute', event_time) AS m, COUNT(*) AS page_views FROM hits WHERE counter_id = 2
AND event_date >= '2013-07-14' AND event_date <= '2013-07-15' AND is_refresh = 0 AND dont_count_hits = 0
GROUP BY DATE_TRUNC('minute', event_time) ORDER BY DATE_TRUNC('minute', event_time) LIMIT 10;
