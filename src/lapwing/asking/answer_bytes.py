"""An answer as bytes that another process reads back: an Arrow stream of the flat table, with everything else in its metadata."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pyarrow as pa

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.display.blocks import BlocksView
from lapwing.answers.display.budget import BudgetView
from lapwing.answers.intervals import Interval
from lapwing.kernel.accounting import Cost
from lapwing.ledger.amounts import budget_text, budget_value
from lapwing.receipts import receipt_text, receipt_value
from lapwing.statements import CellMark

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
METADATA_KEY = b"lapwing"


def packed(answer: Answer) -> bytes:
    """The answer as an Arrow stream. A reader without the metadata gets a table with error bars."""
    table, target = with_metadata(answer), io.BytesIO()
    with pa.ipc.new_stream(target, table.schema) as writer:
        writer.write_table(table)
    return target.getvalue()


def with_metadata(answer: Answer) -> pa.Table:
    """The flat table with everything else in the metadata of its schema."""
    about: dict[str, Any] = {
        "columns": answer.table.column_names,
        "intervals": list(answer.intervals),
        "marks": list(answer.marks),
        "confidence": answer.confidence,
        "cost": cost_fields(answer.cost),
        "remaining": budget_fields(answer.remaining),
        "notes": list(answer.notes),
        "receipt": None if answer.receipt is None else receipt_text(answer.receipt),
        "stored": None if answer.stored is None else base64.b64encode(answer.stored).decode("ascii"),
    }
    table = answer.to_arrow()
    return table.replace_schema_metadata({METADATA_KEY: json.dumps(about, allow_nan=False).encode()})


def unpacked(content: bytes) -> Answer:
    """The answer that was packed; ``ValueError`` or ``KeyError`` where these are not its bytes."""
    table = pa.ipc.open_stream(content).read_all()
    about = json.loads((table.schema.metadata or {})[METADATA_KEY])
    columns: list[pa.ChunkedArray] = []
    intervals: dict[str, list[Interval | None]] = {}
    marks: dict[str, list[CellMark | None]] = {}
    place = 0
    for name in about["columns"]:
        columns.append(table.column(place))
        place += 1
        if name in about["intervals"]:
            ends = zip(table.column(place).to_pylist(), table.column(place + 1).to_pylist(), strict=True)
            intervals[name] = [None if lo is None or hi is None else Interval(lo, hi) for lo, hi in ends]
            place += 2
        if name in about["marks"]:
            marks[name] = [None if mark is None else CellMark(mark) for mark in table.column(place).to_pylist()]
            place += 1
    plain = pa.table(columns, names=about["columns"]) if columns else table.replace_schema_metadata(None)
    return Answer(
        plain,
        intervals,
        about["confidence"],
        cost_value(about["cost"]),
        budget_view(about["remaining"]),
        tuple(about["notes"]),
        marks=marks,
        receipt=None if about["receipt"] is None else receipt_value(about["receipt"]),
        stored=None if about["stored"] is None else base64.b64decode(about["stored"]),
    )


def cost_fields(cost: CostView) -> dict[str, Any]:
    """The fields of a cost, to be read by :func:`cost_of`."""
    return {"epsilon": cost.epsilon, "rho": cost.rho, "delta": cost.delta, "free": cost.free}


def cost_value(fields: dict[str, Any]) -> CostView:
    """Inverse of :func:`cost_fields`."""
    return CostView(fields["epsilon"], fields["rho"], fields["delta"], fields["free"])


def budget_fields(view: BudgetView) -> dict[str, Any]:
    """The fields of a budget and its exact spending, to be read back."""
    spent = {
        "loss": str(view.spent.loss),
        "delta": str(view.spent.delta),
        "pure": None if view.spent.pure is None else str(view.spent.pure),
    }
    return {
        "budget": budget_text(view.budget),
        "ceiling": budget_text(view.ceiling),
        "spent": spent,
        "closed": view.closed,
        "unit": view.unit,
        "unit_is_row": view.unit_is_row,
        **({} if view.blocks is None else {"blocks": view.blocks.to_dict()}),
    }


def budget_view(fields: dict[str, Any]) -> BudgetView:
    """Inverse of :func:`budget_fields`."""
    spent = fields["spent"]
    cost = Cost(int(spent["loss"]), int(spent["delta"]), None if spent["pure"] is None else int(spent["pure"]))
    budgets, blocks = (budget_value(fields["budget"]), budget_value(fields["ceiling"])), fields.get("blocks")
    of_blocks = None if blocks is None else BlocksView.of(blocks)
    return BudgetView(*budgets, cost, fields["closed"], fields["unit"], fields["unit_is_row"], of_blocks)
