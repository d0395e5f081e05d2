"""Metadata of a data frame: plain values about its answer, small for any number of rows, and valid for any part of the frame.

Error bars and marks are columns, which go along with their rows; the attributes say which columns these are. Pandas copies attributes with
every operation, and writes them into Parquet files as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

ATTRIBUTE = "lapwing"
_PRICE = re.compile(r"(?:.* at (?P<confidence>[0-9.]+)%; |)(?:cost epsilon (?P<epsilon>[0-9.e+-]+)|free)\b[^;]*; [^;]*", re.DOTALL)


def frame_attributes(columns: Sequence[str], words: Sequence[str]) -> dict[str, Any]:
    """The attributes of a frame with these columns, of which those beside a measured one follow it; ``words`` are the answer's."""
    follows = {name: set(columns[place + 1 : place + 4]) for place, name in reversed(list(enumerate(columns)))}
    summary = words[0] if words else ""
    price = _PRICE.fullmatch(summary)
    confidence, epsilon = (None, None) if price is None else price.group("confidence", "epsilon")
    about = {
        "confidence": None if confidence is None else float(confidence) / 100,
        "epsilon": None if price is None else float(epsilon or 0),
        "summary": summary,
        "notes": list(words[1:]),
        "error_bars": {name: [f"{name}_lo", f"{name}_hi"] for name in columns if {f"{name}_lo", f"{name}_hi"} <= follows[name]},
        "marks": {name: f"{name}_mark" for name in columns if f"{name}_mark" in follows[name]},
    }
    return {ATTRIBUTE: about}
