"""What every connection to DuckDB begins with, wherever Lapwing runs."""

from __future__ import annotations

import duckdb


def begin_session(connection: duckdb.DuckDBPyConnection) -> None:
    """Moments in UTC, and no progress bar.

    In a Jupyter kernel without ipywidgets DuckDB shows no bar and refuses every statement that names the setting, even one that switches it
    off: so it is read first.
    """
    connection.execute("SET TimeZone = 'UTC'")
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0]:
        connection.execute("SET enable_progress_bar = false")
