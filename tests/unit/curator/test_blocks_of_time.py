"""A data set with blocks of time: it grows, its answers stay, blocks run out one by one, and numbers are those of the closed days."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.answers.answer import Answer
from lapwing.errors import BudgetRefused, CatalogueError, LapwingError, PreparationError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.calendar import to_days
from lapwing.ledger.protocol import EntryKind
from lapwing.owner.spending_report import spending_report
from lapwing.prices import epsilon_for
from lapwing.releases.request import Marginals
from tests.support.shop_of_events import START, Shop

COUNT = "SELECT COUNT(*) AS n FROM events"
EXACT = "100_000_000"
"""An epsilon at which noise rounds away."""


def day(number: int) -> datetime.date:
    """The day with this number, from 0."""
    return START + datetime.timedelta(days=number)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(tmp_path, monkeypatch)
    made.declare()
    made.users()
    made.days(12)
    made.today(day(11))  # the days 0 to 9 are closed
    return made


def rows_of(answer: Answer) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in answer.table.to_pylist()]


RANK = "ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY seen, day, device, amount)"
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM events",
    "SELECT COUNT(*) AS n FROM events WHERE day >= DATE '2026-03-04'",
    "SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-04'",
    "SELECT COUNT(*) AS n FROM events WHERE day IN (DATE '2026-03-02', DATE '2026-03-07') AND device = 'web'",
    "SELECT COUNT(*) AS n FROM events WHERE NOT (day < DATE '2026-03-04')",
    "SELECT COUNT(*) AS n FROM events WHERE day < DATE '2026-03-03' OR day > DATE '2026-03-08'",
    "SELECT COUNT(*) AS n FROM events WHERE EXTRACT(DAY FROM day) = 5",
    "SELECT COUNT(*) AS n FROM events WHERE seen >= TIMESTAMP '2026-03-05 12:00:00' AND day <= DATE '2026-03-06'",
    "SELECT day, COUNT(*) AS n FROM events WHERE day BETWEEN DATE '2026-03-03' AND DATE '2026-03-06' GROUP BY day ORDER BY day",
    "SELECT CAST(DATE_TRUNC('week', day) AS DATE) AS w, COUNT(*) AS n FROM events GROUP BY w HAVING COUNT(*) > 3 ORDER BY w",
    "SELECT device, COUNT(*) AS n, SUM(amount) AS s FROM events WHERE day < DATE '2026-03-08' GROUP BY device ORDER BY device",
    "SELECT COUNT(DISTINCT user_id) AS n FROM events WHERE day >= DATE '2026-03-06'",
    "SELECT COUNT(DISTINCT user_id) AS n FROM orders WHERE paid BETWEEN DATE '2026-03-02' AND DATE '2026-03-04'",
    "SELECT country, COUNT(*) AS n FROM events JOIN users USING (user_id) WHERE day > DATE '2026-03-05' GROUP BY 1 HAVING n > 0 ORDER BY 1",
    "SELECT COUNT(*) AS n FROM events e JOIN orders o ON e.user_id = o.user_id AND e.day = o.paid WHERE e.day > DATE '2026-03-04'",
    "SELECT COUNT(*) AS n FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.user_id AND o.paid = DATE '2026-03-06')",
    "SELECT COUNT(*) AS n FROM users u WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.user_id = u.user_id AND e.day > DATE '2026-03-07')",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, COUNT(*) AS c FROM events WHERE day < DATE '2026-03-06' GROUP BY user_id) WHERE c >= 4",
    "SELECT COUNT(*) AS n FROM (SELECT day, COUNT(*) AS c FROM events GROUP BY user_id, day) WHERE c > 1 AND day > DATE '2026-03-08'",
    f"SELECT COUNT(*) AS n FROM (SELECT day, {RANK} AS r FROM events) WHERE r = 1 AND day > DATE '2026-03-02'",
    "SELECT COUNT(*) AS n FROM (SELECT day FROM events UNION ALL SELECT paid FROM orders) WHERE day = DATE '2026-03-09'",
    "SELECT COUNT(*) AS n FROM events WHERE day > DATE '2026-03-09' AND day < DATE '2026-03-09'",
)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_without_noise_an_answer_is_that_of_the_closed_days(shop: Shop, sql: str) -> None:
    with shop.open() as data_set:
        data_set.prepare()
        answer = data_set.ask(sql, epsilon=EXACT)
    assert rows_of(answer) == shop.truth(sql, day(9))


@pytest.mark.parametrize("every", ["day", "week", "month"])
def test_the_blocks_read_are_those_of_the_conditions(shop: Shop, every: str) -> None:
    shop.declare(every=every)
    shop.today(day(70))
    asked = {
        "day >= DATE '2026-03-10'": ("2026-03-10 2026-05-08", "2026-03-09 2026-05-03", "2026-03-01 2026-04-30"),
        "day = DATE '2026-04-01'": ("2026-04-01 2026-04-01", "2026-03-30 2026-04-05", "2026-04-01 2026-04-30"),
        "DATE_TRUNC('month', day) = DATE '2026-03-01'": (
            "2026-03-01 2026-03-31",
            "2026-02-23 2026-04-05",
            "2026-03-01 2026-03-31",
        ),
    }
    place = ["day", "week", "month"].index(every)
    with shop.open() as data_set:
        data_set.prepare()
        for condition, expected in asked.items():
            blocks = data_set.explain(f"SELECT COUNT(*) AS n FROM events WHERE {condition}").to_dict()["blocks"]
            assert [f"{each['first']} {each['last']}" for each in blocks["ranges"]] == [expected[place]], condition


def test_new_blocks_leave_the_version_and_its_answers(shop: Shop) -> None:
    sql = "SELECT device, COUNT(*) AS n FROM events WHERE day < DATE '2026-03-09' GROUP BY device"
    with shop.open() as data_set:
        assert data_set.prepare() == 1
        first = data_set.ask(sql, epsilon=2)
    shop.day(day(12))
    shop.today(day(14))
    with shop.open() as data_set:
        assert data_set.prepare() == 1
        again = data_set.ask(sql, epsilon=2)
        assert again.cost.free and again.table == first.table
        assert rows_of(data_set.ask(COUNT, epsilon=EXACT)) == shop.truth("SELECT COUNT(*) FROM events", day(12))
        assert data_set.prepare() == 1, "nothing has closed since"


def test_late_rows_are_left_out_and_counted(shop: Shop) -> None:
    with shop.open() as data_set:
        data_set.prepare()
        before = data_set.ask("SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-04'", epsilon=EXACT).table
        late = [event for event in (shop.event(day(3)) for _ in range(9)) if event["day"] is not None]
        schema = pq.read_schema(shop.directory / "events" / f"{day(3)}.parquet")

        pq.write_table(pa.Table.from_pylist(late, schema), shop.directory / "events" / "late.parquet")
        shop.today(day(13))
        data_set.prepare()
        assert data_set.curator.late_rows()["events"] == len(late)
        later = data_set.ask("SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-04' AND amount >= 0", epsilon=EXACT).table
        assert later == before

        data_set.prepare(correct=(day(3), day(3)))
        assert data_set.curator.late_rows()["events"] == 0
        corrected = rows_of(data_set.ask("SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-04'", epsilon=EXACT))
        assert corrected == shop.truth("SELECT COUNT(*) FROM events WHERE day = DATE '2026-03-04'", day(11))


def test_a_correction_costs_its_readers_again_and_nobody_else(shop: Shop) -> None:
    touched, other = (f"SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-0{number}'" for number in (4, 5))
    with shop.open() as data_set:
        data_set.prepare()
        for sql in (touched, other):
            data_set.ask(sql, epsilon=1)
        data_set.prepare(correct=(day(3), day(3)))
        assert data_set.ask(other, epsilon=1).cost.free
        answer = data_set.ask(touched, epsilon=1)
        assert not answer.cost.free
        spending = data_set.curator.ledger.blocks()
        assert spending is not None
        one = spending.most(to_days(day(4)), to_days(day(4)))
        assert spending.most(to_days(day(3)), to_days(day(3))) == one + one, "all versions of a block share one balance"


def test_a_block_that_is_not_prepared_is_not_corrected(shop: Shop) -> None:
    with shop.open() as data_set:
        with pytest.raises(PreparationError) as refusal:
            data_set.prepare(correct=(day(3), day(3)))
        assert refusal.value.code == "blocks-missing"
        data_set.prepare()
        with pytest.raises(Refused) as open_block:
            data_set.prepare(correct=(day(9), day(10)))
        assert open_block.value.code == "blocks-open"


def test_old_blocks_are_retired(shop: Shop) -> None:
    sql = "SELECT COUNT(*) AS n FROM events WHERE day < DATE '2026-03-03'"
    shop.declare(keep="keep = 6")
    with shop.open() as data_set:
        data_set.prepare()
        assert rows_of(data_set.ask(COUNT, epsilon=EXACT)) == shop.truth(COUNT, day(9), day(4))
        answer = data_set.ask("SELECT COUNT(*) AS n FROM events WHERE day < DATE '2026-03-07'", epsilon=EXACT)
        assert any("begins with 2026-03-05" in note for note in answer.notes)
        with pytest.raises(Refused) as refusal:
            data_set.ask(sql)
        assert refusal.value.code == "blocks-open" and "2026-03-05" in refusal.value.hint


def test_a_day_that_is_not_closed_is_refused_with_the_last_that_is(shop: Shop) -> None:
    with shop.open() as data_set:
        data_set.prepare()
        with pytest.raises(Refused) as refusal:
            data_set.ask("SELECT COUNT(*) AS n FROM events WHERE day >= DATE '2026-03-11'")
        assert refusal.value.code == "blocks-open" and refusal.value.hint == "ask up to 2026-03-10"


def test_before_the_first_block_has_closed_nothing_is_asked_of_it(shop: Shop) -> None:
    shop.today(day(0))
    with shop.open() as data_set:
        data_set.prepare()
        with pytest.raises(Refused) as refusal:
            data_set.ask("SELECT COUNT(*) AS n FROM events")
        assert refusal.value.code == "blocks-open"
        assert rows_of(data_set.ask("SELECT COUNT(*) AS n FROM users", epsilon=EXACT)) == [(40,)]


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize(("delta", "budget"), [("0", ""), ('"2^-40"', ""), ('"2^-40"', "order = 32")])
def test_the_quoted_price_is_charged_to_every_block_and_to_no_other(shop: Shop, neighbours: str, delta: str, budget: str) -> None:
    shop.declare(neighbours=neighbours, delta=delta, epsilon="10", budget=budget)
    sql = "SELECT COUNT(DISTINCT user_id) AS n FROM events WHERE day BETWEEN DATE '2026-03-03' AND DATE '2026-03-06'"
    with shop.open() as data_set:
        data_set.prepare()
        quoted = data_set.explain(sql, epsilon="0.5").to_dict()["cost"]["loss"]
        data_set.ask(sql, epsilon="0.5")
        spending = data_set.curator.ledger.blocks()
        assert spending is not None
        (paid,) = spending.ranges
        assert (paid.first, paid.last) == (to_days(day(2)), to_days(day(5)))
        assert paid.cost.loss / LOSS_UNITS == pytest.approx(quoted, rel=1e-12)
        assert data_set.curator.balance().spent == Cost.zero(), "it reads no table without time"
        assert spending.person == paid.cost, "a person is one unit over the four days"


def test_a_statement_that_joins_people_is_paid_by_the_tables_without_time_too(shop: Shop) -> None:
    sql = "SELECT u.country, COUNT(*) AS n FROM events e JOIN users u USING (user_id) WHERE e.day = DATE '2026-03-03' GROUP BY u.country"
    shop.declare(epsilon="10")
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(sql, epsilon="0.5")
        spending = data_set.curator.ledger.blocks()
        assert spending is not None
        (paid,) = spending.ranges
        assert data_set.curator.balance().spent == paid.cost != Cost.zero()


def test_a_refusal_names_the_days_that_can_pay(shop: Shop) -> None:
    shop.declare(epsilon="2")
    count = "SELECT COUNT(*) AS n FROM events WHERE day BETWEEN DATE '{}' AND DATE '{}'"
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(count.format(day(2), day(4)), epsilon="1.9")
        with pytest.raises(BudgetRefused) as refusal:
            data_set.ask(count.format(day(0), day(9)), epsilon="1")
        assert refusal.value.code == "block-budget"
        assert refusal.value.hint == f"ask for {day(5)} to {day(9)}: their blocks can pay it"
        assert not data_set.ask(count.format(day(5), day(9)), epsilon="1").cost.free, "the hint works as it is written"
        assert "MORE THAN IS LEFT" in str(data_set.explain(count.format(day(0), day(9)), epsilon="1"))


def test_new_blocks_have_their_whole_budget(shop: Shop) -> None:
    shop.declare(epsilon="1")
    daily = "SELECT COUNT(*) AS n FROM events WHERE day = DATE '{}'"
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask(daily.format(day(9)), epsilon="0.99")
        with pytest.raises(BudgetRefused):
            data_set.ask(daily.format(day(9)) + " AND device = 'web'", epsilon="0.5")
        shop.today(day(12))
        data_set.prepare()
        assert not data_set.ask(daily.format(day(10)), epsilon="0.99").cost.free


def person_year_again(data_set: object, every: str = "day") -> Cost:
    """What one person lost over a year, from the entries alone: the largest sum of charges that any 366 days, or all, met."""
    entries = [entry for entry in data_set.history(limit=1_000) if entry.kind is EntryKind.RESERVE]  # type: ignore[attr-defined]
    most = Cost.zero()
    for last in range(to_days(START), to_days(START) + 800):
        total = Cost.zero()
        for entry in entries:
            met = not entry.ranges or any(each.first is None or (each.first <= last and last - 366 < each.last) for each in entry.ranges)
            total = total + (entry.person or entry.cost) if met else total
        most = max((most, total), key=lambda cost: cost.loss)
    return most


def test_the_person_year_is_that_of_the_entries_wherever_epsilon_is_printed(shop: Shop) -> None:
    shop.declare(epsilon="10", cap="8")
    with shop.open() as data_set:
        data_set.prepare()
        for sql in (
            "SELECT COUNT(*) AS n FROM events WHERE day < DATE '2026-03-04'",
            "SELECT COUNT(*) AS n FROM events WHERE day = DATE '2026-03-09'",
            "SELECT COUNT(*) AS n FROM users",
            "SELECT country, COUNT(*) AS n FROM orders JOIN users USING (user_id) WHERE paid < DATE '2026-03-03' GROUP BY country",
        ):
            data_set.ask(sql, epsilon="0.7")
        counted = person_year_again(data_set)
        spending = data_set.curator.ledger.blocks()
        assert spending is not None and spending.person == counted
        budget = data_set.curator.balance().budget
        epsilon = float(epsilon_for(rho=Fraction(counted.loss, LOSS_UNITS), delta=budget.delta_conversion))
        assert data_set.budget.to_dict()["blocks"]["person_year_epsilon"] == pytest.approx(epsilon)
        shown = f"epsilon {epsilon:.3g}"
        explained = data_set.explain("SELECT COUNT(*) AS n FROM users WHERE country = 'de'", epsilon="0.1")
        assert shown in str(explained) and shown in str(data_set.budget) and shown in str(dict(data_set.budget.lines()))
        report = spending_report(data_set.curator)
        assert report["adds_up"] and report["budget"]["blocks"]["person_year_epsilon"] == pytest.approx(epsilon)


def test_a_cap_on_a_person_is_never_passed(shop: Shop) -> None:
    shop.declare(epsilon="2", cap="3")
    daily = "SELECT COUNT(*) AS n FROM events WHERE day = DATE '{}'"
    with shop.open() as data_set:
        data_set.prepare()
        asked = 0
        with pytest.raises(BudgetRefused) as refusal:
            for number in range(10):
                data_set.ask(daily.format(day(number)), epsilon="1.9")
                asked += 1
        assert refusal.value.code == "person-cap" and 1 <= asked < 10
        assert data_set.budget.to_dict()["blocks"]["person_year_epsilon"] <= 3


def test_a_data_set_with_one_budget_becomes_one_with_blocks_by_the_owners_word(shop: Shop) -> None:
    shop.declare(every=None, epsilon="3")
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask("SELECT COUNT(*) AS n FROM events", epsilon="0.5")
        spent = data_set.curator.balance().spent
    shop.declare(epsilon="3")
    with shop.open() as data_set:
        with pytest.raises(LapwingError) as refusal:
            data_set.prepare()
        assert refusal.value.code == "override-needed"
        data_set.prepare(override="events grow")
        four_times = Cost(4 * spent.loss, spent.delta)
        spending = data_set.curator.ledger.blocks()
        assert spending is not None
        assert data_set.curator.balance().spent.loss == four_times.loss
        inherited = spending.most(to_days(day(0)), to_days(day(11)))
        assert inherited.loss == four_times.loss
        each = [spending.most(to_days(day(number)), to_days(day(number))) for number in range(12)]
        assert each == [inherited] * 12, "every block that could have rows by today"
        assert spending.most(to_days(day(12)), to_days(day(400))) == Cost.zero()
        kinds = [entry.kind for entry in data_set.history()]
        assert EntryKind.OVERRIDE in kinds and EntryKind.BLOCKS in kinds
        assert spending_report(data_set.curator)["adds_up"]
    shop.declare(every=None, epsilon="3")
    with shop.open() as data_set, pytest.raises(CatalogueError) as kept:
        data_set.prepare(override="back again")
    assert kept.value.code == "blocks-kept"


def test_a_data_set_that_spent_too_much_does_not_become_one_with_blocks(shop: Shop) -> None:
    shop.declare(every=None, epsilon="3")
    with shop.open() as data_set:
        data_set.prepare()
        data_set.ask("SELECT COUNT(*) AS n FROM events", epsilon="2.5")
        spent = data_set.curator.balance().spent
    shop.declare(epsilon="3")
    with shop.open() as data_set:
        with pytest.raises(CatalogueError) as refusal:
            data_set.prepare(override="events grow")
        assert refusal.value.code == "blocks-overspent"
        assert data_set.curator.balance().spent == spent and data_set.curator.ledger.blocks() is None


def test_rows_that_are_in_no_block_are_reported_when_a_version_is_made(shop: Shop) -> None:
    untimed = sum(event["day"] is None for event in shop.events)
    assert untimed
    with shop.open() as data_set:
        data_set.prepare()
        (report,) = [table for table in data_set.curator.losses(1) if table["table"] == "events"]
        assert report["no_block"] == report["lost"] == untimed
    text = (shop.directory / "lapwing.toml").read_text()
    later = text.replace("min = 2026-03-01, max = 2027-12-31 }\nseen", "min = 2027-03-01, max = 2027-12-31 }\nseen")
    (shop.directory / "lapwing.toml").write_text(later)
    with shop.open() as data_set:
        with pytest.raises(PreparationError) as refusal:
            data_set.prepare(new_version=True)
        assert refusal.value.code == "rows-lost" and "a tenth of events" in refusal.value.message


def test_releases_and_sessions_are_refused_where_there_are_blocks(shop: Shop) -> None:
    with shop.open() as data_set:
        data_set.prepare()
        data_set.release(Marginals("country"), name="people", table="users", epsilon=1).run()
        for ask in (
            lambda: data_set.release(Marginals("device"), name="devices", table="events", epsilon=1),
            lambda: data_set.weights("device", table="events", alpha="0.5", starts=1, epsilon=1, rows=300),
        ):
            with pytest.raises(Refused) as refusal:
                ask()
            assert refusal.value.code == "blocks-missing" and "SQL" in refusal.value.hint
