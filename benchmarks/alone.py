"""One action in a process of its own, so that its peak of memory is nobody else's.

python -m benchmarks.alone plan DIRECTORY "COUNT, SUM / clipped / year"
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.files import Files, load_bare, opened, prepare, run_bare
from benchmarks.plans import COMPARISONS, Comparison, bare_sql, plan_of
from benchmarks.spent import Spent, spent

from lapwing.kernel.certify import certify

_ACTIONS = ("load", "prepare", "open", "bare", "plan")


def alone(files: Files, action: str, comparison: Comparison | None = None) -> Spent:
    """Run an action of this module in a new interpreter."""
    named = [comparison.name] if comparison is not None else []
    command = [sys.executable, "-m", "benchmarks.alone", action, str(files.directory), *named]
    return Spent(**json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))


def _act(action: str, files: Files, comparison: Comparison) -> Spent:
    match action:
        case "load":
            return load_bare(files)
        case "prepare":
            return prepare(files)
        case _:
            with opened(files) as (bare, snapshot):
                match action:
                    case "bare":
                        return spent(lambda: run_bare(bare, bare_sql(comparison)))
                    case "plan":
                        certified = certify(plan_of(comparison), snapshot.facts)
                        return spent(lambda: snapshot.run(certified))
                    case _:
                        return spent(lambda: None)


def main() -> None:
    """Do what the command line says and print what it took."""
    by_name = {comparison.name: comparison for comparison in COMPARISONS}
    parser = argparse.ArgumentParser(description="Time and memory of one action, as JSON.")
    parser.add_argument("action", choices=_ACTIONS)
    parser.add_argument("directory", type=Path)
    parser.add_argument("comparison", choices=by_name, nargs="?", default=COMPARISONS[0].name)
    arguments = parser.parse_args()
    print(json.dumps(asdict(_act(arguments.action, Files(arguments.directory), by_name[arguments.comparison]))))


if __name__ == "__main__":
    main()
