"""The command line, ``lapwing``: make, check and prepare a data set, ask it, see what is spent. No privacy logic here."""

from lapwing.interfaces.cli.app import main

__all__ = ["main"]
