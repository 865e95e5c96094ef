"""`lazulite check` of a database, which processes may serve meanwhile."""

from collections.abc import Callable, Iterator

from lazulite.app.database import open_database
from lazulite.auth.accounts.document import AccountsError
from lazulite.auth.accounts.engine_store import AccountRow
from lazulite.cli.check_report import VerificationProgress, reject_damaged, summary
from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine
from lazulite.cli.summary import SummaryLine
from lazulite.engine.contract import EngineError
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.migration.verification import StoreVerifier
from lazulite.records.spaces import Spaces
from lazulite.records.verification import VerificationReport
from lazulite.server import lifecycle


def verify_database(
    settings: PostgresSettings, spaces: Spaces, report: Callable[[str], None], progress: ProgressLine | None = None
) -> Iterator[SummaryLine]:
    """Verify every row of a database, and every content. Yield the lines of its summary.

    Args:
        settings: of the database.
        spaces: the registry of all services.
        report: called with each problem.
        progress: shows the progress; None shows none.

    Raises:
        CommandError: the database cannot be read, has no store or is damaged.
    """
    try:
        name, accounts, findings = lifecycle.run(
            _verified(settings, spaces, report, progress or ProgressLine.of_user(silent=True))
        )
    except (EngineError, AccountsError) as error:
        raise CommandError(error) from error
    reject_damaged(findings, name, report)
    yield SummaryLine("database", name)
    yield SummaryLine("accounts", accounts)
    yield from summary(findings)


async def _verified(
    settings: PostgresSettings, spaces: Spaces, report: Callable[[str], None], line: ProgressLine
) -> tuple[str, int, VerificationReport]:
    """Return the name, the number of accounts, and what was found."""
    async with open_database(settings, report, must_exist=True) as engine:
        accounts = await AccountRow(engine, engine.name).load()
        contents = await engine.contents()
        try:
            verifier = StoreVerifier(engine, contents, spaces)
            progress = VerificationProgress(line)
            findings = await verifier.run(progress.show)
            progress.clear()
        finally:
            await contents.close()
    return engine.name, len(accounts), findings
