"""Superset over the wire, from nothing to a dashboard: see README.md."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from charts import CHARTS, VISITS_WITH_PATIENTS, Made, dashboard, filtered
from recorder import Recorder, recording
from rest import Rest
from services import Served, Superset, postgres, served, superset, superset_python
from truth import Truth, spent_share

PATIENTS = 50_000
FILTERED = filtered(["northam", "lakeside"], "2025-01-01 : 2025-07-01")


def main() -> None:
    """Everything, one after the other."""
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--superset-python", default=os.environ.get("SUPERSET_PYTHON"), help="python of an environment with Superset")
    said.add_argument("--superset-home", type=Path, help="where Superset keeps its own data; by default a temporary directory")
    said.add_argument("--patients", type=int, default=PATIENTS)
    said.add_argument("--picture", type=Path, help="where to write the picture of the dashboard")
    said.add_argument("--statements", type=Path, help="where to write the list of statements and outcomes")
    said.add_argument("--stay", action="store_true", help="keep everything running until Enter is pressed")
    options = said.parse_args()
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lapwing-superset-")))
        home.chmod(0o755)
        python = superset_python(options.superset_python, home)
        socket_directory = stack.enter_context(postgres(home / "postgres"))
        server = stack.enter_context(served(home / "lapwing", socket_directory, options.patients))
        recorder = stack.enter_context(recording(server.wire))
        bi = stack.enter_context(superset(python, options.superset_home or home / "superset"))
        print(f"Superset: http://127.0.0.1:{bi.port} (admin, {bi.password})", flush=True)
        trial(server, recorder, bi, Truth(socket_directory, server), options)
        if options.stay:
            input("Enter ends it. ")


def trial(server: Served, recorder: Recorder, bi: Superset, truth: Truth, options: argparse.Namespace) -> None:
    """Make the dashboard, draw it twice, draw it with filters, compare."""
    rest = Rest(bi.port)
    rest.login(bi.password)
    made = make(rest, server.address(recorder.port))
    number = rest.made("dashboard/", dashboard(made))
    for chart in made.charts.values():
        rest.call("PUT", f"chart/{chart}", {"dashboards": [number]})
    page = f"/superset/dashboard/{number}/"
    picture = options.picture or Path("superset.png")
    steps: list[tuple[str, float]] = [("before", spent_share(server))]
    drawn = draw(bi, page, picture)
    steps.append(("first drawing", spent_share(server)))
    draw(bi, page, picture.with_name("again.png"))
    steps.append(("drawn again", spent_share(server)))
    chosen = draw(bi, f"{page}?{FILTERED}", picture.with_name("filtered.png"))
    steps.append(("drawn with filters", spent_share(server)))
    replies = [rest.call("POST", "chart/data", {**one["body"], "force": True}, refused=True) for one in drawn + chosen]
    steps.append(("asked again by the API", spent_share(server)))
    for (_, before), (name, after) in itertools.pairwise(steps):
        print(f"{name}: {100 * (after - before):.3f} % of the budget")
    ask_for_rows(rest, made)
    report(recorder, options.statements)
    truth.compare([query for reply in replies for query in reply.get("result", [])])


def make(rest: Rest, address: str) -> Made:
    """The database, the data sets and the charts."""
    made = Made()
    database = {"database_name": f"clinic {int(time.time())}", "sqlalchemy_uri": address}
    rest.call("POST", "database/test_connection/", database)
    number = rest.made("database/", {**database, "expose_in_sqllab": True})
    for schemas in ("schemas/", "tables/?q=(schema_name:public)"):
        rest.call("GET", f"database/{number}/{schemas}")
    for table in ("patients", "visits"):
        made.data_sets[table] = rest.made("dataset/", {"database": number, "schema": "public", "table_name": table})
    # Superset asks a query for a row to see its columns. With a condition that is false it sees them; then that is taken away.
    virtual = {"database": number, "schema": "public", "table_name": "visits and patients", "sql": f"{VISITS_WITH_PATIENTS} WHERE 1 = 0"}
    made.data_sets["visits and patients"] = joined = rest.made("dataset/", virtual)
    rest.call("PUT", f"dataset/{joined}", {"sql": VISITS_WITH_PATIENTS})
    for data_set in made.data_sets.values():
        metrics = rest.call("GET", f"dataset/{data_set}")["result"]["metrics"]
        if not any(one["metric_name"] == "count" for one in metrics):
            rest.call("PUT", f"dataset/{data_set}", {"metrics": [{"metric_name": "count", "expression": "COUNT(*)"}]})
    for chart in CHARTS:
        made.charts[chart.name] = rest.made("chart/", chart.body(made.data_sets[chart.source]))
    return made


def ask_for_rows(rest: Rest, made: Made) -> None:
    """What "View samples" and a histogram do: they are refused."""
    source = {"datasource": {"id": made.data_sets["patients"], "type": "table"}, "result_format": "json"}
    for question in ({"result_type": "samples", "queries": [{"row_limit": 10}]}, {"queries": [{"columns": ["income"], "row_limit": 10}]}):
        reply = rest.call("POST", "chart/data", {**source, **question}, refused=True)
        print(f"rows: {'refused' if 'rows-not-aggregates' in str(reply) else reply}")


def draw(bi: Superset, page: str, picture: Path) -> list[dict[str, Any]]:
    """Draw a page in Chromium; what its charts asked Superset for."""
    browser = [bi.python, Path(__file__).with_name("browser.py"), f"http://127.0.0.1:{bi.port}", bi.password, page, picture]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in browser], stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise SystemExit("the page was not drawn")
    said = json.loads(done.stdout)
    failed = [one for one in said["requests"] if one.get("status") != 200]
    print(f"{page}: {len(said['requests'])} requests, {len(failed)} failed, page: {said['state']}", flush=True)
    return list(said["requests"])


def report(recorder: Recorder, path: Path | None) -> None:
    """The share that was answered, and the list of different statements."""
    different = {one.statement: one for one in reversed(recorder.sent)}
    listed = list(reversed(different.values()))
    answered = [one for one in recorder.sent if not one.outcome[:1].isdigit()]
    print(f"statements: {len(recorder.sent)}, answered {100 * len(answered) / len(recorder.sent):.1f} %; different: {len(listed)}")
    for one in listed:
        if one.outcome[:1].isdigit():
            print(f"refused: {one.outcome}: {one.statement}")
    if path is not None:
        with path.open("w", encoding="utf-8") as out:
            for one in listed:
                out.write(json.dumps({"sql": one.statement, "outcome": one.outcome, "by": one.by}) + "\n")


if __name__ == "__main__":
    main()
