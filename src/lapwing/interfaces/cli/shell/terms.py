"""The terms that statements of a session are asked on, and the other settings: ``\\set NAME VALUE``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from lapwing.interfaces.cli.exits import usage_error
from lapwing.interfaces.cli.views import AnswerFormat, SqlSpelling

if TYPE_CHECKING:
    from lapwing.asking.options import AskArguments

UNSEEN, ALWAYS, NEVER = "unseen", "always", "never"
"""When paying is confirmed: if the price was not on the screen, for every price, or for none."""


def _positive(text: str) -> str:
    try:
        is_positive = Fraction(text) > 0
    except (ValueError, ZeroDivisionError):
        is_positive = False
    if not is_positive:
        raise usage_error(f"{text} is not a number above 0")
    return text


def _error(text: str) -> str:
    _positive(text.removesuffix("%"))
    return text


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise usage_error(f"{text} is not one of {', '.join(words)}")
        return text.lower()

    return read


@dataclass(frozen=True, slots=True)
class Setting:
    """What may be set, and what it means."""

    read: Callable[[str], str]
    default: str
    meaning: str


SETTINGS: dict[str, Setting] = {
    "epsilon": Setting(_positive, "", "price of a statement; the catalogue's, if this and error are not set"),
    "error": Setting(_error, "", "instead of a price: no error bar longer than this, such as 100 or 5%"),
    "confidence": Setting(_positive, "", "level of the error bars, such as 0.95"),
    "dialect": Setting(_one_of(*SqlSpelling), SqlSpelling.DUCKDB.value, "SQL dialect of statements"),
    "scaled_groups": Setting(_one_of("on", "off"), "off", "scale groups to a total, by a model"),
    "reuse": Setting(_one_of("auto", "never", "only"), "auto", "whether a release that was bought before may answer for free"),
    "format": Setting(_one_of(*AnswerFormat), AnswerFormat.TABLE.value, "how answers are printed"),
    "confirm": Setting(_one_of(UNSEEN, ALWAYS, NEVER), UNSEEN, "ask before paying: a price that was not on the screen, every price, none"),
}


@dataclass(slots=True)
class ShellTerms:
    """What is set now."""

    values: dict[str, str] = field(default_factory=lambda: {name: setting.default for name, setting in SETTINGS.items()})

    def set(self, name: str, value: str) -> None:
        """Set one; an empty value resets it. A price and an error exclude each other."""
        if name not in SETTINGS:
            raise usage_error(f"there is no setting {name}; the settings are {', '.join(SETTINGS)}")
        self.values[name] = SETTINGS[name].read(value) if value else SETTINGS[name].default
        other = {"epsilon": "error", "error": "epsilon"}.get(name)
        if other is not None and value:
            self.values[other] = ""

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    def asked(self, statement: str) -> tuple[str, AskArguments]:
        """The statement to ask, and its terms. Its own WITH PRIVACY takes precedence over the settings."""
        from lapwing.asking.options import written_terms

        terms: AskArguments = {"dialect": self["dialect"]}
        own = written_terms(statement, dialect=self["dialect"])
        if self["confidence"] and "confidence" not in own:
            terms["confidence"] = self["confidence"]
        if self["scaled_groups"] == "on" and "scaled_groups" not in own:
            terms["scaled_groups"] = True
        if self["reuse"] != SETTINGS["reuse"].default and "reuse" not in own and _is_question(statement):
            terms["reuse"] = self["reuse"]
        if "asked" in own:
            return statement, terms
        if self["epsilon"]:
            terms["epsilon"] = self["epsilon"]
        if not self["error"] or not _is_question(statement):
            return statement, terms
        if own:
            raise usage_error(
                "an error is set, and the statement has its own WITH PRIVACY: write the error there, or reset it with \\set error"
            )
        error = f"'{self['error']}'" if self["error"].endswith("%") else self["error"]
        return f"{statement}\nWITH PRIVACY (error = {error})", terms

    def shown(self) -> str:
        """Price or error, and confidence where one is set, in a few words."""
        words = [f"{name} {self[name]}" for name in ("epsilon", "error", "confidence") if self[name]]
        return ", ".join(words) or "the catalogue's epsilon"


def _is_question(statement: str) -> bool:
    """Whether something is measured: SHOW and DESCRIBE are free, and have no accuracy."""
    return re.match(r"\s*(?:show|describe|desc|pragma|set)\b", statement, re.IGNORECASE) is None
