"""What goes in and out over HTTP, as the OpenAPI description shows it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lapwing.asking.options import AskOptions, AskRequest
from lapwing.interfaces.http.problems import MEDIA_TYPE

Number = Annotated[int, Path(ge=1, le=2**53)]
"""Of a charge, a version or a proposal."""
Text = Annotated[str, Field(max_length=1_000)]
Amount = Annotated[str, Field(max_length=100)] | Annotated[float, Field(allow_inf_nan=False)]


class StrictBody(BaseModel):
    """Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class AskedBody(StrictBody):
    """A statement and the terms it is asked on. A price or an accuracy may also stand in the statement, as WITH PRIVACY (...)."""

    sql: Annotated[str, Field(min_length=1, max_length=65_536)]
    epsilon: Amount | None = None
    confidence: Amount | None = None
    dialect: Literal["duckdb", "postgres"] = "duckdb"
    scaled_groups: bool | None = None
    reuse: Literal["auto", "never", "only"] | None = None

    def request(self, analyst: str, request_id: str | None = None) -> AskRequest:
        """As it is asked: every field but the statement is an option."""
        return AskRequest(self.sql, AskOptions(**self.model_dump(exclude={"sql"})), analyst, request_id)


class Wish(StrictBody):
    """An analyst asks for a share of the budget in all, what is spent of it included."""

    share: Annotated[float, Field(gt=0, le=1)]
    reason: Text = ""


class Admission(StrictBody):
    """An owner lets an analyst ask, for a share of the budget in all; without one, what was said before stays."""

    share: Annotated[float, Field(gt=0, le=1)] | None = None
    reason: Text = ""


class LimitsBody(StrictBody):
    """An owner says who sees stored answers: all who may ask, or only whoever paid."""

    answers_shared: bool
    reason: Text = ""


class ProposalBody(StrictBody):
    """Another budget in force, or another ceiling, which the promise is made for."""

    what: Literal["budget", "ceiling"]
    epsilon: Annotated[str, Field(max_length=100)] | Annotated[float, Field(gt=0, allow_inf_nan=False)]
    reason: Text = ""


class Decision(StrictBody):
    """Why something is approved, denied, retired or opened again."""

    reason: Text = ""


class PreparationBody(StrictBody):
    """How to prepare a new version."""

    append: bool = False
    accept_losses: bool = False
    new_version: bool = False
    override: Text = ""


class ReceiptBody(StrictBody):
    """A receipt as it is kept in a file: the JSON of its fields."""

    receipt: Annotated[str, Field(min_length=1, max_length=20_000)]


class ProblemDetails(BaseModel):
    """Why not (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    hint: str | None = None
    span: dict[str, int] | None = None


def replies(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may say no, beside what every route may say."""
    listed = sorted({401, 403, 404, 413, 422, 429, 500, 503, *statuses})
    return {
        status: {"description": "a problem", "content": {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}}} for status in listed
    }
