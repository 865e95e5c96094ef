"""`lazulite check`: every file and every row of a location, read and verified; nothing is changed."""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.backup_manifest import LIST, BackupError, check_list, read_list
from lazulite.cli.embedded_only import refuse_database
from lazulite.cli.errors import Refusal
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.settings.config import account_file, store_path
from lazulite.table.verification import Findings, verify

PROGRESS_SECONDS = 5.0
_PROGRESS_ROWS = 4096
"""So many rows pass between two looks at the clock."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Verify a location and print what is there."""
    refuse_database(args, environ, "use pg_amcheck")
    for line in verified(args.location, _report):
        print(line)
    return 0


def verified(location: Path, report: Callable[[str], None]) -> Iterator[str]:
    """Verify a backup or a location that no process uses; yield the lines to print.

    Args:
        location: with a store in it.
        report: told of progress now and then, and of each problem.

    Raises:
        Refusal: it is in use, or damaged.
    """
    try:
        if (location / LIST).exists():
            check_list(location, read_list(location))
        accounts = account_file(location).load()
        findings = _read(store_path(location), report)
    except (EngineError, BackupError, AccountsError) as error:
        raise Refusal(error) from error
    for problem in findings.problems:
        report(problem)
    if findings.problem_count:
        raise Refusal(f"{location} is damaged: {findings.problem_count} problems; restore it from a backup")
    size = sum(path.stat().st_size for path in store_path(location).iterdir() if path.is_file())
    yield f"location  {location}"
    yield f"accounts  {len(accounts):,}"
    yield f"tables    {findings.tables:,}"
    yield f"entities  {findings.entities:,}"
    yield f"bytes     {size:,}"
    yield f"checksum  {findings.checksum}"
    yield "no damage found"


def _read(store: Path, report: Callable[[str], None]) -> Findings:
    findings = Findings()
    told = time.monotonic()
    with inspect(store) as inspection:
        for findings in verify(inspection.rows(), inspection.stamp()):
            if findings.rows % _PROGRESS_ROWS == 0 and time.monotonic() >= told + PROGRESS_SECONDS:
                told = time.monotonic()
                report(f"{findings.rows:,} rows read")
    return findings


def _report(text: str) -> None:
    print(f"lazulite: {text}", file=sys.stderr)
