"""Makes the pictures in which clients of the PostgreSQL wire show error bars: psql, and a band drawn by Apache Superset.

    python docs/images/make_bands.py [PYTHON_OF_SUPERSET [DIRECTORY_FOR_ITS_DATA]]

Needs PostgreSQL and Chromium; for Superset an environment as integrations/superset/README.md describes it, and without one psql alone is
drawn. The figures are noisy and come out anew each time; nothing checks them.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "integrations" / "superset")]

from make_pictures import photograph, run_on_terminal  # noqa: E402
from rest import Rest  # noqa: E402
from run import draw  # noqa: E402
from services import Served, Superset, postgres, served, superset  # noqa: E402

PATIENTS = 50_000
DECADES = "SELECT birth_year / 10 * 10 AS decade, COUNT(*) AS n FROM patients WHERE region = 'midtown' GROUP BY decade ORDER BY decade;"
PSQL = f"""SELECT COUNT(*) AS n, AVG(income) AS income FROM patients;
SET lapwing.intervals = on;
SET lapwing.noise_as_null = on;
{DECADES}
"""
OPTIONS = "-c lapwing.intervals=named -c lapwing.noise_as_null=on -c lapwing.epsilon=0.3"
BAND = ("people__yhat", "people__yhat_lower", "people__yhat_upper")
"""Names that Superset draws as a line with a band."""


def main(python: Path | None, home: Path | None) -> None:
    """Make both."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        scratch.chmod(0o755)
        os.chdir(scratch)
        server = stack.enter_context(served(scratch / "lapwing", stack.enter_context(postgres(scratch / "postgres")), PATIENTS))
        draw_psql(server, HERE / "psql.png")
        if python is not None:
            draw_superset(server, stack.enter_context(superset(python, home or scratch / "superset")), HERE / "superset-band.png")


def draw_psql(server: Served, target: Path) -> None:
    """A session of psql, as it is typed and shown."""
    script = Path("session.sql")
    script.write_text(PSQL, encoding="utf-8")
    shown = run_on_terminal(f"psql -X -e -q -P pager=off -P null=NULL -f {script} {server.address()}")
    lines = [line.partition("NOTICE:  ")[1] + line.partition("NOTICE:  ")[2] or line for line in shown.splitlines()]
    body = "\n".join(f"<b>=&gt; {html.escape(line)}</b>" if line in PSQL.splitlines() else html.escape(line) for line in lines)
    photograph(f"<pre>{body}</pre>", target, style="background: #fff; color: #24292e")


def draw_superset(server: Served, bi: Superset, target: Path) -> None:
    """A line over weeks with a band."""
    rest = Rest(bi.port)
    rest.login(bi.password)
    extra = '{"engine_params": {"connect_args": {"options": "' + OPTIONS + '"}}}'
    database = rest.made("database/", {"database_name": f"clinic {bi.port}", "sqlalchemy_uri": server.address(), "extra": extra})
    visits = rest.made("dataset/", {"database": database, "schema": "public", "table_name": "visits"})
    week = {"x_axis": "day", "time_grain_sqla": "P1W", "metrics": [_people(name) for name in BAND], "groupby": []}
    page = _dashboard(rest, {"People with a visit, by week": ("echarts_timeseries_line", visits, week)})
    draw(bi, page, Path("superset.png"))
    picture = Image.open("superset.png").convert("RGB")
    picture.crop((0, 0, picture.width, 490)).resize((1000, 490 * 1000 // picture.width)).quantize(64).save(target, optimize=True)


def _people(label: str) -> dict[str, Any]:
    return {"expressionType": "SQL", "sqlExpression": "COUNT(DISTINCT patient_id)", "label": label, "optionName": f"m_{label}"}


def _dashboard(rest: Rest, charts: dict[str, tuple[str, int, dict[str, Any]]]) -> str:
    """The page of a dashboard with these charts below each other."""
    import json

    positions: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": [], "parents": ["ROOT_ID"]},
    }
    made = []
    for name, (kind, table, form) in charts.items():
        said = {
            "viz_type": kind,
            "datasource": f"{table}__table",
            "time_range": "No filter",
            "row_limit": 1000,
            "adhoc_filters": [],
            **form,
        }
        body = {"slice_name": name, "viz_type": kind, "datasource_id": table, "datasource_type": "table", "params": json.dumps(said)}
        made.append(rest.made("chart/", body))
        row, chart = f"ROW-{made[-1]}", f"CHART-{made[-1]}"
        positions["GRID_ID"]["children"].append(row)
        meta = {"chartId": made[-1], "width": 12, "height": 50, "sliceName": name}
        positions[row] = {"type": "ROW", "id": row, "children": [chart], "parents": ["ROOT_ID", "GRID_ID"], "meta": {}}
        positions[chart] = {"type": "CHART", "id": chart, "children": [], "parents": ["ROOT_ID", "GRID_ID", row], "meta": meta}
    number = rest.made("dashboard/", {"dashboard_title": "Error bars", "published": True, "position_json": json.dumps(positions)})
    for chart in made:
        rest.call("PUT", f"chart/{chart}", {"dashboards": [number]})
    return f"/superset/dashboard/{number}/?standalone=1"


if __name__ == "__main__":
    main(*(Path(word).absolute() for word in sys.argv[1:3]), *[None] * (3 - max(len(sys.argv), 1)))
