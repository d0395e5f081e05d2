"""``lapwing serve`` and ``lapwing access``: the server, its API keys and who has which role."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.errors import LapwingError
from lapwing.interfaces.cli.exits import reported, usage_error, without_password_typed
from lapwing.interfaces.cli.views import ReportFormat, as_json
from lapwing.interfaces.http.identity.rights import Grant, Role

if TYPE_CHECKING:
    from lapwing.interfaces.http.configuration import ServerConfiguration
    from lapwing.interfaces.http.identity.identities import Identities

Home = Annotated[Path, typer.Option("--home", metavar="DIRECTORY", help="The server's own directory, with lapwing-server.toml.")]
HOME_DEFAULT = Path("lapwing-server")
FIRST_KEY_FILE = "first-key"
"""The file for the first key if there is no terminal; only the user who starts the server can read it."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="A person, or group:NAME for a group of the identity provider.")]
RoleName = Annotated[Role, typer.Argument(help="The role.")]
DataSetName = Annotated[str, typer.Argument(metavar="DATA_SET", help="The data set, by its id; '*' for every one.")]

access_app = typer.Typer(name="access", no_args_is_help=True, rich_markup_mode=None, help="API keys, and who has which role.")


def add_serving(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("serve", short_help="Answer analysts over HTTP.")(serve)
    app.add_typer(access_app)


def serve(
    catalogues: Annotated[
        list[Path] | None, typer.Argument(metavar="[CATALOGUE]...", help="Data sets to serve; written to a new configuration.")
    ] = None,
    home: Home = HOME_DEFAULT,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port to listen on, for a new configuration.")] = 8765,
    wire: Annotated[
        bool | None, typer.Option("--wire/--no-wire", help="Also speak PostgreSQL's protocol. Default: if [wire] is configured.")
    ] = None,
    shadow: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL server for the shadow databases of the wire, for a new configuration.",
            callback=without_password_typed,
        ),
    ] = None,
    wire_port: Annotated[int, typer.Option(min=0, max=65_535, help="The port of the wire, for a new configuration.")] = 5433,
) -> None:
    """Serve data sets to analysts who cannot read their files.

    The first time, name the catalogues: a configuration is written to the server's own directory, which only its user may read. Without a
    catalogue, nothing is served yet, and you get a key to declare files of this directory in a browser. After that, `lapwing serve` alone
    starts the server again.

    \b
    Example:
        lapwing serve
        lapwing serve clinic
        lapwing serve clinic --wire --shadow postgresql://owner@db/postgres
        lapwing access grant ada analyst clinic
        lapwing access key ada
    """
    with reported():
        _require_extra()
        from lapwing.interfaces.http.configuration import CONFIGURATION_FILE, read_configuration
        from lapwing.interfaces.http.run import serve as run

        if shadow is None and wire and not (home / CONFIGURATION_FILE).exists():
            raise usage_error("--wire needs --shadow: the address of a PostgreSQL server where databases can be made")
        is_first = not (home / CONFIGURATION_FILE).exists() and not catalogues
        _write_configuration(home, catalogues or [], port, shadow, wire_port)
        if is_first:
            _first_key(home, port)
        configuration = read_configuration(home / CONFIGURATION_FILE)
        if wire and configuration.wire is None:
            raise usage_error(f"there is no [wire] in {home / CONFIGURATION_FILE}")
        with_wire = configuration.wire is not None and wire is not False
        if with_wire:
            if importlib.util.find_spec("psycopg") is None:
                raise LapwingError("extra-missing", "the wire needs more libraries", hint="pip install 'lapwing[server,postgres]'")
            from lapwing.interfaces.wire.run import make_shadows

            configuration.require_safe()
            make_shadows(configuration, home)
        if not is_first:
            typer.echo(_where(configuration, home, with_wire=with_wire))
        run(home, "lapwing.interfaces.cli.worker:with_wire" if with_wire else "lapwing.interfaces.cli.worker:without_wire")


@access_app.command("grant", short_help="Give somebody a role on a data set.")
def grant(name: Name, role: RoleName, data_set: DataSetName, home: Home = HOME_DEFAULT) -> None:
    """Give somebody a role on a data set.

    \b
    Example:
        lapwing access grant ada analyst clinic
    """
    with reported():
        identities, served = _identities(home), _served(home)
        if data_set not in ("*", *served):
            raise usage_error(f"there is no data set {data_set!r} here; the data sets are {', '.join(served)}")
        identities.grant(name, Grant(role, data_set))
        typer.echo(f"{name} is {role.value} of {data_set}.")


@access_app.command("withdraw", short_help="Withdraw a role from somebody.")
def withdraw(name: Name, role: RoleName, data_set: DataSetName, home: Home = HOME_DEFAULT) -> None:
    """Withdraw a role from somebody, effective at once.

    \b
    Example:
        lapwing access withdraw ada analyst clinic
    """
    with reported():
        there = _identities(home).withdraw(name, Grant(role, data_set))
        typer.echo(f"{name} is no longer {role.value} of {data_set}." if there else "No such role was granted.")


@access_app.command("key", short_help="Make an API key for somebody.")
def key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person whose key it is.")],
    days: Annotated[int, typer.Option(help="How many days it is valid.")] = 90,
    data_set: Annotated[str, typer.Option(metavar="DATA_SET", help="The only data set that it is valid for.")] = "*",
    role: Annotated[Role | None, typer.Option(help="The only role that it is valid for.")] = None,
    home: Home = HOME_DEFAULT,
) -> None:
    """Make an API key. It is shown only once: the server keeps a hash of it.

    \b
    Example:
        lapwing access key ada --days 30
    """
    with reported():
        text, entry = _identities(home).new_key(name, days=days, data_set=data_set, role=role)
        typer.echo(text)
        typer.echo(f"Key {entry.key_id} of {name}, valid until {entry.expires_at[:10]}. It is not shown again.", err=True)


@access_app.command("revoke", short_help="Revoke an API key.")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id, as `lapwing access list` shows it.")],
    home: Home = HOME_DEFAULT,
) -> None:
    """Revoke an API key, effective at once.

    \b
    Example:
        lapwing access revoke 4a6b1c2d3e4f5a6b
    """
    with reported():
        typer.echo(f"Key {key_id} is revoked." if _identities(home).revoke(key_id) else "There is no valid key with this id.")


@access_app.command("accept", short_help="Accept the roles of a restored backup.")
def accept(
    reason: Annotated[str, typer.Argument(metavar="REASON", help="What was reviewed; kept in the audit log.")], home: Home = HOME_DEFAULT
) -> None:
    """Accept the roles of a restored backup, after reviewing them; until then they admit nobody.

    \b
    Example:
        lapwing access list
        lapwing access accept "the backup of Monday; bo has left since and is withdrawn"
    """
    with reported():
        identities, configuration = _identities(home), _configuration(home)
        if not reason.strip():
            raise usage_error("say what was reviewed")
        from lapwing.curator.curator import system_user
        from lapwing.interfaces.http.operation.audit_log import AuditLog

        log = AuditLog(configuration.audit_path(home))
        said = {"who": system_user(), "credential": "command line", "act": f"accept grants: {reason}"[:500], "data_set": "", "request": ""}
        log.begin(**said)  # without a log line, no one is admitted
        there = identities.accept()
        log.write(**said, outcome="200" if there else "404", charges=())
        log.close()
        typer.echo("The granted roles are in effect again. Make new API keys." if there else "There is nothing to accept.")


@access_app.command("list", short_help="Show keys and roles.")
def list_access(
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE, home: Home = HOME_DEFAULT
) -> None:
    """Show who has which role, and every API key without its secret."""
    with reported(form=form):
        identities = _identities(home)
        roles = [{"name": name, "role": grant.role.value, "data_set": grant.data_set} for name, grant in identities.grants()]
        keys = [{field: getattr(entry, field) for field in type(entry).__slots__} for entry in identities.all_keys()]
        if form is ReportFormat.JSON:
            typer.echo(as_json({"roles": roles, "keys": keys}))
            return
        for item in roles:
            typer.echo(f"{item['name']}  {item['role']} of {item['data_set']}")
        for item in keys:
            state = "revoked" if item["revoked_at"] else f"valid until {item['expires_at'][:10]}"
            typer.echo(f"key {item['key_id']} of {item['name']}, {state}")


def _identities(home: Path) -> Identities:
    _require_extra()
    from lapwing.interfaces.http.identity.identities import Identities

    return Identities(_configuration(home).identities_url(home))


def _configuration(home: Path) -> ServerConfiguration:
    from lapwing.interfaces.http.configuration import CONFIGURATION_FILE, read_configuration

    return read_configuration(home / CONFIGURATION_FILE)


def _served(home: Path) -> list[str]:
    """The ids of the data sets that the configuration names."""
    from lapwing.curator.catalogue_name import catalogue_name
    from lapwing.interfaces.http.new_data_sets import NewDataSets

    configuration = _configuration(home)
    listed = [catalogue_name(home / item.catalogue) for item in configuration.data_set]
    return [*listed, *NewDataSets(configuration.new_data, home).catalogues()]


def _first_key(home: Path, port: int) -> None:
    """A key for the user who starts a server without data sets: this user can read its files in any case."""
    from lapwing.curator.curator import system_user
    from lapwing.interfaces.http.identity.rights import EVERY

    identities, name = _identities(home), system_user()
    for role in (Role.OWNER, Role.ANALYST):
        identities.grant(name, Grant(role, EVERY))
    key, entry = identities.new_key(name)
    address, good = f"http://127.0.0.1:{port}", f"valid until {entry.expires_at[:10]}"
    if sys.stdout.isatty():
        typer.echo(f"Nothing is served yet. Open {address} and sign in with this key to declare a first data set:\n\n  {key}\n")
        typer.echo(f"It is shown only once and is {good}. With it {name} is owner and analyst of every data set here.")
    else:  # what is printed may be kept in a log that others read
        file = home / FIRST_KEY_FILE
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as stream:
            stream.write(key + "\n")
        typer.echo(f"Nothing is served yet. Open {address} and sign in with the key in {file} to declare a first data set.")
        typer.echo(f"The key is {good}; delete the file once you have it. With it {name} is owner and analyst of every data set here.")
    typer.echo(f"Files that can be declared: those in {Path.cwd()} ([new_data] in {home / 'lapwing-server.toml'}).")


def _where(configuration: ServerConfiguration, home: Path, *, with_wire: bool) -> str:
    """The line that a server prints as it starts, the only one unless something is wrong."""
    from lapwing.interfaces.http.new_data_sets import NewDataSets

    server = configuration.server
    many = len(configuration.data_set) + len(NewDataSets(configuration.new_data, home).catalogues())
    what = "1 data set" if many == 1 else f"{many:,} data sets"
    host = f"[{server.host}]" if ":" in server.host else server.host
    places = [f"{'http' if server.certificate is None else 'https'}://{host}:{server.port}"]
    if with_wire and configuration.wire is not None:
        places.append(f"for PostgreSQL's clients at {configuration.wire.host}:{configuration.wire.port}")
    return f"Serves {what} at {', '.join(places)}. Ctrl C ends it."


def _require_extra() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "jinja2", "jwt", "sqlalchemy", "uvicorn")):
        raise LapwingError("extra-missing", "the server needs more libraries", hint="pip install 'lapwing[server]'")


def _write_configuration(home: Path, catalogues: list[Path], port: int, shadow: str | None, wire_port: int) -> None:
    from lapwing.interfaces.http.configuration import CONFIGURATION_FILE
    from lapwing.interfaces.http.private_files import make_private

    file = home / CONFIGURATION_FILE
    if file.exists():
        _require_as_configured(file, catalogues, shadow)
        return
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [
        "# What this server serves and where it listens; docs/reference/server.md describes every setting.",
        "[server]",
        f"port = {port}",
    ]
    if shadow is not None:
        lines += ["", "[wire]", f"port = {wire_port}", f"shadow = {_quoted(shadow)}"]
    if not catalogues:
        lines += ["", "# Owners of every data set may declare files of this directory in the console.", "[new_data]"]
        lines += [f"sources = {_quoted(str(Path.cwd()))}"]
    for catalogue in catalogues:
        lines += ["", "[[data_set]]", f"catalogue = {_quoted(str(catalogue.resolve()))}"]
    make_private(file)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _require_as_configured(file: Path, catalogues: list[Path], shadow: str | None) -> None:
    """Repeating the arguments of the first start is accepted; new settings belong in the configuration file."""
    from lapwing.curator.catalogue_name import catalogue_directory
    from lapwing.interfaces.http.configuration import read_configuration

    configuration = read_configuration(file)
    known = {catalogue_directory(file.parent / one.catalogue) for one in configuration.data_set}
    if not {catalogue_directory(one) for one in catalogues} <= known:
        raise usage_error(f"{file} already exists and does not name this catalogue; add it there as [[data_set]]")
    if shadow is not None and (configuration.wire is None or configuration.wire.shadow != shadow):
        raise usage_error(f"{file} already exists and has another shadow, or none; set it there in [wire]")


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)  # a TOML basic string is written like a JSON one
