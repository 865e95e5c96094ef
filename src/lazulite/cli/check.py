"""`lazulite check`: read and verify every file, row and content of a store, without changing anything."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from lazulite.app.registry import SPACES
from lazulite.auth.accounts.document import AccountsError
from lazulite.cli.backup_manifest import BackupError, check_manifest, read_manifest
from lazulite.cli.check_report import VerificationProgress, reject_damaged, summary
from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine
from lazulite.cli.selected_database import selected_database
from lazulite.cli.summary import CommandOutput, SummaryLine
from lazulite.engine.content.inspection import read_whole
from lazulite.engine.contract import EngineError
from lazulite.engine.rocksdb.inspection import inspect
from lazulite.records.verification import VerificationReport, verify
from lazulite.settings.config import BACKUP_MANIFEST, account_file, content_path, store_path


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Verify a location or a database, and print a summary of its contents."""
    database = selected_database(args, environ)
    with CommandOutput.from_args(args) as output:
        progress = output.progress
        if database is None:
            lines = verify_location(args.location, progress.write_note, progress)
        else:
            from lazulite.cli.check_database import verify_database  # noqa: PLC0415 - it needs an extra

            lines = verify_database(database, SPACES, progress.write_note, progress)
        tell_undamaged(output, lines)
    return 0


def tell_undamaged(output: CommandOutput, lines: Iterable[SummaryLine]) -> None:
    """Print the summary of a store that was verified."""
    for line in lines:
        output.tell_line(*line)
    output.tell("no damage found")


def verify_location(
    location: Path, report: Callable[[str], None], progress: ProgressLine | None = None
) -> Iterator[SummaryLine]:
    """Verify a backup, or a location that no process uses. Yield the lines of its summary.

    Args:
        location: the directory that contains `store/`.
        report: called with each problem.
        progress: shows the progress; None shows none.

    Raises:
        CommandError: the location is in use or damaged.
    """
    progress = progress or ProgressLine.of_user(silent=True)
    try:
        if (location / BACKUP_MANIFEST).exists():
            check_manifest(location, read_manifest(location), progress)
        accounts = account_file(location).load()
        findings = _verify_store(location, progress)
    except (EngineError, BackupError, AccountsError) as error:
        raise CommandError(error) from error
    reject_damaged(findings, str(location), report)
    yield SummaryLine("location", location)
    yield SummaryLine("accounts", len(accounts))
    yield from summary(findings)


def _verify_store(location: Path, line: ProgressLine) -> VerificationReport:
    findings = VerificationReport()
    progress = VerificationProgress(line)
    read_content = partial(read_whole, content_path(location))
    with inspect(store_path(location)) as inspection:
        for findings in verify(inspection.rows(), inspection.newest_timestamp(), SPACES, read_content):
            progress.show(findings)
    progress.clear()
    return findings
