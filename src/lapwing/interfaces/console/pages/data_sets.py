"""The data sets that a user may see, and the declarations of their tables."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import Response

from lapwing.errors import LapwingError
from lapwing.interfaces.console.page_routes import pages
from lapwing.interfaces.console.visits import DataSetVisit, Visit, visiting, visiting_to
from lapwing.interfaces.http.access import AuthorizedRequest
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.problems import shown
from lapwing.interfaces.http.routes import asking

router = pages()
SHOWN_MAX = 40
"""Data sets whose budget the list shows; for others only the name, because each must be opened for that."""


@router.get("/")
async def data_sets(visit: Annotated[Visit, Depends(visiting)]) -> Response:
    """The data sets of the visitor."""
    visit.request.state.act = "list"
    names = [name for name in sorted(visit.app_state.desk.served) if visit.identity.may(Act.SEE, name)]
    listed = [await _card(visit, name, opened=place < SHOWN_MAX) for place, name in enumerate(names)]
    may_declare = visit.app_state.new_data.is_allowed and visit.identity.may_anywhere(Act.DECLARE)
    return visit.page("data_sets.html", listed=listed, may_declare=may_declare)


async def _card(visit: Visit, name: str, *, opened: bool) -> dict[str, Any]:
    """The list entry of one data set; if it cannot be opened, the reason."""
    served = visit.app_state.desk.of(name)
    assert served is not None
    roles = [role.value for role in visit.identity.roles(name)]
    card: dict[str, Any] = {"name": name, "roles": roles, "described": None, "problem": None}
    card["may_prepare"] = visit.identity.may(Act.PREPARE, name)
    if opened:
        try:
            card["described"] = await asking.described(
                AuthorizedRequest(visit.identity, served, visit.app_state, visit.request.state.notes)
            )
        except LapwingError as error:
            card["problem"] = shown(error, to_owner=visit.identity.may(Act.PREPARE, name))
    return card


@router.get("/d/{data_set}")
async def tables(visit: Annotated[DataSetVisit, Depends(visiting_to(Act.SEE))]) -> Response:
    """The tables of a data set, each with its columns."""
    described = await asking.described(visit.call)
    listed = [await asking.table(name, visit.call) for name in described["tables"]]
    return visit.page("tables.html", described=described, tables=[_table(item) for item in listed])


def _table(reply: dict[str, Any]) -> dict[str, Any]:
    """A table for the page: its columns, the owner's description, and the last note, which names the unit of its rows."""
    columns, notes = reply["columns"], reply["columns"]["notes"]
    names = [column["name"] for column in columns["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in columns["rows"]]
    return {"name": reply["table"], "about": notes[:-1], "owned": notes[-1], "is_public": notes[-1].startswith("public"), "rows": rows}
