"""``lapwing ledger verify`` as people type it: it says what it compared with, and is not green where a promised anchor is missing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.ledger.cluster import APP_ROLE, MONITOR_ROLE, Cluster
from tests.ledger.wired import Wired, new_wired
from tests.unit.cli.support import Ran, run


@pytest.fixture(scope="module")
def wired(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Wired:
    """In a database of its own: all ledgers of a database are verified."""
    made = new_wired(tmp_path_factory.mktemp("verify"), cluster.dsn(cluster.new_database()))
    prepared = run("-C", made.directory, "prepare", home=made.home)
    assert prepared.status == 0, prepared.err
    return made


def of_all(wired: Wired, *anchors: Path) -> Ran:
    """Without a catalogue, as a monitor does it."""
    given = [text for directory in anchors for text in ("--anchors", directory)]
    return run("ledger", "verify", "--database", wired.dsn.replace(APP_ROLE, MONITOR_ROLE), *given, home=wired.home)


def of_data_set(wired: Wired, *arguments: str | Path) -> Ran:
    return run("-C", wired.directory, "ledger", "verify", *arguments, home=wired.home)


def name_of(wired: Wired) -> str:
    return (wired.base / "anchors" / "name").read_text(encoding="ascii").strip()


def test_it_says_which_anchor_at_which_entry_of_which_day(wired: Wired) -> None:
    for ran in (of_all(wired, wired.base / "anchors"), of_data_set(wired)):
        assert ran.status == 0, (ran.out, ran.err)
        said = re.search(r"compared with anchor (\w+): entry (\d+), made (\d{4}-\d\d-\d\d)T", ran.out)
        assert said is not None, ran.out
        assert said[1] == name_of(wired) and int(said[2]) > 1
        assert "sub-budgets and anchor agree" in ran.out and "WRONG" not in ran.out


def test_a_directory_without_anchors_is_not_green(wired: Wired, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for directory in (tmp_path / "empty", tmp_path / "never made"):
        for ran in (of_all(wired, directory), of_data_set(wired, "--anchors", directory)):
            assert ran.status == 1 and "WRONG: [anchor-missing]" in ran.out and name_of(wired) in ran.out
            assert "nothing outside the database was compared" in ran.out and "agree" not in ran.out
    assert not (tmp_path / "never made").exists() and not list((tmp_path / "empty").iterdir()), "a check makes no anchor"


def test_the_anchors_of_the_ledger_are_missed_though_nobody_names_them(wired: Wired) -> None:
    ran = of_all(wired)
    assert ran.status == 1 and "[anchor-missing]" in ran.out and name_of(wired) in ran.out


def test_the_anchors_of_the_catalogue_are_missed(wired: Wired) -> None:
    kept, away = wired.base / "anchors", wired.base / "away"
    kept.rename(away)
    try:
        ran = of_data_set(wired)
    finally:
        away.rename(kept)
    assert ran.status == 1 and "[anchor-missing]" in ran.out
    assert of_data_set(wired).status == 0


def test_an_older_copy_of_the_anchors_is_noticed(wired: Wired, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(wired.base / "anchors", copied)
    for name in ("ed", "flo", "gus"):  # each is written with how far the anchor had come before
        assert run("-C", wired.directory, "ledger", "admit", name, home=wired.home).status == 0
    assert run("-C", wired.directory, "ask", "SELECT COUNT(*) AS n FROM patients", "--analyst", "ed", home=wired.home).status == 0
    ran = of_all(wired, copied)
    assert ran.status == 1 and "WRONG: [anchor-behind]" in ran.out


def test_a_ledger_that_is_gone_from_the_database_is_missed(wired: Wired, tmp_path: Path) -> None:
    anchors = tmp_path / "anchors"
    shutil.copytree(wired.base / "anchors", anchors)
    [one] = anchors.glob("*.anchor")
    shutil.copy(one, one.with_stem("0" * 32))  # of a source that the database has never heard of
    ran = of_all(wired, anchors)
    assert ran.status == 1 and "[ledger-missing]" in ran.err and "WRONG" not in ran.out
    source = ran.out.split(":")[0]
    database = wired.dsn.replace(APP_ROLE, MONITOR_ROLE)
    named = run("ledger", "verify", source, "--database", database, "--anchors", anchors, home=wired.home)
    assert named.status == 0, "those of another database are its own affair"
