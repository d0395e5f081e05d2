"""Labels for people instead of the interface's names for programs. A name without a label is shown unchanged."""

from __future__ import annotations

from collections.abc import Mapping

ENTRIES: Mapping[str, str] = {
    "register": "ledger created",
    "reserve": "charged",
    "commit": "answered",
    "forfeit": "charged, without an answer",
    "release": "returned",
    "budget": "budget set",
    "ceiling": "ceiling set",
    "close": "closed",
    "reopen": "reopened",
    "override": "owner's override",
    "restore": "restored",
    "blocks": "blocks of time declared",
    "version": "version prepared",
    "retire": "version deleted",
    "policy": "terms changed",
    "propose": "proposed",
    "deny": "denied",
}
"""Kinds of entries of a ledger."""
TYPES: Mapping[str, str] = {
    "key": "identifier",
    "integer": "whole number",
    "real": "number",
    "text": "text",
    "boolean": "yes or no",
    "date": "date",
    "timestamp": "date and time",
}
"""Types of columns."""
LINES: Mapping[str, str] = {
    "norms": "bought first",
    "bounding": "limit",
    "clamping": "cut at",
    "predicted": "left out",
    "totals": "sub-totals",
}
"""Lines of an explanation."""


def labelled(name: str, labels: Mapping[str, str]) -> str:
    """The label of a name."""
    return labels.get(name, name)
