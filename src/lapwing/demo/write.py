"""Writing the demonstration data set into a directory."""

from __future__ import annotations

from pathlib import Path

PATIENTS_DEFAULT = 50_000
PATIENTS_MAX = 1_000_000
"""More would not fit into memory while it is made."""

CATALOGUE_FILE = "lapwing.toml"


def write_demo(directory: str | Path, *, patients: int = PATIENTS_DEFAULT) -> tuple[Path, ...]:
    """Write the catalogue and the five Parquet files of the data set "clinic", and return their paths, the catalogue first.

    The directory is made if need be; a file that is already there is never overwritten (FileExistsError, before anything is written). The
    same number of patients gives the same rows. The id of the data set is made from the directory, so that two demonstrations on one
    machine have two ledgers.
    """
    if not 1 <= patients <= PATIENTS_MAX:
        raise ValueError(f"patients must be from 1 to {PATIENTS_MAX}")
    target = Path(directory)
    # Imported here because the command line needs only the constants above for its help.
    import pyarrow.parquet as parquet

    from lapwing.demo.rows import all_tables

    target.mkdir(parents=True, exist_ok=True)
    tables = all_tables(patients)
    files = {target / f"{name}.parquet": table for name, table in tables.items()}
    catalogue = target / CATALOGUE_FILE
    for path in (catalogue, *files):
        if path.exists():
            raise FileExistsError(f"{path.name} is already there")
    for path, table in files.items():
        parquet.write_table(table, path, compression="zstd")
    with catalogue.open("x", encoding="utf-8") as stream:
        stream.write(catalogue_text(target, patients=patients))
    return catalogue, *files


def catalogue_text(directory: Path, *, patients: int) -> str:
    """The catalogue of a demonstration in this directory."""
    from importlib import resources

    from lapwing.owner.catalogue_text import id_of_place

    template = resources.files("lapwing.demo").joinpath("clinic.toml").read_text(encoding="utf-8")
    return _filled(template, {"@ID@": id_of_place("clinic", directory), "@PATIENTS@": f"{patients:_}"})


def _filled(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(name, value)
    return template
