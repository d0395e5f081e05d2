"""``lapwing ledger status``: where a ledger is, what is spent, who may ask and on what terms, and what waits for a second person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapwing.cli import terminal
from lapwing.cli.views import ReportFormat, as_json, write_pairs, write_table

if TYPE_CHECKING:
    from lapwing.answers.budget import BudgetView
    from lapwing.curator.life import Curator


def write_standing(curator: Curator, form: ReportFormat) -> None:
    """Print it. Amounts are exact decimals in JSON."""
    from lapwing.curator.policies import standing

    found, balance = standing(curator)
    if form is ReportFormat.JSON:
        terminal.write(as_json(found))
        return
    write_pairs(_pairs(found, curator.view_of(balance)))
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
