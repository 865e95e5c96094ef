"""`lazulite check`: read and verify every file, row and content of a location, without changing anything."""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from lazulite.app.registry import SPACES
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.backup_manifest import BackupError, check_manifest, read_manifest
from lazulite.cli.embedded_only import reject_database
from lazulite.cli.errors import CommandError
from lazulite.cli.summary import labelled
from lazulite.engine.content.inspection import read_whole
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.records.verification import Findings, verify
from lazulite.settings.config import BACKUP_MANIFEST, account_file, content_path, store_path

PROGRESS_SECONDS = 5.0
_PROGRESS_ROWS = 4096
"""The number of rows between two looks at the clock."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Verify a location and print a summary of its contents."""
    reject_database(args, environ, "use pg_amcheck")
    for line in verify_location(args.location, _report):
        print(line)
    return 0


def verify_location(location: Path, report: Callable[[str], None]) -> Iterator[str]:
    """Verify a backup, or a location that no process uses. Yield the lines to print.

    Args:
        location: the directory that contains `store/`.
        report: called with a line of progress every `PROGRESS_SECONDS`, and with each problem.

    Raises:
        CommandError: the location is in use or damaged.
    """
    try:
        if (location / BACKUP_MANIFEST).exists():
            check_manifest(location, read_manifest(location))
        accounts = account_file(location).load()
        findings = _verify_store(location, report)
    except (EngineError, BackupError, AccountsError) as error:
        raise CommandError(error) from error
    for problem in findings.problems:
        report(problem)
    if findings.problem_count:
        raise CommandError(f"{location} is damaged: {findings.problem_count} problems; restore it from a backup")
    size = sum(path.stat().st_size for path in store_path(location).iterdir() if path.is_file())
    yield labelled("location", location)
    yield labelled("accounts", len(accounts))
    for noun, count in findings.counts.items():
        yield labelled(noun, count)
    if findings.contents:
        yield labelled("contents", findings.contents)
    yield labelled("bytes", size + findings.content_bytes)
    yield labelled("checksum", findings.checksum)
    yield "no damage found"


def _verify_store(location: Path, report: Callable[[str], None]) -> Findings:
    findings = Findings()
    reported_at = time.monotonic()
    read_content = partial(read_whole, content_path(location))
    with inspect(store_path(location)) as inspection:
        for findings in verify(inspection.rows(), inspection.newest_timestamp(), SPACES, read_content):
            is_slow = findings.contents or findings.rows % _PROGRESS_ROWS == 0
            if is_slow and time.monotonic() >= reported_at + PROGRESS_SECONDS:
                reported_at = time.monotonic()
                report(f"{findings.rows:,} rows read")
    return findings


def _report(text: str) -> None:
    print(f"lazulite: {text}", file=sys.stderr)
