"""DuckDB: the only package that imports it for protected data.

A version is one DuckDB file. It is written by ``prepare_snapshot`` (owner's act, may read source files) and read by ``DuckDBSnapshot``:
read-only, no file or network access, no extensions, no Python objects, configuration locked, one statement at a time.
"""

from lapwing.engines.duckdb.engine import DuckDBEngine
from lapwing.engines.duckdb.prepare import prepare_snapshot
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot, stored_text

__all__ = ["DuckDBEngine", "DuckDBSnapshot", "prepare_snapshot", "stored_text"]
