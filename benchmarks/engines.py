"""What a private answer costs each engine, against the same SQL bare on the same engine; preparing, appending, reading in place; memory.

    python -m benchmarks.engines duckdb postgres                       # 10^7 rows, about 25 minutes and 10 GB of disk
    python -m benchmarks.engines spark --rows 2_000_000
    python -m benchmarks.engines duckdb --rows 100_000_000 --memory-gigabytes 4 --parts prepare,ratios,plans,groups
    python -m benchmarks.engines duckdb --json figures.jsonl           # figures for benchmarks.scale too

Each ratio is of CPU times, of this process and of the engine's own (see ``engines_places``), of runs next to each other; who goes first
changes from round to round, and one round warms up. Nothing is asserted: what must hold on any machine is in
tests/engines/test_engines_bench_smoke.py.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.engines_data import Appended, World, append_rows, write_world
from benchmarks.engines_norms import NORMS_GOAL, served_statements
from benchmarks.engines_places import PLACES, Place
from benchmarks.engines_questions import BY_NAME, FOUR, MANY_GROUPS, PLANS, Asked
from benchmarks.files import RANKING_KEY
from benchmarks.markdown import megabytes, show, table
from benchmarks.spent import Spent, spent

from lapwing.catalog import Settings, parse
from lapwing.engines.base import Snapshot
from lapwing.engines.registry import engine_of
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.permit import issue
from lapwing.kernel.release import release

PARTS = ("prepare", "ratios", "norms", "plans", "groups", "virtual", "append")


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one action, in one line of the file of figures."""

    engine: str
    rows: int
    what: str
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int = 0
    """Largest resident size of this process; 0 where it was not measured in a process of its own."""
    engine_peak_bytes: int = 0
    bare_cpu_seconds: float = 0.0
    ratio_least: float = 0.0
    ratio: float = 0.0
    ratio_most: float = 0.0
    size_bytes: int = 0


class Run:
    """One engine, one number of rows."""

    def __init__(self, place: Place, *, repetitions: int, json_path: Path | None) -> None:
        self.place, self.repetitions, self._json = place, repetitions, json_path
        self._whole: Spent | None = None

    def note(self, figures: Figures) -> Figures:
        """Keep figures."""
        if self._json is not None:
            with self._json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(figures)) + "\n")
        return figures

    def figures(self, what: str, found: Spent, **more: float) -> Figures:
        """Figures of one action, kept."""
        return self.note(Figures(self.place.name, self.place.rows, what, found.cpu_seconds, found.wall_seconds, **more))  # type: ignore[arg-type]

    def title(self, what: str) -> str:
        """Heading of a table."""
        return f"{self.place.name}, {self.place.rows:,} rows: {what}"

    def prepare(self) -> None:
        """Version 1 from nothing."""
        found = self._whole = self.place.prepare(1)
        size = self.place.bytes(1)
        self.figures("preparation", found, size_bytes=size)
        body = [[f"{found.cpu_seconds:.1f}", f"{found.wall_seconds:.1f}", megabytes(self.place.world.source_bytes), megabytes(size)]]
        table(self.title("preparation"), ["CPU s", "wall s", "source (Parquet) MB", "version MB"], body)

    def ratios(self) -> None:
        """The questions that have a goal."""
        with self.place.opened(1) as snapshot:
            self._compare(snapshot, FOUR, "CPU of plans and of bare SQL, medians")

    def norms(self) -> None:
        """Statements with caps from their norms: the plan beside bare SQL, the histogram beside the plan; all three in turn."""
        body = []
        with self.place.opened(1) as snapshot:
            for served in served_statements(self.place, snapshot):
                runs: list[tuple[Spent, Spent, Spent]] = []
                for repetition in range(self.repetitions + 1):
                    bare = self.place.spent(lambda: self.place.bare(served.bare))  # noqa: B023
                    plan = self.place.spent(lambda: snapshot.run(served.plan))  # noqa: B023
                    norms = self.place.spent(lambda: [snapshot.run(item) for item in served.norms])  # noqa: B023
                    runs += [(bare, plan, norms)] if repetition else []
                times = [[each.cpu_seconds for each in run] for run in runs]
                middle = [statistics.median(column) for column in zip(*times, strict=True)]
                ratio, part = (statistics.median(row[a] / row[b] for row in times) for a, b in ((1, 0), (2, 1)))
                self.figures(f"ratio: {served.name}", runs[-1][1], bare_cpu_seconds=middle[0], ratio=ratio)
                self.figures(f"norms: {served.name}", runs[-1][2], bare_cpu_seconds=middle[1], ratio=part)
                spread = f"{min(row[1] / row[0] for row in times):.1f} - {max(row[1] / row[0] for row in times):.1f}"
                figures = [f"{seconds:.3f}" for seconds in middle]
                body.append([served.name, *figures, f"{ratio:.1f}", spread, f"{served.goal:g}", f"1 in {served.one_in}", f"{part:.0%}"])
        head = ["statement", "bare CPU s", "plan CPU s", "norms CPU s", "plan / bare", "least - largest", "goal", "sample", "norms / plan"]
        table(self.title(f"caps from norms (norms: at most {NORMS_GOAL:.0%} of their plan)"), head, body)

    def plans(self) -> None:
        """Every kind of plan, each alone in a process where the engine is in this one, so that its memory is its own."""
        if self.place.name != "duckdb":
            with self.place.opened(1) as snapshot:
                self._compare(snapshot, PLANS, "all plans")
            return
        body = []
        for asked in PLANS:
            found = self._alone(asked, draw=False)
            self.figures(asked.name, found, peak_bytes=found.peak_bytes)
            body.append([asked.name, f"{found.cpu_seconds:.2f}", f"{found.wall_seconds:.2f}", megabytes(found.peak_bytes)])
        table(self.title("plans, each in a process of its own"), ["plan", "CPU s", "wall s", "peak MB"], body)

    def groups(self) -> None:
        """A result of a million groups: rows counted by the engine, brought here, noise drawn for each."""
        with self.place.opened(1) as snapshot:
            self._compare(snapshot, (MANY_GROUPS,), "a million groups, without noise")
        body = []
        for what, draw in (("engine and exact integers", False), ("with noise", True)):
            found = self._alone(MANY_GROUPS, draw=draw)
            peak = self.place.engine_peak_bytes()
            self.figures(f"a million groups, {what}", found, peak_bytes=found.peak_bytes, engine_peak_bytes=peak)
            body.append([what, f"{found.cpu_seconds:.1f}", f"{found.wall_seconds:.1f}", megabytes(found.peak_bytes)])
        table(self.title("a million groups, a process of its own"), ["", "CPU s of it", "wall s", "peak MB of it"], body)

    def virtual(self) -> None:
        """Two of the plans where nothing is copied, against the prepared version."""
        self.place.prepare(1, preparation="virtual")
        body = []
        with self.place.opened(1) as stored, self.place.opened(1, preparation="virtual") as virtual:
            for asked in (FOUR[0], FOUR[2]):
                ours = certify(asked.plan(), stored.facts)
                theirs = certify(asked.plan(), virtual.facts)
                first, second = (self.place.spent(lambda: stored.run(ours)) for _ in range(2))  # noqa: B023
                found = self.place.spent(lambda: virtual.run(theirs))  # noqa: B023
                base = min(first.cpu_seconds, second.cpu_seconds)
                ratio = found.cpu_seconds / base
                self.figures(f"virtual: {asked.name}", found, bare_cpu_seconds=base, ratio=ratio)
                body.append([asked.name, f"{base:.2f}", f"{found.cpu_seconds:.1f}", f"{found.wall_seconds:.1f}", f"{ratio:.0f}"])
        table(self.title("read in place"), ["question", "stored CPU s", "in place CPU s", "wall s", "ratio"], body)

    def append(self) -> None:
        """One more percent of rows, three times over, from the version before, against a preparation from nothing."""
        body: list[list[str]] = []
        place, named, later, version = self.place, list[tuple[str, Spent]](), list[Path](), 1
        for how in Appended:
            path = append_rows(place.world, how, rows=place.rows // 100, number=version)
            later.append(path)
            place.load_more(path)
            found = place.prepare(version + 1, append_to=version)
            version += 1
            self.figures(f"appended {how.value}", found)
            named.append((f"1 % more, {how.value}", found))
        whole = self._whole or place.prepare(version + 1)
        for name, found in [*named, ("from nothing", whole)]:
            shares = (100 * found.cpu_seconds / whole.cpu_seconds, 100 * found.wall_seconds / whole.wall_seconds)
            body.append([name, f"{found.cpu_seconds:.1f}", f"{found.wall_seconds:.1f}", *(f"{share:.1f} %" for share in shares)])
        table(self.title("preparing again"), ["", "CPU s", "wall s", "of the CPU", "of the time"], body)
        for path in later:
            path.unlink()

    def _compare(self, snapshot: Snapshot, questions: Sequence[Asked], what: str) -> None:
        certified = {asked.name: certify(asked.plan(), snapshot.facts) for asked in questions}
        times: dict[str, list[tuple[Spent, Spent]]] = {asked.name: [] for asked in questions}
        for repetition in range(self.repetitions + 1):
            for asked in questions:
                pair = self._pair(snapshot, asked, certified[asked.name], bare_first=bool(repetition % 2))
                if repetition:
                    times[asked.name].append(pair)
        body = []
        for asked in questions:
            ratios = sorted(ours.cpu_seconds / theirs.cpu_seconds for theirs, ours in times[asked.name])
            bare, plan = (statistics.median(pair[side].cpu_seconds for pair in times[asked.name]) for side in (0, 1))
            wall = statistics.median(pair[1].wall_seconds for pair in times[asked.name])
            middle = statistics.median(ratios)
            self.note(
                Figures(
                    *(self.place.name, self.place.rows, f"ratio: {asked.name}", plan, wall),
                    bare_cpu_seconds=bare,
                    ratio_least=ratios[0],
                    ratio=middle,
                    ratio_most=ratios[-1],
                )
            )
            goal = "" if asked.goal is None else f"{asked.goal}"
            body.append([asked.name, f"{bare:.2f}", f"{plan:.2f}", f"{middle:.2f}", f"{ratios[0]:.2f} - {ratios[-1]:.2f}", goal])
        table(self.title(what), ["question", "bare CPU s", "plan CPU s", "ratio", "least - largest", "goal"], body)

    def _pair(self, snapshot: Snapshot, asked: Asked, certified: Certified, *, bare_first: bool) -> tuple[Spent, Spent]:
        if bare_first:
            bare = self.place.spent(lambda: self.place.bare(asked.bare))
            return bare, self.place.spent(lambda: snapshot.run(certified))
        ours = self.place.spent(lambda: snapshot.run(certified))
        return self.place.spent(lambda: self.place.bare(asked.bare)), ours

    def _alone(self, asked: Asked, *, draw: bool) -> Spent:
        """One plan in a new interpreter: CPU time, time and peak of that process."""
        self.place.state("stored").joinpath("catalogue.toml").write_text(self.place.text("stored"), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.engines", "--alone", asked.name, *(["--draw"] if draw else [])]
        memory = ["--memory-gigabytes", str(self.place.settings.memory_limit_bytes / 1e9)]
        done = subprocess.run([*command, *memory, "--directory", str(self.place.state("stored"))], stdout=subprocess.PIPE, check=True)
        return Spent(**json.loads(done.stdout.splitlines()[-1]))


def alone(state: Path, asked: Asked, settings: Settings, *, draw: bool) -> Spent:
    """Run one plan on version 1, and draw its noise where that is asked for."""
    engine = engine_of(parse((state / "catalogue.toml").read_text(encoding="utf-8")), state, settings)
    snapshot = engine.open(1, ranking_key=RANKING_KEY)
    certified = certify(asked.plan(), snapshot.facts)

    def act() -> None:
        exact = snapshot.run(certified)
        if draw:
            release(certified, issue(1, certified.digest, certified.cost), exact)

    try:
        return spent(act)
    finally:
        snapshot.close()
        engine.close()


def measure(
    name: str, directory: Path, *, rows: int, repetitions: int, settings: Settings, parts: Sequence[str], json_path: Path | None
) -> None:
    """All parts of one engine, in the order of ``PARTS``."""
    world = World(directory)
    write_world(world, rows=rows)
    with PLACES[name](world, rows=rows, settings=settings) as place:
        run = Run(place, repetitions=repetitions, json_path=json_path)
        for part in PARTS:
            if part in parts:
                getattr(run, part)()
                loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
                show("", f"load of the machine in the last minutes, in running processes: {loads}")
    for path in (*directory.glob(f"{name}-*"), directory / "warehouse"):
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--memory-gigabytes", type=float, default=Settings().memory_limit_bytes / 1e9)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--directory", type=Path, help="keep the owner's files here, and use them again")
    parser.add_argument("--json", type=Path, help="add figures to this file, one line each")
    parser.add_argument("--alone", choices=BY_NAME, help=argparse.SUPPRESS)
    parser.add_argument("--draw", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    settings = Settings(memory_limit_bytes=int(chosen.memory_gigabytes * 1e9), query_timeout_seconds=3600)
    if chosen.alone:
        print(json.dumps(asdict(alone(chosen.directory, BY_NAME[chosen.alone], settings, draw=chosen.draw))))
        return
    with tempfile.TemporaryDirectory() as scratch, suppress(KeyboardInterrupt):
        directory = (chosen.directory or Path(scratch)).resolve()
        for name in chosen.engines or PLACES:
            measure(
                name,
                directory,
                rows=chosen.rows,
                repetitions=chosen.repetitions,
                settings=settings,
                parts=chosen.parts.split(","),
                json_path=chosen.json,
            )


if __name__ == "__main__":
    main()
