"""``lapwing ledger admit``, ``propose`` and the other commands of owners and analysts on a ledger with analysts.

Omitted options change nothing: admitting an analyst again never drops a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli.exits import reported, usage_error
from lapwing.interfaces.cli.ledger.amounts import FORMS, delta_limit, epsilon_of, loss_amount, loss_limit
from lapwing.interfaces.cli.place import catalogue_path, curator_of, shell_quoted
from lapwing.interfaces.cli.views import ReportFormat

if TYPE_CHECKING:
    from lapwing.owner.policies import Policies

By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does this. Default: your user name.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the ledger.")]
Analyst = Annotated[str, typer.Argument(metavar="ANALYST", help="The name of the analyst.")]
Number = Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="The number of the proposal, as `lapwing ledger status` shows it.")]


class Proposed(StrEnum):
    """What takes two people to change."""

    BUDGET = "budget"
    CEILING = "ceiling"
    CAP = "cap"


def add_policies(app: typer.Typer) -> None:
    """Add the commands to ``lapwing ledger``."""
    app.command("status", short_help="Show who may ask, on what terms, and what is proposed.")(status)
    app.command("admit", short_help="Admit an analyst, or change the terms.")(admit)
    app.command("suspend", short_help="Stop an analyst from asking.")(suspend)
    app.command("group", short_help="Make or change a group with its own budget.")(group)
    app.command("limit", short_help="Set limits for a statement and a day.")(limit)
    app.command("propose", short_help="Propose a higher budget, ceiling or cap.")(propose)
    app.command("request", short_help="Ask the owner for a larger share.")(request)
    app.command("approve", short_help="Approve and carry out somebody else's proposal.")(approve)
    app.command("deny", short_help="Reject a proposal.")(deny)


def status(
    context: typer.Context, form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE
) -> None:
    """Show the ledger of the data set (-C): where it is, what is spent, who may ask and how much, and what waits for a second person."""
    from lapwing.interfaces.cli.ledger.status import write_standing

    with reported(form=form), curator_of(context) as curator:
        write_standing(curator, form)


def admit(
    context: typer.Context,
    analyst: Analyst,
    group: Annotated[str | None, typer.Option(metavar="NAME", help="The group the analyst belongs to; 'none' for none.")] = None,
    budget: Annotated[str | None, typer.Option(metavar="AMOUNT", help=f"What the analyst may spend in total: {FORMS}, or 'none'.")] = None,
    per_day: Annotated[str | None, typer.Option(metavar="AMOUNT", help="What the analyst may spend in a day.")] = None,
    delta: Annotated[str | None, typer.Option(metavar="NUMBER", help="The delta that may be spent on showing undeclared groups.")] = None,
    by: By = None,
    reason: Reason = "",
) -> None:
    """Admit an analyst, or change the analyst's terms. The data set's budget applies whatever these limits are.

    \b
    Example:
        lapwing -C clinic ledger admit ana
        lapwing -C clinic ledger admit bo --budget 0.5 --per-day 0.1 --group students
    """
    with _policies(context) as admin:
        budget_in_force = admin.budget
        admin.admit(
            analyst,
            group=None if group == "none" else group,
            leave_group=group == "none",
            loss=lambda known: loss_limit(budget, budget_in_force, option="--budget", otherwise=known),
            delta=lambda known: delta_limit(delta, otherwise=known),
            day_loss=lambda known: loss_limit(per_day, budget_in_force, option="--per-day", otherwise=known),
            by=_who(by),
            reason=reason,
        )
        typer.echo(f"{analyst} may ask.")


def suspend(context: typer.Context, analyst: Analyst, by: By = None, reason: Reason = "") -> None:
    """Stop an analyst from asking and from seeing stored answers. `lapwing ledger admit` reverses this, on the same terms.

    \b
    Example:
        lapwing -C clinic ledger suspend bo --reason "left the project"
    """
    with _policies(context) as admin:
        admin.suspend(analyst, by=_who(by), reason=reason)
        typer.echo(f"{analyst} may not ask any more.")


def group(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="GROUP", help="The name of the group.")],
    budget: Annotated[str | None, typer.Option(metavar="AMOUNT", help=f"What its analysts may spend together: {FORMS}, or 'none'.")] = None,
    delta: Annotated[str | None, typer.Option(metavar="NUMBER", help="The delta that may be spent on showing undeclared groups.")] = None,
    by: By = None,
    reason: Reason = "",
) -> None:
    """Make a group of analysts with its own budget, or change that budget; never below what the group has spent.

    \b
    Example:
        lapwing -C clinic ledger group students --budget 1
        lapwing -C clinic ledger admit cy --group students
    """
    with _policies(context) as admin:
        if name == "none":
            raise usage_error("a group cannot be called none")
        known = admin.set_group(
            name,
            loss=lambda old: loss_limit(budget, admin.budget, option="--budget", otherwise=old),
            delta=lambda old: delta_limit(delta, otherwise=old),
            by=_who(by),
            reason=reason,
        )
        typer.echo(f"The group {name} is {'changed' if known else 'made'}.")


def limit(
    context: typer.Context,
    per_statement: Annotated[str | None, typer.Option(metavar="AMOUNT", help=f"What one statement may cost: {FORMS}, or 'none'.")] = None,
    per_day: Annotated[str | None, typer.Option(metavar="AMOUNT", help="What all analysts may spend together in a day.")] = None,
    shared: Annotated[
        bool | None, typer.Option("--shared/--not-shared", help="Whether analysts see what others paid for. Sharing costs nothing.")
    ] = None,
    lost_workers: Annotated[int | None, typer.Option(min=1, help="How many workers may be lost before the data set closes.")] = None,
    lost_seconds: Annotated[int | None, typer.Option(min=1, help="The seconds within which lost workers are counted.")] = None,
    by: By = None,
    reason: Reason = "",
) -> None:
    """Set limits of the data set. They slow analysts down; the promise rests on the budget alone.

    \b
    Example:
        lapwing -C clinic ledger limit --per-statement 0.5 --per-day 1
        lapwing -C clinic ledger limit --per-day none --not-shared
    """
    with _policies(context) as admin:
        budget = admin.budget
        changed = admin.set_limits(
            statement_loss=lambda old: loss_limit(per_statement, budget, option="--per-statement", otherwise=old),
            day_loss=lambda old: loss_limit(per_day, budget, option="--per-day", otherwise=old),
            shared=shared,
            lost_workers=lost_workers,
            lost_seconds=lost_seconds,
            by=_who(by),
            reason=reason,
        )
        typer.echo("The limits are set." if changed else "Nothing was changed.")


def propose(
    context: typer.Context,
    what: Annotated[
        Proposed, typer.Argument(help="The budget in force, the ceiling that the promise is made for, or the cap of one person.")
    ],
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="The new epsilon; of a cap also `none`. Default: the catalogue's.")
    ] = None,
    by: By = None,
    reason: Reason = "",
) -> None:
    """Propose another budget within the ceiling, a higher ceiling, or another cap. Somebody else has to approve it.

    \b
    Example:
        lapwing -C clinic ledger propose budget --epsilon 4 --reason "the second study"
    """
    with _policies(context) as admin:
        if what is Proposed.CAP:
            blocks = admin.curator.declaration.blocks
            cap = None if blocks is None else blocks.person_cap
            if epsilon is not None:
                cap = None if epsilon == "none" else epsilon_of(epsilon, option="--epsilon")
            number = admin.propose_cap(cap, by=_who(by), reason=reason)
            to = "no cap" if cap is None else f"a cap of epsilon {float(cap):g}"
            typer.echo(f"Proposal {number}: {to}. Another owner must now run:")
            typer.echo(f"  lapwing -C {_shown(context)} ledger approve {number}")
            return
        declared = admin.curator.declaration.declared_budget
        named = declared.epsilon if what is Proposed.BUDGET else declared.ceiling_epsilon
        proposed = named if epsilon is None else epsilon_of(epsilon, option="--epsilon")
        act = admin.propose_budget if what is Proposed.BUDGET else admin.propose_ceiling
        number = act(proposed, by=_who(by), reason=reason)
        typer.echo(f"Proposal {number}: a {what.value} of epsilon {float(proposed):g}. Another owner must now run:")
        typer.echo(f"  lapwing -C {_shown(context)} ledger approve {number}")


def request(
    context: typer.Context,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help=f"The requested total: {FORMS}.")],
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="Who asks. Default: your user name.")] = None,
    reason: Reason = "",
) -> None:
    """Ask the owner for this total share, including what is already spent of it.

    \b
    Example:
        lapwing -C clinic ledger request 0.8 --reason "two tables are left"
    """
    with _policies(context) as admin:
        number = admin.request(_who(analyst), loss_amount(amount, admin.budget, option="AMOUNT"), reason=reason)
        typer.echo(f"Proposal {number}. The owner can now run `lapwing ledger approve {number}` or `lapwing ledger deny {number}`.")


def approve(context: typer.Context, number: Number, by: By = None, reason: Reason = "") -> None:
    """Approve a proposal and carry it out. Its proposer may not do this.

    \b
    Example:
        lapwing -C clinic ledger approve 2
    """
    with _policies(context) as admin:
        admin.approve(number, by=_who(by), reason=reason)
        typer.echo(f"Proposal {number} is carried out.")
        budget, declared = admin.budget, admin.curator.declaration.declared_budget
        if budget.epsilon != declared.epsilon:
            typer.echo(f"The budget is epsilon {float(budget.epsilon):g}; the catalogue says {float(declared.epsilon):g}.")
            typer.echo("Write the budget in force under [budget] there: the next `lapwing prepare` follows the catalogue.")


def deny(context: typer.Context, number: Number, by: By = None, reason: Reason = "") -> None:
    """Reject a proposal. Its proposer may not do this.

    \b
    Example:
        lapwing -C clinic ledger deny 2 --reason "ask again next year"
    """
    with _policies(context) as admin:
        admin.deny(number, by=_who(by), reason=reason)
        typer.echo(f"Proposal {number} is denied.")


@contextmanager
def _policies(context: typer.Context) -> Iterator[Policies]:
    from lapwing.owner.policies import policies

    with reported(), curator_of(context) as curator, policies(curator) as admin:
        yield admin


def _who(named: str | None) -> str:
    from lapwing.curator.curator import system_user

    return system_user() if named is None else named


def _shown(context: typer.Context) -> str:
    return shell_quoted(catalogue_path(context))
