"""Who may ask of a ledger on PostgreSQL and on what terms, as it stands: only reading."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.kernel.accounting import Cost
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.outcomes import missing
from lapwing.ledger.postgres.policy import Limits, Share


@dataclass(frozen=True, slots=True)
class AnalystTerms:
    """An analyst who was admitted at some time."""

    analyst: str
    group: str | None
    suspended: bool
    share: Share
    day_loss_max: int | None
    """What this analyst may spend in one day, in ledger units."""


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """A group of analysts."""

    group: str
    share: Share


def analysts(ledger: PostgresLedger) -> tuple[AnalystTerms, ...]:
    """All of them, by name."""
    rows = ledger.connection.look(
        "SELECT analyst, group_name, suspended, day_loss_max::text, loss_total::text, delta_total::text,"
        " loss_spent::text, delta_spent::text FROM lapwing.analyst WHERE ledger_id = %s ORDER BY analyst",
        [ledger.ledger_id],
    )
    return tuple(
        AnalystTerms(analyst=analyst, group=group, suspended=suspended, share=_share(*amounts), day_loss_max=_amount(day))
        for analyst, group, suspended, day, *amounts in rows
    )


def groups(ledger: PostgresLedger) -> tuple[GroupTerms, ...]:
    """All of them, by name."""
    rows = ledger.connection.look(
        "SELECT group_name, loss_total::text, delta_total::text, loss_spent::text, delta_spent::text"
        " FROM lapwing.analyst_group WHERE ledger_id = %s ORDER BY group_name",
        [ledger.ledger_id],
    )
    return tuple(GroupTerms(group=group, share=_share(*amounts)) for group, *amounts in rows)


def limits_in_force(ledger: PostgresLedger) -> Limits:
    """The limits of the data set."""
    rows = ledger.connection.look(
        "SELECT statement_loss_max::text, day_loss_max::text, answers_shared, lost_workers_max, lost_workers_seconds"
        " FROM lapwing.data_set WHERE ledger_id = %s",
        [ledger.ledger_id],
    )
    if not rows:
        raise missing()
    statement, day, shared, lost, seconds = rows[0]
    return Limits(
        statement_loss_max=_amount(statement),
        day_loss_max=_amount(day),
        answers_shared=shared,
        lost_workers_max=lost,
        lost_workers_seconds=seconds,
    )


def _share(loss_total: str | None, delta_total: str | None, loss_spent: str, delta_spent: str) -> Share:
    spent = Cost(loss=int(loss_spent), delta=int(delta_spent))
    return Share(loss_total=_amount(loss_total), delta_total=_amount(delta_total), spent=spent)


def _amount(text: str | None) -> int | None:
    return None if text is None else int(text)
