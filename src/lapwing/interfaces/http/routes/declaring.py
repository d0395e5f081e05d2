"""Routes for owners of every data set: list the sources, and declare a new data set from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from lapwing.errors import CallRefused
from lapwing.interfaces.http.access import AppState, app_state_of, identified
from lapwing.interfaces.http.declaring_shapes import DeclaredBody
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.shapes import replies

SourceWord = Annotated[str, Query(min_length=1, max_length=500)]
router = APIRouter(prefix="/v1", tags=["declaring"])


def declaring_by(who: Callable[..., Identity]) -> Callable[..., AppState]:
    """The dependency of routes that declare: only owners of every data set may, since a new one has no owner yet."""

    def allowed(request: Request, app_state: Annotated[AppState, Depends(app_state_of)], identity: Identity = Depends(who)) -> AppState:  # noqa: B008
        request.state.act = Act.DECLARE.value
        if not identity.may_anywhere(Act.DECLARE):
            raise CallRefused("forbidden", "only an owner of every data set may declare a new one")
        request.state.is_owner = True
        return app_state

    return allowed


@router.get("/sources", responses=replies(409))
def sources(app_state: Annotated[AppState, Depends(declaring_by(identified))]) -> dict[str, Any]:
    """The files, folders and databases from which data sets can be declared."""
    new_data = app_state.new_data
    return {"files": new_data.files(), "folders": new_data.folders(), "databases": new_data.databases()}


@router.get("/sources/tables", responses=replies(409))
def source_tables(app_state: Annotated[AppState, Depends(declaring_by(identified))], database: SourceWord) -> dict[str, Any]:
    """The tables of a database that can be declared, and its foreign keys."""
    found = app_state.new_data.tables(database)
    references = [
        {"table": table, "column": column, "target": target, "target_column": key} for (table, column), (target, key) in found.references
    ]
    return {"database": database, "tables": found.names, "references": references}


@router.get("/sources/columns", responses=replies(409))
def source_columns(
    app_state: Annotated[AppState, Depends(declaring_by(identified))],
    file: SourceWord | None = None,
    database: SourceWord | None = None,
    table: SourceWord | None = None,
) -> dict[str, Any]:
    """The columns of a file or folder, or of a table of a database, from its schema: a CSV file has only their names, other sources also
    their types. No row is read."""
    if (file is None) == (database is None) or (database is None) != (table is None):
        raise CallRefused("body-invalid", "name a file, or a database and a table")
    source = file or table or ""
    (found,) = app_state.new_data.sources([source], database)
    return {"file" if database is None else "table": source, "columns": list(found.columns)}


@router.post("/data-sets", status_code=201, responses=replies(409) | {200: {"description": "what the catalogue would be"}})
def declare(body: DeclaredBody, app_state: Annotated[AppState, Depends(declaring_by(identified))], response: Response) -> dict[str, Any]:
    """Write the catalogue of a new data set. Nothing is prepared, and nothing can be asked, before its first version."""
    if body.only_check:
        response.status_code = 200
    return declared(body, app_state)


def declared(body: DeclaredBody, app_state: AppState) -> dict[str, Any]:
    """The catalogue and its warnings; the catalogue is written unless the request only checks it."""
    text, declaration = app_state.new_data.checked(body)
    if not body.only_check:
        app_state.new_data.declare(body, frozenset(app_state.desk.served))
        app_state.desk.look_now()
    return {"data_set": body.data_set, "catalogue": text, "warnings": [str(problem) for problem in declaration.warnings]}
