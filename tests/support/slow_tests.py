"""The slowest tests of the ordinary run, with the seconds that each took alone on two cores, and why it takes them.

A test of more than ``SECONDS_MAX`` needs an entry. A run names those that have none; it does not fail for it, because a busy machine makes
any test slow.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.support.nightly import without_group

SECONDS_MAX = 30.0

SLOW: dict[str, tuple[float, str]] = {
    "tests/server/test_refreshed.py::test_a_dashboard_is_refreshed_with_a_key_and_free_for_others": (
        45,
        "a data set is prepared and served in processes of their own",
    ),
    "tests/faults/test_kills.py::test_killed_clients_that_charge_blocks_leave_a_sound_ledger[32-10]": (
        70,
        "80 clients of 32 at once are killed, and every look of the oracle reads both trees",
    ),
    "tests/wire/test_catalogue_query.py::test_random_statements_reach_the_shadow_in_our_words_or_not_at_all": (
        200,
        "100,000 statements are read at night",
    ),
    "tests/wire/test_ordinary_role.py::test_what_a_superuser_would_run_is_said_once_at_the_start_and_is_right": (
        35,
        "a server with two workers is started twice",
    ),
    "tests/server/test_supervisor.py::test_while_the_database_is_away_workers_that_die_are_tried_again": (
        60,
        "workers are waited for that cannot start, and then can, twice",
    ),
    "tests/server/test_supervisor.py::test_a_worker_that_is_paused_is_borne_and_then_replaced_with_a_word": (
        40,
        "a worker is paused for 7 seconds, and then until it is taken for dead",
    ),
    "tests/wire/test_unprepared.py::test_it_is_named_at_the_start_refused_and_taken_in_once_it_is_prepared": (
        35,
        "a server with two workers is started, and a command prepares a version",
    ),
    "tests/server/test_operation.py::test_every_scrape_sees_what_all_workers_counted": (
        40,
        "two servers of PostgreSQL and a server with two workers are started",
    ),
    "tests/server/test_operation.py::test_a_server_that_starts_again_begins_at_nothing": (
        34,
        "a server with two workers is started",
    ),
    "tests/ledger/test_postgres_waiting.py::test_a_lost_standby_is_not_waited_for_for_ever": (61, "a minute is waited for"),
    "tests/server/test_two_worlds.py::test_replies_and_logs_are_the_same_but_for_noise": (34, "two servers answer one conversation"),
    "tests/unit/audit/test_third_list.py::test_statements_become_what_is_written_down": (
        45,
        "509 statements are asked on two engines at night",
    ),
    "tests/unit/audit/test_second_list.py::test_statements_become_what_is_written_down": (35, "210 statements are asked at night"),
    "tests/engines/spark/test_spark_oracle.py::test_no_pair_of_neighbours_refutes_a_certificate[bounded-Account.APPROXIMATE]": (
        50,
        "each shape is a Spark job on two worlds, a second each",
    ),
    "tests/engines/spark/test_spark_oracle.py::test_no_pair_of_neighbours_refutes_a_certificate[unbounded-Account.PURE]": (
        33,
        "each shape is a Spark job on two worlds, a second each",
    ),
    "tests/statistical/test_targets_and_truth.py::test_the_error_asked_for_is_kept": (
        37,
        "at least 27 whole interactions with pilots and a search for the price, 0.7 s each",
    ),
}
"""As measured in a whole run of two cores and three workers."""


class SlowTests:
    """Adds up how long each test took, its setup and teardown included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[without_group(report.nodeid)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            if seconds > SECONDS_MAX and name not in SLOW:
                terminalreporter.write_line(f"{seconds:.0f} s and no reason in tests/support/slow_tests.py: {name}")
