"""Audits, with an asynchronous client."""

import typing
from collections.abc import AsyncIterator, Sequence

from lazulite_patterns.aio.driver import Driver
from lazulite_patterns.auditing.finding import Check, Finding
from lazulite_patterns.auditing.walk import Walk, WalkPosition
from lazulite_patterns.checkpoints import Checkpoint
from lazulite_patterns.outcomes.grace import GRACE_SECONDS
from lazulite_patterns.outcomes.retries import Policy


class Audited(typing.Protocol):
    """What can be audited: a table, or another pattern."""

    @property
    def driver(self) -> Driver:
        """What runs the protocols of the checks: it knows the clients of their tables."""

    @property
    def policy(self) -> Policy:
        """Deadlines and marks of the requests, unless an audit has its own."""

    def checks(self) -> Sequence[Check]:
        """Return what is examined."""


async def audit(
    *audited: Audited,
    repair: bool = False,
    checkpoint: Checkpoint | None = None,
    grace_seconds: float = GRACE_SECONDS,
    policy: Policy | None = None,
    workers: int = 8,
) -> AsyncIterator[Finding]:
    """Read tables from end to end, and yield what does not agree.

    Writers may run meanwhile. What a writer has just begun is found, too, with a small age.

    Args:
        audited: tables and other patterns, in the same order for a checkpoint.
        repair: whether findings are repaired. Each repair is conditional, and deletes only what is older than the
            grace.
        checkpoint: where to keep how far the audit is, after each page. The next audit goes on there.
        grace_seconds: how old a row is that a repair may delete.
        policy: of each request; None for that of the table or the pattern.
        workers: rows that are examined at the same time.

    Raises:
        Unavailable: there was no answer to a read before the deadline.
        OutcomeUnknown: it is not known whether a repair was done.
    """
    begin = WalkPosition.of(None if checkpoint is None else checkpoint.load())
    for number, each in enumerate(audited[begin.audited :], begin.audited):
        walk = Walk(each.checks(), repair, grace_seconds, policy or each.policy, workers)
        place: WalkPosition | None = begin if number == begin.audited else WalkPosition(number)
        while place is not None:
            step = await each.driver.run(walk.step(place))
            for finding in step.findings:
                yield finding
            place = step.following
            if checkpoint is not None:
                checkpoint.save((place or WalkPosition(number + 1)).text())
    if checkpoint is not None:
        checkpoint.save(None)
