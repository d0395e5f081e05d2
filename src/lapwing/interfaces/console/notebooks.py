"""An answer as a notebook that replays it, which is free. The file holds no value."""

from __future__ import annotations

import json
from typing import Any

from lapwing.interfaces.console.questions import PageQuestion


def notebook(address: str, data_set: str, question: PageQuestion) -> str:
    """The notebook, in format 4.5. Texts of users are Python literals in it."""
    terms = f", epsilon={question.epsilon!r}" if question.epsilon and not question.says_price else ""
    cells = [
        _cell(
            "markdown",
            "Asked in Lapwing's console. `replay` gives the stored answer and charges nothing. Set `LAPWING_TOKEN` to your API key first.",
        ),
        _cell("code", f"import lapwing\n\ndata = lapwing.connect({address.rstrip('/')!r}, data_set={data_set!r})"),
        _cell("code", f"answer = data.replay({question.sql!r}{terms})\nanswer"),
        _cell("code", "answer.plot()"),
        _cell("code", "frame = answer.to_pandas()\nframe"),
    ]
    content = {"cells": [cell | {"id": f"cell-{place}"} for place, cell in enumerate(cells)], "nbformat": 4, "nbformat_minor": 5}
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}, "language_info": {"name": "python"}}
    return json.dumps(content | {"metadata": about}, indent=1) + "\n"


def _cell(kind: str, source: str) -> dict[str, Any]:
    run: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)} | run
