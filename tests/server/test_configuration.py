"""The configuration: strict, and safe by itself. And the moments at which answers leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.curator.cost_estimate import CostEstimate
from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import read_configuration
from lapwing.interfaces.http.data_set_pool import DataSetPool
from lapwing.interfaces.http.rates import Rates
from lapwing.interfaces.http.release_schedule import (
    CELLS_PER_SECOND,
    OVERHEAD_SECONDS,
    ROWS_PER_SECOND,
    UNIT_BYTES_PER_SECOND,
    UNIT_PARTS_PER_SECOND,
    PublicMoments,
    expected_seconds,
)

pytestmark = pytest.mark.xdist_group("server: configuration")


def _read(directory: Path, text: str) -> LapwingError | None:
    file = directory / "lapwing-server.toml"
    file.write_text(text)
    try:
        read_configuration(file).require_safe()
    except LapwingError as error:
        return error
    return None


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nprot = 1",
        "[server]\nport = 99999",
        "[server]\nport = '80'",
        "[limits]\nburst = 0",
        "nonsense",
        "[server]\nhost = '0.0.0.0'",
        "[server]\nhost = 'lapwing.example.org'",
        "[server]\nhost = '10.0.0.1'\ncertificate = 'only.pem'",
        "[oidc]\nissuer = 'http://login.example.org'\naudience = 'a'",
        "[oidc]\nissuer = 'https://login.example.org'",
        "[server]\nbehind_proxy = true\ntrusted_proxies = ['*']",
        "[server]\nbehind_proxy = true\ntrusted_proxies = ['10.0.0.1/8']",
        "[server]\ntrusted_proxies = ['10.0.0.1']",
    ],
)
def test_what_is_not_right_is_refused_at_the_start(tmp_path: Path, text: str) -> None:
    error = _read(tmp_path, text)
    assert error is not None
    assert error.code == "server-configuration"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[server]\nhost = '::1'",
        "[server]\nhost = '0.0.0.0'\nbehind_proxy = true",
        "[server]\nbehind_proxy = true\ntrusted_proxies = ['10.0.0.0/8', '2001:db8::7']",
        "[server]\nhost = '0.0.0.0'\ncertificate = 'a'\nkey = 'b'",
        "[oidc]\nissuer = 'http://127.0.0.1:3000'\naudience = 'a'",
    ],
)
def test_what_is_safe_is_accepted(tmp_path: Path, text: str) -> None:
    assert _read(tmp_path, text) is None


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LapwingError) as missing:
        read_configuration(tmp_path / "nowhere.toml")
    assert missing.value.code == "server-configuration"


def test_two_catalogues_of_one_name_are_refused(tmp_path: Path) -> None:
    from lapwing.demo import write_demo
    from lapwing.interfaces.http.configuration import MomentSettings, Served, ServerLimits

    write_demo(tmp_path / "clinic", patients=300)
    listed = [Served(catalogue="clinic"), Served(catalogue="clinic/lapwing.toml")]
    with pytest.raises(LapwingError) as twice:
        DataSetPool.open(listed, ServerLimits(), MomentSettings(), directory=tmp_path, home=tmp_path / "home")
    assert twice.value.code == "server-configuration"


def test_the_moment_depends_on_public_work_alone_unless_it_is_missed() -> None:
    moments = PublicMoments(0.25)
    light, heavy = CostEstimate(1_000, 10), CostEstimate(40 * ROWS_PER_SECOND, 10)
    assert {moments.leaves_after(light, took=took) for took in (0.0, 0.1, 0.25)} == {0.25}
    assert {moments.leaves_after(heavy, took=took) for took in (0.0, 1.0, 60.0)} == {64.0}
    assert moments.leaves_after(light, took=0.26) == 0.5
    assert moments.leaves_after(light, took=1.7) == 2.0
    assert (moments.due_after(light), moments.due_after(heavy)) == (0.25, 64.0)


def test_a_fixed_time_is_for_every_answer_and_none_for_those_who_want_none() -> None:
    fixed = PublicMoments(2.0, fixed=True)
    assert fixed.leaves_after(CostEstimate(10**12, 10**9), took=0.1) == 2.0
    assert fixed.leaves_after(CostEstimate(0, 0), took=2.5) == 4.0
    assert PublicMoments(2.0, public=False).leaves_after(CostEstimate(0, 0), took=0.3) == 0.3


def test_work_adds_up() -> None:
    work = CostEstimate(ROWS_PER_SECOND, 0) + CostEstimate(0, CELLS_PER_SECOND)
    assert expected_seconds(work) == pytest.approx(2 + OVERHEAD_SECONDS)
    one_unit = CostEstimate(0, 0, UNIT_BYTES_PER_SECOND, 0) + CostEstimate(0, 0, 0, 2 * UNIT_PARTS_PER_SECOND)
    assert expected_seconds(work + one_unit) == pytest.approx(5 + OVERHEAD_SECONDS)


def test_a_bucket_fills_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    rates = Rates(2.0, 2)
    assert [rates.seconds_to_wait("ada") for _ in range(3)] == [0.0, 0.0, 0.5]
    assert rates.seconds_to_wait("bob") == 0.0
    clock[0] += 0.5
    assert rates.seconds_to_wait("ada") == 0.0
