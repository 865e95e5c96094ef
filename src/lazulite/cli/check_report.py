"""The reports of `lazulite check`: progress while it reads, and its findings."""

from collections.abc import Callable, Iterator

from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import ProgressLine, RowsRead
from lazulite.cli.summary import SummaryLine
from lazulite.records.verification import VerificationReport

_PROGRESS_ROWS = 4096
"""The number of rows between two reads of the clock."""


class VerificationProgress:
    """Shows how far a verification is, on a line."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
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


def summary(findings: VerificationReport) -> Iterator[SummaryLine]:
    """Yield the lines about an undamaged store."""
    for noun, count in findings.counts.items():
        yield SummaryLine(noun, count)
    if findings.unreachable_count:
        yield SummaryLine("unreachable", findings.unreachable_count)
    if findings.contents:
        yield SummaryLine("contents", findings.contents)
    yield SummaryLine("bytes", findings.size_bytes + findings.content_bytes)
    yield SummaryLine("checksum", findings.checksum)
