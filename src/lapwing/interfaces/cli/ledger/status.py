"""``lapwing ledger status``: where a ledger is, what is spent, who may ask and on what terms, and what waits for a second person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.views import ReportFormat, as_json, write_pairs, write_table

if TYPE_CHECKING:
    from lapwing.answers.display.budget import BudgetView
    from lapwing.curator.curator import Curator


def write_standing(curator: Curator, form: ReportFormat) -> None:
    """Print the status of a ledger. Amounts are exact decimals in JSON."""
    from lapwing.owner.policies import standing

    values, balance = standing(curator)
    if form is ReportFormat.JSON:
        terminal.write(as_json(values))
        return
    write_pairs(_pairs(values, curator.view_of(balance)))
    unit = values["budget"]["loss_unit"]
    if values.get("analysts"):
        rows = [[one["analyst"], one["group"] or "-", "no" if one["suspended"] else "yes", *_figures(one)] for one in values["analysts"]]
        _titled(f"Analysts ({unit})", ("analyst", "group", "may ask", "spent", "of", "per day"), rows)
    if values.get("groups"):
        _titled(f"Groups ({unit})", ("group", "spent", "of"), [[one["group"], *_figures(one)[:2]] for one in values["groups"]])
    waiting = [one for one in values.get("proposals", ()) if one["state"] == "open"]
    if waiting:
        rows = [[str(one["number"]), one["what"], one["to"], one["by"], one["reason"]] for one in waiting]
        _titled("Waiting for somebody else to approve or deny", ("#", "what", "to", "proposed by", "reason"), rows)


def _figures(one: dict[str, Any]) -> list[str]:
    return [_sides(one, key) or "-" for key in ("spent", "total", "per_day")]


def _sides(one: dict[str, Any], key: str) -> str:
    """An amount, with the pure epsilon beside it if there is one."""
    return " or pure ".join(f"{float(one[side]):.4g}" for side in (key, f"pure_{key}") if one.get(side) is not None)


def _titled(title: str, headers: tuple[str, ...], rows: list[list[str]]) -> None:
    terminal.write(f"\n{title}")
    write_table(headers, rows, right=tuple(header in {"spent", "of", "per day", "#"} for header in headers))


def _pairs(values: dict[str, Any], view: BudgetView) -> list[tuple[str, str]]:
    where = "local" if values["database"] is None else f"PostgreSQL, {values['database']}; {values['entries']:,} entries"
    pairs = [
        ("data set", values["dataset"]),
        ("ledger", where),
        ("open", "no: the owner re-opens it with `lapwing reopen REASON`" if values["closed"] else "yes"),
        ("budget", str(view)),
        ("ceiling", f"epsilon {values['ceiling']:g}"),
        ("receipts", "signed" if values["receipts"] else "none: no signing key is declared"),
    ]
    if "limits" in values:
        limits, unit = values["limits"], values["budget"]["loss_unit"]
        limits_in_words = [
            f"{words} {unit} {_sides(limits, key)}"
            for key, words in (("per_statement", "a statement"), ("per_day", "a day"))
            if limits[key]
        ]
        pairs.append(("limits", "; ".join(limits_in_words) or "none"))
        pairs.append(("answers", "all admitted analysts see them" if limits["answers_shared"] else "only the analyst who paid sees them"))
    return pairs
