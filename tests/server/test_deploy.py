"""What runs the server: the units of systemd are sound and closed, the image runs as nobody special, the pages name what is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lapwing.interfaces.cli.exits import ExitStatus
from lapwing.interfaces.http.configuration import ServerLimits, WireSettings
from tests.meta.tree import DOCS, ROOT
from tests.unit.cli.support import run

UNIT = ROOT / "deploy" / "lapwing.service"
REFRESH = ROOT / "deploy" / "lapwing-refresh@.service"
TIMER = ROOT / "deploy" / "lapwing-refresh@.timer"
PROGRAM = "/usr/local/lib/lapwing/bin/lapwing"
CONTAINER = ROOT / "deploy" / "Containerfile"
EXPOSURE_MAX = 2.0
"""As systemd counts it, from 0 (closed) to 10; a service without any protection has 9.6."""


def _unit(unit: Path, directory: Path) -> Path:
    """A unit with a program that is there."""
    file = directory / unit.name
    text = unit.read_text(encoding="utf-8")
    assert text.count(PROGRAM) == 1
    file.write_text(text.replace(PROGRAM, sys.executable), encoding="utf-8")
    return file


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("service", [UNIT, REFRESH], ids=["server", "refresh"])
def test_systemd_finds_nothing_wrong_and_little_that_is_open(service: Path, tmp_path: Path) -> None:
    unit = _unit(service, tmp_path)
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if "lapwing" in line]) == (0, [])
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"exposure level for lapwing[-@a-z]*\.service: ([0-9.]+)", judged)
    assert found is not None
    assert float(found[1]) <= EXPOSURE_MAX


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_timer_comes_after_the_days_have_closed_and_starts_the_refresh(tmp_path: Path) -> None:
    _unit(REFRESH, tmp_path)
    timer = tmp_path / TIMER.name
    timer.write_text(TIMER.read_text(encoding="utf-8"), encoding="utf-8")
    verified = subprocess.run(["systemd-analyze", "verify", timer], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")
    (when,) = re.findall(r"(?m)^OnCalendar=(.*)$", timer.read_text(encoding="utf-8"))
    told = subprocess.run(["systemd-analyze", "calendar", when], capture_output=True, text=True, check=True).stdout
    assert "00:15:00 UTC" in told, "days close at midnight in UTC"


def test_the_refresh_is_a_command_of_ours(tmp_path: Path) -> None:
    (started,) = re.findall(rf"(?m)^ExecStart={PROGRAM} (.*)$", REFRESH.read_text(encoding="utf-8"))
    (tmp_path / "dashboard.sql").write_text("SELECT COUNT(*) FROM events;\n", encoding="utf-8")
    ran = run(*started.replace("/var/lib/lapwing/%i", str(tmp_path)).split(), home=tmp_path / "home")
    assert ran.status == ExitStatus.OWNER and "lapwing.toml" in ran.err, "nothing is missing but the catalogue"


def test_the_unit_gives_up_what_it_does_not_need() -> None:
    said = set(UNIT.read_text(encoding="utf-8").splitlines())
    assert said >= {
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "CapabilityBoundingSet=",
        "User=lapwing",
        "LimitCORE=0",
    }
    assert said >= {"UMask=0077", "StateDirectoryMode=0700", "SuccessExitStatus=143"}


def test_the_unit_has_room_for_all_connections_that_the_configuration_allows() -> None:
    (files,) = re.findall(r"(?m)^LimitNOFILE=(\d+)$", UNIT.read_text(encoding="utf-8"))
    largest = WireSettings(shadow="postgresql://x", connections_max=10_000, shadow_connections=100)
    assert int(files) > 2 * (largest.connections_max + largest.shadow_connections * ServerLimits().open_max)


def test_the_image_runs_as_a_user_of_its_own_and_holds_nothing_secret() -> None:
    text = CONTAINER.read_text(encoding="utf-8")
    steps = [line.split()[0] for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert "USER" in steps
    assert steps.index("USER") < steps.index("ENTRYPOINT")
    copied = [line for line in text.splitlines() if line.startswith("COPY")]
    assert copied == [
        "COPY pyproject.toml constraints.txt README.md LICENSE /source/",
        "COPY src /source/src",
        "COPY --from=build /usr/local/lib/lapwing /usr/local/lib/lapwing",
    ]
    for name in re.findall(r"COPY ([a-zA-Z. ]+) /source/", text)[0].split():
        assert (ROOT / name).exists()


@pytest.mark.parametrize("page", ["run-as-a-service", "run-in-a-container", "dashboards"])
def test_the_pages_name_files_that_are_there(page: str) -> None:
    text = (DOCS / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"deploy/[\w.@-]+\w", text))
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
