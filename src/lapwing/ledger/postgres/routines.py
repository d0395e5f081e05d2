"""The functions and procedures in the database: their names, rights, search paths and callers.

Every version of the schema recreates them from the files in ``sql``; migrations change only tables.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

SEARCH_PATH = "pg_catalog, pg_temp"
"""Where unqualified names are looked up: nowhere that others can create objects. Temporary tables and types come last, where they hide
nothing."""

_FILES = ("protocol", "blocks", "batch", "policy", "reading")
ASKING = (
    *(
        "register_worker",
        "renew_worker",
        "disconnect_worker",
        "reserve",
        "reserve_many",
        "reserve_across",
        "would_reserve",
        "commit",
        "commit_many",
        "commit_across",
        "forfeit",
        "find_answer",
        "request_share",
    ),
    *("find_ledger", "current_state", "has_entry", "live_workers", "newest_entries", "bought", "purchase_of", "committed", "share_of"),
    *("block_spending", "named"),
)
"""Routines for curators, who answer analysts."""
ACTING = (
    *("create_data_set", "set_closed", "record", "set_budget", "set_limits", "set_group", "set_analyst", "propose", "decide"),
    "accept_override",
    "declare_blocks",
)
"""Routines for owners, in addition."""
COMMITTING = (
    *("reserve_durably", "reserve_many_durably", "reserve_across_durably"),
    *("commit_durably", "commit_many_durably", "commit_across_durably"),
)
"""Procedures that commit. PostgreSQL allows them neither SECURITY DEFINER nor a search path: they only call the others."""
HELPING = ("wait_for_disk", "require_durable")
"""Routines that those procedures call, with the rights of the caller."""

_ROUTINES = (
    "SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text, p.proname, p.prosqlbody IS NOT NULL FROM pg_catalog.pg_proc p"
    " WHERE p.pronamespace = 'lapwing'::pg_catalog.regnamespace"
)
_NOT_OF_TRIGGERS = " AND p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype"


def replace_routines(connection: Connection) -> None:
    """Drop all routines except trigger functions, create those of this version, and pin the search path of each."""
    for signature, *_ in connection.exec_driver_sql(_ROUTINES + _NOT_OF_TRIGGERS).all():
        connection.exec_driver_sql(f"DROP ROUTINE {signature}")
    for name in _FILES:
        text = (files("lapwing.ledger.postgres") / "sql" / f"{name}.sql").read_text(encoding="utf-8")
        connection.exec_driver_sql(text.replace("%", "%%"))
    for signature, name, is_bound in connection.exec_driver_sql(_ROUTINES).all():
        connection.exec_driver_sql(f"REVOKE ALL ON ROUTINE {signature} FROM PUBLIC")
        if name not in COMMITTING and not is_bound:
            connection.exec_driver_sql(f"ALTER ROUTINE {signature} SET search_path = {SEARCH_PATH}")
        if name in ASKING or name in ACTING:
            connection.exec_driver_sql(f"ALTER ROUTINE {signature} SECURITY DEFINER SET lock_timeout = '30s'")


def grant_calls(connection: Connection, names: tuple[str, ...], role: str) -> None:
    """Let ``role`` (already quoted) call the routines of these names."""
    for signature, name, _ in connection.exec_driver_sql(_ROUTINES).all():
        if name in names:
            connection.exec_driver_sql(f"GRANT EXECUTE ON ROUTINE {signature} TO {role}".replace("%", "%%"))
