"""A demonstration data set whose catalogue names a ledger on the test's own server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.demo import write_demo
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.receipts import new_key

BY_SEX = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@dataclass(frozen=True)
class Wired:
    """A data set on disk; its registry, anchors and keys are beside it."""

    base: Path
    dsn: str

    @property
    def directory(self) -> Path:
        return self.base / "clinic"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def keys(self) -> Path:
        return self.base / "keys"

    @property
    def catalogue(self) -> Path:
        return self.directory / "lapwing.toml"

    def section(self) -> str:
        return f'\n[ledger]\ndatabase = "{self.dsn}"\nanchors = "../anchors"\nkeys = "../keys"\n'

    def edit(self, old: str, new: str) -> None:
        text = self.catalogue.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        self.catalogue.write_text(text.replace(old, new), encoding="utf-8")

    def add_section(self) -> None:
        with self.catalogue.open("a", encoding="utf-8") as stream:
            stream.write(self.section())

    def open(self, *, analyst: str | None = None) -> DataSet:
        return DataSet(Curator(self.directory, home=self.home), analyst=analyst)


def new_wired(base: Path, dsn: str, *, patients: int = 200) -> Wired:
    """Written, with a signing key and the section in its catalogue; not prepared."""
    wired = Wired(base, dsn)
    write_demo(wired.directory, patients=patients)
    new_key(wired.keys)
    wired.add_section()
    return wired


def server_ledger(data: DataSet) -> PostgresLedger:
    ledger = data.curator.ledger
    assert isinstance(ledger, PostgresLedger)
    return ledger
