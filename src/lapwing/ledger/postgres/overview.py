"""The analysts of a ledger on PostgreSQL with their terms, and its owners. Read-only."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.connection import Connection, require_extra
from lapwing.ledger.postgres.install import SCHEMA_VERSION, Roles
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.outcomes import missing
from lapwing.ledger.postgres.policy import Limits, Share
from lapwing.ledger.postgres.routines import ACTING

_DECIDING = (
    "SELECT bool_and(has_function_privilege(p.oid, 'EXECUTE')),"
    " (SELECT string_agg(DISTINCT pg_get_userbyid(given.grantee)::text, ', ') FROM pg_proc r, aclexplode(r.proacl) given"
    " WHERE r.pronamespace = 'lapwing'::regnamespace AND r.proname = 'record' AND given.grantee NOT IN (0, r.proowner))"
    " FROM pg_proc p WHERE p.pronamespace = 'lapwing'::regnamespace AND p.proname = ANY(%s)"
)
"""Whether the role of the connection may call all functions of owners, and the role that has this right."""


@dataclass(frozen=True, slots=True)
class AnalystTerms:
    """An analyst who was admitted at some time."""

    analyst: str
    group: str | None
    suspended: bool
    share: Share
    day_loss_max: int | None
    """The most that this analyst may spend in one day, in ledger units."""
    day_pure_max: int | None


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """A group of analysts."""

    group: str
    share: Share


def analysts(ledger: PostgresLedger) -> tuple[AnalystTerms, ...]:
    """All analysts, by name."""
    rows = ledger.connection.look(
        f"SELECT analyst, group_name, suspended, day_loss_max::text, day_pure_max::text, {policy.SHARE}"
        " FROM lapwing.analyst WHERE ledger_id = %s ORDER BY analyst",
        [ledger.ledger_id],
    )
    return tuple(
        AnalystTerms(
            analyst=analyst,
            group=group,
            suspended=suspended,
            share=policy.share_of(amounts),
            day_loss_max=policy.amount_of(loss),
            day_pure_max=policy.amount_of(pure),
        )
        for analyst, group, suspended, loss, pure, *amounts in rows
    )


def groups(ledger: PostgresLedger) -> tuple[GroupTerms, ...]:
    """All groups, by name."""
    rows = ledger.connection.look(
        f"SELECT group_name, {policy.SHARE} FROM lapwing.analyst_group WHERE ledger_id = %s ORDER BY group_name",
        [ledger.ledger_id],
    )
    return tuple(GroupTerms(group=group, share=policy.share_of(amounts)) for group, *amounts in rows)


def limits_in_force(ledger: PostgresLedger) -> Limits:
    """The limits of the data set."""
    rows = ledger.connection.look(
        "SELECT statement_loss_max::text, day_loss_max::text, answers_shared, lost_workers_max, lost_workers_seconds,"
        " statement_pure_max::text, day_pure_max::text"
        " FROM lapwing.data_set WHERE ledger_id = %s",
        [ledger.ledger_id],
    )
    if not rows:
        raise missing()
    statement, day, shared, lost, seconds, statement_pure, day_pure = rows[0]
    return Limits(
        statement_loss_max=policy.amount_of(statement),
        day_loss_max=policy.amount_of(day),
        statement_pure_max=policy.amount_of(statement_pure),
        day_pure_max=policy.amount_of(day_pure),
        answers_shared=shared,
        lost_workers_max=lost,
        lost_workers_seconds=seconds,
    )


def role_to_decide(dsn: str) -> str | None:
    """The role of owners, if the role of this connection is not a member of it; None if it is."""
    require_extra()
    connection = Connection(dsn, schema_version=SCHEMA_VERSION)
    try:
        [(may_decide, role)] = connection.look(_DECIDING, [list(ACTING)])
    finally:
        connection.close()
    return None if may_decide else str(role or Roles().owners)
