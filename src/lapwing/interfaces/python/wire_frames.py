"""Answers of the PostgreSQL wire as pandas data frames with error bars. Any driver of Python's database interface (DB-API) works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from lapwing.answers.display.frames import frame_attributes

if TYPE_CHECKING:
    import pandas as pd

_BESIDE = ("lapwing.intervals", "lapwing.marks")


def read_sql(statement: str, connection: Any, params: Any = None) -> pd.DataFrame:
    """The answer to a statement on the wire, as :meth:`lapwing.answers.answer.Answer.to_pandas` returns it (needs pandas).

    ``connection`` is a psycopg connection, or an SQLAlchemy engine or connection. Its settings are restored afterwards. With drivers other
    than psycopg 3, the frame has the same columns, but its attributes lack the price and the notes.
    """
    import pandas

    if not hasattr(connection, "cursor") and not hasattr(connection, "connection"):  # an SQLAlchemy engine
        with connection.connect() as opened:
            return read_sql(statement, opened, params)
    driver = connection if hasattr(connection, "cursor") else connection.connection.driver_connection
    cursor = driver.cursor()
    with _with_columns_beside(cursor), _notices(driver) as words:
        cursor.execute(statement, *([] if params is None else [params]))
        names = [column[0] for column in cursor.description]
        frame = pandas.DataFrame.from_records(cursor.fetchall(), columns=names, coerce_float=True)
    frame.attrs.update(frame_attributes(names, words))
    return frame


@contextmanager
def _with_columns_beside(cursor: Any) -> Iterator[None]:
    before = []
    for name in _BESIDE:
        cursor.execute(f"SHOW {name}")
        before.append((name, cursor.fetchone()[0]))
        cursor.execute(f"SET {name} = on")
    try:
        yield
    finally:
        with suppress(Exception):  # a failed transaction reverts its settings itself
            for name, value in before:
                cursor.execute(f"SET {name} = {value}")


@contextmanager
def _notices(driver: Any) -> Iterator[list[str]]:
    """Collects the driver's notices, one per line."""
    words: list[str] = []

    def note(notice: Any) -> None:
        words[:] = [notice.message_primary, *(notice.message_detail or "").splitlines()]

    if not hasattr(driver, "add_notice_handler"):
        yield words
        return
    driver.add_notice_handler(note)
    try:
        yield words
    finally:
        driver.remove_notice_handler(note)
