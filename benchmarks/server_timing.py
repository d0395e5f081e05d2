"""Whether the time of a reply tells in which of two worlds a server is: the same question, over loopback, with and without public moments.

    python -m benchmarks.server_timing --base-seconds 2.2 # 2 x 300 replies of each world, a quarter of an hour
    python -m benchmarks.server_timing --base-seconds 2.2 --replies 2000

Two servers, each a process of its own, over the two worlds of ``tests/attacks/bombs.py``: in the second there is one person more, who has
as many rows as one may have, each with the longest text there may be. The question looks at nobody else and joins their rows with each
other as far as statements are accepted, so that in the second world it is some hundred times the work. It is asked in turn on both, some at
a time, each time with another constant, so that it is charged and run each time. Printed: the chance that a reply of the second world took
longer than one of the first (AUC; .5 is no difference, 1 a sure sign), its distance from .5 to be expected by chance alone, medians, and
how many answers missed their moment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import lapwing
from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.attacks.bombs import declare

QUESTION = (
    "SELECT a.note, COUNT(*) AS n FROM (SELECT id, note FROM events WHERE mark = 9 AND amount > -{constant}) AS a"
    " JOIN (SELECT id, day FROM events WHERE mark = 9) AS b ON a.id = b.id GROUP BY a.note"
)
EPSILON = "0.01"
WARM = 5
"""Replies of each world that are left out."""
BUDGET = ("epsilon = 1\n", "epsilon = 100_000\ndelta = 0.001\n")


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


def write_world(directory: Path, *, target: bool) -> None:
    """One of the worlds, with a budget for thousands of questions, and prepared."""
    declare(directory / "clinic", target=target)
    catalogue = directory / "clinic" / "lapwing.toml"
    text = catalogue.read_text()
    for word, other in (BUDGET, ("rows_max = 1_000_000", "rows_max = 10_000")):
        assert word in text
        text = text.replace(word, other)
    catalogue.write_text(text)
    with lapwing.open(directory / "clinic", home=directory / "home") as data_set:
        data_set.prepare(accept_losses=True)


@contextmanager
def served(directory: Path, *, public: bool, base_seconds: float) -> Iterator[World]:
    """A server on the data set in ``directory/clinic``, which is prepared."""
    home, port = directory / f"server-{public}", _free_port()
    home.mkdir(mode=0o700)
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
    process = subprocess.Popen([sys.executable, "-m", "lapwing.interfaces.cli", "serve", "--home", str(home)], env=environment)
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
    arguments.add_argument("--replies", type=int, default=300, help="of each world, with moments")
    arguments.add_argument("--replies-off", type=int, default=300, help="of each world, without: a large difference is seen soon")
    arguments.add_argument("--at-once", type=int, default=4, help="questions on their way at a time, on both worlds together")
    arguments.add_argument("--base-seconds", type=float, default=0.25)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        plain, more = Path(scratch) / "w0", Path(scratch) / "w1"
        write_world(plain, target=False)
        write_world(more, target=True)
        print("| public moments | AUC | by chance | median, without the person | with | missed, without | with |")
        print("|---|---|---|---|---|---|---|")
        for public in (False, True):
            with (
                served(plain, public=public, base_seconds=given.base_seconds) as first,
                served(more, public=public, base_seconds=given.base_seconds) as second,
            ):
                replies = given.replies if public else given.replies_off
                numbers = range(100_000 * public + 1, 100_000 * public + replies + 1 + WARM)
                with ThreadPoolExecutor(given.at_once) as asking:
                    took = list(asking.map(lambda one: one[0].seconds(one[1]), [(w, n) for n in numbers for w in (first, second)]))
                ours, theirs = took[2 * WARM :: 2], took[2 * WARM + 1 :: 2]
                chance = 2 * (1 / (6 * replies)) ** 0.5
                told = json.dumps([first.missed(), second.missed()]) if public else '["", ""]'
                print(
                    f"| {'on' if public else 'off'} | {auc(ours, theirs):.3f} | +-{chance:.3f} | {1000 * statistics.median(ours):.0f} ms"
                    f" | {1000 * statistics.median(theirs):.0f} ms | {' | '.join(json.loads(told))} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
