"""Request bodies for releases over HTTP, as the OpenAPI description shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path
from pydantic import Field

from lapwing.interfaces.http.shapes import Amount, StrictBody
from lapwing.releases.request import Marginals, QuantileRequest, RangeTree, SyntheticTable

ReleaseName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Columns = Annotated[list[Name], Field(min_length=1, max_length=64)]
Edge = Annotated[str, Field(max_length=70)] | Annotated[int, Field(ge=-(2**63), le=2**63)] | Annotated[float, Field(allow_inf_nan=False)]
Cuts = dict[Name, Annotated[int, Field(ge=1, le=1_000)] | Annotated[list[Edge], Field(min_length=1, max_length=1_000)]]


class MarginalsBody(StrictBody):
    """Counts by every combination of up to ``ways`` of the columns."""

    kind: Literal["marginals"]
    columns: Columns
    ways: Annotated[int, Field(ge=1, le=4)] | None = None
    bins: Cuts = Field(default_factory=dict)

    def wanted(self) -> QuantileRequest:
        """The request as a Python object."""
        return Marginals(*self.columns, ways=self.ways, bins=self.bins)


class SyntheticBody(StrictBody):
    """The measurements that a synthetic table needs."""

    kind: Literal["synthetic"]
    columns: Columns
    method: Literal["auto", "pairs", "independent"] = "auto"
    bins: Cuts = Field(default_factory=dict)

    def wanted(self) -> QuantileRequest:
        """The request as a Python object."""
        return SyntheticTable(*self.columns, method=self.method, bins=self.bins)


class TreeBody(StrictBody):
    """Counts of ranges of the last of the columns, for each combination of the others."""

    kind: Literal["tree"]
    columns: Annotated[list[Name], Field(min_length=1, max_length=4)]
    branch: Annotated[int, Field(ge=2, le=64)] = 4
    bins: Cuts = Field(default_factory=dict)

    def wanted(self) -> QuantileRequest:
        """The request as a Python object."""
        return RangeTree(self.columns[-1], self.columns[:-1], self.branch, self.bins)


class ReleaseBody(StrictBody):
    """A release of one table, in one or several parts, at one price."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$")]
    wanted: Annotated[
        list[Annotated[MarginalsBody | SyntheticBody | TreeBody, Field(discriminator="kind")]], Field(min_length=1, max_length=16)
    ]
    table: Name | None = None
    epsilon: Amount | None = None
    rows_per_unit: Annotated[int, Field(ge=1, le=2**53)] | None = None
    shares: list[Amount] = Field(default_factory=list, max_length=16)


class ReleaseQuestion(StrictBody):
    """A statement for a release to answer, free."""

    sql: Annotated[str, Field(min_length=1, max_length=65_536)]
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95
    dialect: Literal["duckdb", "postgres"] = "duckdb"
