"""Jobs: work of a page that outlives its request.

Invariants: at most `RUNNING_MAX` jobs run at a time, the others wait in their order. After each step, a job leaves the
event loop to requests for as long as the step took. Of the jobs that have ended, the last `ENDED_MAX` are kept.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import IO

from lazulite.app.stderr import report
from lazulite.control.command import Json
from lazulite.server.observability.access_log import frames
from lazulite.ui.backend import BackendError

RUNNING_MAX = 2
WAITING_MAX = 16
ENDED_MAX = 50
FILES_MAX = 4
"""The number of ended jobs, the last ones, that keep their files."""
LINES_MAX = 200
"""The last lines of a report that are kept."""
PAUSE_SECONDS_MAX = 0.25


class JobState(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class JobError(Exception):
    """A job cannot go on, or cannot begin; the text is one line for people."""


@dataclass(slots=True)
class Job:
    """One job. Its work calls `step` and `say`."""

    id: int
    title: str
    account: str = ""
    total: int | None = None
    """Steps in all, as far as they are known; None: they are not."""
    is_estimate: bool = False
    """Whether `total` is an estimate."""
    done: int = 0
    failed: int = 0
    """How many of the steps failed."""
    state: JobState = JobState.WAITING
    error: str = ""
    """Why it failed."""
    seconds: float = 0.0
    """How long it has run."""
    result: str = ""
    """Where its outcome is seen: a URL of a page; "" for none."""
    file: IO[bytes] | None = field(default=None, repr=False)
    """What it has made, which is removed with the job."""
    file_name: str = ""
    """What a browser calls the file; "" for none."""
    is_ending: bool = False
    """Whether it is to end soon with what it has, which is not to stop it. Only some jobs look."""
    outcome: Mapping[str, Json] | None = field(default=None, repr=False)
    """What it found, for a page of its own; None: nothing, or not yet."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LINES_MAX))
    _began: float = field(default=0.0, repr=False)
    _stepped: float = field(default=0.0, repr=False)
    _clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in (JobState.DONE, JobState.FAILED, JobState.STOPPED)

    async def step(self, count: int = 1) -> None:
        """Count steps that are done, and let requests pass."""
        self.done += count
        now = self._clock()
        self.seconds = now - self._began
        pause = min(max(now - self._stepped, 0.0), PAUSE_SECONDS_MAX)
        await asyncio.sleep(pause)
        self._stepped = self._clock()

    def discard(self) -> None:
        """Remove the file."""
        if self.file is not None:
            self.file.close()
            self.file, self.file_name = None, ""

    def say(self, text: str) -> None:
        """Add a line to the report."""
        self.lines.append(text)


Work = Callable[[Job], Awaitable[None]]
"""May raise `JobError`."""


class Jobs:
    """The jobs of a server.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[int, Job] = {}
        self._count = 0
        self._slots = asyncio.Semaphore(RUNNING_MAX)

    def start(self, title: str, work: Work, *, account: str = "", total: int | None = None) -> Job:
        """Start a job, or have it wait for its turn.

        Raises:
            JobError: too many wait already.
        """
        if sum(each.state is JobState.WAITING for each in self._jobs.values()) >= WAITING_MAX:
            raise JobError(f"{WAITING_MAX} jobs wait already; stop one, or try again later")
        self._count += 1
        job = Job(self._count, title, account, total, _clock=self._clock)
        self._jobs[job.id] = job
        job._task = asyncio.get_running_loop().create_task(self._run(job, work))
        job._task.add_done_callback(partial(_report_failure, job.id))
        return job

    def get(self, number: int) -> Job | None:
        """Return a job; None if there is none, or none any more."""
        return self._jobs.get(number)

    def all(self) -> Sequence[Job]:
        """Return the jobs, the newest first."""
        return tuple(reversed(self._jobs.values()))

    def stop(self, number: int) -> bool:
        """Stop a job; return whether it ran or waited. What it has done stays done."""
        job = self._jobs.get(number)
        if job is None or job.has_ended or job._task is None:
            return False
        if job.state is JobState.WAITING:  # Then nothing of it has run, and its task may end unseen.
            job.state = JobState.STOPPED
        job._task.cancel()
        return True

    async def close(self) -> None:
        """Stop all jobs, and return when they have ended."""
        tasks = [each._task for each in self._jobs.values() if each._task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for job in self._jobs.values():
            job.discard()

    async def _run(self, job: Job, work: Work) -> None:
        try:
            async with self._slots:
                job.state = JobState.RUNNING
                job._began = job._stepped = self._clock()
                await work(job)
            job.state = JobState.DONE
        except (JobError, BackendError) as error:
            job.state, job.error = JobState.FAILED, str(error)
        except asyncio.CancelledError:
            job.state = JobState.STOPPED
            raise
        finally:
            if not job.has_ended:
                job.state, job.error = JobState.FAILED, "the server met an error that it does not know"
            if job._began:
                job.seconds = self._clock() - job._began
            self._forget()

    def _forget(self) -> None:
        ended = [each.id for each in self._jobs.values() if each.has_ended]
        for number in ended[:-ENDED_MAX]:
            self._jobs.pop(number).discard()
        with_files = [each for each in self._jobs.values() if each.has_ended and each.file is not None]
        for job in with_files[:-FILES_MAX]:
            job.discard()


def _report_failure(number: int, task: asyncio.Task[None]) -> None:
    """Report an error that no job raises, without its text, which may quote data."""
    failure = None if task.cancelled() else task.exception()
    if failure is not None:
        report(f"job {number} of the explorer failed: {type(failure).__name__} at {' '.join(frames(failure))}")
