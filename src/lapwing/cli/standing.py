"""``lapwing ledger status``: where a ledger is, what is spent, who may ask and on what terms, and what waits for a second person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapwing.cli import terminal
from lapwing.cli.views import Report, as_json, write_pairs, write_table

if TYPE_CHECKING:
    from lapwing.answers.budget import BudgetView
    from lapwing.curator.life import Curator
    from lapwing.kernel.accounting import Budget
    from lapwing.ledger.postgres.ledger import PostgresLedger
    from lapwing.ledger.postgres.policy import Proposal, Share
    from lapwing.ledger.protocol import Balance, Ledger


def write_standing(curator: Curator, ledger: Ledger, form: Report) -> None:
    """Print it. Amounts are exact decimals in JSON."""
    from lapwing.answers.budget import budget_view
    from lapwing.ledger.postgres.ledger import PostgresLedger

    balance = ledger.balance()
    found = _common(curator, balance)
    if isinstance(ledger, PostgresLedger):
        found |= _terms(ledger, balance.budget)
    if form is Report.JSON:
        terminal.write(as_json(found))
        return
    write_pairs(_pairs(found, budget_view(balance, unit=curator.declaration.dataset.unit)))
    unit = found["budget"]["loss_unit"]
    if found.get("analysts"):
        rows = [[one["analyst"], one["group"] or "-", "no" if one["suspended"] else "yes", *_figures(one)] for one in found["analysts"]]
        _titled(f"Analysts ({unit})", ("analyst", "group", "may ask", "spent", "of", "per day"), rows)
    if found.get("groups"):
        _titled(f"Groups ({unit})", ("group", "spent", "of"), [[one["group"], *_figures(one)[:2]] for one in found["groups"]])
    waiting = [one for one in found.get("proposals", ()) if one["state"] == "open"]
    if waiting:
        rows = [[str(one["number"]), one["what"], one["to"], one["by"], one["reason"]] for one in waiting]
        _titled("Waiting for somebody else to approve or deny", ("#", "what", "to", "proposed by", "reason"), rows)


def _figures(one: dict[str, Any]) -> list[str]:
    return ["-" if one.get(key) is None else f"{float(one[key]):.4g}" for key in ("spent", "total", "per_day")]


def _titled(title: str, headers: tuple[str, ...], rows: list[list[str]]) -> None:
    terminal.write(f"\n{title}")
    write_table(headers, rows, right=tuple(header in {"spent", "of", "per day", "#"} for header in headers))


def _common(curator: Curator, balance: Balance) -> dict[str, Any]:
    from lapwing.answers.budget import budget_view

    place, dataset = curator.place, curator.declaration.dataset
    return {
        "dataset": dataset.id,
        "database": None if place.server is None else _shown_database(place.server.database),
        "closed": balance.closed,
        "receipts": place.keys is not None,
        "budget": budget_view(balance, unit=dataset.unit).to_dict(),
        "ceiling": float(balance.ceiling.epsilon),
    }


def _shown_database(dsn: str) -> str:
    from lapwing.ledger.postgres.connection import without_password

    return without_password(dsn)


def _terms(ledger: PostgresLedger, budget: Budget) -> dict[str, Any]:
    from lapwing.ledger.postgres import overview, policy
    from lapwing.ledger.postgres.anchoring import anchor_names

    state, limits = ledger.state(), overview.limits_in_force(ledger)
    return {
        "entries": state.entries,
        "head": state.head,
        "anchors": list(anchor_names(ledger.connection, state.source_id)),
        "limits": {
            "per_statement": _loss(limits.statement_loss_max),
            "per_day": _loss(limits.day_loss_max),
            "answers_shared": limits.answers_shared,
            "lost_workers_max": limits.lost_workers_max,
            "lost_workers_seconds": limits.lost_workers_seconds,
        },
        "analysts": [
            {
                "analyst": one.analyst,
                "group": one.group,
                "suspended": one.suspended,
                **_share(one.share),
                "per_day": _loss(one.day_loss_max),
            }
            for one in overview.analysts(ledger)
        ],
        "groups": [{"group": one.group, **_share(one.share)} for one in overview.groups(ledger)],
        "proposals": [
            {
                "number": one.proposal_id,
                "what": f"share of {one.target}" if one.kind == "analyst" else f"{one.kind} {one.target}".strip(),
                "to": _proposed(one, budget),
                "by": one.by,
                "reason": one.reason,
                "state": one.state,
            }
            for one in policy.proposals(ledger)
        ],
    }


def _proposed(proposal: Proposal, budget: Budget) -> str:
    from lapwing.answers.budget import epsilon_of_loss

    if proposal.kind == "anchor":
        return "lost"
    if proposal.budget is not None:
        return f"epsilon {float(proposal.budget.epsilon):g}"
    return f"epsilon {epsilon_of_loss(budget, proposal.cost.loss):.4g}"


def _share(share: Share) -> dict[str, Any]:
    return {"total": _loss(share.loss_total), "spent": _loss(share.spent.loss)}


def _loss(units: int | None) -> str | None:
    from lapwing.answers.budget import decimal_text
    from lapwing.kernel.accounting import LOSS_UNITS

    return None if units is None else decimal_text(units, LOSS_UNITS)


def _pairs(found: dict[str, Any], view: BudgetView) -> list[tuple[str, str]]:
    where = "local" if found["database"] is None else f"PostgreSQL, {found['database']}; {found['entries']:,} entries"
    pairs = [
        ("data set", found["dataset"]),
        ("ledger", where),
        ("open", "no: the owner re-opens it with `lapwing reopen REASON`" if found["closed"] else "yes"),
        ("budget", str(view)),
        ("ceiling", f"epsilon {found['ceiling']:g}"),
        ("receipts", "signed" if found["receipts"] else "none: no signing key is declared"),
    ]
    if "limits" in found:
        limits, unit = found["limits"], found["budget"]["loss_unit"]
        said = [
            f"{words} {unit} {float(limits[key]):.4g}"
            for key, words in (("per_statement", "a statement"), ("per_day", "a day"))
            if limits[key]
        ]
        pairs.append(("limits", "; ".join(said) or "none"))
        pairs.append(("answers", "all admitted analysts see them" if limits["answers_shared"] else "only whoever paid sees them"))
    return pairs
