"""``lapwing release ...``: counts that are bought once and answer for ever; from the ledger, or from a file without any data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli.exits import reported, usage_error
from lapwing.interfaces.cli.place import whereabouts
from lapwing.interfaces.cli.release_words import WAYS, Method, PartText, further_part
from lapwing.interfaces.cli.views import AnswerFormat, write_answer, write_table

if TYPE_CHECKING:
    from lapwing.releases.released import Release

release_app = typer.Typer(
    name="release",
    help="Counts and synthetic tables that are bought once and answer for ever.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the release, or a file that `lapwing release save` wrote.")]
NewName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the new release.")]
Columns = Annotated[list[str], typer.Argument(metavar="COLUMN...", help="The columns; column=16 cuts a range into 16 bins.")]
Epsilon = Annotated[str | None, typer.Option(metavar="NUMBER", help="Epsilon of the whole release. Default: that of a statement.")]
Analyst = Annotated[str | None, typer.Option(metavar="NAME", help="Who pays, on a ledger that knows analysts.")]
TableName = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="The table, if several have these columns.")]
Ways = Annotated[int, typer.Option(min=1, max=4, help="Count combinations of up to this many columns.")]
Synthetic = Annotated[bool, typer.Option("--synthetic", help="Measure what a synthetic table needs.")]
Tree = Annotated[bool, typer.Option("--tree", help="Counts of ranges of one column, of any length.")]
By = Annotated[list[str] | None, typer.Option("--by", metavar="COLUMN", help="With --tree: ranges for each value of this column.")]
Branch = Annotated[int | None, typer.Option("--branch", min=2, max=64, help="With --tree: children of one node; 4 by default.")]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="WORDS", help="A further part under the same charge: columns and options as here."),
]
Shares = Annotated[
    list[str] | None,
    typer.Option("--share", metavar="NUMBER", help="Each part's share of the price, in order, in any unit; equal by default."),
]
Rows = Annotated[int | None, typer.Option("--rows-per-unit", min=1, help="How many rows of one unit are counted.")]
Keys = Annotated[Path | None, typer.Option(metavar="DIR", help="For a file: the public keys, one of which must have signed it.")]


Made = Annotated[Method, typer.Option("--method", help="With --synthetic: how its table is made.")]


@release_app.command("plan", short_help="Show what a release would measure, how accurate it would be, and its price.")
def plan(
    context: typer.Context,
    name: NewName,
    columns: Columns,
    ways: Ways = WAYS,
    synthetic: Synthetic = False,
    method: Made = Method.AUTO,
    tree: Tree = False,
    by: By = None,
    branch: Branch = None,
    further: With = None,
    share: Shares = None,
    table: TableName = None,
    epsilon: Epsilon = None,
    rows_per_unit: Rows = None,
    analyst: Analyst = None,
) -> None:
    """Show what a release would measure, how accurate it would be, and its price. Free; touches no data.

    \b
    Example:
        lapwing -C clinic release plan people sex region smoker birth_year=10 --epsilon 0.5
        lapwing -C clinic release plan years birth_year --tree --by sex --epsilon 0.5
        lapwing -C clinic release plan all sex region smoker --with "birth_year --tree --by sex" --with "sex region --synthetic"
    """
    with reported(), whereabouts(context).opened(analyst=analyst) as data_set:
        wanted = [PartText(columns, ways, synthetic, method, tree, by or (), branch).wanted(), *map(further_part, further or ())]
        planned = data_set.release(*wanted, name=name, table=table, epsilon=epsilon, rows_per_unit=rows_per_unit, shares=share or ())
        typer.echo(planned.explain())


@release_app.command("run", short_help="Buy a release: one charge, and free answers for ever.")
def run(
    context: typer.Context,
    name: NewName,
    columns: Columns,
    ways: Ways = WAYS,
    synthetic: Synthetic = False,
    method: Made = Method.AUTO,
    tree: Tree = False,
    by: By = None,
    branch: Branch = None,
    further: With = None,
    share: Shares = None,
    table: TableName = None,
    epsilon: Epsilon = None,
    rows_per_unit: Rows = None,
    analyst: Analyst = None,
) -> None:
    """Buy a release: one charge for all of it. The same release again is free.

    \b
    Example:
        lapwing -C clinic release run people sex region smoker birth_year=10 --epsilon 0.5
        lapwing -C clinic release query people "SELECT sex, COUNT(*) AS n FROM patients WHERE smoker GROUP BY sex"
    """
    with reported(), whereabouts(context).opened(analyst=analyst) as data_set:
        wanted = [PartText(columns, ways, synthetic, method, tree, by or (), branch).wanted(), *map(further_part, further or ())]
        planned = data_set.release(*wanted, name=name, table=table, epsilon=epsilon, rows_per_unit=rows_per_unit, shares=share or ())
        cost = planned.cost
        bought = planned.run()
        paid = "free: it was bought before" if cost.free else f"cost epsilon {cost.epsilon:.3g}"
        typer.echo(f"Released {bought.name}: {len(bought.terms.tables):,} tables of {bought.cells:,} cells; {paid}.")


@release_app.command("list", short_help="List the releases.")
def listed(context: typer.Context, analyst: Analyst = None) -> None:
    """List the releases of the newest version, newest first. Free."""
    with reported(), whereabouts(context).opened(analyst=analyst) as data_set:
        rows = [[one.name, one.of_table, ", ".join(one.columns), one.kind, f"{one.cells:,}"] for one in data_set.releases()]
        write_table(["name", "table", "columns", "kind", "cells"], rows, right=[False, False, False, False, True])


@release_app.command("query", short_help="Answer SQL from a release, free.")
def query(
    context: typer.Context,
    name: Name,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The statement.")],
    confidence: Annotated[float, typer.Option(min=0.01, max=0.9999, help="Of the error bars.")] = 0.95,
    form: Annotated[AnswerFormat, typer.Option("--format", help="How to print it.")] = AnswerFormat.TABLE,
    analyst: Analyst = None,
    keys: Keys = None,
) -> None:
    """Answer SQL from a release, free, with error bars; a statement that it cannot answer is refused with the reason.

    \b
    Example:
        lapwing -C clinic release query people "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
        lapwing release query people.lapwing "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
    """
    with reported(sql, form):
        write_answer(_opened(context, name, analyst, keys).query(sql, confidence=confidence), form)


@release_app.command("table", short_help="Write a synthetic table to a file.")
def table(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new .parquet or .csv file.")],
    rows: Annotated[int | None, typer.Option(min=1, help="How many rows. Default: as many as the release estimates.")] = None,
    analyst: Analyst = None,
    keys: Keys = None,
) -> None:
    """Write a synthetic table. Its rows belong to nobody and carry no error bars: count with `lapwing release query`.

    \b
    Example:
        lapwing -C clinic release table people people.parquet
    """
    with reported():
        if file.exists() or file.suffix not in (".parquet", ".csv"):
            raise usage_error(f"{file} must be a new file that ends in .parquet or .csv")
        made = _opened(context, name, analyst, keys).table(rows=rows)
        if file.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(made, file)
        else:
            import pyarrow.csv as pc

            pc.write_csv(made, file)
        typer.echo(f"Wrote {made.num_rows:,} synthetic rows to {file}.")


@release_app.command("report", short_help="Write a page about a release.")
def report(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new .html file.")],
    analyst: Analyst = None,
    keys: Keys = None,
) -> None:
    """Write a page about a release: what was measured, how accurate it is, and pictures of its columns. The page needs no network."""
    from lapwing.releases.report import release_html

    with reported():
        if file.exists():
            raise usage_error(f"{file} already exists")
        file.write_text(release_html(_opened(context, name, analyst, keys)), encoding="utf-8")
        typer.echo(f"Wrote {file}.")


@release_app.command("save", short_help="Write a release to a file that answers without the data.")
def save(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, such as people.lapwing.")],
    analyst: Analyst = None,
) -> None:
    """Write a release to a file that can be queried without the data and without a server.

    \b
    Example:
        lapwing -C clinic release save people people.lapwing
    """
    from lapwing.owner.release_file import save_release

    with reported():
        save_release(_opened(context, name, analyst, None), file)
        typer.echo(f"Wrote {file}.")


def _opened(context: typer.Context, name: str, analyst: str | None, keys: Path | None) -> Release:
    """A release from the file of that name, if there is one; otherwise from the ledger."""
    from lapwing.owner.release_file import open_release

    if Path(name).is_file():
        return open_release(name, keys=keys)
    with whereabouts(context).opened(analyst=analyst) as data_set:
        return data_set.release_named(name)
