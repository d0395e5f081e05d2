"""Which data set a command is about: a catalogue on this machine (``-C``), or one on a server (``--server``)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapwing.interfaces.cli.exits import usage_error

if TYPE_CHECKING:
    from lapwing.curator.curator import Curator
    from lapwing.data_set import DataSet
    from lapwing.interfaces.python.remote import RemoteDataSet


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The options before the command."""

    directory: Path = Path()
    server: str | None = None
    data_set: str | None = None
    """Its id, on a server that has several."""
    token_file: Path | None = None

    def but(self, *, directory: Path | None, server: str | None, data_set: str | None, token_file: Path | None) -> GlobalOptions:
        """The same, overridden by the options after the command."""
        if directory is not None and (server or self.server) is not None:
            raise usage_error("a data set is on this machine or on a server, not both")
        return GlobalOptions(
            self.directory if directory is None else directory,
            self.server if server is None else server,
            self.data_set if data_set is None else data_set,
            self.token_file if token_file is None else token_file,
        )

    def catalogue(self) -> Path:
        """The catalogue or its directory; a usage error if a server was named."""
        if self.server is not None:
            raise usage_error("this command needs the files of the data set: leave --server out")
        return self.directory

    def opened(self, *, analyst: str | None = None, shared: bool = False) -> DataSet | RemoteDataSet:
        """The data set, for asking. With ``shared``, several threads will ask."""
        if self.server is None:
            from lapwing.curator.curator import Curator
            from lapwing.data_set import DataSet

            if self.data_set is not None or self.token_file is not None:
                raise usage_error("--data-set and --token-file are for --server")
            return DataSet(Curator(self.directory, shared=shared), analyst=analyst)
        from lapwing.interfaces.python.credentials import token_in
        from lapwing.interfaces.python.remote import connect

        if analyst is not None:
            raise usage_error("on a server the token says who asks: leave --analyst out")
        return connect(self.server, token=None if self.token_file is None else token_in(self.token_file), data_set=self.data_set)


def whereabouts(context: typer.Context) -> GlobalOptions:
    """The options before the command."""
    said: GlobalOptions = context.obj
    return said


def catalogue_path(context: typer.Context) -> Path:
    """The catalogue on this machine, or its directory."""
    return whereabouts(context).catalogue()


def curator_of(context: typer.Context) -> Curator:
    """The data set on this machine, opened for its owner."""
    from lapwing.curator.curator import Curator

    return Curator(catalogue_path(context))


def require_prepared(data_set: DataSet | RemoteDataSet) -> None:
    """Refuse at once if there is no version to ask; a server checks this itself."""
    from lapwing.data_set import DataSet

    if isinstance(data_set, DataSet):
        data_set.curator.latest()


def statement_text(sql: str) -> str:
    """A statement from the command line; ``-`` stands for standard input."""
    if sql != "-":
        return sql
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise usage_error("standard input is not UTF-8 text") from None


def shell_quoted(path: Path) -> str:
    """A path, quoted for a shell."""
    import shlex

    return shlex.quote(str(path))
