"""The charts' numbers beside the truth: the same statements, asked of a PostgreSQL database that holds the demonstration's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import psycopg
from services import Served

TABLES = ("patients", "visits", "diagnoses", "prescriptions", "clinics")
_TYPES = {"VARCHAR": "text", "DOUBLE": "double precision", "UTINYINT": "smallint", "USMALLINT": "integer", "UINTEGER": "bigint"}


def spent_share(server: Served) -> float:
    """The share of the budget that is spent."""
    with psycopg.connect(server.address(), autocommit=True) as connection:
        rows = connection.execute("SHOW PRIVACY BUDGET").fetchall()
    return next(float(row[2]) for row in rows if str(row[0]).startswith("share"))


class Truth:
    """The rows, in a database of their own."""

    def __init__(self, socket_directory: str, server: Served) -> None:
        self.server = server
        self.address = f"host={socket_directory} user=postgres dbname=truth"
        with psycopg.connect(f"host={socket_directory} user=postgres dbname=postgres", autocommit=True) as connection:
            connection.execute("CREATE DATABASE truth")
        with psycopg.connect(self.address) as connection, duckdb.connect() as files:
            for table in TABLES:
                rows = f"FROM '{server.directory / 'clinic' / table}.parquet'"
                columns = [(one[0], str(one[1])) for one in files.execute(f"DESCRIBE {rows}").fetchall()]
                listed = ", ".join(f'"{name}" {_TYPES.get(of, of)}' for name, of in columns)
                connection.execute(f"CREATE TABLE {table} ({listed})".encode())
                written = server.directory / f"{table}.csv"
                files.execute(f"COPY ({rows}) TO '{written}' (HEADER false)")
                with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)".encode()) as copy:
                    copy.write(written.read_bytes())

    def compare(self, queries: list[dict[str, Any]]) -> None:
        """Say how many numbers lie in their error bars."""
        inside = {"0.95": 0, "0.9999": 0}
        numbers = 0
        for sql in dict.fromkeys(str(query["query"]).rstrip("; \n") for query in queries if query.get("query")):
            exact = self._exact(sql)
            for confidence in inside:
                checked, good = self._checked(sql, confidence, exact)
                inside[confidence] += good
            numbers += checked
        for confidence, good in inside.items():
            print(f"numbers in their {100 * float(confidence):g} % error bars: {good} of {numbers}")

    def _exact(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """All groups: which ones come first is another matter by noisy counts."""
        whole = re.sub(r"\s+LIMIT\s+\d+$", "", sql, flags=re.IGNORECASE)
        with psycopg.connect(self.address, autocommit=True) as connection:
            found = connection.execute(whole.encode())
            return [column.name for column in found.description or ()], found.fetchall()

    def _checked(self, sql: str, confidence: str, exact: tuple[list[str], list[tuple[Any, ...]]]) -> tuple[int, int]:
        with psycopg.connect(self.server.address(), autocommit=True) as connection:
            connection.execute("SET lapwing.intervals = on")
            connection.execute(f"SET lapwing.confidence = {confidence}".encode())
            found = connection.execute(sql.encode())
            names = [column.name for column in found.description or ()]
            rows = found.fetchall()
        measured = [name for name in names if f"{name}_lo" in names]
        keys = [name for name in exact[0] if name not in measured]
        true = {_key(row[exact[0].index(key)] for key in keys): row for row in exact[1]}
        checked = good = 0
        for row in rows:
            own = dict(zip(names, row, strict=True))
            real = true.get(_key(own[key] for key in keys))
            for name in measured:
                if own[name] is None or own[f"{name}_lo"] is None:
                    continue
                value = 0 if real is None else real[exact[0].index(name)]
                if value is None:
                    continue
                checked += 1
                inside = float(own[f"{name}_lo"]) <= float(value) <= float(own[f"{name}_hi"])
                good += inside
                if not inside and confidence == "0.9999":
                    print(f"outside: {name} {own}, truth {value}: {' '.join(sql.split())}")
        return checked, good


def _key(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values of groups, alike where two servers have different types for them."""
    return tuple(_plain(value) for value in values)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return float(value)
    return value
