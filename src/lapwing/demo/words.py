"""The names that appear in the demonstration data: regions, clinics, diagnoses, drugs. All public, and all but the diagnoses made up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A code of the public table of diagnoses. ``weight`` is how common it is; ``cost_factor`` how expensive a visit with it is."""

    code: str
    chapter: str
    chronic: bool
    weight: float
    cost_factor: float
    winter: bool = False
    """Whether it is seen mostly in winter."""


@dataclass(frozen=True, slots=True)
class Clinic:
    """A row of the public table of clinics; its number is its place in the list, from 1."""

    city: str
    kind: str


REGIONS: tuple[tuple[str, int], ...] = (
    ("northam", 9),
    ("northfield", 7),
    ("northgate", 4),
    ("northwold", 2),
    ("eastbrook", 8),
    ("easterly", 3),
    ("eastmere", 5),
    ("southdown", 10),
    ("southlea", 6),
    ("southport", 12),
    ("westbury", 7),
    ("westcliff", 3),
    ("westmoor", 2),
    ("ashford", 4),
    ("birchwood", 3),
    ("elmstead", 2),
    ("harbour", 14),
    ("highlands", 1),
    ("lakeside", 3),
    ("midtown", 18),
)
"""Region and its weight: the largest has about twenty times the people of the smallest."""

CLINICS: tuple[Clinic, ...] = tuple(
    Clinic(city, kind)
    for city, kinds in (
        ("Midtown", ("hospital", "hospital", "practice", "practice", "practice", "practice")),
        ("Harbour", ("hospital", "practice", "practice", "practice", "day clinic")),
        ("Southport", ("hospital", "practice", "practice", "day clinic")),
        ("Northam", ("hospital", "practice", "practice")),
        ("Eastbrook", ("practice", "practice", "day clinic")),
        ("Westbury", ("practice", "practice")),
        ("Ashford", ("practice",)),
    )
    for kind in kinds
)

DIAGNOSES: tuple[Diagnosis, ...] = (
    Diagnosis("A09", "infectious", False, 3.0, 0.7),
    Diagnosis("B34", "infectious", False, 4.0, 0.6),
    Diagnosis("C18", "neoplasms", True, 0.4, 5.0),
    Diagnosis("C34", "neoplasms", True, 0.4, 5.5),
    Diagnosis("C50", "neoplasms", True, 0.6, 4.5),
    Diagnosis("C61", "neoplasms", True, 0.5, 4.0),
    Diagnosis("D50", "blood", False, 0.8, 0.9),
    Diagnosis("E03", "endocrine", True, 1.5, 0.6),
    Diagnosis("E11", "endocrine", True, 4.0, 0.8),
    Diagnosis("E66", "endocrine", True, 2.0, 0.7),
    Diagnosis("E78", "endocrine", True, 3.0, 0.6),
    Diagnosis("F32", "mental", True, 3.0, 1.1),
    Diagnosis("F41", "mental", True, 2.5, 1.0),
    Diagnosis("G43", "nervous", True, 1.5, 0.8),
    Diagnosis("G47", "nervous", False, 1.0, 0.9),
    Diagnosis("H10", "eye", False, 1.5, 0.5),
    Diagnosis("H66", "ear", False, 1.5, 0.5),
    Diagnosis("I10", "circulatory", True, 7.0, 0.7),
    Diagnosis("I20", "circulatory", True, 0.8, 3.0),
    Diagnosis("I48", "circulatory", True, 1.0, 2.0),
    Diagnosis("I50", "circulatory", True, 0.9, 2.8),
    Diagnosis("J06", "respiratory", False, 7.0, 0.5, winter=True),
    Diagnosis("J10", "respiratory", False, 2.5, 0.8, winter=True),
    Diagnosis("J11", "respiratory", False, 3.5, 0.7, winter=True),
    Diagnosis("J18", "respiratory", False, 1.0, 2.5, winter=True),
    Diagnosis("J20", "respiratory", False, 4.0, 0.6, winter=True),
    Diagnosis("J44", "respiratory", True, 1.5, 1.6),
    Diagnosis("J45", "respiratory", True, 2.0, 0.8),
    Diagnosis("K21", "digestive", True, 2.0, 0.8),
    Diagnosis("K29", "digestive", False, 1.5, 0.8),
    Diagnosis("L20", "skin", True, 1.2, 0.6),
    Diagnosis("M17", "musculoskeletal", True, 1.5, 1.8),
    Diagnosis("M54", "musculoskeletal", False, 6.0, 0.8),
    Diagnosis("N39", "genitourinary", False, 2.0, 0.6),
    Diagnosis("O80", "pregnancy", False, 0.5, 3.5),
    Diagnosis("R10", "symptoms", False, 2.5, 0.7),
    Diagnosis("R51", "symptoms", False, 2.0, 0.5),
    Diagnosis("S52", "injuries", False, 0.7, 2.2),
    Diagnosis("S93", "injuries", False, 1.5, 0.9),
    Diagnosis("Z00", "contacts", False, 5.0, 0.4),
)

_DRUG_STARTS = (
    "ab",
    "bel",
    "cor",
    "dal",
    "ef",
    "fen",
    "gal",
    "hel",
    "ib",
    "jal",
    "kel",
    "lor",
    "mer",
    "nov",
    "ol",
    "pra",
    "quin",
    "ros",
    "sel",
)
_DRUG_MIDDLES = ("ami", "eto", "ila", "oxi", "ura", "ydo", "ena")
_DRUG_ENDS = ("cin", "dine", "lol", "pril", "tan", "zole", "mab", "statin")

# The three lengths have no common factor, so that counting up in all three at once gives every combination, and neighbours differ.
DRUGS: tuple[str, ...] = tuple(
    _DRUG_STARTS[place % len(_DRUG_STARTS)] + _DRUG_MIDDLES[place % len(_DRUG_MIDDLES)] + _DRUG_ENDS[place % len(_DRUG_ENDS)]
    for place in range(len(_DRUG_STARTS) * len(_DRUG_MIDDLES) * len(_DRUG_ENDS))
)
"""1,064 drug names, most common first: the first few make up most prescriptions, hundreds are given to a handful of people."""
