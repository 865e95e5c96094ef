"""`lazulite logs`: print the lines of `$logs` of an account, here or in the cloud.

Memory does not depend on the length of a blob or on their number: a long one waits in a temporary file. No credentials
are printed: signatures in URLs are masked by the writer, and again here.
"""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from lazulite.analytics.log_reader import LogLine, prefixes, read_line, split_lines
from lazulite.cli.blob_client import blobs, get
from lazulite.cli.errors import CommandError
from lazulite.cli.service_client import RejectedError, ServiceAccess, ServiceClient
from lazulite.settings.addresses import SERVICES

_CONTAINER = "$logs"
LOGS_ACCESS = ServiceAccess("blob", "rl")
_NAME = re.compile(r"(?:blob|table|queue)/\d{4}/\d\d/\d\d/\d{4}/\d{6}\.log", re.ASCII)
_SIGNATURE = re.compile(r"(?<=[?&]sig=)[^&]*", re.IGNORECASE)
_COLUMNS = "{:<24}  {:<5}  {:<24}  {:<24}  {:>4}  {:>7}  {:>9}  {}"
_TITLES = ("TIME", "OF", "OPERATION", "STATUS", "HTTP", "MS", "SERVER MS", "OBJECT")
_SPOOL_BYTES = 1 << 20
_STRING_BYTES_MAX = 64 * 1024
"""More than a connection string has."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print the lines since a time; those of all services together, nearly in the order of time."""
    now = datetime.now(UTC)
    reader = LogReader(now - timedelta(seconds=args.since), now + timedelta(hours=1))
    with _client(args, environ) as client:
        lines = merge(*(reader.lines(client, name) for name in SERVICES), key=lambda line: line.start)
        first = [*islice(lines, 1)]  # A head without a server would be a table of nothing.
        if not args.json:
            print(_COLUMNS.format(*_TITLES))
        for line in chain(first, lines):
            if line.is_failed or not args.failed:
                print(_json(line) if args.json else _row(line))
    if reader.unreadable:
        print(f"lazulite: {reader.unreadable:,} lines are not of a known version", file=sys.stderr)
    return 1 if reader.unreadable else 0


def _client(args: Namespace, environ: Mapping[str, str]) -> ServiceClient:
    path: Path | None = args.connection_string_file
    if path is None:
        return ServiceClient.from_args(args, environ, LOGS_ACCESS)
    return ServiceClient.from_connection_string(read_file(path), LOGS_ACCESS)


def read_file(path: Path) -> str:
    """Return the connection string in a file; `-`: on standard input."""
    try:
        if str(path) == "-":
            return sys.stdin.read(_STRING_BYTES_MAX).strip()
        with path.open(encoding="utf-8") as file:
            return file.read(_STRING_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read the connection string: {error}") from None


class LogReader:
    """Reads the log blobs of a time.

    Args:
        since: the earliest start of a request, in UTC.
        until: the latest hour of a blob.
    """

    def __init__(self, since: datetime, until: datetime) -> None:
        self._since = since
        self._prefixes = tuple(prefixes(since, until))
        self.unreadable = 0
        """The lines that were no lines of a known version."""

    def lines(self, client: ServiceClient, service: str) -> Iterator[LogLine]:
        """Yield the lines of a service, blob after blob in the order of their names.

        Raises:
            CommandError: as `ServiceClient.send`, or there never were logs.
        """
        for prefix in self._prefixes:
            for name in _names(client, f"{service}/{prefix}"):
                with SpooledTemporaryFile(_SPOOL_BYTES) as blob:  # Others use the connection before all is printed.
                    if _received(client, name, blob):
                        yield from self._lines_of(blob)

    def _lines_of(self, blob: IO[bytes]) -> Iterator[LogLine]:
        blob.seek(0)
        for found in split_lines(iter(partial(blob.read, _SPOOL_BYTES), b"")):
            try:
                line = read_line("" if found is None else found.decode())
            except ValueError:
                self.unreadable += 1
                continue
            if line.start >= self._since:
                yield line


def _names(client: ServiceClient, prefix: str) -> Iterator[str]:
    try:
        for listed in blobs(client, _CONTAINER, prefix):
            if _NAME.fullmatch(listed.name) is not None:
                yield listed.name
    except RejectedError as error:
        if error.code != "ContainerNotFound":
            raise
        text = f"the account has no {_CONTAINER}: the properties of no service have switched logging on"
        raise CommandError(text) from None


def _received(client: ServiceClient, name: str, target: IO[bytes]) -> bool:
    """Write a blob to a file; False: its retention has ended since it was listed."""
    try:
        get(client, f"{_CONTAINER}/{name}", target)
    except RejectedError as error:
        if error.code != "BlobNotFound":
            raise
        return False
    return True


def _row(line: LogLine) -> str:
    time = f"{line.start:%Y-%m-%dT%H:%M:%S}.{line.start.microsecond // 1000:03}Z"
    status = "-" if line.http_status is None else line.http_status
    fields = (time, line.service, line.operation, line.status, status, line.end_to_end_ms, line.server_ms)
    return _printable(_COLUMNS.format(*fields, line.object_key))


def _printable(text: str) -> str:
    """Return a text without the characters that a terminal would obey."""
    return (
        text
        if text.isprintable()
        else "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    )


def _json(line: LogLine) -> str:
    fields = line._asdict()
    fields["start"] = line.start.isoformat()
    fields["url"] = _SIGNATURE.sub("XXXXX", line.url)
    return json.dumps(fields)
