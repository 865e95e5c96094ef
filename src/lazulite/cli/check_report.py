"""The reports of `lazulite check`: progress while it reads, and its findings."""

import time
from collections.abc import Callable, Iterator

from lazulite.cli.errors import CommandError
from lazulite.cli.summary import labelled
from lazulite.records.verification import Findings

PROGRESS_SECONDS = 5.0
_PROGRESS_ROWS = 4096
"""The number of rows between two looks at the clock."""


class Progress:
    """Reports how far a verification is, every `PROGRESS_SECONDS`."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reported_at = time.monotonic()

    def show(self, findings: Findings) -> None:
        """Report a line of progress if one is due."""
        is_slow = findings.contents or findings.rows % _PROGRESS_ROWS == 0
        if is_slow and time.monotonic() >= self._reported_at + PROGRESS_SECONDS:
            self._reported_at = time.monotonic()
            self._report(f"{findings.rows:,} rows read")


def reject_damaged(findings: Findings, name: str, report: Callable[[str], None]) -> None:
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
        raise CommandError(f"{name} is damaged: {findings.problem_count} problems; restore it from a backup")


def summary(findings: Findings) -> Iterator[str]:
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
