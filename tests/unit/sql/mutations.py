"""Statements broken at random: words swapped, left out, doubled or put in from a list of nasty ones."""

from __future__ import annotations

import random
import re

WORD = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|\w+|<>|<=|>=|!=|::|\|\||//|[^\w\s]")
"""Texts, quoted names, comments, words and numbers, signs."""

_NASTY_WORDS = """
* ; , . ( ) [ ] { } @ # $ $1 ? :x % ^ ! ~ & | -> := :: // /* */ -- /*+ '' 'x' "x" \\ ` = <> < > + - / ||
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT ALL AS ON USING JOIN LEFT RIGHT FULL CROSS NATURAL LATERAL SEMI ASOF
UNION EXCEPT INTERSECT WITH RECURSIVE VALUES TABLE EXISTS ANY SOME IN NOT AND OR IS NULL TRUE FALSE LIKE ILIKE BETWEEN SIMILAR GLOB
CASE WHEN THEN ELSE END CAST TRY_CAST EXTRACT FILTER OVER PARTITION WINDOW QUALIFY TABLESAMPLE PIVOT UNNEST ORDINALITY ROWS PERCENT
SYMMETRIC ESCAPE COLLATE INTERVAL DATE TIMESTAMP NULLS FIRST LAST ASC DESC FETCH FOR UPDATE INTO ROLLUP CUBE SETS IGNORE RESPECT
DROP DELETE INSERT UPDATE CREATE COPY ATTACH PRAGMA SET CALL EXPLAIN DESCRIBE SHOW INSTALL LOAD
query query_table read_csv read_parquet duckdb_tables information_schema sqlite_master getenv current_setting random uuid now nextval
pg_sleep query_to_xml dblink java_method regexp_matches list_transform struct_pack array_agg string_agg median min max first any_value
count sum avg count_if abs round floor ln exp sqrt coalesce nullif least greatest year date_trunc date_part upper substring concat
visits patients prescriptions clinics diagnoses visit_id patient_id day started clinic_id code cost minutes region sex smoker vaccinated
income birth_year drug dose_mg city kind chapter chronic v c d n rowid _unit _rank main 0 1 2 3.5 1e3 -1 1e999 0x1f 'J10' '2025-01-01'
"""
NASTY = _NASTY_WORDS.split()


def mutated(text: str, rng: random.Random) -> str:
    """The statement with a few changes of its words."""
    words = WORD.findall(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(words)) if words else 0
        match rng.choice(["swap", "insert", "delete", "double", "replace", "move"]):
            case "swap" if len(words) > 1:
                other = rng.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case "delete" if words:
                del words[at]
            case "double" if words:
                words.insert(at, words[at])
            case "replace" if words:
                words[at] = rng.choice(NASTY)
            case "move" if words:
                words.insert(rng.randrange(len(words)), words.pop(at))
            case _:
                words.insert(at, rng.choice(NASTY))
    # Now and then two words touch: what a parser makes of that is part of the test.
    return "".join(word if rng.random() < 0.01 else f"{word} " for word in words)
