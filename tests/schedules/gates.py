"""Gates inside the functions of the database: a client is stopped between two statements of a function, on purpose.

The instrumented text is made from the shipped one by adding lines, all of which end in ``-- gate``: one that calls ``lapwing.gate`` after
every statement of every volatile function and procedure in PL/pgSQL. Taking those lines away gives the shipped text. (They call it in an
ASSERT, because that leaves FOUND as it is.)

A gate is an advisory lock, named after the client (its ``application_name``) and the gate. Whoever holds it exclusively, on a connection of
the scheduler's, stops that client there and nobody else. A gate also notes its name in a setting of the session, so that a run without any
stop tells which gates a call passes.
"""

from __future__ import annotations

import re

MARK = "  -- gate"
GATE_FUNCTION = """\
CREATE FUNCTION lapwing.gate(p_name text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET lock_timeout = '60s' AS $$
DECLARE k bigint := hashtextextended(current_setting('application_name') || ' ' || p_name, 0);
BEGIN
    PERFORM set_config('lapwing.passed', coalesce(current_setting('lapwing.passed', true), '') || p_name || ' ', false);
    PERFORM pg_advisory_lock_shared(k);
    PERFORM pg_advisory_unlock_shared(k);
    RETURN true;
END $$;
"""
"""Installed before the files of the protocol."""

_START = re.compile(r"CREATE (?:FUNCTION|PROCEDURE) lapwing\.(\w+)")
_STATEMENT_ENDS = re.compile(r";\s*(--.*)?$")


def with_gates(text: str) -> str:
    """The text of an SQL file with a gate after each statement of the functions that may change something."""
    lines: list[str] = []
    name, inside, number = "", False, 0
    header = ""
    for line in text.splitlines(keepends=True):
        lines.append(line)
        start = _START.match(line)
        if start is not None:
            name, header, number = start[1], "", 0
        if name and not inside:
            header += line
        if line == "BEGIN\n" and name:
            inside = "LANGUAGE plpgsql" in header and "IMMUTABLE" not in header and "RETURNS trigger" not in header
            if inside:
                lines.append(_gate(name, 0))
        elif line.startswith("END $$;"):
            name, inside = "", False
        elif inside and _STATEMENT_ENDS.search(line):
            number += 1
            lines.append(_gate(name, number))
    return "".join(lines)


def without_gates(text: str) -> str:
    """What the text was before."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.rstrip("\n").endswith(MARK))


def gates_in(text: str) -> list[str]:
    """The names of the gates of an instrumented text, in its order."""
    return re.findall(r"lapwing\.gate\('([\w.]+)'\);  -- gate$", text, flags=re.MULTILINE)


def _gate(name: str, number: int) -> str:
    return f"    ASSERT lapwing.gate('{name}.{number}');{MARK}\n"
