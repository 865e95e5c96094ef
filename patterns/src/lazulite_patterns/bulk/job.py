"""A load or a delete: rows go in, waves of transactions come out, until the source ends.

A wave is as many transactions as are worth it, sent by several workers at a time. Two rows with the same keys are
never in one wave, so that the later one is written later. If an eighth of a wave is told to wait, as by ServerBusy, the
next one has half the workers; else one worker more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from lazulite_patterns.bulk.groups import Group, Groups, Row
from lazulite_patterns.bulk.sending import Failure, Sending, Sent
from lazulite_patterns.bulk.state import State
from lazulite_patterns.checkpoints import Checkpoint
from lazulite_patterns.effects.changesets import BYTES_MAX
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import Gather
from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.errors import PatternsError
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.indexed import IndexedSession
from lazulite_patterns.table.session import Session
from lazulite_patterns.table.transaction import OPERATIONS_MAX

E = TypeVar("E")
R = TypeVar("R")
_WAVE = 16
"""Transactions of a wave for each worker, at most. A wave waits for its last one."""
_WAVE_OCTETS = 4 * BYTES_MAX
"""The bytes of a wave for each worker, from which on it takes no other transaction."""
_BUSY_PART = 8
"""The part of a wave's transactions that are told to wait, an eighth, from which on the next one has fewer workers."""


@dataclass(frozen=True)
class Limits:
    """What a load may take.

    Attributes:
        workers: transactions at one time, at most.
        buffer_entities: rows in memory, at most, beside those of a wave. More of them make fuller transactions.
        buffer_octets: the bytes of them, as they are sent.
        failures: rows that may fail before the load ends with `TooManyFailures`.
    """

    workers: int = 8
    buffer_entities: int = 100_000
    buffer_octets: int = 128 * 1024 * 1024
    failures: int = 1000


class Progress(NamedTuple):
    """How far a load is.

    Attributes:
        rows_read: of the source, with those that were skipped.
        rows_done: rows that are as they shall be, with those that were skipped.
        failed: rows that failed.
        transactions: that were sent.
        workers: transactions at one time, now.
    """

    rows_read: int
    rows_done: int
    failed: int
    transactions: int
    workers: int


class Report(NamedTuple):
    """How a load ended: its counts, and the rows that failed."""

    progress: Progress
    failures: tuple[Failure, ...]


class TooManyFailures(PatternsError):  # noqa: N818 - it says what was counted
    """More rows failed than the limit says. `report` has them."""

    def __init__(self, report: Report) -> None:
        """Take what was done."""
        super().__init__(f"{len(report.failures)} rows failed; the first: {report.failures[0]}")
        self.report = report


class Job(Generic[E, R]):
    """The rows of one load on their way."""

    def __init__(
        self,
        session: Session[E],
        planned: Callable[[R], Planned],
        limits: Limits,
        checkpoint: Checkpoint | None,
        notify: Callable[[Progress], None] | None,
    ) -> None:
        """Begin, or go on where the checkpoint is.

        Args:
            session: of the table.
            planned: returns the write of a row; raises EntityValueError for a row that the service would reject.
            limits: of memory, workers and failures.
            checkpoint: keeps how far the load is.
            notify: called after each wave.
        """
        state = State.of(None if checkpoint is None else checkpoint.load())
        self.skip = state.rows_done
        """Rows of the source that are done already."""
        self._session, self._planned, self._limits = session, planned, limits
        self._checkpoint, self._notify = checkpoint, notify
        self._groups = Groups(_entities_max(session), limits.buffer_entities, limits.buffer_octets)
        self._closed: list[Group] = []
        self._failures = {each.number: each for each in state.failures}
        self._read = state.rows_done
        self._done = state.rows_done - sum(each.number < state.rows_done for each in state.failures)
        self._transactions = 0
        self._workers = limits.workers

    def add(self, row: R) -> Protocol[None]:
        """Take the next row of the source, and send what is due."""
        number, self._read = self._read, self._read + 1
        try:
            planned = self._planned(row)
        except EntityValueError as error:
            self._fail([Failure(number, None, str(error))])
            return
        closed = self._groups.add(Row.of(number, planned))
        self._closed += closed
        if closed and self._is_full(len(self._closed), sum(each.octets for each in self._closed)):
            yield from self._send()

    def end(self) -> Protocol[Report]:
        """Send the rest, and return what was done."""
        self._closed += self._groups.close()
        yield from self._send()
        return self.report

    @property
    def report(self) -> Report:
        """What was done until now."""
        progress = Progress(self._read, self._done, len(self._failures), self._transactions, self._workers)
        return Report(progress, tuple(self._failures[number] for number in sorted(self._failures)))

    def _send(self) -> Protocol[None]:
        """Send what is closed, in waves; after each, keep how far the load is."""
        while True:
            wave = self._next_wave()
            protocols = tuple(Sending(self._session).run(list(each.rows.values())) for each in wave)
            self._count((yield from perform(Gather(protocols, self._workers))) if wave else [])
            if self._checkpoint is not None:
                waiting = (each.first_number for each in (*self._closed, *islice(self._groups.opened, 1)))
                self._checkpoint.save(State(min(waiting, default=self._read), self.report.failures).text())
            if self._notify is not None:
                self._notify(self.report.progress)
            if not self._closed:
                return

    def _next_wave(self) -> list[Group]:
        """Take groups until there are enough, or until one has a key that another one has, too."""
        keys: set[EntityKey] = set()
        octets = 0
        for count, each in enumerate(self._closed):
            if self._is_full(count, octets) or not keys.isdisjoint(each.rows):
                break
            keys |= each.rows.keys()
            octets += each.octets
        else:
            count = len(self._closed)
        wave, self._closed = self._closed[:count], self._closed[count:]
        return wave

    def _is_full(self, transactions: int, octets: int) -> bool:
        """Tell whether a wave has as many transactions or octets as the workers shall get."""
        return transactions >= _WAVE * self._workers or octets >= _WAVE_OCTETS * self._workers

    def _count(self, sent: list[Sent]) -> None:
        self._done += sum(each.done for each in sent)
        self._transactions += sum(each.requests for each in sent)
        if sum(each.busy for each in sent) * _BUSY_PART > len(sent):
            self._workers = max(1, self._workers // 2)
        else:
            self._workers = min(self._limits.workers, self._workers + 1)
        self._fail([one for each in sent for one in each.failures])

    def _fail(self, failures: list[Failure]) -> None:
        self._failures |= {each.number: each for each in failures}
        if len(self._failures) > self._limits.failures:
            raise TooManyFailures(self.report)


def _entities_max(session: Session[E]) -> int:
    """Return the rows of a transaction: entries of indexes within the partition are part of it."""
    indexes = session.indexes if isinstance(session, IndexedSession) else ()
    return OPERATIONS_MAX // (1 + 2 * sum(each.index.within_partition for each in indexes))
