"""The data sets, charts and the dashboard: what somebody would click together."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

REGION_FILTER, TIME_FILTER = "NATIVE_FILTER-region", "NATIVE_FILTER-time"
VISITS_WITH_PATIENTS = """SELECT v.day, v.cost, v.minutes, v.code, v.clinic_id, p.region, p.sex, p.birth_year
FROM visits AS v JOIN patients AS p ON p.patient_id = v.patient_id"""
AGE_BANDS = (
    "CASE WHEN birth_year >= 2006 THEN '0-19' WHEN birth_year >= 1986 THEN '20-39'"
    " WHEN birth_year >= 1966 THEN '40-59' WHEN birth_year >= 1946 THEN '60-79' ELSE '80+' END"
)
INCOME_BANDS = "FLOOR(income / 20000) * 20000"


def metric(aggregate: str, column: str, label: str) -> dict[str, Any]:
    """A metric over a column, as the editor makes it."""
    return {
        "expressionType": "SIMPLE",
        "aggregate": aggregate,
        "column": {"column_name": column},
        "label": label,
        "optionName": f"m_{label}",
    }


def sql_metric(expression: str, label: str) -> dict[str, Any]:
    """A metric in SQL."""
    return {"expressionType": "SQL", "sqlExpression": expression, "label": label, "optionName": f"m_{label}"}


def sql_column(expression: str, label: str) -> dict[str, Any]:
    """A column in SQL."""
    return {"expressionType": "SQL", "sqlExpression": expression, "label": label}


def where(column: str, operator: str, operator_id: str, value: Any) -> dict[str, Any]:
    """A filter of one chart."""
    said = {"expressionType": "SIMPLE", "clause": "WHERE", "subject": column, "operator": operator, "operatorId": operator_id}
    return {**said, "comparator": value, "filterOptionName": f"f_{column}"}


@dataclass(frozen=True)
class Chart:
    """A chart over one of the data sets."""

    name: str
    kind: str
    source: str
    form: dict[str, Any]
    width: int = 4
    height: int = 40

    def body(self, data_set: int) -> dict[str, Any]:
        """What Superset is told."""
        form = {"viz_type": self.kind, "datasource": f"{data_set}__table", "row_limit": 1000, "time_range": "No filter", **self.form}
        form.setdefault("adhoc_filters", [])
        return {
            "slice_name": self.name,
            "viz_type": self.kind,
            "datasource_id": data_set,
            "datasource_type": "table",
            "params": json.dumps(form),
        }


_MONTHLY: dict[str, Any] = {"x_axis": "day", "time_grain_sqla": "P1M", "granularity_sqla": "day", "x_axis_time_format": "smart_date"}
_SORTED: dict[str, Any] = {"x_axis_sort_asc": True, "sort_series_type": "sum", "orientation": "vertical"}
_TWO_SEXES = where("sex", "IN", "IN", ["f", "m"])

CHARTS = (
    Chart("Patients", "big_number_total", "patients", {"metric": "count", "y_axis_format": ",d"}, 3, 26),
    Chart("Average cost of a visit", "big_number_total", "visits", {"metric": metric("AVG", "cost", "Average cost")}, 3, 26),
    Chart(
        "Patients who smoke",
        "big_number_total",
        "patients",
        {"metric": sql_metric("AVG(CASE WHEN smoker THEN 1.0 ELSE 0.0 END)", "Smokers"), "y_axis_format": ".1%"},
        3,
        26,
    ),
    Chart("Visits by month", "big_number", "visits", {**_MONTHLY, "metric": "count", "compare_lag": 1, "show_trend_line": True}, 3, 26),
    Chart("Visits over time", "echarts_timeseries_line", "visits", {**_MONTHLY, "metrics": ["count"], "groupby": []}, 6),
    Chart(
        "Cost over time by sex",
        "echarts_area",
        "visits and patients",
        {**_MONTHLY, "metrics": [metric("SUM", "cost", "Cost")], "groupby": ["sex"], "adhoc_filters": [_TWO_SEXES], "stack": "Stack"},
        6,
    ),
    Chart(
        "Patients by region",
        "echarts_timeseries_bar",
        "patients",
        {"x_axis": "region", "metrics": ["count"], "groupby": [], **_SORTED},
    ),
    Chart(
        "Patients by age",
        "echarts_timeseries_bar",
        "patients",
        {"x_axis": sql_column(AGE_BANDS, "Age"), "metrics": ["count"], "groupby": ["sex"], "stack": "Stack", **_SORTED},
    ),
    Chart(
        "Income in bands",
        "echarts_timeseries_bar",
        "patients",
        {
            "x_axis": sql_column(INCOME_BANDS, "Income from"),
            "metrics": ["count"],
            "groupby": [],
            "adhoc_filters": [where("income", "IS NOT NULL", "IS_NOT_NULL", None)],
            **_SORTED,
        },
    ),
    Chart("Visits by diagnosis", "pie", "visits", {"metric": "count", "groupby": ["code"], "row_limit": 10, "sort_by_metric": True}),
    Chart(
        "Regions",
        "table",
        "visits and patients",
        {
            "query_mode": "aggregate",
            "groupby": ["region"],
            "metrics": ["count", metric("AVG", "minutes", "Minutes"), metric("SUM", "cost", "Cost")],
            "order_desc": True,
            "server_pagination": False,
            "table_timestamp_format": "smart_date",
        },
    ),
    Chart(
        "Clinics and sexes",
        "pivot_table_v2",
        "visits and patients",
        {
            "groupbyRows": ["clinic_id"],
            "groupbyColumns": ["sex"],
            "metrics": ["count"],
            "metricsLayout": "COLUMNS",
            "aggregateFunction": "Sum",
            "rowTotals": True,
            "rowOrder": "key_a_to_z",
            "colOrder": "key_a_to_z",
            "valueFormat": ",d",
            "order_desc": True,
        },
    ),
    Chart(
        "Visits: region and sex",
        "heatmap_v2",
        "visits and patients",
        {
            "x_axis": "sex",
            "groupby": "region",
            "metric": "count",
            "sort_x_axis": "alpha_asc",
            "sort_y_axis": "alpha_asc",
            "normalize_across": "heatmap",
            "linear_color_scheme": "superset_seq_1",
        },
    ),
    Chart(
        "Average cost of diagnoses",
        "box_plot",
        "visits",
        {"columns": ["code"], "groupby": [], "metrics": [metric("AVG", "cost", "Average cost")], "whiskerOptions": "Min/max (no outliers)"},
    ),
    Chart("Vaccinated", "funnel", "patients", {"metric": "count", "groupby": ["vaccinated"], "sort_by_metric": True}),
    Chart(
        "Cost by region",
        "treemap_v2",
        "visits and patients",
        {"metric": metric("SUM", "cost", "Cost"), "groupby": ["region"]},
    ),
)


@dataclass
class Made:
    """What was made in Superset, by name."""

    data_sets: dict[str, int] = field(default_factory=dict)
    charts: dict[str, int] = field(default_factory=dict)


def dashboard(made: Made) -> dict[str, Any]:
    """All charts in rows, with a filter on regions and one on time."""
    metadata = {"native_filter_configuration": _filters(made), "cross_filters_enabled": False, "refresh_frequency": 0}
    return {
        "dashboard_title": "Clinic, answered privately",
        "slug": "clinic",
        "published": True,
        "position_json": json.dumps(_positions(made)),
        "json_metadata": json.dumps(metadata),
    }


def _positions(made: Made) -> dict[str, Any]:
    rows: list[list[Chart]] = [[]]
    for chart in CHARTS:
        if sum(one.width for one in rows[-1]) + chart.width > 12:
            rows.append([])
        rows[-1].append(chart)
    names = [f"ROW-{i}" for i in range(len(rows))]
    found: dict[str, Any] = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": names, "parents": ["ROOT_ID"]},
        "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": "Clinic, answered privately"}},
    }
    for name, row in zip(names, rows, strict=True):
        children = [f"CHART-{made.charts[chart.name]}" for chart in row]
        background = {"background": "BACKGROUND_TRANSPARENT"}
        found[name] = {"type": "ROW", "id": name, "children": children, "parents": ["ROOT_ID", "GRID_ID"], "meta": background}
        for child, chart in zip(children, row, strict=True):
            meta = {"chartId": made.charts[chart.name], "width": chart.width, "height": chart.height, "sliceName": chart.name}
            found[child] = {"type": "CHART", "id": child, "children": [], "parents": ["ROOT_ID", "GRID_ID", name], "meta": meta}
    return found


def _filters(made: Made) -> list[dict[str, Any]]:
    common = {
        "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
        "cascadeParentIds": [],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": []},
        "type": "NATIVE_FILTER",
        "description": "",
        "chartsInScope": list(made.charts.values()),
        "tabsInScope": [],
    }
    region = {
        **common,
        "id": REGION_FILTER,
        "name": "Region",
        "filterType": "filter_select",
        "targets": [{"datasetId": made.data_sets["patients"], "column": {"name": "region"}}],
        "controlValues": {"enableEmptyFilter": False, "defaultToFirstItem": False, "multiSelect": True, "searchAllOptions": False},
    }
    time = {**common, "id": TIME_FILTER, "name": "Time", "filterType": "filter_time", "targets": [{}], "controlValues": {}}
    return [region, time]


def filtered(regions: list[str], time_range: str) -> str:
    """The words of an address that set the filters."""
    chosen = ",".join(regions)
    region = (
        f"{REGION_FILTER}:(extraFormData:(filters:!((col:region,op:IN,val:!({chosen})))),"
        f"filterState:(label:'{chosen}',value:!({chosen})),id:{REGION_FILTER},ownState:())"
    )
    time = f"{TIME_FILTER}:(extraFormData:(time_range:'{time_range}'),filterState:(value:'{time_range}'),id:{TIME_FILTER},ownState:())"
    return f"native_filters=({region},{time})"
