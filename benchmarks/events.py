"""Questions as people ask them of a new table of events, scored against the truth: active users, funnels, retention, revenue, top pages.

    python -m benchmarks.events                                            # 100,000 events of 5,000 users: a minute or two
    python -m benchmarks.events --users 100_000 --rows 2_000_000 --epsilon 0.1 0.5
    python -m benchmarks.events --only W2 P3 --shown 8                     # two of the questions, with what a person sees
    python -m benchmarks.events --adult FOLDER                             # fifteen questions about Adult as well
    python -m benchmarks.events --follow questions.txt                     # one's own: a line each, a name, | and a statement

Two sets of fifteen questions about made-up web events: W in DuckDB's dialect, P in PostgreSQL's (`dialect="postgres"`, asked of the same
data set). Activity is heavy-tailed, pages follow Zipf's law, users begin at different times, and only some pages earn anything. Addresses
of pages are not declared. Each price has a data set of its own, with an ordinary budget; every question is asked once.

*Groups* are those shown of those there are; NULL is one where the catalogue allows it. *Covered* are the error bars that hold the truth.
*Error* is that of the value as a share of the truth, in the median over groups; *down* and *up* are how far the bar reaches to each side,
as shares of the truth; *bar / error* is its longer side over the error; *first* is the error of the first row, which is mostly the largest
group.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import show, table
from benchmarks.release_quality import named_world, write_data_set
from benchmarks.reliability.shop import named, quoted, zipf

import lapwing
from lapwing.errors import LapwingError

SEED = 7
COUNTRIES = ("US", "DE", "GB", "FR", "IN", "BR", "JP", "CA", "AU", "ES", "IT", "NL", "SE", "PL", "MX", "KR", "TR", "AR", "ZA", "NG")
DEVICES = ("mobile", "desktop", "tablet")
PAGES = ("/", "/login", "/product", "/cart", "/checkout", "/thank-you", "/search", "/account", "/pricing", "/blog")
URLS = (*PAGES, *(f"/p/{number:04d}" for number in range(4_990)))
BOUGHT = PAGES.index("/thank-you")
DAYS = 731
REVENUE_MAX, REVENUE_DECLARED = 4_000, 5_000
ROWS_PER_UNIT_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Question:
    """A question, how many of its first columns are keys, and its truth in DuckDB's dialect where that is spelt otherwise."""

    name: str
    sql: str
    keys: int = 0
    truth: str = ""
    dialect: str = "duckdb"

    @property
    def truth_sql(self) -> str:
        """Of all groups: which of them are shown is compared apart."""
        return re.sub(r" LIMIT \d+$", "", self.truth or self.sql)


_JUNE = "ts >= '2025-06-01' AND ts < '2025-07-01'"
_WEEKS = ("ts >= '2025-06-02' AND ts < '2025-06-09'", "ts >= '2025-06-09' AND ts < '2025-06-16'")
_RETAINED = (
    f"WITH a AS (SELECT DISTINCT user_id FROM events WHERE {_WEEKS[0]}), b AS (SELECT DISTINCT user_id FROM events WHERE {_WEEKS[1]})"
    " SELECT COUNT(DISTINCT b.user_id) * 100.0 / COUNT(DISTINCT a.user_id) AS retained FROM a LEFT JOIN b ON a.user_id = b.user_id"
)
_FUNNEL = (
    "WITH u AS (SELECT user_id, MAX(CASE WHEN url = '/product' THEN 1 ELSE 0 END) AS p, MAX(CASE WHEN url = '/cart' THEN 1 ELSE 0 END)"
    " AS c, MAX(CASE WHEN url = '/checkout' THEN 1 ELSE 0 END) AS k, MAX(CASE WHEN url = '/thank-you' THEN 1 ELSE 0 END) AS t FROM events"
    " GROUP BY user_id) SELECT SUM(p) AS product, SUM(p*c) AS cart, SUM(p*c*k) AS checkout, SUM(p*c*k*t) AS bought FROM u"
)
_STICKY = (
    f"WITH d AS (SELECT ts::DATE AS day, COUNT(DISTINCT user_id) AS dau FROM events WHERE {_JUNE} GROUP BY day),"
    f" m AS (SELECT COUNT(DISTINCT user_id) AS mau FROM events WHERE {_JUNE}) SELECT AVG(dau) / MAX(mau) AS stickiness FROM d, m"
)
_YEARS = (
    "SELECT QUARTER(ts) AS q, COUNT(*) FILTER (WHERE YEAR(ts) = 2024) AS y24, COUNT(*) FILTER (WHERE YEAR(ts) = 2025) AS y25,"
    " 100.0 * (COUNT(*) FILTER (WHERE YEAR(ts) = 2025) - COUNT(*) FILTER (WHERE YEAR(ts) = 2024))"
    " / COUNT(*) FILTER (WHERE YEAR(ts) = 2024) AS change FROM events GROUP BY q ORDER BY q"
)
_NEW = (
    "WITH f AS (SELECT user_id, MIN(ts) AS first FROM events GROUP BY user_id)"
    " SELECT DATE_TRUNC('month', first) AS month, COUNT(*) AS new_users FROM f GROUP BY month ORDER BY month"
)
_SESSIONS = (
    "SELECT MEDIAN(r) AS m FROM (SELECT user_id, ts::DATE AS d, SUM(revenue) AS r FROM events GROUP BY user_id, ts::DATE) s WHERE r > 0"
)
_PAYING = "100.0 * COUNT(DISTINCT user_id) FILTER (WHERE revenue > 0) / COUNT(DISTINCT user_id)"
_DAU = "COUNT(DISTINCT user_id) AS dau"
WEB = (
    Question(
        "W1 active by day and country",
        f"SELECT CAST(ts AS DATE) AS day, country, {_DAU} FROM events WHERE {_WEEKS[0]} GROUP BY 1, 2 ORDER BY 1, 2",
        2,
    ),
    Question("W2 active by day", f"SELECT ts::DATE AS day, {_DAU} FROM events WHERE {_JUNE} GROUP BY day ORDER BY day", 1),
    Question("W3 revenue by country", "SELECT country, SUM(revenue) AS revenue FROM events GROUP BY country ORDER BY revenue DESC", 1),
    Question("W4 twenty pages", "SELECT url, COUNT(*) AS views FROM events GROUP BY url ORDER BY views DESC LIMIT 20", 1),
    Question("W5 retention", _RETAINED),
    Question("W6 funnel", _FUNNEL),
    Question("W7 median session", _SESSIONS),
    Question("W8 paying by device", f"SELECT device, {_PAYING} AS paying FROM events GROUP BY device", 1),
    Question("W9 views by device", "SELECT device, COUNT(*) AS views FROM events GROUP BY device", 1),
    Question("W10 stickiness", _STICKY),
    Question("W11 years by quarter", _YEARS, 1),
    Question(
        "W12 share by country",
        "SELECT country, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM events) AS pct FROM events GROUP BY country ORDER BY pct DESC",
        1,
    ),
    Question(
        "W13 revenue per user",
        "SELECT country, SUM(revenue) / COUNT(DISTINCT user_id) AS arpu FROM events GROUP BY country ORDER BY arpu DESC LIMIT 5",
        1,
    ),
    Question("W14 large orders", "SELECT QUANTILE_CONT(revenue, 0.95) AS p95 FROM events WHERE revenue > 0"),
    Question("W15 new users by month", _NEW, 1),
)
_CLIPPED = "SUM(LEAST(revenue, 200))"
_MONTHLY = "COUNT(DISTINCT user_id) AS mau FROM events GROUP BY 1 ORDER BY 1"
_BOTH_WEEKS = (
    "SELECT COUNT(DISTINCT a.user_id) AS retained FROM events a JOIN events b ON a.user_id = b.user_id WHERE a.ts >= '2025-06-02'"
    " AND a.ts < '2025-06-09' AND b.ts >= '2025-06-09' AND b.ts < '2025-06-16'"
)
_BOOLEANS = (
    "SELECT COUNT(*) FILTER (WHERE p) AS product, COUNT(*) FILTER (WHERE p AND c) AS cart, COUNT(*) FILTER (WHERE p AND c AND t) AS bought"
    " FROM (SELECT user_id, bool_or(url = '/product') AS p, bool_or(url = '/cart') AS c, bool_or(url = '/thank-you') AS t"
    " FROM events GROUP BY user_id) u"
)
_OF_DAYS = "FROM (SELECT user_id, date_trunc('day', ts) AS d, SUM(revenue) AS r FROM events GROUP BY 1, 2) s WHERE r > 0"
_BASKETS = "FROM (SELECT user_id, MAX(revenue) AS m FROM events GROUP BY user_id) u WHERE m > 0"
_HISTOGRAM = (
    "SELECT LEAST(n, 20) AS events, COUNT(*) AS users"
    " FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) u GROUP BY 1 ORDER BY 1"
)
_DAY_OF_MONTH = (
    "SELECT (SELECT COUNT(DISTINCT user_id) FROM events WHERE ts::date = '2025-06-15')::float"
    f" / (SELECT COUNT(DISTINCT user_id) FROM events WHERE {_JUNE}) AS stickiness"
)
_LATER, _EARLIER = (f"{_CLIPPED} FILTER (WHERE ts {sign} '2025-01-01')" for sign in (">=", "<"))


def _postgres(name: str, sql: str, keys: int = 0, truth: str = "") -> Question:
    return Question(name, sql, keys, truth, "postgres")


POSTGRES = (
    _postgres(
        "P1 active by country", f"SELECT country, {_DAU} FROM events WHERE ts::date = '2025-06-02' GROUP BY country ORDER BY dau DESC", 1
    ),
    _postgres(
        "P2 active by month", f"SELECT to_char(ts, 'YYYY-MM') AS month, {_MONTHLY}", 1, f"SELECT strftime(ts, '%Y-%m') AS month, {_MONTHLY}"
    ),
    _postgres(
        "P3 clipped revenue",
        f"SELECT country, {_CLIPPED} AS revenue FROM events WHERE revenue > 0 GROUP BY country ORDER BY revenue DESC",
        1,
    ),
    _postgres("P4 pages by users", "SELECT url, COUNT(DISTINCT user_id) AS users FROM events GROUP BY url ORDER BY users DESC LIMIT 20", 1),
    _postgres("P5 in both weeks", _BOTH_WEEKS),
    _postgres("P6 funnel", _BOOLEANS),
    _postgres(
        "P7 median day", f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY r) AS m {_OF_DAYS}", 0, f"SELECT MEDIAN(r) AS m {_OF_DAYS}"
    ),
    _postgres("P8 paying", f"SELECT {_PAYING} AS paying FROM events"),
    _postgres("P9 events per user", _HISTOGRAM, 1),
    _postgres("P10 stickiness of a day", _DAY_OF_MONTH),
    _postgres("P11 growth", f"SELECT 100.0 * ({_LATER} - {_EARLIER}) / {_EARLIER} AS growth FROM events"),
    _postgres("P12 users by device", "SELECT device, COUNT(DISTINCT user_id) AS users FROM events GROUP BY device", 1),
    _postgres(
        "P13 revenue per user",
        "SELECT AVG(LEAST(r, 500)) AS arpu FROM (SELECT user_id, SUM(revenue) AS r FROM events WHERE country = 'US' GROUP BY user_id) u",
    ),
    _postgres(
        "P14 large baskets",
        f"SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY m) AS p95 {_BASKETS}",
        0,
        f"SELECT QUANTILE_CONT(m, 0.95) AS p95 {_BASKETS}",
    ),
    _postgres("P15 views by hour", "SELECT EXTRACT(HOUR FROM ts) AS h, COUNT(*) AS views FROM events GROUP BY 1 ORDER BY 1", 1),
)
_KIND = "CASE WHEN hours_per_week < 20 THEN 'part' WHEN hours_per_week < 41 THEN 'full' ELSE 'over' END AS kind"
ADULT = (
    Question("A1 all", "SELECT COUNT(*) AS n FROM people"),
    Question("A2 by age", "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY age", 1),
    Question("A3 by decade", "SELECT age // 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade ORDER BY decade", 1),
    Question(
        "A4 two keys",
        "SELECT education_num, income_gt_50k, COUNT(*) AS n FROM people GROUP BY education_num, income_gt_50k ORDER BY 1, 2",
        2,
    ),
    Question("A5 hours", "SELECT occupation, AVG(hours_per_week) AS h FROM people GROUP BY occupation ORDER BY h DESC", 1),
    Question("A6 share by sex", "SELECT sex, 100.0 * COUNT_IF(income_gt_50k = 1) / COUNT(*) AS pct FROM people GROUP BY sex", 1),
    Question("A7 median age", "SELECT sex, MEDIAN(age) AS m FROM people GROUP BY sex", 1),
    Question("A8 five countries", "SELECT native_country, COUNT(*) AS n FROM people GROUP BY native_country ORDER BY n DESC LIMIT 5", 1),
    Question("A9 shares of all", "SELECT workclass, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY workclass", 1),
    Question("A10 gain", "SELECT education_num, AVG(capital_gain) AS g FROM people GROUP BY education_num ORDER BY 1", 1),
    Question("A11 long hours", "SELECT QUANTILE_CONT(hours_per_week, 0.9) AS p90 FROM people"),
    Question("A12 correlation", "SELECT CORR(education_num, hours_per_week) AS r FROM people"),
    Question("A13 deviation", "SELECT STDDEV(age) AS s FROM people"),
    Question(
        "A14 three keys", "SELECT race, sex, income_gt_50k, COUNT(*) AS n FROM people GROUP BY race, sex, income_gt_50k ORDER BY 1, 2, 3", 3
    ),
    Question(
        "A15 two counts",
        f"SELECT {_KIND}, COUNT(*) FILTER (WHERE income_gt_50k = 1) AS hi, COUNT(*) FILTER (WHERE income_gt_50k = 0) AS lo"
        " FROM people GROUP BY kind",
        1,
    ),
)


def write_web(directory: Path, *, users: int, rows: int) -> None:
    """Made-up web events of two years and their catalogue; the same for the same numbers."""
    generator = np.random.default_rng([SEED, users, rows])  # noqa: TID251
    activity = np.minimum(generator.pareto(1.25, users) + 1, 300)
    user = generator.choice(users, rows, p=activity / activity.sum())
    names = pa.array([generator.bytes(16).hex() for _ in range(users)])
    country = zipf(generator, size=users, values=len(COUNTRIES), exponent=0.9)
    device = generator.choice(len(DEVICES), users, p=(0.55, 0.38, 0.07))
    url = zipf(generator, size=rows, values=len(URLS), exponent=1.05)
    start = generator.integers(0, DAYS - 31, users)
    day = start[user] + (generator.beta(1, 1.3, rows) * (DAYS - start)[user]).astype(np.int64)
    second = (generator.normal(14, 5, rows) % 24 * 3_600).astype(np.int64)
    moment = np.datetime64("2024-01-01T00:00:00", "us") + (day * 86_400 + second).astype("timedelta64[s]")
    earned = np.minimum(generator.lognormal(3.2, 1.0, rows), REVENUE_MAX).round(2)
    pays = (url == BOUGHT) | (generator.random(rows) < 0.0003)
    events = pa.table(
        {
            "user_id": names.take(pa.array(user)),
            "ts": pa.array(moment),
            "country": named(COUNTRIES, country[user]),
            "url": named(URLS, url),
            "device": named(DEVICES, np.where(generator.random(rows) < 0.9, device[user], generator.integers(0, len(DEVICES), rows))),
            "revenue": pa.array(np.where(pays, earned, 0.0)),
        }
    )
    pq.write_table(events.sort_by("ts"), directory / "events.parquet")
    (directory / "lapwing.toml").write_text(
        f"""\
format = 1

[dataset]
id = "web"
unit = "user"
units = {users}

[budget]
epsilon = 3
delta = "2^-40"

[limits]
per_statement = 1
per_day = 1

[tables.events]
source = "events.parquet"
unit = "user_id"
rows_per_unit_max = {ROWS_PER_UNIT_MAX}
rows_max = 100_000_000

[tables.events.columns]
user_id = {{ type = "key", of = "text" }}
ts = {{ type = "timestamp", min = 2024-01-01T00:00:00, max = 2025-12-31T23:59:59 }}
country = {{ type = "text", values = [{quoted(COUNTRIES)}] }}
url = {{ type = "text" }}
device = {{ type = "text", values = [{quoted(DEVICES)}] }}
revenue = {{ type = "real", min = 0, max = {REVENUE_DECLARED}, steps = 100 }}
""",
        encoding="utf-8",
    )


HEAD = ("question", "column", "groups", "covered", "error", "down", "up", "bar / error", "first", "epsilon", "s")


def scored(answer: lapwing.Answer, truth: Sequence[Mapping[str, Any]], question: Question) -> Iterator[list[str]]:
    """Of each column that is no key: how its values and bars compare with the truth."""
    names = answer.table.column_names
    keys = names[: question.keys]
    by_key = {keyed(row, keys): row for row in truth}
    rows = answer.table.to_pylist()
    groups = f"{len(rows)} of {len(truth)}"
    for column in names[question.keys :]:
        bars = answer.intervals.get(column, [None] * len(rows))
        found = []
        for row, bar in zip(rows, bars, strict=True):
            true = by_key.get(keyed(row, keys), {}).get(column, 0)
            if bar is not None and row[column] is not None and true is not None:
                found.append((float(true), float(row[column]), float(bar.lo), float(bar.hi)))
        parts = [each for each in found if each[0]]
        if not parts:
            yield [column, groups, "no bar" if not found else "", *[""] * 5]
            continue
        errors = [abs(value - true) / abs(true) for true, value, _, _ in parts]
        longer = [max(hi - value, value - lo) / max(abs(value - true), 1e-9) for true, value, lo, hi in parts]
        yield [
            column,
            groups,
            f"{sum(lo <= true <= hi for true, _, lo, hi in found)} of {len(found)}",
            f"{statistics.median(errors):.1%}",
            f"{statistics.median((value - lo) / abs(true) for true, value, lo, _ in parts):.1%}",
            f"{statistics.median((hi - value) / abs(true) for true, value, _, hi in parts):.1%}",
            f"{statistics.median(longer):.1f}",
            f"{errors[0]:.1%}",
        ]


def keyed(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    """The group of a row."""
    return tuple(_key(row[key]) for key in keys)


def _key(value: Any) -> str:
    """A key as both sides write it: a day is a date or its midnight, a number an integer or a float."""
    text = str(value).removesuffix(" 00:00:00")
    return text.removesuffix(".0") if isinstance(value, float) else text


def asked(data_set: lapwing.DataSet, bare: duckdb.DuckDBPyConnection, questions: Sequence[Question], epsilon: str, shown: int) -> None:
    """Ask, score and print."""
    lines = []
    for question in questions:
        begun = time.perf_counter()
        try:
            answer = data_set.ask(question.sql, epsilon=epsilon, dialect=question.dialect)
        except LapwingError as error:
            lines.append([question.name, f"refused: {error.code}", *[""] * (len(HEAD) - 2)])
            show(f"{question.name}: {error}")
            continue
        took = f"{time.perf_counter() - begun:.1f}"
        found = bare.execute(question.truth_sql)
        columns = [column[0] for column in found.description or []]
        truth = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
        lines += [[question.name, *cells, f"{answer.cost.epsilon:.3g}", took] for cells in scored(answer, truth, question)]
        if shown:
            show("", question.name, question.sql, *_head(str(answer), shown))
    table(f"Epsilon {epsilon}; {data_set.budget.share_spent:.0%} of the budget was spent", HEAD, lines)


def _head(text: str, most: int) -> list[str]:
    """The first lines, and what stands below the table."""
    lines = text.split("\n")
    return lines if len(lines) <= most + 6 else [*lines[: most + 2], "...", *lines[-4:]]


def followed(data_set: lapwing.DataSet, bare: duckdb.DuckDBPyConnection, lines: Sequence[str], epsilon: str) -> None:
    """Statements of one's own: what a person sees of each, and its first true rows."""
    for line in lines:
        name, found, sql = (part.strip() for part in line.partition("|"))
        if not found:
            continue
        begun = time.perf_counter()
        show("", f"{name}: {sql}")
        try:
            # Words of privacy in the statement name a price of their own.
            answer = data_set.ask(sql) if "WITH PRIVACY" in sql else data_set.ask(sql, epsilon=epsilon)
        except LapwingError as error:
            show(str(error))
            continue
        show(*_head(str(answer), 12), f"{time.perf_counter() - begun:.1f} s")
        try:
            show(f"truth: {bare.execute(sql.split('WITH PRIVACY')[0]).fetchmany(6)}")
        except duckdb.Error as error:
            show(f"no truth: {str(error).splitlines()[0]}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--epsilon", nargs="+", default=["0.5"])
    parser.add_argument("--only", nargs="+", default=[], help="the first words of questions, such as W1")
    parser.add_argument("--shown", type=int, default=0, help="also show so many rows of each answer")
    parser.add_argument("--adult", type=Path, metavar="FOLDER", help="of Adult: ask about it as well")
    parser.add_argument("--follow", type=Path, metavar="FILE", help="ask these statements of the web events, and nothing else")
    given = parser.parse_args()
    for epsilon in given.epsilon:
        with tempfile.TemporaryDirectory() as scratch:
            write_web(Path(scratch), users=given.users, rows=given.rows)
            with duckdb.connect() as bare, lapwing.open(scratch, home=Path(scratch) / "home") as data_set:
                bare.execute(f"CREATE VIEW events AS SELECT * FROM '{scratch}/events.parquet'")
                data_set.prepare()
                if given.follow is not None:
                    followed(data_set, bare, given.follow.read_text(encoding="utf-8").splitlines(), epsilon)
                    continue
                asked(data_set, bare, chosen((*WEB, *POSTGRES), given.only), epsilon, given.shown)
        if given.adult is not None:
            with tempfile.TemporaryDirectory() as scratch:
                write_data_set(named_world(given.adult, binned=False), Path(scratch))
                with duckdb.connect() as bare, lapwing.open(scratch, home=Path(scratch) / "home") as data_set:
                    bare.execute(f"CREATE VIEW people AS SELECT * FROM '{scratch}/people.parquet'")
                    data_set.prepare()
                    asked(data_set, bare, chosen(ADULT, given.only), epsilon, given.shown)


def chosen(questions: Sequence[Question], only: Sequence[str]) -> list[Question]:
    """Those of the given first words; without any, all of them."""
    return [question for question in questions if not only or question.name.split()[0] in only]


if __name__ == "__main__":
    main()
