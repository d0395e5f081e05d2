"""The README's Python and the notebook page run in a real Jupyter kernel, as ``pip install lapwing[notebook]`` leaves it: no ipywidgets."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.docs.pages import ROOT

_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

_NO_WIDGETS = """
import sys
sys.modules["ipywidgets"] = None  # as where it is not installed
import duckdb
try:
    duckdb.connect().execute("SET enable_progress_bar = false")
except duckdb.Error as error:
    print("refused:", error)
"""


def _run(cells: list[str], folder: Path) -> list[list[nbformat.NotebookNode]]:
    """What each cell shows, after all of them ran in one kernel of its own; a cell that fails raises."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return [list(cell.outputs) for cell in notebook.cells]


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAPWING_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/notebook.md"])
def test_the_python_of_a_page_runs_in_a_kernel_without_ipywidgets(page: str, folder: Path) -> None:
    blocks = _PYTHON.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    trap, *shown = _run([_NO_WIDGETS, *blocks], folder)
    # DuckDB takes this for Jupyter, and would fail as it did for everybody
    assert "ipywidgets" in trap[0]["text"]
    if page == "README.md":
        assert "of the budget is left" in "".join(output.get("text", "") for output in shown[0])
    else:
        assert any("<table" in output["data"].get("text/html", "") for output in shown[0])
        assert any("image/png" in output["data"] for output in shown[1])


def test_a_long_wait_is_shown_in_the_cell_and_is_gone_afterwards(folder: Path) -> None:
    watch = (
        "import time\nfrom IPython.display import DisplayHandle\nshown = []\nupdate = DisplayHandle.update\n"
        "DisplayHandle.update = lambda self, what, **more: (shown.append(what.data), update(self, what, **more))\n"
        "from lapwing.interfaces.python.waiting import waited_for\nwaited_for(lambda: time.sleep(2.5) or 'there')"
    )
    waited, told = _run([watch, "print(shown)"], folder)
    assert [output["data"]["text/plain"] for output in waited if output["output_type"] == "execute_result"] == ["'there'"]
    assert [output["data"]["text/html"] for output in waited if output["output_type"] == "display_data"] == [""]
    assert "waiting for the answer, 2 s" in told[0]["text"]


def test_a_virtual_version_answers_in_a_kernel(folder: Path) -> None:
    cells = [
        _NO_WIDGETS,
        "from pathlib import Path\nimport lapwing\nfrom lapwing.demo import write_demo\nwrite_demo(Path('clinic'), patients=500)\n"
        "catalogue = Path('clinic/lapwing.toml')\n"
        "text = catalogue.read_text().replace('[dataset]', '[dataset]\\npreparation = \"virtual\"', 1)\n"
        "catalogue.write_text(text)\n",
        "clinic = lapwing.open('clinic')\nclinic.prepare()\nclinic.ask('SELECT COUNT(*) AS n FROM visits', epsilon=0.5)",
    ]
    *_, shown = _run(cells, folder)
    assert any("<table" in output.get("data", {}).get("text/html", "") for output in shown)


def test_a_cell_that_fails_fails_the_test(folder: Path) -> None:
    with pytest.raises(CellExecutionError, match="catalogue-unreadable"):
        _run(["import lapwing\nlapwing.open('nowhere')"], folder)
