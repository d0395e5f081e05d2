"""``lapwing refresh``: asks a dashboard after a day has closed, so that everybody else finds it free."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from lapwing.data_set import DataSet
from lapwing.errors import LedgerError
from lapwing.interfaces.cli.exits import ExitStatus
from lapwing.interfaces.cli.refreshing import SOME_REFUSED, title_of
from lapwing.interfaces.cli.shell.splitting import statements_of
from tests.support.shop_of_events import START, Shop
from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import Ran, run

BY_DEVICE = "-- Events by device;\nSELECT device, COUNT(*) AS n FROM events WHERE day >= DATE '2026-03-02' GROUP BY device"
BY_DAY = "SELECT day, COUNT(DISTINCT user_id) AS u FROM events GROUP BY day ORDER BY day WITH PRIVACY (epsilon = 0.1)"
USERS = "SELECT COUNT(DISTINCT user_id) AS u FROM events WHERE day >= DATE '2026-03-03'"
FIXED = "SELECT COUNT(DISTINCT user_id) AS first FROM events WHERE day <= DATE '2026-03-03'"
WRONG = "SELECT nonsense FROM events"
AGAIN = "  warning: measured over its range: costs every day again"


def day(number: int) -> datetime.date:
    """The day with this number, from 0."""
    return START + datetime.timedelta(days=number)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = Shop(tmp_path, monkeypatch)
    made.declare(epsilon="3")
    made.users()
    made.days(8)
    made.today(day(6))  # the days 0 to 4 are closed
    return made


def refresh(shop: Shop, *words: str, statements: tuple[str, ...]) -> Ran:
    """``lapwing refresh`` of a file of these statements."""
    file = shop.root / "dashboard.sql"
    file.write_text(";\n\n".join(statements) + ";\n-- the end\n")
    return run("-C", shop.directory, "refresh", file, "--epsilon", "0.2", *words, home=shop.root / "home")


def lines(ran: Ran) -> list[str]:
    """What it printed, with one blank for each run of them."""
    return [line[: len(line) - len(line.lstrip())] + " ".join(line.split()) for line in ran.out.splitlines()]


def spent(shop: Shop) -> float:
    with shop.open() as data_set:
        return data_set.budget.share_spent


def test_each_day_costs_once_and_the_same_day_is_free(shop: Shop) -> None:
    dashboard = (BY_DEVICE, BY_DAY, USERS, FIXED)
    first = refresh(shop, "--prepare", statements=dashboard)
    assert first.status == 0, first.err
    assert lines(first)[:2] == [
        f"Version 1 of shop is prepared: 3 tables in {first.out.split(' in ')[1].split()[0]} s.",
        "Closed: 2026-03-01 to 2026-03-05.",
    ]
    assert lines(first)[4:-1] == [
        "Events by device; epsilon 0.2 in each of 4 new days",
        "SELECT day, COUNT(DISTINCT user_id) AS u FR… epsilon 0.1 in each of 5 new days",
        "SELECT COUNT(DISTINCT user_id) AS u FROM ev… epsilon 0.2 in each of 3 days",
        AGAIN,
        "SELECT COUNT(DISTINCT user_id) AS first FRO… epsilon 0.2 in each of 3 days",
        "",
        "4 statements: 4 paid.",
    ]
    assert lines(first)[-1].endswith("of the budget is left in the newest block.")
    again = refresh(shop, statements=dashboard)
    assert again.status == 0
    assert [line.partition("  ")[2].strip() for line in again.out.splitlines()[:5]] == [
        "free, no new day",
        "free, no new day",
        "free",
        AGAIN.strip(),
        "free",
    ]
    assert "4 statements, all free: there is nothing new to pay." in again.out
    shop.today(day(7))
    after = refresh(shop, "--prepare", statements=dashboard)
    assert lines(after)[4:-1] == [
        "Events by device; epsilon 0.2 in 1 new day",
        "SELECT day, COUNT(DISTINCT user_id) AS u FR… epsilon 0.1 in 1 new day",
        "SELECT COUNT(DISTINCT user_id) AS u FROM ev… epsilon 0.2 in each of 4 days",
        AGAIN,
        "SELECT COUNT(DISTINCT user_id) AS first FRO… free",
        "",
        "4 statements: 3 paid, 1 free.",
    ]


def test_people_find_free_what_was_refreshed(shop: Shop) -> None:
    assert refresh(shop, "--prepare", statements=(BY_DEVICE, BY_DAY)).status == 0
    with shop.open() as data_set:
        assert data_set.ask(BY_DEVICE, epsilon="0.2").cost.free
        assert data_set.ask(BY_DAY).cost.free


def test_a_refused_statement_stops_no_other_and_is_told_by_the_status(shop: Shop) -> None:
    many = f"{BY_DEVICE} WITH PRIVACY (epsilon = 2.99)"
    ran = refresh(
        shop,
        "--prepare",
        statements=(WRONG, many, f"-- Users\n{USERS} WITH PRIVACY (epsilon = 2)", f"{FIXED} WITH PRIVACY (epsilon = 0.001)"),
    )
    assert ran.status == SOME_REFUSED
    assert lines(ran)[4:-1] == [
        "SELECT nonsense FROM events refused [unknown-column]: there is no column 'nonsense' here",
        "Events by device; epsilon 2.99 in each of 4 new days",
        "Users refused [block-budget]: the budget of a block of time that this reads cannot pay for it",
        "  hint: none of these days can pay it: ask for less, or ask the data owner",
        "SELECT COUNT(DISTINCT user_id) AS first FRO… epsilon 0.001 in each of 3 days",
        "",
        "4 statements: 2 paid, 2 refused.",
    ]


def test_a_dry_run_shows_prices_and_pays_nothing(shop: Shop) -> None:
    assert run("-C", shop.directory, "prepare", home=shop.root / "home").status == 0
    many = f"{FIXED} WITH PRIVACY (epsilon = 4)"
    ran = refresh(shop, "--dry-run", statements=(BY_DEVICE, USERS, many))
    assert ran.status == SOME_REFUSED and spent(shop) == 0
    assert lines(ran) == [
        "Events by device; epsilon 0.2 in each of 4 new days",
        "SELECT COUNT(DISTINCT user_id) AS u FROM ev… epsilon 0.2 in each of 3 days",
        AGAIN,
        "SELECT COUNT(DISTINCT user_id) AS first FRO… would be refused: epsilon 4 is more than is left of the budget",
        "",
        "3 statements: 2 to pay, 1 refused. Nothing was asked or paid.",
    ]


def test_nothing_is_asked_if_preparation_fails(shop: Shop) -> None:
    assert refresh(shop, "--prepare", statements=(BY_DEVICE,)).status == 0
    before = spent(shop)
    (shop.directory / "users.parquet").unlink()
    (shop.directory / "orders.parquet").unlink()
    shop.today(day(7))
    ran = refresh(shop, "--prepare", statements=(BY_DAY,))
    assert ran.status == ExitStatus.OWNER and "SELECT" not in ran.out, ran.out + ran.err
    assert spent(shop) == before


def test_what_no_statement_can_avoid_ends_it_as_other_commands_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    unprepared = refresh(shop, statements=(BY_DEVICE, BY_DAY))
    assert unprepared.status == ExitStatus.OWNER and not unprepared.out
    assert run("-C", shop.directory, "prepare", home=shop.root / "home").status == 0

    def broken(self: DataSet, sql: str, **options: str) -> object:
        raise LedgerError("ledger-locked", "the ledger is locked")

    monkeypatch.setattr(DataSet, "ask", broken)
    ran = refresh(shop, statements=(BY_DEVICE, BY_DAY))
    assert (ran.status, ran.out, ran.err) == (ExitStatus.INTERNAL, "", "[ledger-locked] the ledger is locked\n")


def test_a_fault_in_one_statement_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("-C", shop.directory, "prepare", home=shop.root / "home").status == 0
    explain = DataSet.explain

    def failing(self: DataSet, sql: str, **options: str) -> object:
        if sql == USERS:
            raise ValueError("4711 is in the data")
        return explain(self, sql, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(DataSet, "explain", failing)
    ran = refresh(shop, statements=(USERS, BY_DAY))
    assert ran.status == SOME_REFUSED and "failed: an internal error" in ran.out and "epsilon 0.1 in each of 5 new days" in ran.out
    assert "ValueError at" in ran.err and "4711" not in ran.out + ran.err


def test_ctrl_c_ends_it_and_says_what_is_free(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("-C", shop.directory, "prepare", home=shop.root / "home").status == 0

    def interrupted(self: DataSet, sql: str, **options: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(DataSet, "ask", interrupted)
    ran = refresh(shop, statements=(BY_DAY,))
    assert ran.status == 130 and ran.err.startswith("Interrupted.") and "lapwing history" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("refresh", "missing.sql"), "missing.sql cannot be read: No such file or directory"),
        (("refresh", "empty.sql"), "empty.sql holds no statement"),
        (("refresh", "latin.sql"), "latin.sql is not UTF-8 text"),
        (("refresh", "-"), "standard input holds no statement"),
        (("refresh", "good.sql", "--epsilon", "0"), "0 is not a number above 0"),
        (("refresh", "good.sql", "--prepare", "--dry-run"), "--dry-run changes nothing: leave it or --prepare out"),
        (("--server", "http://127.0.0.1:1", "refresh", "good.sql", "--prepare"), "--prepare needs the files of the data set"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_asked(
    clinic: Clinic, words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.sql").write_text("-- nothing;\n/* ; */ ;\n")
    Path("latin.sql").write_bytes(b"SELECT 'caf\xe9'")
    Path("good.sql").write_text("SELECT COUNT(*) FROM visits;")
    ran = clinic.run(*words)
    assert ran.status == ExitStatus.USAGE and said in ran.err and not ran.out


def test_a_data_set_without_blocks_is_refreshed_for_each_version(clinic: Clinic) -> None:
    statements = "SHOW TABLES; SELECT COUNT(*) AS refreshed FROM visits WHERE minutes > 11"
    first = clinic.run("refresh", "-", "--epsilon", "0.05", stdin=statements)
    assert first.status == 0, first.err
    assert lines(first)[:2] == ["SHOW TABLES free", "SELECT COUNT(*) AS refreshed FROM visits WH… epsilon 0.05"]
    assert "all free" in clinic.run("refresh", "-", "--epsilon", "0.05", stdin=statements).out


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("SELECT 1; select ';' ; /* a; b */ ;", ["SELECT 1", "select ';'"]),
        ("-- The shop\n-- Users by day; of a week\n\nSELECT 1 -- one\n; SELECT /* two */ 2", ["Users by day; of a week", "SELECT 2"]),
        ("-- Head\n/* more */ SELECT 1;", ["SELECT 1"]),
        ("--\nSELECT 1; -- the end", ["SELECT 1"]),
        ("SELECT\n  '--no' AS \"/* name\", " + 40 * "x", ["SELECT '--no' AS \"/* name\", xxxxxxxxxxxxxxx…"]),
    ],
)
def test_a_statement_is_named_by_the_comment_before_it_or_by_its_first_words(text: str, titles: list[str]) -> None:
    assert [title_of(statement) for statement in statements_of(text)] == titles
