"""`lazulite export`: write the entities of a table to a file."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from lazulite.cli.blob import replaced
from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import size_text
from lazulite.cli.summary import CommandOutput
from lazulite.cli.transfer_client import check_format, open_tables
from lazulite.cli.transfer_client import run as run_transfer
from lazulite.transfer.exporting import TransferProgress, export
from lazulite.transfer.formats import FORMATS, WriteOptions, format_of
from lazulite.transfer.table_client import Query

_STANDARD = "-"


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Export a table, and print how much of it there was; or the state of an account."""
    if args.state is not None:
        from lazulite.cli.export_state import run as export_state  # noqa: PLC0415 - an export of a table needs none of it

        return export_state(args, environ)
    if args.table is None:
        raise CommandError('name the table, or pass --state DIR (see "lazulite export --help")', 2)
    run_transfer(_run(args, environ))
    return 0


async def _run(args: Namespace, environ: Mapping[str, str]) -> None:
    path = None if args.output == _STANDARD else Path(args.output)
    name = format_of(path, args.format)
    check_format(name)
    is_seen = path is None and sys.stdout.isatty()  # The progress would stand among the rows.
    with CommandOutput.from_args(args, silent=is_seen, summary=path is not None) as output:
        if path is None:
            done = await _export(args, environ, sys.stdout.buffer, name, output)
            sys.stdout.buffer.flush()
        else:
            with replaced(path) as file:
                done = await _export(args, environ, file, name, output)
        text = f"{args.table}: {done.done:,} rows, {size_text(done.size_bytes)}"
        values = {"table": args.table, "format": name, "rows": done.done, "bytes": done.size_bytes}
        if path is not None or args.json_lines:
            output.tell(text, values)


async def _export(
    args: Namespace, environ: Mapping[str, str], file: IO[bytes], name: str, output: CommandOutput
) -> TransferProgress:
    select = [each.strip() for each in args.select.split(",") if each.strip()]
    query = Query(args.filter, select, args.start_partition, args.end_partition)
    async with open_tables(args, environ) as client:
        writer = FORMATS[name].write(file, WriteOptions(query.columns(), args.guard_formulas))
        return await export(client, args.table, query, writer, output.progress.show)
