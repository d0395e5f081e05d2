"""Error bars reach those who use PostgreSQL's own clients: in words beside every answer, as columns, and by leaving noise out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
import sqlalchemy as sa
from psycopg.rows import dict_row

import lapwing
from tests.wire.world import WireUnderTest

ONE = "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1951"
REGIONS = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region"
BESIDE = ["region", "n", "n_lo", "n_hi", "n_mark"]


@dataclass
class Told:
    """A session, and the notices that it was sent."""

    connection: psycopg.Connection
    notices: list[tuple[str, str]] = field(default_factory=list)

    def rows(self, statement: str, *settings: str) -> list[dict[str, object]]:
        for setting in settings:
            self.connection.execute(f"SET lapwing.{setting}")
        return list(self.connection.cursor(row_factory=dict_row).execute(statement))


@pytest.fixture
def told(wire: WireUnderTest) -> Iterator[Told]:
    with wire.connect() as connection:
        seen = Told(connection)
        connection.add_notice_handler(lambda said: seen.notices.append((said.message_primary or "", said.message_detail or "")))
        yield seen


def test_the_notice_of_one_value_says_the_value_and_its_bar(told: Told) -> None:
    (row,) = told.rows(ONE, "intervals = on")
    (primary, _) = told.notices[-1]
    said = re.match(r"n ([0-9,]+) ±([0-9,]+) at 95%; (?:cost epsilon|free)", primary)
    assert said is not None, primary
    value, half = (int(number.replace(",", "")) for number in said.groups())
    assert isinstance(row["n_lo"], float) and isinstance(row["n_hi"], float)
    assert value == row["n"] and half == round((row["n_hi"] - row["n_lo"]) / 2)


def test_the_notice_of_groups_says_how_far_bars_reach_and_how_many_values_are_noise(told: Told) -> None:
    rows = told.rows(REGIONS, "epsilon = 0.1", "marks = on", "confidence = 0.9")
    noise = sum(row["n_mark"] == "noise_only" for row in rows)
    assert 1 < noise <= len(rows) == 20
    primary, detail = told.notices[-1]
    assert re.match(r"n ±[0-9,]+ in every group at 90%; (?:cost epsilon|free)", primary), primary
    assert detail.splitlines()[0] == f"{noise} of 20 values of n are no larger than their noise"


def test_what_is_free_and_measures_nothing_says_no_bar(told: Told) -> None:
    told.rows("SHOW PRIVACY BUDGET")
    assert told.notices[-1][0].startswith("free; ")


def test_psql_shows_the_bar(wire: WireUnderTest) -> None:
    shown = wire.psql(f"{ONE};\n", "-v", "VERBOSITY=default").stderr
    assert re.match(r"NOTICE:  n [0-9,]+ ±[0-9,]+ at 95%; (?:cost epsilon|free)", shown), shown


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_that_are_noise_become_null_and_their_bars_stay(told: Told, binary: bool) -> None:
    with_noise = told.rows(REGIONS, "epsilon = 0.1", "intervals = on", "marks = on")
    assert list(with_noise[0]) == BESIDE and any(row["n_mark"] for row in with_noise) and all(row["n"] is not None for row in with_noise)
    told.connection.execute("SET lapwing.noise_as_null = on")
    without = list(told.connection.cursor(row_factory=dict_row, binary=binary).execute(REGIONS))
    assert without == [{**row, "n": None if row["n_mark"] == "noise_only" else row["n"]} for row in with_noise]
    assert told.notices[-1][0].split("; ")[1] == "free"


def test_settings_come_with_the_connection(wire: WireUnderTest) -> None:
    options = "-c lapwing.noise_as_null=on -c lapwing.intervals=on -c lapwing.epsilon=0.1"
    with psycopg.connect(wire.dsn(options=options), autocommit=True) as connection:
        found = connection.execute(REGIONS)
        assert [column.name for column in found.description or ()] == BESIDE[:-1]
        assert None in [row[1] for row in found]


def test_columns_of_the_analyst_may_be_named_as_ours(told: Told) -> None:
    """A client that asks for the columns first is told the same ones, whose names say nothing about what they are."""
    with told.connection.cursor(binary=True) as cursor:
        told.connection.prepare_threshold = 0
        found = cursor.execute("SELECT COUNT(*) AS n, 1 AS n_lo, 2 AS n_hi FROM patients WHERE birth_year > %s", (1951,)).fetchone()
    assert found is not None and found[1:] == (1, 2)


@pytest.mark.parametrize("ends", ["_lo _hi", "__yhat_lower __yhat_upper"])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_tool_that_sees_only_what_it_names_gets_ends_by_their_names(told: Told, ends: str, prepared: bool) -> None:
    low, high = (f"n{end}" for end in ends.split())
    bars = told.rows(REGIONS, "intervals = on")
    told.connection.execute("SET lapwing.intervals = named")
    told.connection.prepare_threshold = 0 if prepared else None
    named = REGIONS.replace(" FROM", f", COUNT(*) AS {low}, COUNT(*) AS {high}, 7 AS key_hi FROM")
    found = told.rows(named)
    assert found == [{"region": row["region"], "n": row["n"], low: row["n_lo"], high: row["n_hi"], "key_hi": 7} for row in bars]
    assert told.notices[-1][0].endswith(told.notices[0][0].partition("; ")[2].partition("; ")[2]), "the same count, measured once"


def test_bars_and_marks_are_off_unless_asked_for(told: Told) -> None:
    assert list(told.rows(REGIONS)[0]) == ["region", "n"]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="noise_as_null"):
        told.connection.execute("SET lapwing.noise_as_null = maybe")


@pytest.mark.parametrize("scheme", ["psycopg", "engine", "connection", "pg8000"])
def test_a_frame_read_over_the_wire_knows_its_bars_and_leaves_the_session_as_it_was(told: Told, wire: WireUnderTest, scheme: str) -> None:
    pandas = pytest.importorskip("pandas")
    engine = sa.create_engine(wire.url(scheme=f"postgresql+{'pg8000' if scheme == 'pg8000' else 'psycopg'}"))
    told.connection.execute("SET lapwing.marks = on")
    with engine.connect() as connection:
        opened = {"psycopg": told.connection, "connection": connection}.get(scheme, engine)
        frame = lapwing.read_sql(f"{REGIONS} WITH PRIVACY (epsilon = 0.1, confidence = 0.9)", opened)
    engine.dispose()
    assert told.rows("SHOW lapwing.intervals") + told.rows("SHOW lapwing.marks") == [{"lapwing.intervals": "off"}, {"lapwing.marks": "on"}]
    about = frame.attrs["lapwing"]
    assert list(frame.columns) == BESIDE and len(frame) == 20 and isinstance(frame, pandas.DataFrame)
    assert (about["error_bars"], about["marks"]) == ({"n": ["n_lo", "n_hi"]}, {"n": "n_mark"})
    if scheme != "pg8000":
        noise = int((frame["n_mark"] == "noise_only").sum())
        assert about["notes"][0] == f"{noise} of 20 values of n are no larger than their noise"
        assert about["confidence"] == 0.9 and about["epsilon"] in (0, 0.1) and "±" in about["summary"]


def test_a_refusal_while_a_frame_is_read_leaves_the_session_as_it_was(wire: WireUnderTest) -> None:
    pytest.importorskip("pandas")
    with psycopg.connect(wire.dsn()) as connection:
        with pytest.raises(psycopg.Error, match="rows"):
            lapwing.read_sql("SELECT * FROM visits", connection)
        connection.rollback()
        assert connection.execute("SHOW lapwing.intervals").fetchone() == ("off",)
        assert len(lapwing.read_sql(ONE.replace("1951", "%s"), connection, (1951,))) == 1


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "AVG(birth_year)", "MEDIAN(birth_year)", "COUNT(*) / 2 + 1", "7", "MAX(birth_year) - 1"])
def test_columns_are_the_same_whether_or_not_they_were_asked_for_first(told: Told, aggregate: str) -> None:
    seen = []
    for threshold in (None, 0):
        told.connection.prepare_threshold = threshold
        with told.connection.cursor(binary=threshold == 0) as cursor:
            told.connection.execute("SET lapwing.intervals = on")
            told.connection.execute("SET lapwing.marks = on")
            found = cursor.execute(f"SELECT COUNT(*) AS n, {aggregate} AS m FROM patients")
            seen.append([(column.name, column.type_code) for column in found.description or ()])
    assert seen[0] == seen[1]
