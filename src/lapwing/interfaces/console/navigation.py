"""The navigation of a data set, and addresses of pages.

Many pages are shown in four groups, one of them open; few pages are shown in one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from lapwing.interfaces.http.identity.rights import Act, Identity

ROOT = "/console"
FLAT_MAX = 7
"""Maximum number of pages that are shown without groups."""


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page of a data set: its name, its address below that of the data set, the right that it needs, and its group."""

    label: str
    path: str
    act: Act
    group: str
    within: str = ""
    """The first part of the address of pages that are reached from it and have no entry."""


@dataclass(frozen=True, slots=True)
class NavigationLink:
    """One entry of the navigation of a page."""

    label: str
    address: str
    is_current: bool


ENTRIES = (
    NavigationEntry("Tables", "", Act.SEE, "Data"),
    NavigationEntry("Ask", "ask", Act.EXPLAIN, "Ask", within="answer"),
    NavigationEntry("History", "history", Act.ASK, "Ask"),
    NavigationEntry("Budget", "budget", Act.SEE, "Budget"),
    NavigationEntry("Ledger", "ledger", Act.ALL_HISTORY, "Check"),
    NavigationEntry("Receipts", "receipts", Act.OWN_HISTORY, "Check"),
    NavigationEntry("Report", "report", Act.ALL_HISTORY, "Check"),
    NavigationEntry("Spending", "spending", Act.PREPARE, "Budget"),
    NavigationEntry("Access", "access", Act.SEE_TERMS, "Budget"),
    NavigationEntry("Versions", "versions", Act.PREPARE, "Data"),
    NavigationEntry("Incidents", "incidents", Act.SEE_INCIDENTS, "Check"),
)
"""In the order they are shown; users without the right do not see the entry. Groups are in the order of their first pages."""


def data_set_path(data_set: str, page: str = "", **query: str) -> str:
    """The address of a page of a data set."""
    path = f"{ROOT}/d/{quote(data_set, safe='')}" + (f"/{page}" if page else "")
    return f"{path}?{urlencode(query)}" if query else path


def entries_for(identity: Identity, data_set: str) -> list[NavigationEntry]:
    """The pages of a data set that a user may see."""
    return [entry for entry in ENTRIES if identity.may(entry.act, data_set)]


def navigation(entries: Sequence[NavigationEntry], data_set: str, path: str) -> list[list[NavigationLink]]:
    """The navigation rows of the page at ``path``: all pages, or the groups and below them the pages of the open group."""
    if len(entries) <= FLAT_MAX:
        return [[_link(entry, data_set, path) for entry in entries]]
    groups: dict[str, list[NavigationEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.group, []).append(entry)
    is_open = {name: any(_is_at(entry, data_set, path) for entry in inside) for name, inside in groups.items()}
    row = [NavigationLink(name, data_set_path(data_set, inside[0].path), is_open[name]) for name, inside in groups.items()]
    below = [[_link(entry, data_set, path) for entry in inside] for name, inside in groups.items() if is_open[name] and len(inside) > 1]
    return [row, *below]


def _link(entry: NavigationEntry, data_set: str, path: str) -> NavigationLink:
    return NavigationLink(entry.label, data_set_path(data_set, entry.path), _is_at(entry, data_set, path))


def _is_at(entry: NavigationEntry, data_set: str, path: str) -> bool:
    """Whether the page at ``path`` is this one, or one that is reached from it."""
    below = path.removeprefix(data_set_path(data_set)).strip("/").partition("/")[0]
    return below in (entry.path, entry.within) if entry.within else below == entry.path
