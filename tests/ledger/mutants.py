"""Deliberate mistakes in the ledger, to show that the tests would see them.

A mutant is a copy of ``lapwing.ledger`` under another name with a few lines of source replaced. Each replaced text must occur exactly once,
so a mutant that no longer fits the code fails loudly instead of testing nothing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import lapwing.ledger

Patch = tuple[str, str, str]
"""File, text, replacement."""


@dataclass(frozen=True)
class Mutant:
    name: str
    patches: tuple[Patch, ...]

    @property
    def package(self) -> str:
        return "mutant_" + self.name.replace(" ", "_").replace("-", "_")


# Second lines of defence in the file itself. A mutant of the code alone is stopped by them; to show that the tests see the mistake they are
# taken away too.
SPENT_MAY_FALL: Patch = ("local/schema", "    OR NEW.loss_spent < OLD.loss_spent OR NEW.delta_spent < OLD.delta_spent\n", "")
CHARGES_MAY_MOVE_AGAIN: Patch = (
    "local/schema",
    "WHEN OLD.state <> 'reserved' OR NEW.state = 'reserved'\n    OR NEW.charge_id",
    "WHEN NEW.charge_id",
)
KEYS_MAY_REPEAT: Patch = ("local/schema", "    UNIQUE (analyst, request_id),\n", "")
TOTAL_MAY_BE_PASSED: Patch = ("local/schema", "CHECK (loss_spent <= loss_total OR (pure_spent", "CHECK (1 OR (pure_spent")
NOT_VERIFIED: Patch = ("local/ledger", "state = verified_state(connection, self._book)", "state = rows.read_state(connection)")

REFUND: Patch = (
    "local/rows",
    "    analyst = connection.execute(",
    "    if payload is None:\n"
    "        row = connection.execute('SELECT loss, delta FROM charge WHERE charge_id = ?', [charge_id]).fetchone()\n"
    "        spent = Cost(loss=state.spent.loss - int(row[0]), delta=state.spent.delta - int(row[1]))\n"
    "        state = replace(state, spent=spent)\n"
    "    analyst = connection.execute(",
)
NO_LOOKUP: Patch = ("local/ledger", "charge = rows.charge_by_key(connection, request.analyst, request.request_id)", "charge = None")
ADMITS_ONE_MORE: Patch = (
    "local/ledger",
    "decisions.require_within(state, standing_cost(request.ranges, request.cost))",
    "decisions.require_within(state, Cost(loss=request.cost.loss - 1, delta=request.cost.delta))",
)
ENDED_CHARGES_COUNT_AS_OPEN: Patch = ("local/rows", " AND pure IS ? AND state = 'reserved' AND epoch = ?", " AND pure IS ? AND epoch = ?")
ANYONE_MAY_SETTLE: Patch = ("local/rows", "AND state = 'reserved' AND epoch = ?", "AND state = 'reserved' AND epoch <> ? || 'x'")
STALE_READ: Patch = (
    "local/ledger",
    "        with self._database.write() as connection:\n            state = rows.read_state(connection)\n"
    "            decisions.require_open(state)",
    "        with self._database.read() as connection:\n"
    "            stale = rows.read_state(connection)\n"
    "        __import__('time').sleep(0.02)\n"  # so that the others get in between on a busy machine too
    "        with self._database.write() as connection:\n"
    "            state = replace(rows.read_state(connection), spent=stale.spent)\n"
    "            decisions.require_open(state)",
)
REGISTRY_NOT_HELD: Patch = (
    "local/ledger",
    "with self._registry.write() as registered:\n                self._advance(registered)\n"
    "                outcome = self._decided(request)\n                self._advance(registered)",
    "outcome = self._decided(request)\n            self._anchor()",
)
"""Held, it alone lets one process at a time decide."""

ROUNDED_UP: Patch = (
    "local/ledger",
    "            budget=budget,\n            ceiling=ceiling,\n            spent=",
    "            budget=replace(budget, loss_total=budget.loss_total + 1),\n"
    "            ceiling=replace(ceiling, loss_total=ceiling.loss_total + 1),\n            spent=",
)
PROBLEMS_NEVER = "if False:\n            problems"
NOT_SWEPT: Patch = ("local/ledger", "self._sweep(is_dead, ", "self._sweep(lambda worker: False, ")

SEEN_BY_THE_MODEL = [
    Mutant("refund on forfeit", (REFUND, SPENT_MAY_FALL, NOT_VERIFIED)),
    Mutant("no lookup and no unique key", (NO_LOOKUP, KEYS_MAY_REPEAT)),
    Mutant("admits one unit more", (ADMITS_ONE_MORE, TOTAL_MAY_BE_PASSED)),
    Mutant("budget rounded up", (ROUNDED_UP,)),
    Mutant("a zombie can commit", (ENDED_CHARGES_COUNT_AS_OPEN, CHARGES_MAY_MOVE_AGAIN, NOT_VERIFIED)),
    Mutant("anyone may settle", (ANYONE_MAY_SETTLE,)),
    Mutant("forfeits the living", (("local/ledger", "self._sweep(is_dead, ", "self._sweep(lambda worker: True, "),)),
    Mutant("does not sweep the dead", (NOT_SWEPT,)),
    Mutant("waits for the dead", (("local/decisions", "if is_dead(charge.worker):", "if False:"),)),
    Mutant("zero cost", (("limits", "if request.cost.loss == 0:", "if False:"),)),
    Mutant(
        "answers while closed",
        (("local/ledger", "            decisions.require_open(state)\n            charge", "            charge"),),
    ),
    Mutant("incident leaves it open", (("local/ledger", "if incident and not state.closed:", "if False:"),)),
    Mutant("any digest fits", (("local/decisions", "if charge.digest != digest:", "if False:"),)),
    Mutant(
        "budget below what is spent",
        (
            (
                "local/ledger",
                "if not admits(to, spent=state.spent, cost=Cost.zero()) or not (balances is None or balances.fit(to)):",
                "if False:",
            ),
            TOTAL_MAY_BE_PASSED,
        ),
    ),
    Mutant("no ceiling", (("local/ledger", "limits.require_within(to, state.ceiling)", "pass"), TOTAL_MAY_BE_PASSED)),
    Mutant("finds the newest", (("local/rows", "entry.charge_id = c.charge_id) LIMIT 1", "entry.charge_id = c.charge_id) DESC LIMIT 1"),)),
]

_DECISION = "decisions.require_within(state, standing_cost(request.ranges, request.cost))"
_COUNTED = "after = replace(state, spent=state.spent + cost, entries=entry_id, head=head)"


def _counting(amount: str) -> Patch:
    return ("local/rows", _COUNTED, _COUNTED.replace("state.spent + cost", f"state.spent + {amount}"))


def _deciding(condition: str) -> Patch:
    refusal = "decisions.BudgetRefused('budget-exceeded', 'mutated')"
    return ("local/ledger", _DECISION, f"if not ({condition}):\n                raise {refusal}")


SEEN_WITH_AN_ORDER = [
    Mutant(
        "pure amounts not counted",
        (_counting("Cost(loss=cost.loss, delta=cost.delta, pure=0 if cost.pure is None else None)"), NOT_VERIFIED),
    ),
    Mutant(
        "the loss counts only without a pure amount",
        (_counting("(cost if cost.pure is None else Cost(loss=0, delta=cost.delta, pure=cost.pure))"), NOT_VERIFIED),
    ),
    Mutant(
        "what has no pure amount leaves the pure sum",
        (_counting("Cost(loss=cost.loss, delta=cost.delta, pure=cost.pure or 0)"), NOT_VERIFIED),
    ),
    Mutant(
        "both sums must be within",
        (_deciding("admits(state.budget, spent=state.spent, cost=Cost(loss=request.cost.loss, delta=request.cost.delta))"),),
    ),
    Mutant(
        "one side is enough for each charge alone",
        (_deciding("admits(state.budget, spent=Cost.zero(), cost=request.cost)"), TOTAL_MAY_BE_PASSED),
    ),
    Mutant(
        "reservations do not count",
        (
            _deciding(
                "admits(state.budget, cost=request.cost, spent=sum((p.request.cost for p in rows.paid_requests(connection)"
                " if p.payload is not None), Cost.zero()))"
            ),
            TOTAL_MAY_BE_PASSED,
        ),
    ),
    Mutant("another order passes", (("limits", "if budget.order != ceiling.order:", "if False:"),)),
]

REFUNDS = Mutant("refund on forfeit in a race", (REFUND, SPENT_MAY_FALL, NOT_VERIFIED))
DOUBLES = Mutant("no lookup and no unique key in a race", (NO_LOOKUP, KEYS_MAY_REPEAT))
NEVER_SWEEPS = Mutant("does not sweep the dead in a race", (NOT_SWEPT,))
NOT_DURABLE = Mutant("permit without a commit", (("local/sqlite_file", 'connection.execute("COMMIT")', 'connection.execute("ROLLBACK")'),))
ROUNDS_UP = Mutant("budget rounded up in a race", (ROUNDED_UP,))
READS_THEN_WRITES = Mutant("reads before it locks", (STALE_READ, REGISTRY_NOT_HELD, NOT_VERIFIED))

NOT_ANCHORED = Mutant(
    "not anchored",
    (("local/ledger", "outcome = self._decided(request)\n                self._advance(registered)", "outcome = self._decided(request)"),),
)
ANCHOR_NOT_COMPARED = Mutant(
    "anchor not compared",
    (("local/agreement", "if rows.head_at(connection, anchor.entries) != anchor.head:\n            problems", PROBLEMS_NEVER),),
)
COPIES_PASS = Mutant(
    "copies pass",
    (("local/agreement", "if anchor.ledger_path not in (str(path), rows.ON_SERVER):\n            problems", PROBLEMS_NEVER),),
)
SECOND_LEDGERS_PASS = Mutant("second ledgers pass", (("local/ledger", "if known is not None and not override:", "if False:"),))

STOPPED_BY_THE_FILE = [
    Mutant("refund alone", (REFUND,)),
    Mutant("no lookup alone", (NO_LOOKUP,)),
    Mutant("no unique key alone", (KEYS_MAY_REPEAT,)),
    Mutant("admits one unit more alone", (ADMITS_ONE_MORE,)),
    Mutant("no immediate lock", (("local/sqlite_file", 'connection.execute("BEGIN IMMEDIATE")', 'connection.execute("BEGIN")'),)),
]
ZOMBIE_ALONE = Mutant("a zombie can commit alone", (ENDED_CHARGES_COUNT_AS_OPEN,))
LESS_DURABLE = Mutant("synchronous normal", (("local/sqlite_file", '"synchronous = EXTRA"', '"synchronous = NORMAL"'),))


def build(mutant: Mutant, directory: Path) -> Path:
    """Write the mutant's package into a directory of its own, which is returned; it has to be on the path of whoever runs it."""
    code = directory / "code"
    target = code / mutant.package
    (target / "local").mkdir(parents=True)
    for file, text in patched(mutant).items():
        renamed = text.replace("lapwing.ledger", mutant.package)
        (target / f"{file}.py").write_text(renamed, encoding="utf-8")
    return code


def patched(mutant: Mutant) -> dict[str, str]:
    """The texts of the ledger's files, by their names, with the mistake in them."""
    source = Path(next(iter(lapwing.ledger.__path__)))
    paths = [*source.glob("*.py"), *source.glob("local/*.py")]
    files = {path.relative_to(source).with_suffix("").as_posix(): path.read_text(encoding="utf-8") for path in paths}
    for file, text, replacement in mutant.patches:
        assert files[file].count(text) == 1, f"{mutant.name}: the text to replace is not once in {file}.py"
        files[file] = files[file].replace(text, replacement)
    return files


@contextmanager
def loaded(mutant: Mutant, code: Path) -> Iterator[ModuleType]:
    """The ``local.ledger`` module of a mutant that was built, imported into this process for a while."""
    sys.path.insert(0, str(code))
    try:
        yield importlib.import_module(f"{mutant.package}.local.ledger")
    finally:
        sys.path.remove(str(code))
        for name in [name for name in sys.modules if name.partition(".")[0] == mutant.package]:
            del sys.modules[name]
