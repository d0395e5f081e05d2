"""The declarations that versions were prepared from, and what today's catalogue changes of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lapwing.catalog import Declaration, Settings, parse
from lapwing.catalog.changes import Change, Verdict, classify, of_versions
from lapwing.engines.base import Engine
from lapwing.engines.state import StateDirectory
from lapwing.errors import PreparationError
from lapwing.ledger.limits import HISTORY_ENTRIES_MAX
from lapwing.ledger.protocol import EntryKind, Ledger


@dataclass(frozen=True, slots=True)
class PreparedDeclarations:
    """The catalogues of the versions of a data set; ``path`` is today's."""

    engine: Engine
    state: StateDirectory
    path: Path
    settings: Settings

    def last(self) -> Declaration | None:
        """The last prepared declaration, even if its version has been retired."""
        text = self.state.declared()
        if text is not None:
            return self._parsed(text)
        versions = self.engine.versions()
        return self.of(versions[-1]) if versions else None

    def of(self, version: int) -> Declaration:
        """The declaration that a version was prepared from."""
        return self._parsed(self.engine.stored_text(version))

    def to_override(self, declaration: Declaration, override: str) -> list[Change]:
        """Changes since the last version that need the owner's reason."""
        before = self.last()
        if before is None:
            return []
        blocking = [change for change in classify(before, declaration) if change.verdict is Verdict.NEEDS_OVERRIDE]
        if blocking and not override:
            listed = "; ".join(f"{change.where}: {change.why}" for change in blocking)
            raise PreparationError(
                "override-needed", f"the declaration changed in what it protects: {listed}", hint="give a reason to override"
            )
        return blocking

    def policy_changes(self, declaration: Declaration, text: str) -> tuple[str, ...] | None:
        """The keys of the catalogue ``text`` that preparing would apply without a new version; None where it would make one or add blocks.

        Policy covers how much may be asked and the names and descriptions, see :attr:`lapwing.catalog.changes.Change.is_policy`. A
        catalogue of which only comments changed has none of these and makes no version; an unchanged catalogue is prepared again for its
        rows.
        """
        self.state.require_usable()
        before, versions = self.state.declared(), self.engine.versions()
        if not versions or (before or self.engine.stored_text(versions[-1])) == text or self.grow_to(declaration):
            return None
        last = self.last()
        if last is None or not self._keep_version(declaration, last):
            return None
        return tuple(change.where for change in classify(last, declaration))

    def grow_to(self, declaration: Declaration) -> bool:
        """Whether preparing adds blocks of time to the newest version: they are declared, and nothing that a version is made of changed."""
        last = self.last()
        if declaration.blocks is None or not self.engine.versions() or last is None:
            return False
        return self._keep_version(declaration, last)

    def _keep_version(self, declaration: Declaration, last: Declaration) -> bool:
        """Whether nothing changed that a version is made of. Pre: there is a version."""
        prepared = self.of(self.engine.versions()[-1])
        return not of_versions((*classify(last, declaration), *classify(prepared, declaration)))

    def _parsed(self, text: str) -> Declaration:
        return replace(parse(text, self.path.name, settings=self.settings), directory=self.path.resolve().parent)


def require_never_prepared(ledger: Ledger, override: str) -> None:
    """Refuse if the last declaration is unknown: the protected unit might then have changed unnoticed."""
    prepared = {EntryKind.VERSION, EntryKind.RESTORE}  # a restore: its charges were made after a preparation
    if not any(entry.kind in prepared for entry in ledger.history(limit=HISTORY_ENTRIES_MAX)):
        return
    if not override:
        message = "the data set was prepared before, and the state directory no longer says from which declaration"
        raise PreparationError("override-needed", message, hint="restore the state directory, or give a reason to override")
    ledger.record(EntryKind.OVERRIDE, f"the last declaration is not known: {override}")
