"""Stores that earlier versions wrote, as README.md beside this file describes them."""

import tarfile
from pathlib import Path

FOLDER = Path(__file__).parent
LOCATIONS = ("location-0.1", "location-0.2")


def unpack_location(name: str, directory: Path) -> Path:
    """Unpack a location into a directory; return its path."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(directory, filter="tar")
    return directory / "data"


def database_statements() -> str:
    """Return the SQL that makes the tables and rows of a database."""
    return (FOLDER / "database-0.1.sql").read_text(encoding="utf-8")


def database_process() -> dict[str, str]:
    """Return the statements that a process sends to a database, by name."""
    parts = (FOLDER / "statements-0.1.sql").read_text(encoding="utf-8").split("-- ")[1:]
    return dict(part.split("\n", 1) for part in parts)
