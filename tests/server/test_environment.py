"""Variables of the environment stand above the file; each is on the page; one that names nothing is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import SECTIONS, read_configuration
from lapwing.interfaces.http.environment import HOME_VARIABLE, variable
from tests.meta.tree import DOCS

pytestmark = pytest.mark.xdist_group("server: configuration")


def _file(directory: Path) -> Path:
    file = directory / "lapwing-server.toml"
    file.write_text("[server]\nport = 1234\nworkers = 3\n\n[[data_set]]\ncatalogue = 'clinic'\n")
    return file


def test_the_environment_stands_above_the_file(tmp_path: Path) -> None:
    said = {
        "LAPWING_SERVER_PORT": "9000",
        "LAPWING_SERVER_METRICS": "false",
        "LAPWING_LIMITS_WAIT_SECONDS": "2.5",
        "LAPWING_OIDC_ISSUER": "https://login.example.org",
        "LAPWING_OIDC_AUDIENCE": "lapwing",
        "LAPWING_SERVER_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.7",
        "LAPWING_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces",
        HOME_VARIABLE: "/elsewhere",
        "LAPWING_TOKEN": "not ours to read",
    }
    read = read_configuration(_file(tmp_path), said)
    assert (read.server.port, read.server.workers, read.server.metrics) == (9000, 3, False)
    assert (read.limits.wait_seconds, read.traces.endpoint) == (2.5, "http://127.0.0.1:4318/v1/traces")
    assert read.server.trusted_proxies == ["10.0.0.0/8", "192.0.2.7"]
    assert read.oidc is not None
    assert (read.oidc.issuer, read.oidc.audience) == ("https://login.example.org", "lapwing")
    assert read_configuration(_file(tmp_path), {}).server.port == 1234


@pytest.mark.parametrize(
    "said",
    [
        {"LAPWING_SERVER_PROT": "1"},
        {"LAPWING_SERVER_PORT": "many"},
        {"LAPWING_SERVER_PORT": "70000"},
        {"LAPWING_SERVER_METRICS": "yes"},
        {"LAPWING_OIDC_ISSUER": "https://login.example.org"},
        {"LAPWING_TRACES_ENDPOINT": "http://collector.example.org/v1/traces"},
        {"LAPWING_SERVER_HOST": "0.0.0.0"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_what_is_not_right_is_refused(tmp_path: Path, said: dict[str, str]) -> None:
    with pytest.raises(LapwingError) as wrong:
        read_configuration(_file(tmp_path), said).require_safe()
    assert wrong.value.code == "server-configuration"


def test_every_variable_is_on_the_page() -> None:
    page = (DOCS / "reference" / "server.md").read_text(encoding="utf-8")
    missing = [
        name for section, model in SECTIONS.items() for word in model.model_fields if f"`{(name := variable(section, word))}`" not in page
    ]
    assert missing == []
