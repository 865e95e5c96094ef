"""`lazulite import`: store the rows of a file as entities of a table."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

from lazulite.cli.errors import CommandError
from lazulite.cli.summary import CommandOutput, labelled
from lazulite.cli.transfer_client import check_format, open_tables
from lazulite.cli.transfer_client import run as run_transfer
from lazulite.table.model.edm import Json
from lazulite.transfer.formats import FORMATS, ReadOptions, format_of
from lazulite.transfer.importing import Checkpoint, FailedRow, Importer, RowKeys
from lazulite.transfer.inputs import ChangedInputError, RowReader
from lazulite.transfer.table_client import Mode
from lazulite.transfer.values import RowError, check_keys, property_names, type_named, type_of

_STANDARD = "-"
PREVIEW_ROWS = 20
_NOTES_MAX = 10
"""The bad rows that are shown; the report has all."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Import a file, or with `--dry-run` print its first rows."""
    with CommandOutput.from_args(args) as output:
        run_transfer(_run(args, environ, output))
    return 0


async def _run(args: Namespace, environ: Mapping[str, str], output: CommandOutput) -> None:
    path = None if args.file == _STANDARD else Path(args.file)
    name = format_of(path, args.format)
    check_format(name)
    options = ReadOptions(_types(args.type), not args.no_guess)
    with _opened(path) as file:
        reader = FORMATS[name].read(file, options)
        if args.dry_run:
            _preview(reader, RowKeys(args.row_keys), output)
            return
        with _ErrorReport(args, path, output) as report:
            async with open_tables(args, environ) as client:
                identity: dict[str, Json] = {
                    "to": f"{client.endpoint}/{args.table}",
                    "options": [args.mode, args.row_keys, *args.type],
                }
                checkpoint = Checkpoint(path and path.with_name(f"{path.name}.checkpoint"), identity)
                if args.restart:
                    checkpoint.remove()
                if await client.create(args.table):
                    output.tell(labelled("created", args.table), {"created": True})
                importer = Importer(
                    client,
                    args.table,
                    Mode(args.mode),
                    row_keys=RowKeys(args.row_keys),
                    checkpoint=checkpoint,
                    fail=report.add,
                    report=output.progress.show,
                    timer=time.monotonic,
                )
                try:
                    await importer.run(reader)
                except ChangedInputError as error:
                    raise CommandError(f"{error}; pass --restart to begin again") from None
            _tell(importer, args.table, output, report)


def _tell(importer: Importer, table: str, output: CommandOutput, report: "_ErrorReport") -> None:
    output.tell(labelled("table", table), {"table": table})
    if importer.resumed_after:
        text = f"behind row {importer.resumed_after:,} of an earlier run"
        output.tell(labelled("resumed", text), {"resumed_after": importer.resumed_after})
    output.tell_line("rows", importer.progress.done)
    output.tell_line("failed", importer.progress.failed)
    if report.count:
        where = "" if report.path is None else f"; {report.path} has the reasons"
        raise CommandError(f"{report.count:,} rows are not stored{where}")


def _types(given: list[str]) -> Mapping[str, str]:
    types = {}
    for each in given:
        name, _, kind = each.rpartition("=")
        try:
            types[name] = type_named(kind)
        except RowError as error:
            raise CommandError(f"--type {each}: {error}", 2) from None
    return types


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[bytes]]:
    if path is None:
        yield sys.stdin.buffer
        return
    with path.open("rb") as file:
        yield file


class _ErrorReport:
    """The file that has each row that is not stored, and why. It is made with the first one."""

    def __init__(self, args: Namespace, path: Path | None, output: CommandOutput) -> None:
        beside = None if path is None else path.with_name(f"{path.name}.errors.jsonl")
        self.path: Path | None = args.errors or beside
        self.count = 0
        self._output = output
        self._file: IO[bytes] | None = None

    def __enter__(self) -> "_ErrorReport":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, row: FailedRow) -> None:
        """Write a row to the file, and show the first ones."""
        self.count += 1
        if self.count <= _NOTES_MAX:
            self._output.progress.write_note(f"row {row.number:,}: {row.reason}")
        if self.path is not None:
            if self._file is None:
                self._file = self.path.open("ab")
            self._file.write(row.line().encode("utf-8", "surrogatepass"))


def _preview(reader: RowReader, row_keys: RowKeys, output: CommandOutput) -> None:
    """Print the first rows as they would be stored, and the types of their properties."""
    rows = list(islice(reader.rows(), PREVIEW_ROWS))
    types: dict[str, set[str]] = {name: {kind} for name, kind in reader.types.items()}
    lines = []
    for row in rows:
        problem, entity = row.problem, row.entity
        if entity is not None:
            row_keys.fill(row.number, entity)
            for name in property_names(entity):
                types.setdefault(name, set()).add(type_of(entity, name))
            try:
                check_keys(entity)
            except RowError as error:
                problem = str(error)
        text = problem or json.dumps(entity, ensure_ascii=False)
        lines.append((f"row {row.number}: {text}", {"row": row.number, "problem": problem, "entity": entity}))
    for name, found in types.items():
        kinds = " or ".join(sorted(found))
        output.tell_item("columns", f"{name}: {kinds}", {"name": name, "types": sorted(found)})
    for line, values in lines:
        output.tell_item("rows", line, values)
