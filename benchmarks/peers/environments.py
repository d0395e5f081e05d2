"""Environments of the peers, one for each, made by script: they need each other's other versions of NumPy and pandas.

    python -m benchmarks.peers.environments build/peers [opendp ...]

Java 17 is needed for Tumult's Spark. What does not install is said and left out of the comparison.
"""

from __future__ import annotations

import argparse
import subprocess
import venv
from pathlib import Path

REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "opendp": ("opendp[polars]==0.16.0",),
    "smartnoise": ("smartnoise-sql==1.0.10", "pyarrow"),
    "pipeline_dp": ("pipeline-dp==0.3.1", "pyarrow"),
    "tumult": ("tmlt.analytics==0.21.0",),
    # Its newest version does not import with a newer scikit-learn.
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy<2.2", "pandas", "pyarrow"),
}


def python_of(directory: Path, peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return directory / peer / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("peer", nargs="*", choices=[*REQUIREMENTS, []])
    options = parser.parse_args()
    for peer in options.peer or REQUIREMENTS:
        venv.create(options.directory / peer, with_pip=True, clear=True)
        command = [str(python_of(options.directory, peer)), "-m", "pip", "install", "--quiet", *REQUIREMENTS[peer]]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        said = "" if done.returncode == 0 else done.stderr.splitlines()[-1:]
        print(f"{peer}: {'made' if not said else f'failed: {said}'}", flush=True)


if __name__ == "__main__":
    main()
