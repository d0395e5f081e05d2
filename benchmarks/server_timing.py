"""Whether the time of a reply tells in which of two worlds a server is: the same question, over loopback, with and without public moments.

    python -m benchmarks.server_timing                    # 2 x 300 replies of each world, some minutes
    python -m benchmarks.server_timing --replies 2000

Two servers, each a process of its own, over the demonstration; in the second there is one patient more, who has as many visits as one may
have. The question pairs the visits of each patient with each other, so that this patient is most of the work. It is asked in turn on both,
each time with another constant, so that it is charged and run each time. Printed: the chance that a reply of the second world took longer
than one of the first (AUC; .5 is no difference, 1 a sure sign), its distance from .5 to be expected by chance alone, medians, and how many
answers missed their moment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from lapwing.server.identities import Identities
from lapwing.server.rights import Grant, Role

WHALE = 88_000_000
VISITS = 1_000
QUESTION = (
    "SELECT COUNT(*) AS n FROM (SELECT a.patient_id, COUNT(*) AS pairs FROM visits a JOIN visits b ON a.patient_id = b.patient_id"
    " WHERE a.minutes + b.minutes > -{constant} GROUP BY a.patient_id) AS t WHERE pairs > 3"
)
EPSILON = "0.0005"


@dataclass(frozen=True, slots=True)
class World:
    """A server on one of the worlds."""

    data_set: lapwing.RemoteDataSet
    operator: str
    url: str

    def seconds(self, constant: int) -> float:
        """How long one question takes."""
        begun = time.perf_counter()
        self.data_set.ask(QUESTION.format(constant=constant), epsilon=EPSILON)
        return time.perf_counter() - begun

    def missed(self) -> str:
        """How many answers missed their moment, of how many."""
        asked = urllib.request.Request(f"{self.url}/metrics", headers={"Authorization": f"Bearer {self.operator}"})
        with urllib.request.urlopen(asked) as reply:
            text = reply.read().decode()
        return " of ".join(re.findall(rf"^{name}{{[^}}]*}} (\d+)", text, re.MULTILINE)[0] for name in _COUNTS)


_COUNTS = ("lapwing_moments_missed_total", "lapwing_answers_total")


def add_whale(directory: Path) -> None:
    """One patient more, with as many visits as one may have."""
    patients, visits = (pq.read_table(directory / f"{name}.parquet") for name in ("patients", "visits"))
    patient = _numbered(patients.slice(0, 1), "patient_id", [WHALE])
    rows = pa.concat_tables([visits.slice(0, 1)] * VISITS)
    rows = _numbered(_numbered(rows, "patient_id", [WHALE] * VISITS), "visit_id", [WHALE + i for i in range(VISITS)])
    pq.write_table(pa.concat_tables([patients, patient]), directory / "patients.parquet")
    pq.write_table(pa.concat_tables([visits, rows]), directory / "visits.parquet")


def _numbered(rows: pa.Table, name: str, values: list[int]) -> pa.Table:
    field = rows.schema.field(name)
    return rows.set_column(rows.schema.get_field_index(name), field, pa.array(values).cast(field.type))


@contextmanager
def served(directory: Path, *, public: bool, base_seconds: float) -> Iterator[World]:
    """A server on the data set in ``directory/clinic``, which is prepared."""
    home, port = directory / f"server-{public}", _free_port()
    home.mkdir()
    lines = ["[server]", f"port = {port}", "[limits]", "requests_per_second = 1000.0", "burst = 10000"]
    lines += ["[moments]", f"public = {str(public).lower()}", f"base_seconds = {base_seconds}"]
    lines += ["[[data_set]]", f'catalogue = "{directory / "clinic"}"']
    (home / "lapwing-server.toml").write_text("\n".join(lines) + "\n")
    identities = Identities(f"sqlite:///{home / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    identities.grant("ops", Grant(Role.OPERATOR, "*"))
    keys = [identities.new_key(name)[0] for name in ("ada", "ops")]
    identities.close()
    environment = {**os.environ, "LAPWING_HOME": str(directory / "home")}
    process = subprocess.Popen([sys.executable, "-m", "lapwing.cli", "serve", "--home", str(home)], env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        yield World(_connected(url, keys[0]), keys[1], url)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)


def _connected(url: str, key: str) -> lapwing.RemoteDataSet:
    until = time.monotonic() + 60
    while True:
        try:
            return lapwing.connect(url, token=key)
        except LapwingError:
            if time.monotonic() > until:
                raise


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def auc(first: list[float], second: list[float]) -> float:
    """The chance that one of the second is larger than one of the first; half of it for equal ones."""
    ranked = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    below, larger = 0, 0.0
    for _, world in ranked:
        if world == 0:
            below += 1
        else:
            larger += below
    return larger / (len(first) * len(second))


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--replies", type=int, default=300, help="of each world, with moments and without")
    arguments.add_argument("--patients", type=int, default=2_000)
    arguments.add_argument("--base-seconds", type=float, default=0.25)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        plain, more = Path(scratch) / "w0", Path(scratch) / "w1"
        write_demo(plain / "clinic", patients=given.patients)
        shutil.copytree(plain, more)
        add_whale(more / "clinic")
        for world in (plain, more):
            with lapwing.open(world / "clinic", home=world / "home") as data_set:
                data_set.prepare(accept_losses=True)
        print("| public moments | AUC | by chance | median, without the patient | with | missed, without | with |")
        print("|---|---|---|---|---|---|---|")
        for public in (False, True):
            with (
                served(plain, public=public, base_seconds=given.base_seconds) as first,
                served(more, public=public, base_seconds=given.base_seconds) as second,
            ):
                numbers = range(100_000 * public + 1, 100_000 * public + given.replies + 6)
                took = [(first.seconds(number), second.seconds(number)) for number in numbers][5:]
                ours, theirs = [list(column) for column in zip(*took, strict=True)]
                chance = 2 * (1 / (6 * given.replies)) ** 0.5
                told = json.dumps([first.missed(), second.missed()]) if public else '["", ""]'
                print(
                    f"| {'on' if public else 'off'} | {auc(ours, theirs):.3f} | +-{chance:.3f} | {1000 * statistics.median(ours):.0f} ms"
                    f" | {1000 * statistics.median(theirs):.0f} ms | {' | '.join(json.loads(told))} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
