"""What somebody may put into a database to be run by others: functions, aggregates, operators and types under the names of PostgreSQL's
own.

Every name that the SQL of the ledger uses is planted with the very arguments that PostgreSQL's own has, and those that take any type with
texts and numbers, which is a better match. Each leaves a note of who ran it.
"""

from __future__ import annotations

import re
from pathlib import Path

import psycopg

import lapwing.ledger.postgres

EVE = "eve"
"""Who may create objects in the schema ``public``, and nothing else."""
_WORD = re.compile(r"\b([a-z_][a-z_0-9]*)\(")
_OPERATORS = ("=", "<>", "<", ">", "<=", ">=", "||", "+", "-", "*", "<@", "->>")
_OPERANDS = ["text", "name", "bigint", "integer", "smallint", "numeric", "date", "timestamptz", "boolean", "oid", "json", "jsonb"]
_TYPES = ("text", "varchar", "numeric", "bigint", "date", "amount", "timestamptz", "bytea")


def names_in_the_ledger() -> set[str]:
    """Every word before a bracket in the SQL and the Python of the ledger."""
    directory = Path(next(iter(lapwing.ledger.postgres.__path__)))
    files = [path for path in directory.rglob("*") if path.suffix in {".sql", ".py"}]
    return {word for path in files for word in _WORD.findall(path.read_text(encoding="utf-8"))} | {"obj_description", "version"}


def plant(superuser: psycopg.Connection[tuple[object, ...]], names: set[str]) -> int:
    """Let eve plant all of it in this database; says how many."""
    if superuser.execute("SELECT 1 FROM pg_roles WHERE rolname = 'eve'").fetchone() is None:
        superuser.execute("CREATE ROLE eve LOGIN")
    superuser.execute("GRANT ALL ON SCHEMA public TO PUBLIC")
    superuser.execute("SET ROLE eve")
    superuser.execute("SET search_path = pg_catalog")
    superuser.execute("CREATE TABLE public.caught (what text, who text)")
    superuser.execute("GRANT INSERT ON public.caught TO PUBLIC")
    superuser.execute(
        "CREATE FUNCTION public.note(p_what pg_catalog.text) RETURNS pg_catalog.void LANGUAGE sql SECURITY DEFINER"
        " AS 'INSERT INTO public.caught VALUES (p_what, session_user)'"
    )
    number = _plant_functions(superuser, names) + _plant_aggregates(superuser) + _plant_operators(superuser)
    for name in _TYPES:
        superuser.execute(f"CREATE DOMAIN public.{name} AS pg_catalog.bool".encode())
    superuser.execute("RESET search_path")
    superuser.execute("RESET ROLE")
    return number + len(_TYPES)


def caught(superuser: psycopg.Connection[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return superuser.execute("SELECT DISTINCT what, who FROM public.caught ORDER BY 1, 2").fetchall()


def _plant_functions(superuser: psycopg.Connection[tuple[object, ...]], names: set[str]) -> int:
    own = superuser.execute(
        "SELECT p.proname, ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) AS t), format_type(p.prorettype, NULL), p.proretset"
        " FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.proname = ANY (%s)",
        [sorted(names)],
    ).fetchall()
    wanted: set[tuple[str, tuple[str, ...]]] = set()
    for name, arguments, *_ in own:
        assert isinstance(name, str) and isinstance(arguments, list)
        for concrete in (("text", "text[]"), ("bigint", "bigint[]"), ("numeric", "numeric[]")):
            changed = tuple(_concrete(argument, *concrete) for argument in arguments)
            wanted.add((name, changed))
        wanted.add((name, tuple("text" for _ in arguments)))
    planted = 0
    for name, types in sorted(wanted):
        if any(one in {"internal", "cstring", "record", '"any"', "anyelement"} for one in types):
            continue
        # Which function is meant does not depend on what it returns. A NULL that is of no use ends in an error, which is seen too.
        returned = next((str(row[2]) for row in own if row[0] == name), "text")
        returned = "text" if returned.startswith(("any", "record", "internal", "cstring", "trigger")) else returned
        statement = (
            f'CREATE FUNCTION public."{name}"({", ".join(types)}) RETURNS {returned}'
            f" LANGUAGE plpgsql AS $$ BEGIN PERFORM public.note('{name}'); RETURN NULL; END $$"
        )
        try:
            superuser.execute(statement.encode())
            planted += 1
        except psycopg.Error:
            continue  # a name of the grammar (coalesce) or a type that cannot be an argument: nobody can plant that
    return planted


def _concrete(argument: str, one: str, several: str) -> str:
    return {"anyelement": one, "anyarray": several, "anycompatible": one, "anycompatiblearray": several, "anynonarray": one}.get(
        argument, argument
    )


def _plant_aggregates(superuser: psycopg.Connection[tuple[object, ...]]) -> int:
    planted = 0
    superuser.execute(
        "CREATE FUNCTION public.counted(pg_catalog.int8) RETURNS pg_catalog.int8 LANGUAGE plpgsql"
        " AS $$ BEGIN PERFORM public.note('count(*)'); RETURN 0; END $$"
    )
    superuser.execute("CREATE AGGREGATE public.count(*) (SFUNC = public.counted, STYPE = pg_catalog.int8, INITCOND = '0')")
    for name in ("array_agg", "sum", "min", "max", "count", "bool_and"):
        for kind in ("text", "int8", "numeric", "bool"):
            step = f"public.step_{name}_{kind}"
            superuser.execute(
                f"CREATE FUNCTION {step}(pg_catalog.{kind}, pg_catalog.{kind}) RETURNS pg_catalog.{kind} LANGUAGE plpgsql"
                f" AS $$ BEGIN PERFORM public.note('{name}'); RETURN NULL; END $$".encode()
            )
            superuser.execute(f"CREATE AGGREGATE public.{name}(pg_catalog.{kind}) (SFUNC = {step}, STYPE = pg_catalog.{kind})".encode())
            planted += 1
    return planted + 1


def _plant_operators(superuser: psycopg.Connection[tuple[object, ...]]) -> int:
    own = superuser.execute(
        "SELECT oprname, format_type(oprleft, NULL), format_type(oprright, NULL) FROM pg_operator"
        " WHERE oprnamespace = 'pg_catalog'::regnamespace AND oprkind = 'b' AND oprname = ANY (%s)"
        " AND oprleft = ANY (%s::regtype[]) AND oprright = ANY (%s::regtype[])",
        [
            list(_OPERATORS),
            *[_OPERANDS] * 2,
        ],
    ).fetchall()
    own += [("||", "text", "bigint"), ("||", "bigint", "text")]
    own += [(name, "text[]", "text[]") for name in ("=", "<>", "<@")]
    for number, (name, left, right) in enumerate(own):
        superuser.execute(
            f"CREATE FUNCTION public.operator_{number}({left}, {right}) RETURNS pg_catalog.bool LANGUAGE plpgsql"
            f" AS $$ BEGIN PERFORM public.note('operator {name}'); RETURN NULL; END $$".encode()
        )
        superuser.execute(
            f"CREATE OPERATOR public.{name} (FUNCTION = public.operator_{number}, LEFTARG = {left}, RIGHTARG = {right})".encode()
        )
    return len(own)
