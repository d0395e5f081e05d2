"""Answers as bytes: JSON, CSV, Arrow and Parquet, as the caller accepts. All of them carry the error bars; Arrow and Parquet also carry
cost and notes, in the metadata of their schema."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow.parquet as pq

from lapwing.answers.answer import Answer
from lapwing.asking.answer_bytes import MEDIA_TYPE as ARROW
from lapwing.asking.answer_bytes import packed, with_metadata

JSON = "application/json"
CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"


def as_json(answer: Answer) -> bytes:
    """The whole answer."""
    return json.dumps(answer.to_dict(), ensure_ascii=False, allow_nan=False).encode()


def as_csv(answer: Answer) -> bytes:
    """The table with its error bars; NULL is an empty field."""
    return answer.to_csv().encode()


def as_parquet(answer: Answer) -> bytes:
    """A Parquet file."""
    target = io.BytesIO()
    pq.write_table(with_metadata(answer), target)
    return target.getvalue()


FORMATS: dict[str, Callable[[Answer], bytes]] = {JSON: as_json, CSV: as_csv, ARROW: packed, PARQUET: as_parquet}


def chosen(accept: str | None) -> str | None:
    """The format that a caller's ``Accept`` prefers; JSON without a header; None if no format is acceptable."""
    if accept is None or not accept.strip():
        return JSON
    best: tuple[float, str] | None = None
    for item in accept.split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        quality = _quality(parameters)
        match = JSON if name in ("*/*", "application/*") else CSV if name == "text/*" else name.lower()
        if match in FORMATS and quality > 0 and (best is None or quality > best[0]):
            best = quality, match
    return None if best is None else best[1]


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0
