"""Sign-in at an OpenID provider: authorization code with PKCE (RFC 7636), a state and a nonce that only this browser has.

The server stores nothing meanwhile: for ten minutes the browser keeps the signed values that the reply is checked against.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from lapwing.interfaces.http.configuration import ServerConfiguration
from lapwing.interfaces.http.identity.sessions import SignedIn
from lapwing.interfaces.http.identity.tokens import Issuer, Tokens, fetch_json
from lapwing.ledger.limits import require_name

BACK = "/console/sign-in/back"
UNDER_WAY_SECONDS = 600


@dataclass(frozen=True, slots=True)
class ProviderSignIn:
    """The console as a client of the provider."""

    tokens: Tokens
    """Checks ID tokens whose audience is the console."""
    secret: str | None
    url: str
    seal: bytes

    @property
    def client_id(self) -> str:
        """The console's client id at the provider."""
        return self.tokens.issuer.audience

    def begin(self, wanted: str) -> tuple[str, str]:
        """Where to redirect the browser, and the cookie that it keeps until it returns; ``wanted`` is the page to show then."""
        where = self.tokens.endpoint("authorization_endpoint")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": f"{self.url}{BACK}",
            "scope": "openid",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        kept = {"state": state, "nonce": nonce, "verifier": verifier, "wanted": wanted, "until": int(time.time()) + UNDER_WAY_SECONDS}
        return f"{where}?{urlencode(asked)}", self._sealed(kept)

    def finish(self, kept: str, state: str, code: str) -> tuple[SignedIn, str] | None:
        """The identity that the provider confirms, and the requested page; None if the reply does not match this browser's request."""
        asked = self._opened(kept)
        if asked is None or not hmac.compare_digest(str(asked["state"]).encode(), state.encode("utf-8", "replace")):
            return None
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": f"{self.url}{BACK}",
            "client_id": self.client_id,
            "code_verifier": str(asked["verifier"]),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        if self.secret is not None:
            shown = f"{quote(self.client_id, safe='')}:{quote(self.secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(shown).decode()}"
        try:
            where = self.tokens.endpoint("token_endpoint")
            with self.tokens.asking():
                reply = fetch_json(where, urlencode(form).encode(), headers)
            holder = self.tokens.holder(str(reply["id_token"]), nonce=str(asked["nonce"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, http.client.HTTPException):
            return None
        if holder is None:
            return None
        require_name(holder.name)
        return SignedIn(holder.name, groups=holder.groups), str(asked["wanted"])

    def _sealed(self, kept: dict[str, Any]) -> str:
        text = base64.urlsafe_b64encode(json.dumps(kept).encode()).decode()
        return f"{text}.{hmac.digest(self.seal, text.encode(), 'sha256').hex()}"

    def _opened(self, kept: str) -> dict[str, Any] | None:
        """The values that the browser kept; None if they are not ours or too old."""
        text, _, seal = kept.partition(".")
        if not hmac.compare_digest(
            hmac.digest(self.seal, text.encode("utf-8", "replace"), "sha256").hex().encode(), seal.encode("utf-8", "replace")
        ):
            return None
        found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
        return found if found["until"] > time.time() else None


def provider_sign_in(configuration: ServerConfiguration, secret: bytes) -> ProviderSignIn | None:
    """Sign-in at the provider; None if the console is not a client of one."""
    oidc, url = configuration.oidc, configuration.console.url
    if oidc is None or oidc.client_id is None or url is None:
        return None
    issuer = Issuer(oidc.issuer, oidc.client_id, oidc.name_claim, oidc.groups_claim)
    seal = hmac.digest(secret, b"signing in to the console at a provider", "sha256")
    return ProviderSignIn(Tokens(issuer), oidc.client_secret, url.rstrip("/"), seal)
