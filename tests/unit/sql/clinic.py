"""The data set the tests of the SQL front ask about: patients, visits, prescriptions, two public tables."""

from __future__ import annotations

from lapwing.catalog import Settings, parse
from lapwing.catalog.facts import facts
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.sql import bind
from lapwing.statements import DecidedRows, Statement

CATALOGUE = """
format = 1

[dataset]
id = "clinic"
unit = "patient"

[budget]
epsilon = 3

[tables.patients]
source = "patients.parquet"
unit = "patient_id"
one_row_per_unit = true
rows_max = 10_000_000

[tables.patients.columns]
patient_id = { type = "key", null = false }
birth_year = { type = "integer", min = 1920, max = 2020, null = false }
sex = { type = "text", values = ["f", "m", "x"], null = false }
region = { type = "text", values = ["northam", "northfield", "Eastbrook", "eastmere", "southport", "west-1", "west-20"] }
smoker = { type = "boolean" }
vaccinated = { type = "boolean", null = false }
income = { type = "real", min = 0, max = 200_000, steps = 1 }

[tables.visits]
source = "visits.parquet"
unit = "patient_id"
rows_per_unit_max = 200
rows_max = 100_000_000

[tables.visits.columns]
visit_id = { type = "key", null = false }
patient_id = { type = "key", null = false }
day = { type = "date", min = 2024-01-01, max = 2025-12-31, null = false }
started = { type = "timestamp", min = 2024-01-01T00:00:00, max = 2025-12-31T23:59:59 }
clinic_id = { type = "integer", min = 1, max = 12, null = false }
code = { type = "text", values_from = "diagnoses.code" }
cost = { type = "real", min = 0, max = 5000, steps = 100 }
minutes = { type = "integer", min = 0, max = 480, null = false }

[tables.prescriptions]
source = "prescriptions.parquet"
unit = "visit_id -> visits.visit_id"
rows_max = 100_000_000

[tables.prescriptions.columns]
visit_id = { type = "key", null = false }
drug = { type = "text" }
dose_mg = { type = "real", min = 0, max = 2000, steps = 10 }

[public.clinics]
source = "clinics.csv"
key = "clinic_id"

[public.clinics.columns]
clinic_id = { type = "integer", min = 1, max = 12, null = false }
city = { type = "text" }
kind = { type = "text", values = ["hospital", "practice"] }

[public.diagnoses]
source = "diagnoses.csv"
key = "code"

[public.diagnoses.columns]
code = { type = "text", null = false }
chapter = { type = "text" }
chronic = { type = "boolean" }
"""

CITIES = ("Ambridge", "Borchester", "Felpersham")
DIAGNOSES = {"C50": ("II", True), "I10": ("IX", True), "J10": ("X", False), "J11": ("X", False), "Z00": (None, None)}
"""Code to chapter and whether it is chronic."""

DECLARATION = parse(CATALOGUE)
FACTS: Facts = facts(
    DECLARATION,
    {"clinics": {"city": CITIES}, "diagnoses": {"code": tuple(DIAGNOSES), "chapter": tuple(c for c, _ in DIAGNOSES.values())}},
    version=1,
)
CLINICS = [(i, CITIES[i % 3], ("hospital", "practice", None)[i % 3]) for i in range(1, 11)]
PUBLIC_ROWS: dict[str, dict[str, list[Value]]] = {
    "clinics": dict(zip(("clinic_id", "city", "kind"), map(list, zip(*CLINICS, strict=True)), strict=True)),
    "diagnoses": {
        "code": list(DIAGNOSES),
        "chapter": [chapter for chapter, _ in DIAGNOSES.values()],
        "chronic": [chronic for _, chronic in DIAGNOSES.values()],
    },
}
UNIT_COLUMNS = {"patients": "patient_id", "visits": "patient_id"}
REFERENCES = {("prescriptions", "visit_id"): ("visits", "visit_id")}
SETTINGS = Settings()
MOMENT = 1_721_039_415_250_000
"""When the tests ask: 2024-07-15 10:30:15.25."""


def bound(text: str, settings: Settings = SETTINGS, decided: tuple[DecidedRows, ...] = ()) -> Statement:
    """A statement about this data set, bound."""
    return bind(
        text,
        FACTS,
        settings=settings,
        unit_columns=UNIT_COLUMNS,
        references=REFERENCES,
        public_rows=PUBLIC_ROWS.get,
        moment=MOMENT,
        decided=decided,
    )
