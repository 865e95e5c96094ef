"""Jobs: at most two at a time, stopped, failed, forgotten."""

import asyncio

import pytest

from lazulite.ui.backend import BackendError
from lazulite.ui.jobs import ENDED_MAX, RUNNING_MAX, WAITING_MAX, Job, JobError, Jobs, JobState


async def settle() -> None:
    """Let tasks that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_two_jobs_run_and_the_next_waits_for_its_turn() -> None:
    jobs, may_end = Jobs(lambda: 1.0), asyncio.Event()

    async def work(job: Job) -> None:
        await job.step(3)
        await may_end.wait()
        job.say("the end")

    started = [jobs.start(f"job {number}", work, total=3) for number in range(RUNNING_MAX + 1)]
    await settle()
    assert [job.state for job in started] == [JobState.RUNNING, JobState.RUNNING, JobState.WAITING]
    assert [job.done for job in started] == [3, 3, 0]
    may_end.set()
    await settle()
    assert {job.state for job in started} == {JobState.DONE}
    assert list(started[2].lines) == ["the end"]


async def test_a_job_is_stopped_while_it_runs_or_waits() -> None:
    jobs = Jobs(lambda: 1.0)

    async def work(_: Job) -> None:
        await asyncio.Event().wait()

    started = [jobs.start("endless", work) for _ in range(RUNNING_MAX + 1)]
    await settle()
    assert jobs.stop(started[2].id)
    assert jobs.stop(started[0].id)
    await settle()
    assert [job.state for job in started] == [JobState.STOPPED, JobState.RUNNING, JobState.STOPPED]
    assert not jobs.stop(started[0].id)
    assert not jobs.stop(99)
    await jobs.close()
    assert started[1].state is JobState.STOPPED


@pytest.mark.parametrize("error", [JobError("no room"), BackendError(412, "UpdateConditionNotSatisfied", "no room")])
async def test_a_job_says_why_it_failed(error: Exception) -> None:
    jobs = Jobs(lambda: 1.0)

    async def work(_: Job) -> None:
        raise error

    job = jobs.start("failing", work)
    await settle()
    assert (job.state, job.error) == (JobState.FAILED, "no room")


async def test_an_unknown_error_is_reported_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = Jobs(lambda: 1.0)

    async def work(_: Job) -> None:
        raise ZeroDivisionError("a secret")

    job = jobs.start("failing", work)
    await settle()
    assert job.state is JobState.FAILED
    printed = capsys.readouterr().err
    assert "ZeroDivisionError at " in printed
    assert "secret" not in printed + job.error


async def test_waiting_jobs_and_ended_ones_are_bounded() -> None:
    jobs = Jobs(lambda: 1.0)

    async def endless(_: Job) -> None:
        await asyncio.Event().wait()

    async def short(_: Job) -> None:
        pass

    for _ in range(ENDED_MAX + 5):
        jobs.start("short", short)
        await settle()
    assert len(jobs.all()) == ENDED_MAX
    for _ in range(RUNNING_MAX):
        jobs.start("endless", endless)
    await settle()
    for _ in range(WAITING_MAX):
        jobs.start("endless", endless)
    with pytest.raises(JobError, match="jobs wait already"):
        jobs.start("one more", endless)
    await jobs.close()
