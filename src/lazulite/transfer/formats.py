"""The formats of files, and which one a name means."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, NamedTuple

from lazulite.transfer.csv_files import CsvOptions, CsvReader, CsvWriter
from lazulite.transfer.exporting import EntityWriter
from lazulite.transfer.inputs import InputError, InputLines, RowReader
from lazulite.transfer.json_lines import JsonLinesReader, JsonLinesWriter


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write a file."""

    select: Sequence[str] | None = None
    """The properties that it has; None for all."""
    guard: bool = False
    """In CSV, put an apostrophe before texts that a spreadsheet may run."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a file."""

    types: Mapping[str, str] = field(default_factory=dict)
    """The types of columns of CSV that have none."""
    guess: bool = True
    """Guess the types of other columns."""


def _csv(typed: bool) -> Callable[[IO[bytes], WriteOptions], EntityWriter]:
    return lambda output, options: CsvWriter(output, typed=typed, select=options.select, guard=options.guard)


def _read_csv(file: IO[bytes], options: ReadOptions) -> RowReader:
    return CsvReader(InputLines.of_file(file), CsvOptions(options.types, options.guess))


def _write_parquet(output: IO[bytes], _: WriteOptions) -> EntityWriter:
    from lazulite.transfer.parquet_files import ParquetWriter  # noqa: PLC0415 - it needs an extra

    return ParquetWriter(output)


def _read_parquet(file: IO[bytes], _: ReadOptions) -> RowReader:
    from lazulite.transfer.parquet_files import ParquetReader  # noqa: PLC0415 - it needs an extra

    return ParquetReader(file)


class Format(NamedTuple):
    """A format of files."""

    endings: Sequence[str]
    """The endings of the names of its files."""
    write: Callable[[IO[bytes], WriteOptions], EntityWriter]
    read: Callable[[IO[bytes], ReadOptions], RowReader]


FORMATS: Final[Mapping[str, Format]] = {
    "csv": Format((".csv",), _csv(typed=True), _read_csv),
    "plain-csv": Format((), _csv(typed=False), _read_csv),
    "jsonl": Format(
        (".jsonl", ".ndjson"),
        lambda output, _: JsonLinesWriter(output),
        lambda file, _: JsonLinesReader(InputLines.of_file(file)),
    ),
    "parquet": Format((".parquet",), _write_parquet, _read_parquet),
}


def format_of(path: Path | None, given: str | None) -> str:
    """Return the name of the format that is given, or that the name of a file means; `jsonl` for a stream.

    Raises:
        InputError: the name means none.
    """
    if given is not None:
        return given
    if path is None:
        return "jsonl"
    for name, each in FORMATS.items():
        if path.suffix.lower() in each.endings:
            return name
    raise InputError(f"the name {path.name} says no format; it is one of {', '.join(FORMATS)}")
