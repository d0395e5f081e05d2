"""Which keys the shadow is told of: those that are declared, and of those only what tells rows apart."""

from __future__ import annotations

from pathlib import Path

import lapwing
from lapwing.interfaces.wire.declared import declared_tables

CATALOGUE = """
format = 1
[dataset]
id = "keys"
unit = "user"
[budget]
epsilon = 1
delta = 0
ceiling = { epsilon = 1 }
[tables.events]
source = "events.csv"
unit = "user_id"
rows_per_unit_max = 5
rows_max = 100
columns = { user_id = { type = "key" }, page = { type = "text", values_from = "pages.url" } }
[tables.clicks]
source = "clicks.csv"
unit = "user_id -> events.user_id"
rows_per_unit_max = 5
rows_max = 100
[tables.clicks.columns]
user_id = { type = "key" }
page = { type = "text", values_from = "pages.url", other = "elsewhere" }
title = { type = "text", values_from = "pages.title" }
[tables.profiles]
source = "profiles.csv"
unit = "who"
one_row_per_unit = true
rows_max = 100
columns = { who = { type = "key" }, age = { type = "integer", min = 0, max = 99 } }
[public.pages]
source = "pages.csv"
key = "url"
columns = { url = { type = "text", null = false }, title = { type = "text" } }
"""


def test_only_what_tells_rows_apart_is_a_key_and_only_a_key_is_referred_to(tmp_path: Path) -> None:
    (tmp_path / "lapwing.toml").write_text(CATALOGUE, encoding="utf-8")
    for name, lines in {
        "events": "user_id,page\n1,a\n1,b\n2,a",
        "clicks": "user_id,page,title\n1,a,A",
        "profiles": "who,age\n1,30",
        "pages": "url,title\na,A\nb,A",
    }.items():
        (tmp_path / f"{name}.csv").write_text(lines + "\n", encoding="utf-8")
    with lapwing.open(tmp_path, home=tmp_path / "home") as data_set:
        data_set.prepare(accept_losses=True)
        tables = {table.name: table for table in declared_tables(data_set)}
    assert {name: table.key for name, table in tables.items()} == {"events": "", "clicks": "", "profiles": "who", "pages": "url"}
    assert tables["events"].references == (("page", "pages", "url"),)
    # A user has many events, a page that is not listed is "elsewhere", and a title is no key.
    assert tables["clicks"].references == ()
