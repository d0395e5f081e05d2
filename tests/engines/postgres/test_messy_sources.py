"""The messy sources in tables of a server: prepared by their owner on the command line, answered as the reader, against the raw truth."""

from __future__ import annotations

from pathlib import Path

import duckdb
from benchmarks.reliability.repeated import make_repeatable

import lapwing
from lapwing.engines.postgres.session import ask
from tests.engines.postgres.place import Place
from tests.support.messy_sources import club_catalogue, truth_of_club, write_club
from tests.support.postgres_worlds import copy_parquet
from tests.support.promises import watched
from tests.support.ranking_keys import write_ranking_key
from tests.support.raw_truth import CLUB, CoveredAnswers
from tests.support.sizes import size
from tests.unit.cli.support import run

FILES = {
    "members": "read_csv('{}/members/*.csv', header = true, all_varchar = true, delim = ',', quote = '\"', escape = '\"')",
    "visits": "read_parquet('{}/visits/*/*/*.parquet', hive_partitioning = true)",
    "bought": "read_csv('{}/bought.csv', header = true, all_varchar = true)",
    "halls": "read_csv('{}/halls.csv')",
}


def _load(place: Place, directory: Path) -> None:
    """The rows of the files, as they are, in tables of the owner."""
    with place.as_owner() as connection:
        ask(connection, "CREATE SCHEMA club")
        for name, files in FILES.items():
            path = directory / f"{name}.parquet"
            duckdb.connect().execute(f"COPY (SELECT * FROM {files.format(directory)}) TO '{path}' (FORMAT parquet)")
            copy_parquet(connection, path, f"club.{name}")


def test_error_bars_cover_the_truth_of_the_tables(place: Place, tmp_path: Path) -> None:
    write_club(tmp_path, members=size("messy tables on PostgreSQL, members"))
    _load(place, tmp_path)
    text = club_catalogue().replace('partitions = ["year"]\n', "")
    for name, source in {
        "members": "members/*.csv",
        "visits": "visits/*/*/*.parquet",
        "bought": "bought.csv",
        "halls": "halls.csv",
    }.items():
        text = text.replace(f'"{source}"', f'"club.{name}"')
    reached = f'[dataset]\nengine = "postgres"\nconnection = "{place.cluster.dsn(place.database, role=place.reader)}"'
    (tmp_path / "lapwing.toml").write_text(text.replace("[dataset]", reached), encoding="utf-8")
    write_ranking_key(tmp_path, "messy tables")
    owner = {"LAPWING_POSTGRES_OWNER": f"user={place.owner}"}
    prepared = run("-C", tmp_path, "prepare", "--accept-losses", home=tmp_path / "home", variables=owner)
    assert prepared.status == 0, prepared.err
    assert "25 without a unit, 40 whose parent is missing, 800 beyond the cap" in prepared.err
    with lapwing.open(tmp_path, home=tmp_path / "home") as data:
        make_repeatable(data.curator)
        answers = CoveredAnswers(data, truth_of_club(tmp_path), CLUB)
        watched("bars of messy tables").require(answers, rounds=size("messy tables on PostgreSQL, rounds"), told=answers.worst)
