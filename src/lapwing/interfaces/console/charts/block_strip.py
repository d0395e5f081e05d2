"""What is left in each of the newest blocks of time, as a bar for each: exact entries of the ledger, which have no error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapwing.interfaces.console.charts import svg
from lapwing.interfaces.console.charts.frame import NARROW, WIDE

_TOP, _FLOOR, _HEIGHT = 8.0, 96.0, 118.0
_BAR_MAX = 24.0


@dataclass(frozen=True, slots=True)
class Run:
    """Blocks one after the other with the same share left."""

    first: str
    last: str
    number: int
    left: str

    @property
    def days(self) -> str:
        """Its first and last day."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


def runs_of(newest: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Blocks, oldest first, in runs of those with the same share left."""
    runs: list[Run] = []
    for block in newest:
        before, left = runs[-1] if runs else None, left_text(block["left"])
        if before is not None and before.left == left:
            runs[-1] = Run(before.first, block["last"], before.number + 1, left)
        else:
            runs.append(Run(block["first"], block["last"], 1, left))
    return runs


def left_text(left: float) -> str:
    """A share that is left; 100.0% only where nothing is spent."""
    return "over 99.9%" if 0.9995 <= left < 1 else f"{left:.1%}"


def block_strip(newest: Sequence[Mapping[str, Any]], *, every: str, name: str) -> str:
    """A bar for each block, oldest first; for both widths."""
    return "".join(_drawn(newest, every, width, f"{name}-{size}", size) for width, size in ((WIDE, "wide"), (NARROW, "narrow")))


def _drawn(newest: Sequence[Mapping[str, Any]], every: str, width: float, name: str, size: str) -> str:
    begin, least = svg.width_of("100%") + 14, min(newest, key=lambda block: float(block["left"]))
    pitch = min((width - begin) / len(newest), _BAR_MAX)
    title = f"What is left in each of the last {len(newest)} {every}s" if len(newest) > 1 else f"What is left in the last {every}"
    told = f"From {newest[0]['first']} to {newest[-1]['last']}. The least is {left_text(least['left'])}, in {_days(least)}."
    parts = [
        svg.element("title", svg.words(title), id=f"{name}-title"),
        svg.element("desc", svg.words(told), id=f"{name}-desc"),
        svg.text(begin - 8, _TOP + 9, "100%", class_="lw-quiet lw-small", anchor="end"),
        svg.text(begin - 8, _FLOOR, "0%", class_="lw-quiet lw-small", anchor="end"),
    ]
    for at, block in enumerate(newest):
        x, thick, tall = begin + pitch * at, pitch * 0.8, (_FLOOR - _TOP) * block["left"]
        whole = svg.rect(x, _TOP, thick, _FLOOR - _TOP, class_="lw-band")
        left = svg.rect(x, _FLOOR - tall, thick, tall, class_="lw-fill")
        parts.append(svg.group((svg.hint(f"{_days(block)}: {left_text(block['left'])} is left"), whole, left)))
    end = begin + pitch * len(newest)
    parts.append(svg.line(begin, _FLOOR, end, _FLOOR, class_="lw-axis"))
    parts.append(svg.text(begin, _HEIGHT - 4, newest[0]["first"], class_="lw-quiet lw-small"))
    if end - begin > 2.2 * svg.width_of(newest[0]["first"]):
        parts.append(svg.text(end, _HEIGHT - 4, newest[-1]["last"], class_="lw-quiet lw-small", anchor="end"))
    return svg.element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {svg.number(width)} {svg.number(_HEIGHT)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_=f"lw-chart lw-chart-{size}",
    )


def _days(block: Mapping[str, Any]) -> str:
    return str(block["first"]) if block["first"] == block["last"] else f"{block['first']} to {block['last']}"
