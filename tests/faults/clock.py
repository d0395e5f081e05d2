"""A clock that can be put forwards and back while a server, or a client, runs.

Debian's libfaketime stands between a process and the system's clock, and reads from a file by how much to be wrong, each time anew. Only
the time of day jumps: the clock that counts from the start of the machine does not, as on a real machine.
"""

from __future__ import annotations

import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.policy import Limits
from tests.faults.clients import ended, new_field, random_plans, started
from tests.faults.table import Outcome, fault
from tests.faults.worker import Mode
from tests.ledger.cluster import Cluster
from tests.ledger.support import request

DAY_SECONDS = 86_400
TEN_YEARS = 3650
ROUND_SECONDS_MAX = 600.0
"""Nobody takes as long, on any machine: this ends only what hangs."""
JUMPS_MIN = 10
_ROOT = Path(__file__).resolve().parents[2]
# Python sleeps until a moment of the clock that does not jump, which libfaketime 0.9.10 gets wrong; select waits for a length of time.
_CLIENT = """
import pickle, select, sys, time
from tests.faults.clients import lived
time.sleep = lambda seconds: select.select((), (), (), seconds)
lived(*pickle.load(sys.stdin.buffer))
"""


def clock_library() -> Path | None:
    """Where libfaketime is."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)


class Clock:
    """The error of a clock, in days; of all processes that were started with ``environment``.

    Besides, it is noon (UTC) when it is made: so no day ends by itself during a test.
    """

    def __init__(self) -> None:
        library = clock_library()
        assert library is not None, "libfaketime is not installed"
        directory = Path(tempfile.mkdtemp(prefix="lapwing-clock-"))
        directory.chmod(0o755)
        self._settings = directory / "settings"
        self._to_noon_seconds = DAY_SECONDS // 2 - int(time.time()) % DAY_SECONDS
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._settings),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def close(self) -> None:
        """After all those processes have gone."""
        shutil.rmtree(self._settings.parent)

    def set(self, days: int) -> None:
        """From now on the clock is wrong by so many days."""
        new = self._settings.with_name("new")
        new.write_text(f"{days * DAY_SECONDS + self._to_noon_seconds:+d}\n", encoding="ascii")
        new.chmod(0o644)
        new.replace(self._settings)  # nobody ever reads half of it


def jump_while_clients_work(
    cluster: Cluster, clock: Clock, database: str, directory: Path, *, seed: int, clients: int, sources: int, day_loss_max: int
) -> Outcome:
    """The server's clock jumps while clients spend what a day allows; each day that the clock ever reached pays once.

    One more client has a clock that jumps as well. Clients may be done before the clock jumped ``JUMPS_MIN`` times, on a machine that has
    other things to do: then others follow them.
    """
    chance = random.Random(seed)
    clock.set(0)
    field = new_field(cluster, database, directory, sources=sources, loss_total=10**6)
    for place in field.places:
        with place.open() as ledger:
            policy.set_limits(ledger, Limits(day_loss_max=day_loss_max, lost_workers_max=10**6))
            ledger.reserve(request("on the first day"))  # from here on, an earlier day pays nothing
    modes = (Mode.ANSWER, Mode.ANSWER, Mode.FAIL, Mode.RENEW, Mode.LEAVE)
    jumps, latest, days, generation = 0, 0, 1, 0
    while jumps < JUMPS_MIN:
        dsn, acts = cluster.dsn(database), 160 // clients
        plans = random_plans(field, dsn, clients=clients + 1, acts=acts, seed=seed + generation, modes=modes, generation=generation)
        generation += 1
        strange = subprocess.Popen(
            [sys.executable, "-c", _CLIENT],
            stdin=subprocess.PIPE,
            env={**os.environ, **clock.environment, "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"},
        )
        assert strange.stdin is not None
        with strange.stdin as order:
            order.write(pickle.dumps((plans[-1], field.log)))
        processes = started(field, plans[:-1])
        deadline = time.monotonic() + ROUND_SECONDS_MAX
        while any(process.is_alive() for process in processes) or strange.poll() is None:
            assert time.monotonic() < deadline, "clients are not done"
            error = chance.choice([-1, 0, latest, latest + 1, -TEN_YEARS])
            clock.set(error)
            jumps += 1
            if error > latest:
                latest, days = error, days + 1
            time.sleep(0.05)
        ended(processes, seconds_max=ROUND_SECONDS_MAX)
        assert strange.wait(ROUND_SECONDS_MAX) == 0
    clock.set(latest)  # a clock behind the leases of the dead would let them live on: safe, and not what is judged here
    # A clock that jumps forwards also ends waits for a lock, and leases, before their time: nothing is changed, and the client is told.
    states, violations = field.judged(codes=frozenset({"day-limit", "ledger-busy"}))
    violations += [f"{state.source_id}: a day was paid for twice" for state in states if state.loss_spent > days * day_loss_max]
    clock.set(0)
    return Outcome(Counter({"clock jump": jumps}), violations, [field.log])


@fault("clock jump")
def jump_on_a_server_of_its_own(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign. The given server has a right clock, so another one is started."""
    clock = Clock()
    own = Cluster(environment=clock.environment)
    try:
        clients, sources = random.Random(seed).choice([(1, 1), (4, 1), (4, 10), (16, 10)])
        database = own.new_database()
        return jump_while_clients_work(own, clock, database, directory, seed=seed, clients=clients, sources=sources, day_loss_max=12)
    finally:
        own.close()
        clock.close()
