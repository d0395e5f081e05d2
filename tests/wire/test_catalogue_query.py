"""Statements about the catalogue: the shadow is asked what we wrote from known nodes; no session sees or changes another."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from lapwing.errors import LapwingError
from lapwing.interfaces.wire.catalogue.own_relations import EMPTY
from lapwing.interfaces.wire.catalogue.query import WORDS_MAX, WrittenQuery, written_query
from lapwing.interfaces.wire.catalogue.words import FIELDS, FILTERS, FUNCTIONS, GUARDS, RELATIONS
from lapwing.interfaces.wire.lexing import statements_of, words_of
from lapwing.interfaces.wire.messages import message, zero_ended
from lapwing.interfaces.wire.shadow.link import ShadowAddress
from lapwing.interfaces.wire.shadow.pool import ShadowPool
from tests.support.sizes import size
from tests.wire.catalogue_fuzz import HOSTILE_FUNCTIONS, foreign_words, random_statement
from tests.wire.raw import RawClient
from tests.wire.world import WireUnderTest

SENTINEL = "sentinel_of_another"


def written(text: str) -> WrittenQuery:
    """The statement as the shadow would see it."""
    (words,) = statements_of(words_of(text))
    return written_query(text, words)


def _session_dsn(wire: WireUnderTest) -> str:
    settings = wire.server.app_state.configuration.wire
    assert settings is not None
    return wire.cluster.dsn(wire.server.data_set, role=settings.role)


def _superuser_dsn(wire: WireUnderTest) -> str:
    return wire.cluster.dsn(wire.server.data_set, role="postgres")


def _session(wire: WireUnderTest) -> psycopg.Connection:
    """Straight to the shadow, as the role of sessions."""
    return psycopg.connect(_session_dsn(wire), autocommit=True, prepare_threshold=None)


@pytest.fixture(scope="module")
def others(wire: WireUnderTest) -> Iterator[psycopg.Connection]:
    """Another database, another role, and a session that runs something, all with a name to look for."""
    with psycopg.connect(wire.cluster.dsn("postgres", role="postgres"), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {SENTINEL}_role LOGIN")
        owner.execute(f"CREATE DATABASE {SENTINEL}_database")
        owner.execute(f"COMMENT ON DATABASE {SENTINEL}_database IS '{SENTINEL}'")
        owner.execute(f"COMMENT ON ROLE {SENTINEL}_role IS '{SENTINEL}'")
        with _session(wire) as busy:  # the same role: PostgreSQL itself would show its statements
            busy.execute(f"SELECT '{SENTINEL}'")
            try:
                yield owner
            finally:
                owner.execute(f"DROP DATABASE {SENTINEL}_database")
                owner.execute(f"DROP ROLE {SENTINEL}_role")


PLACES = {
    "plain": "SELECT {}",
    "distinct on": "SELECT DISTINCT ON (1) {}",
    "operator": "SELECT 'x' OPERATOR(pg_catalog.||) {}",
    "prefix operator": "SELECT OPERATOR(pg_catalog.-) {}",
    "from": "SELECT * FROM {} AS f",
    "lateral": "SELECT * FROM pg_class, LATERAL {} AS f",
    "where": "SELECT 1 FROM pg_class WHERE {} IS NULL",
    "order": "SELECT 1 ORDER BY {}",
    "limit": "SELECT 1 LIMIT {}",
    "array": "SELECT ARRAY[{}]",
    "slice": "SELECT ('{{1}}'::int[])[{}]",
    "cast": "SELECT CAST({} AS text)",
    "case": "SELECT CASE WHEN true THEN {} END",
    "filter": "SELECT count(*) FILTER (WHERE {} IS NULL)",
    "window": "SELECT row_number() OVER (ORDER BY {})",
    "frame": "SELECT count(*) OVER (ROWS {} PRECEDING)",
    "within group": "SELECT mode() WITHIN GROUP (ORDER BY {})",
    "values": "VALUES ({})",
    "with": "WITH x AS (SELECT {}) SELECT * FROM x",
    "exists": "SELECT EXISTS (SELECT {})",
    "join": "SELECT 1 FROM pg_class a JOIN pg_class b ON {} IS NULL",
    "grouping": "SELECT 1 GROUP BY ROLLUP ({})",
    "special": "SELECT substring('x' FROM {})",
    "after a label": 'SELECT 1 AS "a", {}',
    "after a comment": "SELECT /* ) */ {}",
    "union": "SELECT 1 UNION SELECT {}",
    "row": "SELECT ROW({})",
    "in": "SELECT 1 IN ({})",
    "any": "SELECT 1 = ANY ({})",
    "between": "SELECT 1 BETWEEN {} AND 2",
    "argument": "SELECT lower({})",
    "named argument": "SELECT make_interval(days => {})",
    "guarded": "SELECT pg_get_userbyid({})",
    "typed": "SELECT date '2024-01-01' + {}",
    "extract": "SELECT extract(epoch FROM {})",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_function_that_is_not_listed_is_refused_wherever_it_stands(place: str) -> None:
    for call in HOSTILE_FUNCTIONS:
        with pytest.raises(LapwingError):
            written(place.format(call))
    if "{}" in place and "LATERAL" not in place and "FROM {}" not in place:
        written(place.format("lower('1')"))  # else the refusals would say nothing


ATTACKS = [
    "SELECT DISTINCT ON (1) set_config('statement_timeout', '0', false)",
    "SELECT 'x' OPERATOR(pg_catalog.||) set_config('statement_timeout', '1234s', false)",
    "SELECT DISTINCT ON (1) pg_sleep(1)",
    "SELECT DISTINCT ON (1) query_to_xml('select query from pg_stat_activity', true, true, '')",
    "SELECT DISTINCT ON (1) lo_from_bytea(0, decode('41', 'hex'))",
    "SELECT DISTINCT ON (1) pg_advisory_lock(1)",
    "SELECT DISTINCT ON (1) lo_create(0)",
    "SELECT pg_stat_get_backend_activity(i) FROM pg_stat_get_backend_idset() i",
    "SELECT DISTINCT ON (1) pg_stat_get_activity(NULL)",
]


@pytest.mark.parametrize("statement", ATTACKS)
def test_attacks_on_the_list_of_functions_are_refused(wire: WireUnderTest, statement: str) -> None:
    with wire.connect() as connection, pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not be called here"):
        connection.execute(statement)


ATTRIBUTES = [
    "SELECT (0::float8).pg_sleep",
    "SELECT (1).lo_create",
    "SELECT ('{0}'::float8[])[1].pg_sleep",
    "SELECT $1.pg_sleep",
    "SELECT (x).pg_sleep FROM unnest(ARRAY[0::float8]) AS x",
    "SELECT x.pg_sleep FROM unnest(ARRAY[0::float8]) AS x",
    "SELECT unnest.pg_sleep FROM unnest(ARRAY[0::float8])",
    "SELECT x.pg_sleep FROM generate_series(1, 1) AS x",
    "SELECT abs.pg_sleep FROM abs(0::float8)",
    "SELECT x.lo_create FROM abs(1) AS x",
]


@pytest.mark.parametrize("statement", ATTRIBUTES)
def test_no_function_is_called_as_if_it_were_a_field(wire: WireUnderTest, statement: str) -> None:
    """``(value).f`` calls ``f`` in PostgreSQL, and so does ``alias.f`` where the alias is a function's single value."""
    with pytest.raises((LapwingError, psycopg.errors.UndefinedColumn)), psycopg.connect(_superuser_dsn(wire), autocommit=True) as owner:
        owner.execute(written(statement).text)


def test_a_setting_that_reached_the_shadow_would_not_reach_the_next_session(wire: WireUnderTest) -> None:
    """Behind the grammar: whatever a connection was made to do, its next user finds it as new."""
    dirt = [
        "SELECT set_config('standard_conforming_strings', 'off', false)",
        "SELECT set_config('search_path', 'nowhere', false)",
        "SELECT set_config('statement_timeout', '0', false)",
    ]
    asked = "SELECT current_setting(x) FROM unnest(ARRAY['standard_conforming_strings', 'search_path', 'statement_timeout']) AS x"

    async def lent_twice() -> tuple[list[list[bytes | None]], list[list[bytes | None]], list[list[bytes | None]]]:
        parts = psycopg.conninfo.conninfo_to_dict(_session_dsn(wire))
        address = ShadowAddress(str(parts["host"]), int(str(parts.get("port", 5432))), wire.server.data_set, str(parts["user"]), "")
        pool = ShadowPool(address, 1)
        async with pool.lent({}, "ada") as link:
            fresh = (await link.run(asked, (), (), (), ())).rows
            for statement in dirt:
                await link.run(statement, (), (), (), ())
            dirty = (await link.run(asked, (), (), (), ())).rows
        async with pool.lent({}, "ada") as link:
            again = (await link.run(asked, (), (), (), ())).rows
        pool.close()
        return fresh, dirty, again

    fresh, dirty, again = asyncio.run(lent_twice())
    assert again == fresh
    assert dirty != fresh


SEEN = {
    "databases": "SELECT datname FROM pg_database",
    "databases, qualified": "SELECT pg_catalog.pg_database.datname FROM pg_catalog.pg_database",
    "databases, in a common table of that name": "WITH pg_database AS (SELECT * FROM pg_database) SELECT datname FROM pg_database",
    "databases, after a common table of another query": (
        "SELECT (WITH pg_database AS (SELECT 1) SELECT 1 FROM pg_database), (SELECT string_agg(datname, ' ') FROM pg_database)"
    ),
    "databases, recursively": "WITH RECURSIVE a AS (SELECT * FROM pg_database), pg_database AS (SELECT 1) SELECT datname FROM a",
    "roles": "SELECT rolname FROM pg_roles",
    "users": "SELECT usename FROM pg_user",
    "owners by number": "SELECT pg_get_userbyid(i::oid) FROM generate_series(1, 90000) AS g(i) WHERE pg_get_userbyid(i::oid) IS NOT NULL",
    "comments by number": "SELECT DISTINCT shobj_description(i::oid, 'pg_database') FROM generate_series(1, 90000) AS g(i)",
    "comments": "SELECT description FROM pg_shdescription",
    "databases by a number that changes": (
        "SELECT pg_database_size(CASE WHEN random() < 0.5 THEN current_database() ELSE 'sentinel_of_another_database' END) > 0"
        " FROM generate_series(1, 50)"
    ),
    "settings": "SELECT name || coalesce(setting, '') FROM pg_settings",
    "members": "SELECT roleid::text, member::text FROM pg_auth_members",
}


@pytest.mark.parametrize("statement", SEEN.values(), ids=SEEN.keys())
def test_names_of_others_are_not_seen(wire: WireUnderTest, others: psycopg.Connection, statement: str) -> None:
    del others
    with wire.connect() as connection:
        found = connection.execute(statement).fetchall()
    assert found or "members" in statement
    assert SENTINEL not in repr(found)


def test_a_database_of_others_is_like_one_that_does_not_exist(wire: WireUnderTest, others: psycopg.Connection) -> None:
    """Else its name could be guessed."""
    del others
    for call in ("pg_database_size('{}')", "has_database_privilege('{}', 'CONNECT')"):
        with wire.connect() as connection:
            there = connection.execute(f"SELECT {call.format(SENTINEL + '_database')}").fetchall()
            nowhere = connection.execute(f"SELECT {call.format('nowhere')}").fetchall()
            own = connection.execute(f"SELECT {call.format(wire.server.data_set)}").fetchall()
        assert there == nowhere == [(None,)]
        assert own != [(None,)]


def test_every_relation_of_the_list_shows_nothing_of_others(wire: WireUnderTest, others: psycopg.Connection) -> None:
    del others
    with wire.connect() as connection:
        for relation in sorted(RELATIONS | EMPTY.keys()):
            shown = connection.execute(f"SELECT * FROM {relation}").fetchall()
            assert SENTINEL not in repr(shown), relation


def test_statistics_and_activity_have_the_columns_of_postgresql_and_no_rows(wire: WireUnderTest, others: psycopg.Connection) -> None:
    """Tools join them when they look for tables; no row would be right, and an error stops their search."""
    del others
    with wire.connect() as connection, psycopg.connect(_superuser_dsn(wire), autocommit=True) as owner:
        assert owner.execute("SELECT count(*) FROM pg_stat_activity").fetchone() != (0,)
        for relation in sorted(EMPTY):
            seen = connection.execute(f"SELECT * FROM pg_catalog.{relation}")
            assert seen.fetchall() == [], relation
            known = {column.name: column.type_code for column in seen.description or ()}
            there = owner.execute(f"SELECT * FROM {relation} LIMIT 0").description or ()
            assert {column.name: column.type_code for column in there}.items() <= known.items() | _ANY_ARRAYS, relation
        joined = "SELECT c.relname, pg_stat_user_tables.n_live_tup FROM pg_class c LEFT JOIN pg_stat_user_tables ON relid = c.oid"
        found = connection.execute(f"{joined} WHERE c.relname = 'visits'").fetchall()
    assert found == [("visits", None)]


_ANY_ARRAYS = {(name, 2277) for name in ("most_common_vals", "histogram_bounds", "most_common_elems")}
"""Columns that are arrays of whatever the column is: a type that no value of ours can have."""


def test_the_lists_hold_what_postgresql_says_of_them(wire: WireUnderTest) -> None:
    """Functions of the list change nothing, by PostgreSQL's own word; those it calls volatile are named here, each looked at by hand."""
    volatile = {
        *("pg_is_in_recovery", "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size", "pg_database_size"),
        *("pg_tablespace_size", "clock_timestamp", "timeofday", "pg_is_wal_replay_paused", "random", "pg_advisory_unlock_all"),
        *("pg_jit_available", "pg_partition_ancestors", "pg_partition_tree"),
    }
    with psycopg.connect(wire.cluster.dsn(wire.server.data_set, role="postgres")) as shadow:
        kinds: dict[str, bool] = dict(
            shadow.execute(
                "SELECT proname, bool_or(provolatile = 'v') FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace GROUP BY 1"
            ).fetchall()
        )
        # relation.f calls a function of one row: the grammar takes it for a column.
        by_attribute = shadow.execute(
            "SELECT proname FROM pg_proc WHERE pronargs >= 1 AND pronargs - pronargdefaults <= 1 AND proargtypes[0] IN"
            " ('record'::regtype, '\"any\"'::regtype, 'anyelement'::regtype, 'anynonarray'::regtype,"
            " 'anycompatible'::regtype, 'anycompatiblenonarray'::regtype)"
        ).fetchall()
        operators = shadow.execute(
            "SELECT oprname FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode WHERE provolatile = 'v'"
        ).fetchall()
    assert {name for name in FUNCTIONS if kinds.get(name)} <= volatile
    assert len([name for name in FUNCTIONS if name in kinds]) > 300
    shown = {"any_out", "anycompatible_out", "anycompatiblenonarray_out", "anyelement_out", "anynonarray_out", "record_out", "record_send"}
    assert {name for (name,) in by_attribute} - FUNCTIONS <= shown | {"hash_record", "pg_column_compression"}
    assert not FIELDS & kinds.keys()
    assert operators == []


COMMANDS_TEXT = r"""
\d \d+ \dt+ \dv \di+ \ds \dn+ \l \l+ \du+ \df+ \da \dT+ \do \dC \dc \dD \dx \dp \ddp \dy \dL \dF \dFd \dFp \dFt \dO \dP \dRp \des \dew \det
\dA \dAc \dAf \dAo \dAp \dX \dE \dconfig
"""
COMMANDS = [*COMMANDS_TEXT.split(), r"\d visits", r"\d+ visits", r"\d pg_class", r"\df lower", r"\dt *.*", r"\dT int*", r"\sf lower(text)"]


def test_what_psql_asks_is_answered_as_by_postgresql_itself(wire: WireUnderTest) -> None:
    """Every statement behind psql's commands, as psql prints them: the same columns and rows from our text as from its own."""
    asked = Counter[str]()
    dsn = wire.cluster.dsn(wire.server.data_set, role="postgres")
    script = "\n".join(COMMANDS)
    shown = subprocess.run(["psql", "-X", "-E", dsn], input=script, capture_output=True, text=True, timeout=120).stdout
    with _session(wire) as session:
        for statement in re.findall(r"\*+ QUERY \*+\n(.*?);?\n\*+\n", shown, re.DOTALL):
            ours = written(statement)
            assert foreign_words(ours.text) == []
            expected, given = session.execute(statement), session.execute(ours.text)
            assert [column.name for column in given.description or ()] == [column.name for column in expected.description or ()], statement
            rows, same = given.fetchall(), expected.fetchall()
            own = any(name in statement for name in (*FILTERS, *GUARDS))
            assert rows == same or (own and len(rows) <= len(same)), statement
            asked["filtered" if rows != same else "same"] += 1
    assert asked["same"] > 60
    assert asked["filtered"] < 8


def test_positions_point_into_the_clients_text() -> None:
    text = "SELECT   lower('a')  , /* here */ nowhere FROM pg_class"
    ours = written(text)
    assert text[ours.original(ours.text.index('"nowhere"')) :].startswith("nowhere")


def test_errors_of_the_shadow_point_into_the_clients_text(wire: WireUnderTest) -> None:
    text = "SELECT   /* here */  lower('a'), nowhere FROM pg_database d"
    with wire.connect() as connection, pytest.raises(psycopg.errors.UndefinedColumn) as refused:
        connection.execute(text)
    assert text[int(refused.value.diag.statement_position or 0) - 1 :].startswith("nowhere")


def test_one_person_has_half_of_the_connections_at_most(wire: WireUnderTest) -> None:
    """Statements that take long wait for one another, and others do not wait for them."""
    slow = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(wire.connect("olga"))
        for _ in range(6):
            client = stack.enter_context(RawClient(wire.port, "ada", wire.server.keys["ada"], wire.server.data_set))
            client.send(message(b"Q", zero_ended(slow)))
        time.sleep(1.0)
        began = time.monotonic()
        assert other.execute("SELECT relname FROM pg_class LIMIT 1").fetchall() != []
        assert time.monotonic() - began < 3.0


def test_a_series_stops_where_it_is_long(wire: WireUnderTest) -> None:
    with wire.connect() as connection:
        assert connection.execute("SELECT count(*) FROM generate_series(1, 1000000000)").fetchall() == [(100_000,)]
        assert connection.execute("SELECT g FROM generate_series(2, 3) g").fetchall() == [(2,), (3,)]
        assert connection.execute("SELECT x.n FROM generate_series(2, 3) AS x(n)").fetchall() == [(2,), (3,)]


def test_long_and_deep_statements_are_refused_at_once() -> None:
    for text in (
        "SELECT " + "1," * WORDS_MAX + "1",
        "SELECT " + "(" * 500 + "1" + ")" * 500,
        "SELECT " + "(SELECT " * 200 + "1" + ")" * 200,
    ):
        with pytest.raises(LapwingError):
            written(f"SELECT {text}")
    assert written("SELECT " + "- " * 1_000 + "1").text.endswith("- 1")


def test_texts_and_names_are_written_so_that_they_cannot_end_early(wire: WireUnderTest) -> None:
    hostile = ["'", "''", "\\", "\\'", "'||pg_sleep(1)||'", "$$", "--", "/*", '"', "\u00e9\U0001f600", "\n", "E'", "a\\'; SELECT 1; --"]
    with _session(wire) as session:
        for conforming in ("on", "off"):
            session.execute(f"SET standard_conforming_strings = {conforming}")
            for text in hostile:
                as_text, as_name = text.replace("'", "''"), text.replace('"', '""')
                ours = written(f"SELECT '{as_text}' AS \"{as_name}\"")
                given = session.execute(ours.text)
                assert given.fetchall() == [(text,)]
                assert [column.name for column in given.description or ()] == [text]


def test_random_statements_reach_the_shadow_in_our_words_or_not_at_all(wire: WireUnderTest, others: psycopg.Connection) -> None:
    """Whatever is written passes a second reader that shares nothing with the grammar; some of it is run, and finds and changes nothing."""
    chance = random.Random(31)
    seen: Counter[str] = Counter()
    with _session(wire) as session, _session(wire) as other:
        session.execute("SET statement_timeout = 500")
        before = _state(others, other)
        for number in range(size("random statements about the catalogue")):
            text = random_statement(chance)
            try:
                parts = [written_query(text, words) for words in statements_of(words_of(text))]
            except LapwingError as error:
                seen[error.code] += 1
                continue
            for ours in parts:
                seen["written"] += 1
                assert foreign_words(ours.text) == [], (text, ours.text)
                if number % 5 == 0:
                    seen["run" if _ran(session, ours.text) else "refused by PostgreSQL"] += 1
        assert _state(others, other) == before
    assert seen["written"] > 0.2 * number
    assert seen["wire-function"] > 0.05 * number
    assert seen["run"] > 0.002 * number


def _ran(session: psycopg.Connection, text: str) -> bool:
    """Run it; whatever comes of it shows nothing of others."""
    numbers = re.findall(r"\$([0-9]+)", re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", "", text))
    given = session.pgconn.exec_params(text.encode(), [b"1"] * max(map(int, numbers), default=0))
    cells = [given.get_value(row, column) for row in range(min(given.ntuples, 200)) for column in range(given.nfields)]
    assert SENTINEL.encode() not in given.error_message + b" ".join(cell or b"" for cell in cells)
    assert b"denied for function" not in given.error_message, text  # else a function that is revoked here was reached
    return given.status == psycopg.pq.ExecStatus.TUPLES_OK


def _state(owner: psycopg.Connection, other: psycopg.Connection) -> list[object]:
    """What a statement might have changed: another session's settings, locks, large objects, databases, roles."""
    return [
        other.execute("SELECT name, setting FROM pg_settings ORDER BY 1").fetchall(),
        owner.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchall(),
        owner.execute("SELECT count(*) FROM pg_largeobject_metadata").fetchall(),
        owner.execute("SELECT datname FROM pg_database ORDER BY 1").fetchall(),
        owner.execute("SELECT rolname, rolconfig FROM pg_roles ORDER BY 1").fetchall(),
    ]
