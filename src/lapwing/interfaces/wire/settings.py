"""Settings of a session: Lapwing's own, those that control the shadow's formats, and those that are accepted and ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lapwing.errors import Refused

OWN = {
    "lapwing.epsilon": "",
    "lapwing.error": "",
    "lapwing.confidence": "",
    "lapwing.intervals": "off",
    "lapwing.marks": "off",
    "lapwing.noise_as_null": "off",
}
"""Lapwing's own settings with their defaults; an empty default means the data set's."""
REPORTED = {
    "server_version": "",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "is_superuser": "off",
    "session_authorization": "",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "default_transaction_read_only": "off",
    "in_hot_standby": "off",
}
"""Reported to clients when they connect."""
_REPORTED_NAMES = {name.lower(): name for name in REPORTED}
TIMEOUT_DEFAULT_SECONDS = 600.0


def _any(value: str) -> str:
    if len(value) > 200:
        raise ValueError
    return value


def _one_of(*values: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.lower() not in values:
            raise ValueError
        return value.lower()

    return check


def _matching(pattern: str) -> Callable[[str], str]:
    compiled = re.compile(pattern, re.IGNORECASE)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise ValueError
        return value

    return check


def _encoding(value: str) -> str:
    if value.strip("'").lower().replace("-", "").replace("_", "") not in ("utf8", "unicode", "sqlascii"):
        raise ValueError
    return "UTF8"


def _date_style(value: str) -> str:
    parts = [part.strip().lower() for part in value.split(",")]
    if not set(parts) <= {"iso", "mdy", "dmy", "ymd", "us", "european", "default"} or len(parts) > 2:
        raise ValueError
    return "ISO, " + next((part.upper() for part in parts if part in ("mdy", "dmy", "ymd")), "MDY")


def _boolean(value: str) -> str:
    shown = {"on": "on", "true": "on", "1": "on", "yes": "on", "off": "off", "false": "off", "0": "off", "no": "off"}
    if value.lower() not in shown:
        raise ValueError
    return shown[value.lower()]


def _boolean_or(word: str) -> Callable[[str], str]:
    return lambda value: word if value.lower() == word else _boolean(value)


def _on(value: str) -> str:
    if _boolean(value) != "on":
        raise ValueError
    return "on"


_NUMBER = r"[0-9]{0,12}(?:\.[0-9]{0,12})?"
_OWN_RULES: Mapping[str, Callable[[str], str]] = {
    "lapwing.epsilon": _matching(rf"|(?=[0-9.]){_NUMBER}"),
    "lapwing.confidence": _matching(rf"|(?=[0-9.]){_NUMBER}"),
    "lapwing.error": _matching(rf"|(?=[0-9.]){_NUMBER}%?"),
    "lapwing.intervals": _boolean_or("named"),
    "lapwing.marks": _boolean,
    "lapwing.noise_as_null": _boolean,
}
_SHADOW_RULES: Mapping[str, Callable[[str], str]] = {
    "timezone": _matching(r"[A-Za-z0-9_+\-/:]{1,60}"),
    "extra_float_digits": _matching(r"-?[0-9]{1,2}"),
    "bytea_output": _one_of("hex", "escape"),
    "search_path": _matching(r"(?:[\w$ ,\"-]){0,300}"),
    "quote_all_identifiers": _boolean,
}
"""Settings passed on to the shadow, as parameter values: its answers depend on them."""
_LOCAL_RULES: Mapping[str, Callable[[str], str]] = {
    "application_name": _any,
    "client_encoding": _encoding,
    "client_min_messages": _one_of("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"),
    "datestyle": _date_style,
    "intervalstyle": _one_of("postgres"),
    "standard_conforming_strings": _on,
    "statement_timeout": _matching(r"[0-9]{1,9} ?(?:us|ms|s|min|h|d)?"),
    "row_security": _any,
}
_IGNORED_WORDS = """
lock_timeout idle_in_transaction_session_timeout idle_session_timeout default_transaction_read_only default_transaction_isolation
default_transaction_deferrable transaction_read_only transaction_isolation geqo enable_seqscan enable_indexscan enable_hashjoin
enable_mergejoin enable_nestloop jit escape_string_warning backslash_quote synchronous_commit work_mem random_page_cost ksqo
max_parallel_workers_per_gather check_function_bodies xmloption synchronize_seqscans default_tablespace temp_buffers
cursor_tuple_fraction
session_replication_role tcp_user_timeout tcp_keepalives_idle tcp_keepalives_interval tcp_keepalives_count
"""
_IGNORED = frozenset(_IGNORED_WORDS.split())
"""Settings that are accepted, since clients set them, and ignored."""
_DEFAULTS = {
    "application_name": "",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "server_encoding": "UTF8",
    "integer_datetimes": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "row_security": "on",
}


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """How an answer is sent."""

    added: tuple[str, ...] = ()
    """Parts of a measured value (``lo``, ``hi`` or ``mark``) that are sent as columns beside it."""
    named: bool = False
    """Whether the suffix of a measured column's name selects an end of its error bar."""
    noise_as_null: bool = False


@dataclass(slots=True)
class SessionSettings:
    """The settings of one session. Rolling back a transaction reverts its settings."""

    values: dict[str, str] = field(default_factory=dict)
    _before: dict[str, str] | None = None
    _local: dict[str, str | None] = field(default_factory=dict)

    def set(self, name: str, value: str | None, *, local: bool = False) -> tuple[str, str] | None:
        """Change a setting; returns the report to the client, if any. ``wire-setting`` for settings that may not be changed."""
        if name == "all" and value is None:
            self.values.clear()
            return None
        if name in _IGNORED:
            return None
        rule = _OWN_RULES.get(name) or _SHADOW_RULES.get(name) or _LOCAL_RULES.get(name)
        if rule is None:
            hint = f"Lapwing's own settings are {', '.join(OWN)}"
            raise Refused("wire-setting", f"{name[:60]} cannot be changed here", hint=hint)
        if local and self._before is not None:
            self._local.setdefault(name, self.values.get(name))
        if value is None:
            self.values.pop(name, None)
        else:
            try:
                self.values[name] = rule(value)
            except ValueError:
                raise Refused("wire-setting", f"this value of {name} is not accepted here", hint=_hint(name)) from None
        told = _REPORTED_NAMES.get(name)
        return None if told is None else (told, self.shown(name) or "")

    def shown(self, name: str) -> str | None:
        """The value for SHOW; None if the shadow must be asked."""
        if name in self.values and name not in _SHADOW_RULES:
            return self.values[name]
        if name in self.values and name != "search_path":
            return self.values[name]
        return OWN.get(name, _DEFAULTS.get(name))

    def for_shadow(self) -> dict[str, str]:
        """The settings sent to the shadow before a query of this session."""
        return {name: value for name, value in self.values.items() if name in _SHADOW_RULES}

    def own(self, name: str) -> str:
        """The value of ``lapwing.<name>``."""
        return self.values.get(f"lapwing.{name}", OWN[f"lapwing.{name}"])

    @property
    def shape(self) -> AnswerShape:
        """How answers are sent."""
        intervals, marks = self.own("intervals"), self.own("marks") == "on"
        added = (*(("lo", "hi") if intervals == "on" else ()), *(("mark",) if marks else ()))
        return AnswerShape(added, named=intervals == "named", noise_as_null=self.own("noise_as_null") == "on")

    @property
    def wants_notices(self) -> bool:
        """Whether notices are sent."""
        return self.values.get("client_min_messages", "notice") not in ("warning", "error")

    @property
    def timeout_seconds(self) -> float:
        """How long a statement may take."""
        written = re.fullmatch(r"([0-9]+) ?([a-z]*)", self.values.get("statement_timeout", "0").lower())
        assert written is not None
        units = {"us": 1e-6, "": 1e-3, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
        seconds = int(written[1]) * units[written[2]]
        return min(seconds or TIMEOUT_DEFAULT_SECONDS, TIMEOUT_DEFAULT_SECONDS)

    # -- transactions ----------------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction."""
        self._before, self._local = dict(self.values), {}

    def end(self, *, committed: bool) -> None:
        """End it: its settings stay if it is committed, except local ones."""
        if self._before is not None and not committed:
            self.values = self._before
        elif self._before is not None:
            for name, value in self._local.items():
                if value is None:
                    self.values.pop(name, None)
                else:
                    self.values[name] = value
        self._before, self._local = None, {}


def _hint(name: str) -> str:
    hints = {
        "client_encoding": "only UTF8 is supported",
        "standard_conforming_strings": "it is always on",
        "datestyle": "only ISO is supported",
        "lapwing.error": "such as '5%' or 100",
        "lapwing.epsilon": "such as 0.1",
        "lapwing.intervals": "on, off, or named",
    }
    return hints.get(name, "")
