"""Converts outcomes of the database's functions into errors with Lapwing's codes."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.errors import BudgetRefused, CatalogueError, LapwingError, LedgerError, Refused
from lapwing.ledger.limits import NEXT_DAY
from lapwing.ledger.postgres.anchors import rolled_back

_ADMIT = "the data owner admits analysts with `lapwing ledger admit NAME`"


def second_person() -> CatalogueError:
    """The error for an act of one person that needs two."""
    hint = "propose it with `lapwing ledger propose`, then let another owner run `lapwing ledger approve NUMBER`"
    return CatalogueError("second-person", "this needs the approval of a second person", hint=hint)


def missing() -> LedgerError:
    """The error for a source without a ledger."""
    hint = "the owner creates it with `lapwing prepare`, or moves a local ledger there with `lapwing ledger move`"
    return LedgerError("ledger-missing", "this source has no ledger in the database", hint=hint)


def registered(known: Sequence[str]) -> CatalogueError:
    """The error for a source that already has a ledger, under these ids."""
    hint = "open that ledger instead; a second budget needs the owner's override"
    return CatalogueError("source-registered", f"this source already has a ledger, under the id {', '.join(known)}", hint=hint)


def not_open() -> LedgerError:
    """The error for a charge that this worker may not, or may no longer, settle."""
    return LedgerError("charge-not-open", "this process has no such open charge; its answer must not be sent")


def refusal(outcome: str, *, analyst: str = "") -> LapwingError:
    """The error for an outcome of a function in the database; ``analyst`` is the analyst who asked, if any."""
    ask_less = "ask for less, or ask the data owner"
    match outcome:
        case "rolled-back":
            return rolled_back()
        case "superseded":
            return LedgerError("ledger-superseded", "the source now has another ledger", hint="open that ledger")
        case "closed":
            return Refused("data-set-closed", "the data set is closed", hint="the data owner can re-open it")
        case "analyst-unknown":
            who = f"{analyst!r}" if analyst else "this analyst"
            return Refused("analyst-unknown", f"{who} is not admitted to the data set", hint=_ADMIT)
        case "mismatch":
            return Refused("request-mismatch", "this request id was used for another request", hint="use a new request id")
        case "in-progress":
            return Refused("request-in-progress", "this request is being answered", hint="ask again later")
        case "forfeited":
            return Refused("request-forfeited", "this request was charged and ended without an answer", hint="use a new request id")
        case "statement-limit":
            return BudgetRefused("statement-limit", "this costs more than a single statement may cost", hint=ask_less)
        case "day-limit":
            return BudgetRefused("day-limit", "this would exceed the spending limit of the day", hint=NEXT_DAY)
        case "analyst-budget":
            return BudgetRefused("analyst-budget", "the analyst's own budget cannot pay for this", hint=ask_less)
        case "group-budget":
            return BudgetRefused("group-budget", "the group's budget cannot pay for this", hint=ask_less)
        case "budget":
            return BudgetRefused("budget-exceeded", "the budget cannot pay for this", hint=ask_less)
        case "block-budget":
            return BudgetRefused("block-budget", "a block of time that the statement reads cannot pay its part", hint=ask_less)
        case "person-cap":
            return BudgetRefused("person-cap", "one person would lose more over a year than the owner's cap", hint=ask_less)
        case "blocks-missing":
            message = "the data set has blocks of time since this was planned"
            return Refused("blocks-missing", message, hint="open the data set again, and ask again")
        case "blocks-undeclared":
            return Refused("request-invalid", "the data set has no blocks of time")
        case "blocks-overspent":
            return CatalogueError("blocks-overspent", "what was spent before does not fit into the budget of one block")
        case "blocks-period":
            return CatalogueError("blocks-period", "the period of blocks is fixed once blocks have budgets")
        case "cap-below-lost":
            return CatalogueError("budget-below-spent", "the cap cannot be lowered below what one person has already lost")
        case "spent-changed":
            return LedgerError("ledger-busy", "analysts were charged in the meantime", hint="try again")
        case "above-ceiling":
            return CatalogueError("budget-above-ceiling", "the budget is above the ceiling that was promised")
        case "ceiling-lowered":
            return CatalogueError("ceiling-lowered", "a ceiling cannot be lowered: it is what was promised")
        case "below-spent":
            return CatalogueError("budget-below-spent", "the budget cannot be lowered below what is already spent")
        case "second-person":
            return second_person()
        case "group-unknown":
            return CatalogueError("group-unknown", "there is no such group")
        case "anchor-unknown":
            return CatalogueError("anchor-unknown", "the ledger has no anchor of this name", hint="see `lapwing ledger status`")
        case "proposal-unknown":
            return CatalogueError("proposal-unknown", "there is no open proposal with this number")
        case "changed":
            return LedgerError("ledger-busy", "someone changed the ceiling in the meantime", hint="try again")
        case _:
            return LedgerError("ledger-format", "the database returned an outcome that this version does not know")
