"""What any engine must offer. Nothing here names an engine's own types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.facts import Facts

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, steps done and steps in all. Never called with a value from the data."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Progress that goes nowhere."""


class Snapshot(Protocol):
    """One prepared version, opened for reading."""

    @property
    def facts(self) -> Facts:
        """The public facts of this version."""
        ...

    def check(self, certified: Certified) -> None:
        """Refuse, before anything is charged, what this snapshot cannot run."""
        ...

    def run(self, certified: Certified) -> Exact:
        """Run a certified plan. Raises Incident, and nothing else, on any fault of the engine."""
        ...

    def close(self) -> None:
        """Give up the engine's resources."""
        ...
