"""Tokens and keys that are not good: each is nobody, in the same words."""

from __future__ import annotations

import base64
import json
import threading
import time
from datetime import UTC, datetime, timedelta

import jwt
import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.provider_sign_in import ProviderSignIn
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.interfaces.http.identity.tokens import UNKNOWN_KEY_SECONDS, WAITING_MAX, Issuer, TokenHolder, Tokens
from lapwing.interfaces.http.rates import Rates, sender
from tests.server.under_test import AUDIENCE, ISSUER, ServerUnderTest, Signer

pytestmark = pytest.mark.xdist_group("server: tokens")


def _status(server: ServerUnderTest, token: str) -> int:
    reply = server.call("GET", "/v1/me", token=token)
    assert reply.status_code in (200, 401)
    if reply.status_code == 401:
        assert reply.json()["title"] == "no valid API key or token was given"
    return int(reply.status_code)


def test_a_good_token_is_its_holder(server: ServerUnderTest) -> None:
    assert server.call("GET", "/v1/me", token=server.signer.token("ada")).json()["name"] == "ada"


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": -120},
        {"exp": None},
        {"iat": 600},
        {"nbf": 600},
        {"aud": "another"},
        {"aud": None},
        {"iss": "http://127.0.0.1:1/other"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "group:analysts"},
    ],
    ids=[
        "expired",
        "no end",
        "of the future",
        "not yet",
        "for another",
        "for nobody",
        "from another",
        "from nobody",
        "no name",
        "empty",
        "group",
    ],
)
def test_a_token_with_other_claims_is_nobody(server: ServerUnderTest, claims: dict[str, object]) -> None:
    now = int(time.time())  # moments are from now on
    claimed = {name: now + value if isinstance(value, int) else value for name, value in claims.items()}
    assert _status(server, server.signer.token("ada", **claimed)) == 401


def test_a_token_without_a_signature_is_nobody(server: ServerUnderTest) -> None:
    good = server.signer.token("ada").split(".")
    for algorithm in ("none", "None", "NONE"):
        header = json.dumps({"alg": algorithm, "typ": "JWT", "kid": "first"}).encode()
        bare = base64.urlsafe_b64encode(header).rstrip(b"=").decode()
        assert _status(server, f"{bare}.{good[1]}.") == 401
        assert _status(server, f"{bare}.{good[1]}.{good[2]}") == 401


def test_the_public_key_is_no_secret_to_sign_with(server: ServerUnderTest) -> None:
    public = server.signer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "first"}).encode()).rstrip(b"=")
    payload = server.signer.token("ada").split(".")[1].encode()
    signed = jwt.api_jws.PyJWS()._algorithms["HS256"]
    signature = base64.urlsafe_b64encode(signed.sign(header + b"." + payload, public)).rstrip(b"=")
    assert _status(server, b".".join([header, payload, signature]).decode()) == 401


def test_a_token_that_was_changed_or_signed_by_another_is_nobody(server: ServerUnderTest) -> None:
    head, payload, signature = server.signer.token("nemo").split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "olga"}).encode()).rstrip(b"=").decode()
    assert _status(server, f"{head}.{forged}.{signature}") == 401
    stranger = Signer({"first": rsa.generate_private_key(public_exponent=65537, key_size=2048)})
    assert _status(server, stranger.token("ada")) == 401


def test_a_key_that_was_rotated_out_signs_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = Signer()
    tokens = Tokens(Issuer(ISSUER, AUDIENCE), signer.fetch)
    clock = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    old = signer.token("ada")
    assert tokens.holder(old) is not None
    signer.rotate("second")
    new = signer.token("ada")
    assert tokens.holder(new) is None, "keys are not fetched again at once: strangers would decide how often"
    clock[0] += UNKNOWN_KEY_SECONDS + 1
    assert tokens.holder(new) is not None
    assert tokens.holder(old) is None


def test_a_provider_that_is_another_is_an_error_and_nobody_comes_in() -> None:
    signer = Signer()
    other = Tokens(Issuer("https://elsewhere.example", AUDIENCE), signer.fetch)
    with pytest.raises(LapwingError) as stopped:
        other.holder(signer.token("ada"))
    assert stopped.value.code == "issuer-mismatch"

    def unreachable(url: str) -> object:
        raise OSError("no route")

    with pytest.raises(LapwingError) as missing:
        Tokens(Issuer(ISSUER, AUDIENCE), unreachable).holder(signer.token("ada"))
    assert missing.value.code == "issuer-unreachable"


def test_groups_of_the_provider_have_roles(server: ServerUnderTest) -> None:
    server.app_state.identities.grant("group:statistics", Grant(Role.ANALYST, server.data_set))
    token = server.signer.token("new", groups=["statistics", 7, "other"])
    assert server.call("GET", "/v1/me", token=token).json()["data_sets"] == {server.data_set: ["analyst"]}
    assert server.call("GET", "/v1/me", token=server.signer.token("new", groups="statistics")).json()["data_sets"] == {}


def test_keys_expire_and_are_revoked(server: ServerUnderTest) -> None:
    identities = server.app_state.identities
    key, entry = identities.new_key("ada", days=1)
    assert _status(server, key) == 200
    past = (datetime.now(UTC) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with identities._engine.begin() as connection:
        connection.execute(sa.text("UPDATE lapwing_api_key SET expires_at = :past WHERE key_id = :id"), {"past": past, "id": entry.key_id})
    assert _status(server, key) == 401
    other, kept = identities.new_key("ada")
    identities.revoke(kept.key_id)
    assert _status(server, other) == 401
    right, _ = identities.new_key("ada")
    assert _status(server, right[:-1] + ("A" if right[-1] != "A" else "B")) == 401


def test_no_secret_is_kept(server: ServerUnderTest) -> None:
    key, _ = server.app_state.identities.new_key("ada")
    secret = key.split("_", 2)[2].encode()
    stored = [path.read_bytes() for path in server.home.glob("identities.db*")]
    assert stored
    assert not any(secret in content for content in stored)


def test_a_key_is_of_a_person_for_a_bounded_time(tmp_path: object) -> None:
    identities = Identities("sqlite://")
    for name, days in (("group:all", 1), ("ada", 0), ("ada", 10_000)):
        with pytest.raises(LapwingError) as refused:
            identities.new_key(name, days=days)
        assert refused.value.code == "key-invalid"
    with pytest.raises(LapwingError) as unreachable:
        Identities("sqlite:////no/such/directory/file.db")
    assert unreachable.value.code == "identities-unreachable"


def test_wrong_credentials_from_one_address_are_slowed_down(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.app_state, "failures", Rates(0.01, 3))
    seen = [server.call("GET", "/v1/me", token="rubbish").status_code for _ in range(5)]
    assert seen == [401, 401, 401, 429, 429]


def test_a_good_credential_passes_whatever_its_address_did(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others share an address: behind a router, a proxy, or as a page in somebody's browser that calls this machine."""
    monkeypatch.setattr(server.app_state, "failures", Rates(0.01, 3))
    assert {server.call("GET", "/v1/me", by=None).status_code for _ in range(9)} == {401}, "no credential is no wrong one"
    assert server.call("GET", "/v1/me", token="rubbish").status_code == 401
    assert {server.call("GET", "/v1/me", token="lw_no").status_code for _ in range(9)} == {401, 429}
    assert server.call("GET", "/v1/me").status_code == 200
    assert server.call("GET", "/v1/me", token=server.signer.token("ada")).status_code == 200


def test_what_strangers_make_up_takes_little_memory() -> None:
    assert sender("192.0.2.7") == sender("::ffff:192.0.2.7") == "192.0.2.7"
    assert sender("2001:db8::1") == sender("2001:db8::ffff:1") != sender("2001:db8:0:1::1")
    assert len(sender("x" * 60_000)) <= 64


def test_the_provider_is_asked_seldom_whatever_strangers_send(monkeypatch: pytest.MonkeyPatch) -> None:
    signer, asked, clock = Signer(), list[str](), [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def fetch(url: str) -> object:
        asked.append(url)
        return {**signer.fetch(url), "authorization_endpoint": f"{ISSUER}/authorize"}

    tokens = Tokens(Issuer(ISSUER, AUDIENCE), fetch)
    signing_in = ProviderSignIn(tokens, None, "https://curator.example", b"seal")
    made_up = Signer()
    for number in range(50):
        if number < 2:  # a key takes a while to make
            made_up.rotate(f"made up {number}")
        assert tokens.holder(made_up.token("ada")) is None
        assert signing_in.begin("/console/")[0].startswith(f"{ISSUER}/authorize?")
        clock[0] += 1
    assert tokens.holder(signer.token("ada")) is not None
    assert len([url for url in asked if "openid-configuration" in url]) == 1
    assert len(asked) <= 1 + 1 + 50 // UNKNOWN_KEY_SECONDS


def test_strangers_who_wait_for_the_provider_leave_threads_to_others() -> None:
    signer, come = Signer(), threading.Event()

    def slow(url: str) -> object:
        come.wait(20)
        return signer.fetch(url)

    tokens, outcomes = Tokens(Issuer(ISSUER, AUDIENCE), slow), list[object]()

    def stranger() -> None:
        try:
            outcomes.append(tokens.holder(signer.token("ada")))
        except LapwingError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=stranger) for _ in range(40)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 10
    while len(outcomes) < 40 - WAITING_MAX and time.monotonic() < until:
        time.sleep(0.01)
    assert outcomes == ["busy"] * (40 - WAITING_MAX)
    come.set()
    for thread in threads:
        thread.join()
    assert len([one for one in outcomes if isinstance(one, TokenHolder)]) == WAITING_MAX
