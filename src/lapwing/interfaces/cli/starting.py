"""``lapwing demo`` and ``lapwing init``: a first catalogue, for made-up data or for your own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lapwing.demo.write import CATALOGUE_FILE, PATIENTS_DEFAULT, PATIENTS_MAX
from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import reported, usage_error, without_password_typed
from lapwing.interfaces.cli.place import catalogue_path, shell_quoted
from lapwing.interfaces.cli.views import EngineName


def add_starting(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("demo", short_help="Write a demonstration data set of made-up patients.")(demo)
    app.command("init", short_help="Write a first catalogue from the schemas of files.")(init)


def demo(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it; created if needed.")],
    patients: Annotated[int, typer.Option(min=1, max=PATIENTS_MAX, help="How many made-up patients.")] = PATIENTS_DEFAULT,
) -> None:
    """Write a demonstration data set: made-up patients, visits and prescriptions, with their catalogue.

    \b
    Example:
        lapwing demo clinic
        lapwing demo small --patients 500
    """
    from lapwing.demo import write_demo

    with reported():
        try:
            catalogue, *files = write_demo(directory, patients=patients)
        except FileExistsError as error:
            raise usage_error(f"{error}; choose a directory without it") from None
        except OSError as error:
            raise usage_error(f"the directory cannot be written: {error.strerror}") from None
        where = shell_quoted(directory)
        statement = "SELECT region, COUNT(*) AS patients FROM patients GROUP BY region ORDER BY patients DESC"
        typer.echo(f"Wrote {catalogue.name} and {len(files)} Parquet files to {directory} ({patients:,} made-up patients).")
        typer.echo("Read the catalogue; it is short and explains itself. Then:")
        typer.echo(f"  lapwing -C {where} check")
        typer.echo(f"  lapwing -C {where} prepare")
        typer.echo(f'  lapwing -C {where} explain "{statement}" --epsilon 0.5')
        typer.echo(f'  lapwing -C {where} ask "{statement}" --epsilon 0.5')
        typer.echo(f"  lapwing -C {where} budget")


def init(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Parquet or CSV files, folders of them, patterns in quotes such as 'visits/*.parquet'; or names of tables on an engine.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option(help="Where to write the catalogue; - prints it.", show_default="lapwing.toml, in the directory of -C")
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Where the tables are.")] = EngineName.DUCKDB,
    connection: Annotated[
        str, typer.Option(help="With --engine postgres: how to reach the database, without a password.", callback=without_password_typed)
    ] = "",
    apart: Annotated[bool, typer.Option("--apart", help="One table for each file, even if names differ only in a number.")] = False,
) -> None:
    """Write a commented first catalogue for some files or tables. Only their schemas are read, never a row.

    Files of one folder that have the same columns, and names that differ only in numbers or dates, are one table.

    \b
    Example:
        lapwing init patients.parquet visits/ clinics.csv
        lapwing init --engine postgres --connection "dbname=clinic user=clinic_reader" clinic.patients clinic.visits
        lapwing check
    """
    from lapwing.interfaces.cli.initial import initial_catalogue, whole_tables

    with reported():
        if output is None:
            place = catalogue_path(context)
            output = place / CATALOGUE_FILE if place.is_dir() else place
        to_stdout = str(output) == "-"
        if not to_stdout and output.exists():
            raise usage_error(f"{output} already exists; give another --output")
        sources, said = whole_tables(files, engine=engine.value, apart=apart)
        text, todos = initial_catalogue(
            sources, directory=Path() if to_stdout else output.parent, engine=engine.value, connection=connection
        )
        for sentence in said:
            terminal.write_note(sentence)
        if to_stdout:
            typer.echo(text, nl=False)
            return
        try:
            with output.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise usage_error(f"{output} cannot be written: {error.strerror}") from None
        typer.echo(f"Wrote {output} from the schemas alone: no row was read, so it knows no bounds and no values.")
        typer.echo(f"{todos} lines are marked TODO. Edit them, then run: lapwing -C {shell_quoted(output)} check")
