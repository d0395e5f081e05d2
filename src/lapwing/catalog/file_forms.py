"""The format of a table's files: declarations other than columns, and their checks."""

from __future__ import annotations

from lapwing.catalog.positions import Path
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.schema import CatalogueModel, PublicModel, TableModel


def check_file_forms(report: ProblemReport, model: CatalogueModel) -> None:
    """``partitions`` and ``delimiter``: for files only, and of columns that are declared."""
    for section, tables in (("tables", model.tables), ("public", model.public)):
        for name, table in tables.items():
            base: Path = (section, name)
            is_file = model.dataset.engine == "duckdb" or (model.dataset.engine == "spark" and table.source.endswith(".parquet"))
            _check_partitions(report, base, table, is_file=is_file)
            if table.delimiter != "," and not (is_file and table.source.endswith((".csv", ".csv.gz"))):
                report.problem("catalogue-contradiction", (*base, "delimiter"), "only CSV files have a `delimiter`", hint="leave it out")


def _check_partitions(report: ProblemReport, base: Path, table: TableModel | PublicModel, *, is_file: bool) -> None:
    if table.partitions and not is_file:
        report.problem("catalogue-contradiction", (*base, "partitions"), "only files lie in folders", hint="leave `partitions` out")
    read = {column.source_name or name for name, column in table.columns.items()}
    for position, partition in enumerate(table.partitions):
        at: Path = (*base, "partitions", position)
        if partition not in read:
            hint = "declare it among the columns, or leave it out: names of folders that are not declared are not read"
            report.problem("catalogue-bad-reference", at, f"no column is read from {partition!r}", hint=hint)
        if partition in table.partitions[:position]:
            report.problem("catalogue-duplicate", at, f"{partition!r} is listed twice")
        if "/" in partition or "=" in partition:
            report.problem("catalogue-bad-name", at, f"{partition!r} cannot be the name in a folder", hint="without / and =")
