"""The reports of `lazulite check`: progress while it reads, and its findings."""

from collections.abc import Callable, Iterator

from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine, RowsRead
from lazulite.cli.summary import labelled
from lazulite.records.verification import VerificationReport

_PROGRESS_ROWS = 4096
"""The number of rows between two looks at the clock."""


class VerificationProgress:
    """Shows how far a verification is."""

    def __init__(self) -> None:
        self._line = ProgressLine.of_user()
        self._read = RowsRead()

    def show(self, findings: VerificationReport) -> None:
        """Show the progress if that is due."""
        if findings.contents or findings.rows % _PROGRESS_ROWS == 0:
            self._read.done = findings.rows
            self._line.show(self._read)

    def clear(self) -> None:
        """Clear the line."""
        self._line.clear()


def reject_damaged(findings: VerificationReport, name: str, report: Callable[[str], None]) -> None:
    """Report each problem, and the names that no request reaches, which are no damage.

    Raises:
        CommandError: there is one, or the store is unfinished, whose missing rows are no damage.
    """
    if findings.unfinished:
        raise CommandError(f"{name} is {findings.unfinished}")
    for each in findings.unreachable:
        report(f"{each} has a name that no URL has; lazulite blob mv moves it")
    for problem in findings.problems:
        report(problem)
    if findings.problem_count:
        noun = "problem" if findings.problem_count == 1 else "problems"
        raise CommandError(f"{name} is damaged: {findings.problem_count} {noun}; restore it from a backup")


def summary(findings: VerificationReport) -> Iterator[str]:
    """Yield the lines about an undamaged store."""
    for noun, count in findings.counts.items():
        yield labelled(noun, count)
    if findings.unreachable_count:
        yield labelled("unreachable", findings.unreachable_count)
    if findings.contents:
        yield labelled("contents", findings.contents)
    yield labelled("bytes", findings.size_bytes + findings.content_bytes)
    yield labelled("checksum", findings.checksum)
    yield "no damage found"
