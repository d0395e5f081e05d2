"""Bodies of requests and replies over HTTP, as the OpenAPI description shows them."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lapwing.asking.options import AskOptions, AskRequest
from lapwing.interfaces.http.problems import MEDIA_TYPE

Number = Annotated[int, Path(ge=1, le=2**53)]
"""The number of a charge, a version or a proposal."""
Text = Annotated[str, Field(max_length=1_000)]
Amount = Annotated[str, Field(max_length=100)] | Annotated[float, Field(allow_inf_nan=False)]


class StrictBody(BaseModel):
    """Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid")


class AskedBody(StrictBody):
    """A statement and its terms. The statement itself may also set a price or an accuracy, with WITH PRIVACY (...)."""

    sql: Annotated[str, Field(min_length=1, max_length=65_536)]
    epsilon: Amount | None = None
    confidence: Amount | None = None
    dialect: Literal["duckdb", "postgres"] = "duckdb"
    scaled_groups: bool | None = None
    reuse: Literal["auto", "never", "only"] | None = None

    def request(self, analyst: str, request_id: str | None = None) -> AskRequest:
        """The request to the curator: every field except the statement is an option."""
        return AskRequest(self.sql, AskOptions(**self.model_dump(exclude={"sql"})), analyst, request_id)


class Wish(StrictBody):
    """An analyst asks for a total share of the budget, including what is already spent."""

    share: Annotated[float, Field(gt=0, le=1)]
    reason: Text = ""


class Admission(StrictBody):
    """An owner admits an analyst for a total share of the budget; without one, the earlier share stays."""

    share: Annotated[float, Field(gt=0, le=1)] | None = None
    reason: Text = ""


class LimitsBody(StrictBody):
    """An owner sets who sees stored answers: all who may ask, or only the analyst who paid."""

    answers_shared: bool
    reason: Text = ""


class ProposalBody(StrictBody):
    """Another budget in force, or another ceiling, which is what was promised."""

    what: Literal["budget", "ceiling"]
    epsilon: Annotated[str, Field(max_length=100)] | Annotated[float, Field(gt=0, allow_inf_nan=False)]
    reason: Text = ""


class Decision(StrictBody):
    """The reason to approve, deny, suspend or reopen something."""

    reason: Text = ""


class PreparationBody(StrictBody):
    """How to prepare a new version."""

    append: bool = False
    accept_losses: bool = False
    new_version: bool = False
    correct: tuple[datetime.date, datetime.date] | None = None
    profiles: bool = False
    override: Text = ""


class ReceiptBody(StrictBody):
    """A receipt as stored in a file: the JSON of its fields."""

    receipt: Annotated[str, Field(min_length=1, max_length=20_000)]


class ProblemDetails(BaseModel):
    """Why a request failed (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    hint: str | None = None
    span: dict[str, int] | None = None


def replies(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error statuses of a route, in addition to those of every route."""
    listed = sorted({401, 403, 404, 413, 422, 429, 500, 503, *statuses})
    return {
        status: {"description": "a problem", "content": {MEDIA_TYPE: {"schema": ProblemDetails.model_json_schema()}}} for status in listed
    }
