"""`lazulite advise`: advice on the keys of a table, from queries that are declared, recorded, or in logs.

Invariant: keys and values of clients stay in this process, and the advice has names of properties and numbers alone.
"""

import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from secrets import token_bytes
from typing import Any

from lazulite.advise.advice import Advice, advise
from lazulite.advise.declared import DeclarationError, workload_from
from lazulite.advise.observed import LogRecorder, with_sample, workload_observed
from lazulite.advise.program import program
from lazulite.advise.report import page, report, text_lines
from lazulite.advise.sample import TableSample
from lazulite.advise.workload import Workload
from lazulite.analytics.log_reader import read_line, split_lines
from lazulite.app.commands import RECORD, RecordArguments
from lazulite.cli.errors import CommandError
from lazulite.cli.logs import LOGS_ACCESS, LogReader, read_file
from lazulite.cli.selected_database import running_server
from lazulite.cli.service_client import ServiceAccess, ServiceClient
from lazulite.cli.table import ACCESS, pages
from lazulite.control.command import ControlError
from lazulite.partitions.targets import TargetsError, targets_from
from lazulite.traffic.meter import Resource
from lazulite.traffic.recording import Recording, TableRecord, joined

_PIECE_BYTES = 1 << 20
_TABLES = ACCESS._replace(permission="r")
"""What reads rows, and nothing else."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print the advice, or write it to the files that the flags name; 3 if no keys keep all demands."""
    sources = [args.queries, args.record, args.logs, args.log_file]
    if sum(each is not None for each in sources) != 1:
        raise CommandError("pass one of FILE.toml, --record, --logs and --log-file", 2)
    try:
        targets = targets_from(args.targets)
        workload = _declared(args, environ) if args.queries is not None else _observed(args, environ)
        advice = advise(workload, targets, args.top)
    except (DeclarationError, TargetsError, ControlError) as error:
        raise CommandError(error) from None
    _give(args, advice)
    return 0 if advice.verdict.has_answer else 3


def _give(args: Namespace, advice: Advice) -> None:
    found = report(advice)
    if args.program is not None:
        _write(args.program, program(advice.best))
    if args.output is not None:
        _write(args.output, json.dumps(found) if args.output.suffix == ".json" else page(found))
    if args.json:
        print(json.dumps(found))
    elif args.output is None and args.program is None:
        for line in text_lines(found):
            print(line)


def _declared(args: Namespace, environ: Mapping[str, str]) -> Workload:
    workload = workload_from(args.queries)
    if args.table is None or not args.sample:
        return workload
    return with_sample(workload, _sample(args, environ, args.table))


def _observed(args: Namespace, environ: Mapping[str, str]) -> Workload:
    """Return the workload of the table that is named, or of the busiest one.

    Raises:
        CommandError: there is no request to it, or no server responds.
        ControlError: the server rejects the recording.
    """
    if args.record is not None:
        started = time.monotonic()
        records = _recorded(args, environ)
        seconds = max(time.monotonic() - started, 1.0)
        source = f"a recording of {seconds:,.0f} seconds"
    else:
        records, seconds, source = _logged(args, environ)
    wanted = (args.table or "").lower()
    found = [item for item in records.items() if wanted in ("", item[0].name)]
    if not found:
        raise CommandError(f"there were no requests to {f'table {args.table}' if args.table else 'any table'}")
    table, record = max(found, key=lambda item: item[1].requests)
    name = args.table or table.name
    sample = _sample(args, environ, name) if args.sample and not args.log_file else None
    return workload_observed(Resource(table.account, "table", name), record, seconds, source, sample, args.rows)


def _recorded(args: Namespace, environ: Mapping[str, str]) -> dict[Resource, TableRecord]:
    asked = RecordArguments(args.record, args.requests, args.table or "", args.account or "")
    items: list[Any] = []
    for item in running_server(args, environ).stream(RECORD, asked):
        if isinstance(item, Mapping) and "table" in item:
            items.append(item)
        elif isinstance(item, Mapping) and sys.stderr.isatty():
            print(f"\r{item['requests']:,.0f} requests recorded", end="", file=sys.stderr)
    return joined(items)


def _logged(args: Namespace, environ: Mapping[str, str]) -> tuple[dict[Resource, TableRecord], float, str]:
    recording = Recording(token_bytes(32))
    recorder = LogRecorder(recording)
    if args.log_file:
        unreadable = 0
        for path in args.log_file:
            unreadable += _noted(path, recorder)
        source = f"{len(args.log_file)} files of logs"
    else:
        now = datetime.now(UTC)
        reader = LogReader(now - timedelta(seconds=args.logs), now + timedelta(hours=1))
        with _client(args, environ, LOGS_ACCESS) as client:
            for line in reader.lines(client, "table"):
                recorder.add(line)
        unreadable, source = reader.unreadable, "the logs of the account"
    recorder.end()
    if unreadable or recorder.unreadable:
        print(f"lazulite: {unreadable + recorder.unreadable:,} lines could not be read", file=sys.stderr)
    return recording.tables, recorder.seconds, source


def _noted(path: Path, recorder: LogRecorder) -> int:
    """Note the lines of a file, and return how many were of no known version."""
    unreadable = 0
    try:
        with path.open("rb") as file:
            for found in split_lines(iter(partial(file.read, _PIECE_BYTES), b"")):
                try:
                    recorder.add(read_line("" if found is None else found.decode()))
                except ValueError:
                    unreadable += 1
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None
    return unreadable


def _sample(args: Namespace, environ: Mapping[str, str], table: str) -> TableSample:
    """Return a sample of the first rows of a table. Raises as `ServiceClient.send`."""
    found = TableSample()
    with _client(args, environ, _TABLES) as client:
        rows: Iterator[Mapping[str, object]] = pages(client, f"{table}()", {})
        for entity in islice(rows, args.sample):
            found.add(entity)
        found.is_whole = next(rows, None) is None
    return found


@contextmanager
def _client(args: Namespace, environ: Mapping[str, str], access: ServiceAccess) -> Iterator[ServiceClient]:
    """Yield a client of the account that the flags name."""
    path: Path | None = args.connection_string_file
    if path is None:
        with ServiceClient.from_args(args, environ, access) as client:
            yield client
    else:
        with ServiceClient.from_connection_string(read_file(path), access) as client:
            yield client


def _write(path: Path, text: str) -> None:
    """Write a new file, which only its owner may read: names of properties are data.

    Raises:
        CommandError: it cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from None
