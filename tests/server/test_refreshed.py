"""A dashboard that is refreshed over HTTP with a key: the server's days are paid once, and everybody else gets them for free."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import lapwing
from tests.server.process import Running, lapwing_in, started
from tests.support.shop_of_events import START, Shop
from tests.unit.cli.support import Ran, run

pytestmark = pytest.mark.xdist_group("server: refreshed")

BY_DEVICE = "SELECT device, COUNT(*) AS n FROM events WHERE day <= DATE '2026-03-05' GROUP BY device"
USERS = "SELECT COUNT(DISTINCT user_id) AS u FROM events WHERE day >= CURRENT_DATE - 10_000 WITH PRIVACY (epsilon = 0.1)"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server over events of some days; all of them have closed, and none of those that will come."""
    directory = tmp_path_factory.mktemp("refreshed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_HOME", str(directory / "home"))
        shop = Shop(directory, patch)
        shop.declare(epsilon="3")
        shop.users()
        shop.days(6)
        catalogue = shop.directory / "lapwing.toml"
        last = START + datetime.timedelta(days=5)
        catalogue.write_text(catalogue.read_text().replace("2027-12-31", str(last)))
        lapwing_in(directory, "-C", "shop", "prepare")
        with started(directory, ("serve", "shop")) as (process, url):
            for name in ("nina", "ada"):
                lapwing_in(directory, "access", "grant", name, "analyst", "*")
            yield Running(process, url, directory, lapwing_in(directory, "access", "key", "nina").strip())


def _refresh(running: Running, *words: str) -> Ran:
    file = running.directory / "dashboard.sql"
    file.write_text(f"-- By device\n{BY_DEVICE};\n-- Users\n{USERS};\nSELECT 1 + nonsense FROM events;\n")
    home = running.directory / "nobody"
    return run("--server", running.url, "refresh", file, *words, home=home, variables={"LAPWING_TOKEN": running.key})


def test_a_dashboard_is_refreshed_with_a_key_and_free_for_others(running: Running) -> None:
    priced = _refresh(running, "--epsilon", "0.2", "--dry-run")
    assert (priced.status, "3 statements: 2 to pay, 1 refused." in priced.out) == (1, True), priced.out + priced.err
    first = _refresh(running, "--epsilon", "0.2")
    lines = first.out.splitlines()
    assert first.status == 1, first.err
    assert lines[:4] == [
        "By device                        epsilon 0.2 in each of 5 new days",
        "Users                            epsilon 0.1 in each of 6 days",
        "  warning: measured over its range: costs every day again",
        "SELECT 1 + nonsense FROM events  refused [unknown-column]: there is no column 'nonsense' here",
    ]
    again = _refresh(running, "--epsilon", "0.2")
    assert again.out.splitlines()[0] == "By device                        free, no new day" and "2 free, 1 refused." in again.out
    key = lapwing_in(running.directory, "access", "key", "ada").strip()
    with lapwing.connect(running.url, token=key) as data_set:
        assert data_set.ask(BY_DEVICE, epsilon="0.2").cost.free and data_set.ask(USERS).cost.free


def test_a_wrong_key_and_preparing_end_it_before_anything_is_asked(running: Running) -> None:
    token = {"LAPWING_TOKEN": running.key[:-3] + "___"}
    wrong = run("--server", running.url, "refresh", "-", home=running.directory / "nobody", stdin=BY_DEVICE, variables=token)
    assert (wrong.status, wrong.out) == (3, "") and wrong.err.startswith("[unauthenticated]"), wrong.err
    prepared = _refresh(running, "--prepare")
    assert prepared.status == 2 and "--prepare needs the files of the data set" in prepared.err
