"""Rights: one table, used by every interface. Everything else is forbidden."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

EVERY = "*"
"""Denotes every data set in a grant."""


class Role(StrEnum):
    """A role on one data set or on all."""

    ANALYST = "analyst"
    """Asks, and spends from the budget."""
    OWNER = "owner"
    """Is responsible for the data: prepares, admits, decides. Sees the exact figures of preparation reports."""
    AUDITOR = "auditor"
    """Checks: sees every entry and receipt, changes nothing."""
    OPERATOR = "operator"
    """Keeps the server running: sees metrics and incidents, asks nothing and decides nothing."""


class Act(StrEnum):
    """What can be done with a data set."""

    SEE = "see"
    """See that it exists, its declared tables and columns, and its budget."""
    EXPLAIN = "explain"
    ASK = "ask"
    OWN_HISTORY = "own-history"
    ALL_HISTORY = "all-history"
    REQUEST = "request"
    """Ask the owners for a larger share."""
    SEE_TERMS = "see-terms"
    """See who may ask on what terms, and which proposals wait for a decision."""
    PROPOSE = "propose"
    DECIDE = "decide"
    ADMIT = "admit"
    PREPARE = "prepare"
    RETIRE = "retire"
    SEE_LOSSES = "see-losses"
    """See what a preparation left out: exact numbers."""
    SEE_INCIDENTS = "see-incidents"
    REOPEN = "reopen"
    ANY_RECEIPT = "any-receipt"
    """See receipts of charges that others paid."""
    METRICS = "metrics"
    DECLARE = "declare"
    """Declare a new data set. It has no owner yet, so only a role on every data set counts."""


RIGHTS: dict[Role, frozenset[Act]] = {
    Role.ANALYST: frozenset({Act.SEE, Act.EXPLAIN, Act.ASK, Act.OWN_HISTORY, Act.REQUEST}),
    Role.OWNER: frozenset(
        {
            Act.SEE,
            Act.EXPLAIN,
            Act.OWN_HISTORY,
            Act.ALL_HISTORY,
            Act.SEE_TERMS,
            Act.PROPOSE,
            Act.DECIDE,
            Act.ADMIT,
            Act.PREPARE,
            Act.RETIRE,
            Act.SEE_LOSSES,
            Act.SEE_INCIDENTS,
            Act.REOPEN,
            Act.ANY_RECEIPT,
            Act.DECLARE,
        }
    ),
    Role.AUDITOR: frozenset({Act.SEE, Act.OWN_HISTORY, Act.ALL_HISTORY, Act.SEE_TERMS, Act.SEE_INCIDENTS, Act.ANY_RECEIPT}),
    Role.OPERATOR: frozenset({Act.SEE, Act.SEE_INCIDENTS, Act.METRICS}),
}
"""An owner who wants to ask must also be an analyst: each role is granted separately, and the ledger records who asked."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on a data set, or on :data:`EVERY` one."""

    role: Role
    data_set: str

    def covers(self, data_set: str) -> bool:
        """Whether it applies to this data set."""
        return self.data_set in (EVERY, data_set)


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated user with the user's grants."""

    name: str
    grants: frozenset[Grant]
    credential: str
    """The credential, for the audit log: the id of an API key, or the issuer of a token."""

    def may(self, act: Act, data_set: str) -> bool:
        """Whether one of their roles on this data set allows it."""
        return any(act in RIGHTS[grant.role] for grant in self.grants if grant.covers(data_set))

    def may_anywhere(self, act: Act) -> bool:
        """Whether one of their roles allows it on every data set."""
        return self.may(act, EVERY)

    def roles(self, data_set: str) -> list[Role]:
        """Their roles on this data set, in a fixed order."""
        return [role for role in Role if any(grant.role is role and grant.covers(data_set) for grant in self.grants)]
