"""Errors as problem details (RFC 9457): a stable code, a text made from public facts, and what to do next."""

from __future__ import annotations

from typing import Any

from lapwing.errors import Actor, BudgetRefused, CallRefused, Incident, LapwingError, LedgerError, PreparationError, Refused

MEDIA_TYPE = "application/problem+json"
_STATUS = {
    "unauthenticated": 401,
    "forbidden": 403,
    "form-foreign": 403,
    "not-found": 404,
    "not-answered-before": 404,
    "receipt-missing": 404,
    "proposal-missing": 404,
    "declaring-off": 404,
    "data-set-exists": 409,
    "ledger-local": 409,
    "owner-role-needed": 409,
    "method-not-allowed": 405,
    "not-acceptable": 406,
    "request-mismatch": 409,
    "request-forfeited": 409,
    "request-in-progress": 409,
    "body-too-large": 413,
    "body-invalid": 422,
    "receipt-invalid": 422,
    "data-set-closed": 423,
    "too-many-requests": 429,
    "busy": 503,
    "audit-unwritable": 503,
    "data-set-unavailable": 503,
    "unavailable": 503,
    "internal": 500,
    "ledger-role": 500,
    "identities-role": 500,
}
"""The status of codes; other codes get it from their class."""
_PUBLIC = frozenset({"ledger-local", "ledger-role", "identities-role", "unavailable"})
"""Codes of errors that hold only public facts, although somebody other than the analyst has to act."""
_OWNERS = LapwingError("data-set-unavailable", "the data set cannot answer now", hint="its owner must act")
_UNPREPARED = LapwingError("data-set-unavailable", "the data set has no prepared version yet", hint="its owner must prepare one")
_OPERATORS = LapwingError("unavailable", "the server cannot answer now; nothing was answered, and asking again is safe")
_UNREACHABLE = PreparationError("engine-unreachable", "the database of the data set cannot be reached", hint="its operator has to act")
_RIGHT_MISSING = LedgerError(
    "ledger-role",
    "the server's role in the ledger's database lacks a right that it needs",
    hint="its operator has to act: `lapwing ledger install` gives roles their rights",
)
_RETOLD = {error.code: error for error in (_UNREACHABLE, _RIGHT_MISSING)}
"""Replacements for errors whose texts are for the operator: database addresses, and connections to type in a command."""
_INTERNAL = LapwingError("internal", "an internal error occurred in the server")


def status_of(error: LapwingError) -> int:
    """The HTTP status of an error."""
    if error.code in _STATUS:
        return _STATUS[error.code]
    if isinstance(error, BudgetRefused):
        return 402
    if isinstance(error, Incident):
        return 500
    if isinstance(error, Refused):
        return 422
    return 409 if error.actor is Actor.OWNER else 503


def shown(error: BaseException, *, to_owner: bool) -> LapwingError:
    """The error in the form that the caller may see.

    Analysts get the full text of their own errors. Errors for the owner or the operator may name files, databases and results of a
    preparation: analysts learn only that there is an error. The text of an unexpected error may contain a value and is never shown.
    """
    if not isinstance(error, LapwingError):
        return _INTERNAL
    seen = _RETOLD.get(error.code, error)
    if to_owner or seen.code in _PUBLIC or isinstance(seen, Refused | Incident | CallRefused):
        return seen
    if seen.code == "not-prepared":
        return _UNPREPARED
    return _OPERATORS if isinstance(seen, LedgerError) or seen.code == "identities-unreachable" else _OWNERS


def problem(error: LapwingError, status: int) -> dict[str, Any]:
    """The body of a reply with an error."""
    return {**error.problem(), "status": status}
