"""Configuration by environment variables: they override the file, one variable for each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from lapwing.errors import LapwingError

HOME_VARIABLE = "LAPWING_SERVER_HOME"
"""Names the server's directory to the worker processes. The only variable that does not set a key of the file."""


def variable(section: str, word: str) -> str:
    """The variable for a key of a section."""
    return f"LAPWING_{section}_{word}".upper()


def with_environment(values: dict[str, Any], sections: Mapping[str, type[BaseModel]], environment: Mapping[str, str]) -> dict[str, Any]:
    """The values of the file, overridden by those of the environment. A variable with our prefix that names no key is an error.

    Lists of data sets can only be in the file.
    """
    known = {
        variable(section, word): (section, word, field.annotation)
        for section, model in sections.items()
        for word, field in model.model_fields.items()
    }
    beginnings = tuple(variable(section, "") for section in sections)
    result = dict(values)
    for name in sorted(name for name in environment if name.startswith(beginnings) and name != HOME_VARIABLE):
        if name not in known:
            raise LapwingError("server-configuration", f"{name} does not name a key of the configuration")
        section, word, kind = known[name]
        before = result.get(section, {})
        result[section] = {**(before if isinstance(before, dict) else {}), word: _value(name, kind, environment[name])}
    return result


def _value(name: str, kind: Any, text: str) -> Any:
    """The text as a value of this kind."""
    if kind is bool:
        if text not in ("true", "false"):
            raise LapwingError("server-configuration", f"{name} must be true or false")
        return text == "true"
    if kind == list[str]:
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError as error:
            raise LapwingError("server-configuration", f"{name} is not a number") from error
    return text
