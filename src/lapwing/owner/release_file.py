"""A release in one file, for use without the data and the server: it can be opened, its receipt verified, and queried.

A ZIP archive: ``manifest.json`` (the request, its public facts and cost), ``answer.json`` (the bytes in the ledger),
``receipt.json`` (signed for these bytes, where keys are declared), ``croissant.json`` (the same for catalogues of data sets).
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import IO, Any

from lapwing.asking.answer_bytes import budget_fields, budget_view, cost_fields, cost_value
from lapwing.curator.stored_tables import decode
from lapwing.errors import LapwingError, LedgerError, Refused
from lapwing.receipts import Receipt, check, receipt_text, receipt_value
from lapwing.releases.facts_text import facts_fields, facts_value
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.released import Release, ReleaseTerms
from lapwing.releases.request import ReleaseRequest
from lapwing.releases.sections import sections_of, table_section

FORMAT = 1
BYTES_MAX = 2**31
MANIFEST, ANSWER, RECEIPT, CROISSANT = "manifest.json", "answer.json", "receipt.json", "croissant.json"


def save_release(release: Release, path: str | Path) -> Path:
    """Write a release to a new file."""
    target = Path(path)
    try:
        with target.open("xb") as file:
            file.write(release_bytes(release))
    except FileExistsError:
        raise LapwingError("release-file", f"{target.name} is already there") from None
    return target


def release_bytes(release: Release) -> bytes:
    """The contents of a release file."""
    terms, target = release.terms, io.BytesIO()
    manifest = {
        "format": FORMAT,
        "request": terms.request.text(),
        "facts": facts_fields(terms.facts),
        "unit_columns": dict(terms.unit_columns),
        "tables": [list(table) for table in terms.tables],
        "notes": list(terms.notes),
        "cost": cost_fields(terms.cost),
        "budget": budget_fields(terms.budget),
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        archive.writestr(ANSWER, terms.stored)
        archive.writestr(CROISSANT, json.dumps(croissant(release), indent=1))
        if terms.receipt is not None:
            archive.writestr(RECEIPT, receipt_text(terms.receipt))
    return target.getvalue()


def open_release(path: str | Path, *, keys: str | Path | None = None) -> Release:
    """A release from its file. With ``keys``, a directory of public keys, one of them must have signed for it (``receipt-invalid``)."""
    return _opened(path, keys)


def release_in(content: bytes, *, keys: str | Path | None = None) -> Release:
    """A release from the contents of its file."""
    return _opened(io.BytesIO(content), keys)


def _opened(file: str | Path | IO[bytes], keys: str | Path | None) -> Release:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(item.file_size for item in archive.infolist()) > BYTES_MAX:
                raise LapwingError("release-file", "the file is larger than a release can be")
            names = archive.namelist()
            manifest: dict[str, Any] = json.loads(archive.read(MANIFEST))
            stored = archive.read(ANSWER)
            receipt = receipt_value(archive.read(RECEIPT).decode()) if RECEIPT in names else None
        release = _release(manifest, stored, receipt)
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, TypeError, Refused) as error:
        raise LapwingError("release-file", "the file cannot be read as a release") from error
    if keys is not None:
        if receipt is None:
            raise LedgerError("receipt-invalid", "the release comes without a receipt")
        check(receipt, Path(keys), answer=stored)
    return release


def _release(manifest: dict[str, Any], stored: bytes, receipt: Receipt | None) -> Release:
    if manifest["format"] != FORMAT:
        raise ValueError("another format")
    request, facts = ReleaseRequest.of_text(manifest["request"]), facts_value(manifest["facts"])
    terms = ReleaseTerms(
        request,
        facts,
        dict(manifest["unit_columns"]),
        sections_of(request, facts),
        tuple(tuple(int(number) for number in table) for table in manifest["tables"]),
        tuple(manifest["notes"]),
        cost_value(manifest["cost"]),
        budget_view(manifest["budget"]),
        stored,
        receipt,
    )
    released = decode(stored)
    sections = [terms.sections[table_section(table, terms.sections)] for table in released.tables]
    cells = [tuple(section.axes[number].cells() for number in own) for section, own in zip(sections, terms.tables, strict=True)]
    if [table.axes for table in released.tables] != cells:
        raise ValueError("the tables are not those of the request")
    return Release(terms, released)


def croissant(release: Release) -> dict[str, Any]:
    """Metadata as ML Croissant has it (JSON-LD): the release, its columns, and its protection."""
    request, cost = release.terms.request, release.terms.cost
    described: dict[str, Axis] = {}
    for axis in (axis for section in release.sections for axis in section.axes):
        described.setdefault(axis.column, axis)
    promise = f"differentially private: epsilon {cost.epsilon:.6g}, unit {release.terms.budget.unit}"
    return {
        "@context": {"@vocab": "https://schema.org/", "cr": "http://mlcommons.org/croissant/", "sc": "https://schema.org/"},
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": release.name,
        "description": f"Noisy counts of {request.table} by {', '.join(release.columns)}. {promise}.",
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "name": request.table,
                "field": [
                    {"@type": "cr:Field", "name": axis.column, "description": f"{axis.size} bins, declared beforehand"}
                    for axis in described.values()
                ],
            }
        ],
    }
