"""Superset's REST API, as far as it is needed here."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass
class Rest:
    """Calls by one user."""

    port: int
    token: str = ""

    def call(self, method: str, path: str, body: Any = None, *, refused: bool = False) -> Any:
        """The reply; an error is one unless ``refused`` says that it is waited for."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", method=method)
        request.add_header("Content-Type", "application/json")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=300) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            if refused:
                return {"status": error.code, "said": said}
            raise SystemExit(f"{method} {path}: {error.code} {said}") from None

    def login(self, password: str) -> None:
        """Log in as the administrator."""
        said = {"username": "admin", "password": password, "provider": "db", "refresh": False}
        self.token = self.call("POST", "security/login", said)["access_token"]

    def made(self, path: str, body: Any) -> int:
        """The number of something new."""
        return int(self.call("POST", path, body)["id"])
