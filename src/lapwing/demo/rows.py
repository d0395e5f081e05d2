"""Rows of the demonstration data, as Arrow tables.

Every value lies inside what the catalogue declares and no patient has more rows than it allows, so that an answer differs from the bare
engine's by noise alone. What makes the data worth asking about is put in on purpose: visits are heavy-tailed, influenza comes in winter,
older patients come more often, hospitals are more expensive, some regions smoke more, drugs have a long tail, and values are missing.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapwing.demo.words import CLINICS, DIAGNOSES, DRUGS, REGIONS

SEED = 2024
VISITS_PER_PATIENT_MAX = 200
PRESCRIPTIONS_PER_VISIT_MAX = 2
"""Together at most 400 prescriptions per patient, as the catalogue declares."""
FIRST_DAY = datetime.date(2024, 1, 1)
DAYS = 731
"""Up to 2025-12-31."""

_DOSES_MG = np.array([2.0, 5.0, 10.0, 20.0, 25.0, 50.0, 100.0, 200.0, 400.0, 500.0, 850.0, 1000.0])

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _People:
    """What visits depend on."""

    patient_id: Ints
    birth_year: Ints


def all_tables(patients: int) -> dict[str, pa.Table]:
    """Every table of the data set, by name. The same number of patients gives the same rows."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    people, people_table = _patients(patients, rng)
    visit_id, visits_table = _visits(people, rng)
    return {
        "patients": people_table,
        "visits": visits_table,
        "prescriptions": _prescriptions(visit_id, rng),
        "clinics": _clinics(),
        "diagnoses": _diagnoses(),
    }


def _patients(count: int, rng: np.random.Generator) -> tuple[_People, pa.Table]:
    region = _drawn(rng, np.array([float(weight) for _, weight in REGIONS]), count)
    birth_year = np.clip(2020 - rng.gamma(3.2, 14.0, count), 1920, 2020).astype(np.int64)
    age = 2025 - birth_year
    # Regions further down the list smoke a little more.
    smoker = (rng.random(count) < 0.14 + 0.012 * region) & (age >= 16)
    vaccinated = rng.random(count) < np.clip(0.35 + age / 150, 0, 0.95)
    income = np.round(np.clip(rng.lognormal(10.35, 0.55, count), 0, 200_000) * np.where(age < 18, 0, 1))
    # Identifiers that say nothing about the order of the rows.
    people = _People(patient_id=100_000 + rng.permutation(count).astype(np.int64), birth_year=birth_year)
    table = pa.table(
        {
            "patient_id": _numbers(people.patient_id),
            "birth_year": _numbers(birth_year.astype(np.int32)),
            "sex": _text(_drawn(rng, np.array([0.505, 0.488, 0.007]), count), ["f", "m", "x"]),
            "region": _text(region, [name for name, _ in REGIONS]),
            "smoker": _booleans(smoker, missing=rng.random(count) < 0.08),
            "vaccinated": _booleans(vaccinated),
            "income": _numbers(income, missing=rng.random(count) < 0.12),
        }
    )
    return people, table


def _visits(people: _People, rng: np.random.Generator) -> tuple[Ints, pa.Table]:
    patients = len(people.patient_id)
    # Most come a few times, a few come every week: Pareto with a finite mean, more for the old, and one in eight never.
    often = (1.0 + 1.5 * rng.pareto(1.6, patients)) * (0.8 + (2025 - people.birth_year) / 40)
    visits_of = np.minimum(np.floor(often), VISITS_PER_PATIENT_MAX).astype(np.int64)
    visits_of[rng.random(patients) < 0.125] = 0
    patient = np.repeat(np.arange(patients), visits_of)
    count = len(patient)
    day = _days(rng, count)
    code = _codes(rng, day)
    clinic = _clinic_of(rng, patients, patient)
    hospital = np.array([clinic.kind == "hospital" for clinic in CLINICS])[clinic]
    factor = np.array([diagnosis.cost_factor for diagnosis in DIAGNOSES])[code] * np.where(hospital, 2.4, 1.0)
    cost = np.round(np.clip(rng.lognormal(4.1, 0.7, count) * factor, 0, 5000), 2)
    minutes = np.clip(rng.gamma(2.0, 9.0, count) * np.where(hospital, 3.0, 1.0), 0, 480).astype(np.int32)
    seconds = np.clip(rng.normal(12 * 3600, 2.6 * 3600, count), 6 * 3600, 22 * 3600).astype(np.int64)
    days_since_1970 = (FIRST_DAY - datetime.date(1970, 1, 1)).days + day
    visit_id = 1 + rng.permutation(count).astype(np.int64)
    table = pa.table(
        {
            "visit_id": _numbers(visit_id),
            "patient_id": _numbers(people.patient_id[patient]),
            "day": _numbers(days_since_1970.astype(np.int32), pa.date32()),
            "started": _numbers((days_since_1970 * 86_400 + seconds) * 1_000_000, pa.timestamp("us")),
            "clinic_id": _numbers((clinic + 1).astype(np.int32)),
            "code": _text(code, [diagnosis.code for diagnosis in DIAGNOSES], missing=rng.random(count) < 0.02),
            "cost": _numbers(cost, missing=rng.random(count) < 0.03),
            "minutes": _numbers(minutes),
        }
    )
    return visit_id, table


def _days(rng: np.random.Generator, count: int) -> Ints:
    """Days from the first one: fewer at week-ends, more in winter and more in the second year."""
    every = np.arange(DAYS)
    weekend = (every + FIRST_DAY.weekday()) % 7 >= 5
    weight = np.where(weekend, 0.25, 1.0) * (1 + 0.15 * np.cos(2 * np.pi * every / 365.25)) * (1 + 0.1 * every / DAYS)
    return _drawn(rng, weight, count)


def _codes(rng: np.random.Generator, day: Ints) -> Ints:
    """Index of a diagnosis for each visit; the ones of winter are common in winter and rare in summer."""
    weight = np.array([diagnosis.weight for diagnosis in DIAGNOSES])
    winter = np.array([diagnosis.winter for diagnosis in DIAGNOSES])
    cold = np.cos(2 * np.pi * (day - 20) / 365.25) > 0.5
    in_summer = _drawn(rng, weight * np.where(winter, 0.4, 1.0), len(day))
    in_winter = _drawn(rng, weight * np.where(winter, 3.0, 1.0), len(day))
    return np.where(cold, in_winter, in_summer)


def _clinic_of(rng: np.random.Generator, patients: int, patient: Ints) -> Ints:
    """Index of a clinic for each visit: two visits in three are at the patient's own."""
    size = np.array([3.0 if clinic.kind == "hospital" else 1.0 for clinic in CLINICS])
    home = _drawn(rng, size, patients)
    elsewhere = _drawn(rng, size, len(patient))
    return np.where(rng.random(len(patient)) < 2 / 3, home[patient], elsewhere)


def _prescriptions(visit_id: Ints, rng: np.random.Generator) -> pa.Table:
    prescribed = np.minimum(rng.poisson(0.9, len(visit_id)), PRESCRIPTIONS_PER_VISIT_MAX)
    visit = np.repeat(visit_id, prescribed)
    drug = _drawn(rng, np.power(np.arange(len(DRUGS)) + 2.0, -1.5), len(visit))
    usual = _DOSES_MG[drug * 7 % len(_DOSES_MG)]
    dose = np.minimum(usual * np.array([0.5, 1.0, 2.0])[_drawn(rng, np.array([1.0, 3.0, 1.0]), len(visit))], 2000.0)
    return pa.table({"visit_id": _numbers(visit), "drug": _text(drug, DRUGS), "dose_mg": _numbers(dose)})


def _clinics() -> pa.Table:
    return pa.table(
        {
            "clinic_id": _numbers(np.arange(1, len(CLINICS) + 1, dtype=np.int32)),
            "city": _names([clinic.city for clinic in CLINICS]),
            "kind": _names([clinic.kind for clinic in CLINICS]),
        }
    )


def _diagnoses() -> pa.Table:
    return pa.table(
        {
            "code": _names([diagnosis.code for diagnosis in DIAGNOSES]),
            "chapter": _names([diagnosis.chapter for diagnosis in DIAGNOSES]),
            "chronic": _booleans(np.array([diagnosis.chronic for diagnosis in DIAGNOSES])),
        }
    )


def _drawn(rng: np.random.Generator, weight: Floats, count: int) -> Ints:
    """Indices drawn with these weights, by inverting the cumulative sum: much faster than ``choice`` for many draws."""
    cumulative = np.cumsum(weight)
    return np.searchsorted(cumulative / cumulative[-1], rng.random(count), side="right").astype(np.int64)


# Columns are made from their buffers: ``pa.array`` imports pandas where it is installed, which can take seconds.


def _numbers(values: npt.NDArray[Any], kind: pa.DataType | None = None, *, missing: Bools | None = None) -> pa.Array:
    buffers = [_present(missing), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(kind or pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _booleans(values: Bools, *, missing: Bools | None = None) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [_present(missing), _bits(values)])


def _text(index: Ints, names: Sequence[str], *, missing: Bools | None = None) -> pa.Array:
    codes = _numbers(index.astype(np.int32), missing=missing)
    return pa.DictionaryArray.from_arrays(codes, _names(names)).cast(pa.string())


def _names(names: Sequence[str]) -> pa.Array:
    encoded = [name.encode() for name in names]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(names), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))])


def _present(missing: Bools | None) -> pa.Buffer | None:
    return None if missing is None else _bits(~missing)


def _bits(flags: Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
