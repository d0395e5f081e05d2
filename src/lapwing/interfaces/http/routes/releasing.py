"""Releases over HTTP: planned for free, bought by analysts, answering for ever. Answers from a release read no row."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from lapwing.answers.answer import Answer
from lapwing.asking.answer_bytes import cost_fields
from lapwing.asking.release_cache import bought_releases, kept_named, kept_release
from lapwing.asking.release_purchase import ReleasePlan
from lapwing.data_set import DataSet
from lapwing.errors import Refused
from lapwing.interfaces.http import formats
from lapwing.interfaces.http.access import AuthorizedRequest, to
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.release_shapes import ReleaseBody, ReleaseName, ReleaseQuestion
from lapwing.interfaces.http.routes.asking import ANSWERS, LATER, Key, form_of, later
from lapwing.interfaces.http.shapes import replies
from lapwing.owner.release_file import release_bytes
from lapwing.releases.released import Release, answered_by

FILE = "application/zip"
LISTED_MAX = 100
"""The number of releases that are listed, newest first."""
router = APIRouter(prefix="/v1/data-sets/{data_set}/releases", tags=["releases"])
_FILE: dict[int | str, dict[str, Any]] = {200: {"description": "the release in a file", "content": {FILE: {}}}}
_BOUGHT: dict[int | str, dict[str, Any]] = {200: {"description": "what was bought, or its file", "content": {formats.JSON: {}, FILE: {}}}}


@router.post("/plan", responses=replies(402, 409, 423))
async def plan(wanted: ReleaseBody, call: Annotated[AuthorizedRequest, Depends(to(Act.EXPLAIN))]) -> dict[str, Any]:
    """What a release would measure, how accurate it would be, and its price. Free; no row is read."""

    def work(opened: DataSet) -> dict[str, Any]:
        planned = _planned(opened, wanted, call.identity.name)
        cells, tables = planned.planned.cells, len(planned.planned.tables)
        return {"name": wanted.name, "text": planned.explain(), "cost": cost_fields(planned.cost), "cells": cells, "tables": tables}

    return await call.run(work)


@router.post("", responses=replies(402, 406, 409, 423) | _BOUGHT | LATER, response_class=Response)
async def buy(
    wanted: ReleaseBody, call: Annotated[AuthorizedRequest, Depends(to(Act.ASK))], request: Request, idempotency_key: Key = None
) -> Response:
    """Buy a release: one charge for all of it; the same release again is free. With ``Accept: application/zip``, its file is the reply.

    As for a statement, the result is sent at a moment that public facts determine; if it takes longer, the reply is 202.
    """
    key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
    as_file = FILE in request.headers.get("accept", "")

    def work(opened: DataSet) -> bytes | dict[str, Any]:
        bought = _planned(opened, wanted, call.identity.name).run(request_id=key)
        return release_bytes(bought) if as_file else release_fields(bought)

    try:
        same = (call.identity.name, key, as_file, wanted.model_dump_json())
        found = await call.run(work, name=same)
    except TimeoutError:
        return later(key)
    except Refused as error:
        if error.code != "request-in-progress":
            raise
        return later(key)
    headers = {"Idempotency-Key": key}
    return Response(found, media_type=FILE, headers=headers) if isinstance(found, bytes) else JSONResponse(found, headers=headers)


@router.get("", responses=replies(423))
async def listed(call: Annotated[AuthorizedRequest, Depends(to(Act.ASK))]) -> dict[str, Any]:
    """The releases of the newest version that the caller may see, newest first; of each name, only the newest."""

    def work(opened: DataSet) -> dict[str, Any]:
        found: dict[str, Release] = {}
        for bought in bought_releases(opened.curator, analyst=call.identity.name):
            release = None if len(found) == LISTED_MAX else kept_release(opened.curator, bought, analyst=call.identity.name)
            if release is not None:
                found.setdefault(release.name, release)
        return {"releases": [release_fields(release) for release in found.values()]}

    return await call.run(work)


@router.get("/{name}", responses=replies(423) | _FILE, response_class=Response)
async def download(name: ReleaseName, call: Annotated[AuthorizedRequest, Depends(to(Act.ASK))]) -> Response:
    """The newest release of this name in a file, which answers without the data and without a server."""
    work = lambda opened: release_bytes(kept_named(opened.curator, name, analyst=call.identity.name))  # noqa: E731
    return Response(await call.run(work), media_type=FILE)


@router.post("/{name}/query", responses=replies(406, 423) | ANSWERS, response_class=Response)
async def query(
    name: ReleaseName, question: ReleaseQuestion, call: Annotated[AuthorizedRequest, Depends(to(Act.ASK))], request: Request
) -> Response:
    """Answer SQL from a release: free, with error bars; ``release-not-covered`` says why it cannot."""
    form = form_of(request)

    def work(opened: DataSet) -> Answer:
        release = kept_named(opened.curator, name, analyst=call.identity.name)
        budget = opened.budget
        return answered_by(release, question.sql, confidence=question.confidence, dialect=question.dialect, budget=budget)

    answer = await call.run(work)
    return Response(await asyncio.to_thread(formats.FORMATS[form], answer), media_type=form)


def release_fields(release: Release) -> dict[str, Any]:
    """A release as field names and plain values."""
    return {
        "name": release.name,
        "of_table": release.of_table,
        "columns": list(release.columns),
        "kind": release.kind,
        "is_synthetic": release.is_synthetic,
        "tables": len(release.terms.tables),
        "cells": release.cells,
        "cost": cost_fields(release.terms.cost),
        "notes": list(release.terms.notes),
    }


def _planned(opened: DataSet, body: ReleaseBody, who: str) -> ReleasePlan:
    return opened.release(
        *(part.wanted() for part in body.wanted),
        name=body.name,
        table=body.table,
        epsilon=body.epsilon,
        rows_per_unit=body.rows_per_unit,
        shares=body.shares,
        analyst=who,
    )
