"""The commands. Each imports what it needs when it runs, so that help and mistakes in the command line are shown at once."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, cast

import typer

from lapwing.cli import terminal
from lapwing.cli.conformance import add_conformance
from lapwing.cli.describing import add_describe
from lapwing.cli.exits import reported, usage_error
from lapwing.cli.ledgers import ledger_app, receipt_app
from lapwing.cli.policies import add_policies
from lapwing.cli.serving import add_serving
from lapwing.cli.views import AnswerFormat, EngineName, ReportFormat, SqlSpelling
from lapwing.demo.write import CATALOGUE_FILE, PATIENTS_DEFAULT, PATIENTS_MAX

if TYPE_CHECKING:
    from lapwing.curator.life import Curator

# Plain help: the library's coloured help is unreadable on light backgrounds. Its tracebacks show local variables, which can be data: never.
app = typer.Typer(
    name="lapwing",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


add_policies(ledger_app)
add_describe(app)
add_conformance(app)
add_serving(app)
app.add_typer(ledger_app)
app.add_typer(receipt_app)

ScaledGroups = Annotated[bool, typer.Option("--scaled-groups", help="Scale groups, measured at a low bound, to a total: a model.")]


def main() -> None:
    """Run ``lapwing`` with the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a sign (±, █) shows a question mark; it does not end the command.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    sys.stdout, sys.stderr = cast(TextIO, terminal.Careful(sys.stdout)), cast(TextIO, terminal.Careful(sys.stderr))
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Told to stop, a command ends in order: what it reserved is forfeited by itself and does not count as the death of a process.
        signal.signal(number, _stopped)
    app(prog_name="lapwing")


def _stopped(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"lapwing {version('lapwing')}")
        raise typer.Exit


@app.callback()
def _lapwing(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Option("-C", metavar="DIR", help="The data set: the directory of its lapwing.toml, or that file.")
    ] = Path(),
    _show_version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Answer SQL about people, privately: noisy answers with error bars, paid from a budget that is kept.

    \b
    A first tour, with made-up data:
        lapwing demo clinic
        lapwing -C clinic prepare
        lapwing -C clinic ask "SELECT region, COUNT(*) FROM patients GROUP BY region" --epsilon 0.5
        lapwing -C clinic budget

    \b
    With your own files:
        lapwing init patients.parquet visits.parquet
        (edit lapwing.toml: say whose rows they are, bounds, budget)
        lapwing check
        lapwing prepare

    \b
    Exit status: 0 done; 1 internal fault or ledger; 2 wrong usage; 3 refused;
    4 the budget cannot pay; 5 the owner must act (catalogue, preparation);
    6 an audit refuted a claim.
    """
    context.obj = directory


@app.command(short_help="Write a demonstration data set of made-up patients.")
def demo(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it; made if need be.")],
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
        where = _shell_quoted(directory)
        statement = "SELECT region, COUNT(*) AS patients FROM patients GROUP BY region ORDER BY patients DESC"
        typer.echo(f"Wrote {catalogue.name} and {len(files)} Parquet files to {directory} ({patients:,} made-up patients).")
        typer.echo("Read the catalogue, it is short and says why. Then:")
        typer.echo(f"  lapwing -C {where} check")
        typer.echo(f"  lapwing -C {where} prepare")
        typer.echo(f'  lapwing -C {where} explain "{statement}" --epsilon 0.5')
        typer.echo(f'  lapwing -C {where} ask "{statement}" --epsilon 0.5')
        typer.echo(f"  lapwing -C {where} budget")


@app.command(short_help="Write a first catalogue from the schemas of files.")
def init(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Parquet or CSV files, or patterns in quotes such as 'visits/*.parquet'; or names of tables on an engine."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option(help="Where to write the catalogue; - prints it.", show_default="lapwing.toml, in the directory of -C")
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Where the tables are.")] = EngineName.DUCKDB,
    connection: Annotated[str, typer.Option(help="With --engine postgres: how to reach the database, without a password.")] = "",
) -> None:
    """Write a commented first catalogue for some files or tables. Only their schemas are read, never a row.

    \b
    Example:
        lapwing init patients.parquet 'visits/*.parquet' clinics.csv
        lapwing init --engine postgres --connection "dbname=clinic user=clinic_reader" clinic.patients clinic.visits
        lapwing check
    """
    from lapwing.cli.initial import initial_catalogue

    with reported():
        if output is None:
            output = context.obj / CATALOGUE_FILE if context.obj.is_dir() else context.obj
        to_stdout = str(output) == "-"
        if not to_stdout and output.exists():
            raise usage_error(f"{output} is already there; give another --output")
        text, todos = initial_catalogue(files, directory=Path() if to_stdout else output.parent, engine=engine.value, connection=connection)
        if to_stdout:
            typer.echo(text, nl=False)
            return
        try:
            with output.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise usage_error(f"{output} cannot be written: {error.strerror}") from None
        typer.echo(f"Wrote {output} from the schemas alone: no row was read, so it knows no bounds and no values.")
        typer.echo(f"{todos} lines are marked TODO. Edit them, then run: lapwing -C {_shell_quoted(output)} check")


@app.command(short_help="Check the catalogue and the schemas of its sources.")
def check(context: typer.Context) -> None:
    """Check the catalogue and the schemas of its sources. Reads no row, charges nothing.

    \b
    Example:
        lapwing -C clinic check
    """
    from lapwing.cli.checking import checked

    with reported():
        raise typer.Exit(checked(_catalogue_path(context)))


@app.command(short_help="Read the sources and write a new version to ask.")
def prepare(
    context: typer.Context,
    override: Annotated[
        str, typer.Option(metavar="REASON", help="The owner's reason to go on where identity or unit changed; kept in the ledger.")
    ] = "",
    append: Annotated[bool, typer.Option("--append", help="Read only new rows of tables that declare `appended_by`.")] = False,
    accept_losses: Annotated[bool, typer.Option("--accept-losses", help="Go on where more than a tenth of a table is left out.")] = False,
) -> None:
    """Read the sources and write a new version to ask. The owner's act; the first time it also makes the ledger.

    \b
    Example:
        lapwing -C clinic prepare
        lapwing -C clinic prepare --override "the sources were moved to another disk"
    """
    from lapwing.cli.preparing import prepared

    with reported(), _curator(context) as curator:
        prepared(curator, override=override, append=append, accept_losses=accept_losses)


@app.command(short_help="Ask a statement and pay for it.")
def ask(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The statement; - reads it from standard input.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="For the whole statement; the catalogue's default when left out.")
    ] = None,
    confidence: Annotated[str | None, typer.Option(metavar="NUMBER", help="Of the error bars, such as 0.95.")] = None,
    form: Annotated[AnswerFormat, typer.Option("--format", help="How to print the answer.")] = AnswerFormat.TABLE,
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who asks; on a ledger with analysts the user of the operating system when left out.")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option(metavar="TEXT", help="A name for this request: repeating it never charges twice.")
    ] = None,
    dialect: Annotated[
        SqlSpelling, typer.Option(help="How the statement is spelt; what it means does not depend on it.")
    ] = SqlSpelling.DUCKDB,
    scaled_groups: ScaledGroups = False,
    receipt: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the signed receipt here.")] = None,
    stored: Annotated[
        Path | None, typer.Option("--answer", metavar="FILE", help="Write the stored answer, which the receipt is for, here.")
    ] = None,
) -> None:
    """Ask a statement and pay for it. Asking the same again on the same version is free.

    \b
    Example:
        lapwing -C clinic ask "SELECT sex, AVG(income) FROM patients GROUP BY sex" --epsilon 0.5
        lapwing -C clinic ask "SELECT COUNT(*) FROM visits" --epsilon 0.1 --format json
        lapwing -C clinic ask "SELECT COUNT(*) FROM visits WITH PRIVACY (error = 2000)"
        lapwing -C clinic ask "SHOW PRIVACY BUDGET"
        lapwing -C clinic ask "SELECT COUNT(*) FROM visits" --receipt receipt.json --answer answer.json
    """
    from lapwing.cli.asking import require_writable, write_stored
    from lapwing.cli.views import write_answer

    statement = _statement(sql)
    with reported(statement):
        from lapwing.client.dataset import DataSet

        with _curator(context) as curator:
            require_writable(curator, receipt=receipt, stored=stored)
            data, scaled = DataSet(curator, analyst=analyst), scaled_groups or None
            answer = data.ask(
                statement, epsilon=epsilon, confidence=confidence, request_id=request_id, dialect=dialect.value, scaled_groups=scaled
            )
            write_answer(answer, form)
            write_stored(answer, receipt=receipt, stored=stored)


@app.command(short_help="Say what a statement would cost; free.")
def explain(
    context: typer.Context,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The statement; - reads it from standard input.")],
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="For the whole statement; the catalogue's default when left out.")
    ] = None,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="Who would ask, and may see stored answers.")] = None,
    dialect: Annotated[
        SqlSpelling, typer.Option(help="How the statement is spelt; what it means does not depend on it.")
    ] = SqlSpelling.DUCKDB,
    scaled_groups: ScaledGroups = False,
) -> None:
    """Say what a statement would cost, how people's influence is bounded and how large the noise is. Free; reads no row.

    \b
    Example:
        lapwing -C clinic explain "SELECT region, COUNT(*) FROM patients GROUP BY region" --epsilon 0.5
    """
    from lapwing.cli.views import write_explanation

    statement = _statement(sql)
    with reported(statement):
        from lapwing.client.dataset import DataSet

        with _curator(context) as curator:
            data, scaled = DataSet(curator, analyst=analyst), scaled_groups or None
            write_explanation(data.explain(statement, epsilon=epsilon, dialect=dialect.value, scaled_groups=scaled), form)


@app.command(short_help="Show what may be spent, what is spent and what is left.")
def budget(
    context: typer.Context, form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE
) -> None:
    """Show what the data set may spend, what is spent and what is left.

    \b
    Example:
        lapwing -C clinic budget
        lapwing -C clinic budget --format json
    """
    from lapwing.cli.views import write_budget

    with reported(), _curator(context) as curator:
        curator.latest()
        dataset = curator.declaration.dataset
        write_budget(curator.budget(), name=dataset.id, form=form)


@app.command(short_help="Show the ledger, newest entries first.")
def history(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many entries, newest first.")] = 20,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
) -> None:
    """Show the entries of the ledger, newest first: charges, answers, the owner's acts.

    \b
    Example:
        lapwing -C clinic history --limit 5
    """
    from lapwing.cli.views import write_history

    with reported(), _curator(context) as curator:
        from lapwing.kernel.accounting import Account

        curator.latest()
        pure = curator.declaration.declared_budget.account is Account.PURE
        write_history(curator.history(limit=limit), form=form, loss_unit="epsilon" if pure else "rho")


@app.command(short_help="Delete the rows of a prepared version.")
def retire(context: typer.Context, version: Annotated[int, typer.Argument(min=1, help="The number of the version.")]) -> None:
    """Delete the rows of a prepared version. What was charged for it stays charged.

    \b
    Example:
        lapwing -C clinic retire 1
    """
    with reported(), _curator(context) as curator:
        curator.retire(version)
        typer.echo(f"Version {version} is deleted; its charges stay.")


@app.command(short_help="Let analysts in again after an incident.")
def reopen(
    context: typer.Context, reason: Annotated[str, typer.Argument(metavar="REASON", help="What was found and done; kept in the ledger.")]
) -> None:
    """Let analysts in again after an incident closed the data set.

    \b
    Example:
        lapwing -C clinic reopen "the disk was full; it has been cleared"
    """
    with reported(), _curator(context) as curator:
        curator.latest()
        curator.reopen(_signed(curator, reason))
        typer.echo("The data set is open.")


@app.command(short_help="Let no analyst ask until it is opened again.")
def close(context: typer.Context, reason: Annotated[str, typer.Argument(metavar="REASON", help="Why; kept in the ledger.")]) -> None:
    """Let no analyst ask until `lapwing reopen`. What is being answered already is still answered.

    \b
    Example:
        lapwing -C clinic close "the lists are being corrected"
    """
    with reported(), _curator(context) as curator:
        curator.latest()
        curator.ledger.close(_signed(curator, reason))
        typer.echo("The data set is closed to analysts.")


@app.command(short_help="Write a backup of the data set's state, ledger and keys.")
def backup(context: typer.Context, to: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")]) -> None:
    """Write a backup: the catalogue, the state directory, the local ledger and the keys, as of one moment. No rows.

    The registry and the anchors are left out: they are what notices that an older state was put back.

    \b
    Example:
        lapwing -C clinic backup clinic-2026-11-15.backup
    """
    from lapwing.cli.backups import backed_up

    with reported():
        backed_up(_catalogue_path(context), to)


@app.command(short_help="Put a backup back, into an empty place.")
def restore(context: typer.Context, file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]) -> None:
    """Put a backup back into the directory (-C), which must have neither a catalogue nor a state directory.

    A ledger that is older than what the registry remembers is put back and not served: `lapwing ledger accept` charges again what it lacks.

    \b
    Example:
        lapwing -C clinic restore clinic-2026-11-15.backup
    """
    from lapwing.cli.backups import restored

    with reported():
        restored(file, _catalogue_path(context))


@app.command(short_help="Try to refute what is claimed, on made-up data.")
def audit(
    context: typer.Context,
    sql: Annotated[
        list[str] | None, typer.Argument(metavar="SQL", help="Statements to audit; when left out, the count of each protected table.")
    ] = None,
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="Of each statement. A large one shows more, and the code is the same.")
    ] = "8",
    samples: Annotated[int, typer.Option(min=100, max=10_000_000, help="Runs on each of two neighbouring data sets.")] = 20_000,
    asks: Annotated[int, typer.Option(min=0, max=1_000, help="Answers asked for one by one, ledger and all, on each of them.")] = 50,
    mechanisms: Annotated[bool, typer.Option("--mechanisms", help="Audit every mechanism of the kernel; needs no catalogue.")] = False,
    plans: Annotated[bool, typer.Option("--plans", help="Audit every shape of plan; needs no catalogue.")] = False,
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
) -> None:
    """Try to refute what is claimed: run on neighbouring made-up data sets, and compare. Reads no row of yours, charges nothing.

    Each line gives the claim and the largest value that the runs refute. Ends with 6 if that is above a claim.

    \b
    Example:
        lapwing -C clinic audit "SELECT region, AVG(income) FROM patients GROUP BY region"
        lapwing audit --mechanisms --samples 100000
    """
    from lapwing.cli.auditing import audited

    statements = [_statement(text) for text in sql or []]
    with reported(statements[0] if len(statements) == 1 else ""):
        status = audited(
            _catalogue_path(context),
            statements,
            epsilon=epsilon,
            samples=samples,
            asks=asks,
            mechanisms=mechanisms,
            plans=plans,
            form=form,
        )
        raise typer.Exit(status)


def _catalogue_path(context: typer.Context) -> Path:
    directory: Path = context.obj
    return directory


def _curator(context: typer.Context) -> Curator:
    from lapwing.curator.life import Curator

    return Curator(_catalogue_path(context))


def _signed(curator: Curator, reason: str) -> str:
    """An owner's reason, with the name of who gave it where several may."""
    from lapwing.curator.life import system_user

    return reason if curator.place.server is None else f"by {system_user()}: {reason}"


def _statement(sql: str) -> str:
    if sql != "-":
        return sql
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise usage_error("standard input is not UTF-8 text") from None


def _shell_quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
