"""Advice on the keys of a table, as `lazulite advise` gives it: a job records the requests to it, then looks at rows.

Invariant: what a page or its twin shows has names of properties and numbers alone. Keys and values stay in this
process, and the job forgets them.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from secrets import token_hex
from typing import Any, Final

from lazulite.advise.advice import advise
from lazulite.advise.observed import workload_observed
from lazulite.advise.report import page, report
from lazulite.advise.sample import TableSample
from lazulite.app.commands import (
    END_RECORDING,
    RECORD,
    TRAFFIC,
    EndRecordingArguments,
    RecordArguments,
    TrafficArguments,
)
from lazulite.control.command import ControlError, Json
from lazulite.partitions.targets import CURRENT
from lazulite.protocol.message import Response
from lazulite.settings.addresses import TABLE
from lazulite.traffic.meter import Resource
from lazulite.traffic.recording import TableRecord, joined
from lazulite.ui.backend import ServiceClient
from lazulite.ui.calls import Context, PageCall, PageError, Redirect, link
from lazulite.ui.jobs import Job, JobError, JobState, Work
from lazulite.ui.pages.heat_page import names_of
from lazulite.ui.pages.table_pages import checked
from lazulite.ui.tables.reader import ACCEPT

ADVICE: Final = "/{account}/heat/advice"
PERIODS: Final = {60: "1 minute", 600: "10 minutes", 3600: "1 hour", 21600: "6 hours"}
"""Seconds that a recording takes at most -> their text."""
DEFAULT_SECONDS: Final = 600
SAMPLE_ROWS: Final = 5_000
_POLL_SECONDS: Final = 0.5
"""The seconds between two checks whether the recording of a job is to end."""
_MARKS: Final = {name: f"x-ms-continuation-{name.lower()}" for name in ("NextPartitionKey", "NextRowKey")}
_PAGE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


async def show_advice(call: PageCall) -> Context:
    """Return the advice on the table that the query names, or how far its recording is; without one, the names."""
    name, job = call.query.get("name", ""), _newest(call)
    context: dict[str, object] = {"name": name, "periods": PERIODS, "default": DEFAULT_SECONDS}
    context |= {"names": await names_of(call, TABLE), "has_meter": await _has_meter(call)}
    found = None if job is None else job.outcome
    context |= {"job": job, "has_ended": job is None or job.has_ended}
    return {**context, "report": found, "choices": [] if found is None else _choices(found)}


def _choices(found: Mapping[str, Any]) -> Sequence[Any]:
    """Return the candidates of a report, and the keys of today if they are none of them."""
    candidates, today = list(found["candidates"]), found["today"]
    names = ("partition_key", "row_keys")
    is_one = today is None or any(all(each[name] == today[name] for name in names) for each in candidates)
    return candidates if is_one else [*candidates, today]


async def show_whole_advice(call: PageCall) -> Response:
    """Return the advice as the page that `lazulite advise -o` writes, without scripts and links."""
    job = _newest(call)
    if job is None or job.outcome is None:
        raise PageError(HTTPStatus.NOT_FOUND, "there is no advice on this table, or none any more")
    headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Security-Policy", _PAGE_POLICY)]
    return Response(HTTPStatus.OK, headers, (await asyncio.to_thread(page, job.outcome)).encode())


async def record(call: PageCall) -> Redirect:
    """Start a job that records the requests to the table that the query names, and then has the advice."""
    name = checked(call.query.get("name", ""))
    seconds = next((each for each in PERIODS if str(each) == call.form.get("seconds")), None)
    if seconds is None:
        raise PageError(HTTPStatus.BAD_REQUEST, "there is no such time")
    running = _newest(call)
    if running is not None and not running.has_ended:
        raise PageError(HTTPStatus.CONFLICT, "a recording of this table goes on")
    job = call.jobs.start(_title(name), _work(call, name, seconds), account=call.account, total=seconds)
    job.result = link(ADVICE, account=call.account, name=name)
    return Redirect(job.result)


async def end_recording(call: PageCall) -> Redirect:
    """End the recording of the table that the query names; the advice is then by what it has."""
    job = _newest(call)
    if job is None or job.state is not JobState.RUNNING:
        raise PageError(HTTPStatus.CONFLICT, "no recording of this table goes on")
    job.is_ending = True
    return Redirect(job.result)


def _title(table: str) -> str:
    return f"Record requests to {table}, for advice on its keys"


def _newest(call: PageCall) -> Job | None:
    """Return the newest job about the table that the query names."""
    title = _title(call.query.get("name", "")).lower()
    return next((each for each in call.jobs.all() if (each.account, each.title.lower()) == (call.account, title)), None)


async def _has_meter(call: PageCall) -> bool:
    """Return whether the server counts traffic, so that it can record requests."""
    try:
        await call.command(TRAFFIC, TrafficArguments(call.query.get("name", ""), call.account))
    except ControlError as error:
        return error.code != "no-meter"
    return True


def _work(call: PageCall, table: str, seconds: int) -> Work:
    async def work(job: Job) -> None:
        began = time.monotonic()
        try:
            record = await _recorded(call, table, seconds, job)
        except ControlError as error:
            raise JobError(str(error)) from None
        passed = max(time.monotonic() - began, 1.0)
        sample = await _sample(call.service(TABLE), table, job)
        # It takes longer than a request should wait.
        job.outcome = await asyncio.to_thread(_report, Resource(call.account, TABLE, table), record, passed, sample)
        job.say(f"{record.requests:,.0f} requests and {sample.rows:,} rows were looked at.")

    return work


async def _recorded(call: PageCall, table: str, seconds: int, job: Job) -> TableRecord:
    """Return what was recorded until the time is over, or until the job is to end.

    Raises:
        ControlError: another recording goes on, or the server has no meter.
        JobError: there were no requests.
    """
    secret, began = token_hex(16), time.monotonic()
    recording = asyncio.ensure_future(call.command(RECORD, RecordArguments(seconds, 0, table, call.account, secret)))
    try:
        while not recording.done():
            await asyncio.wait([recording], timeout=_POLL_SECONDS)
            await job.step(min(int(time.monotonic() - began), seconds) - job.done)
            if job.is_ending and not recording.done():
                await call.command(END_RECORDING, EndRecordingArguments(secret))
    finally:
        recording.cancel()
    items: list[Any] = [each for each in await recording if isinstance(each, Mapping) and "table" in each]
    for found in joined(items).values():
        return found
    raise JobError(f"there were no requests to table {table} in that time")


async def _sample(client: ServiceClient, table: str, job: Job) -> TableSample:
    """Return a sample of the first rows of a table."""
    found, marks = TableSample(), dict[str, str]()
    while found.rows < SAMPLE_ROWS:
        answer = await client.send("GET", f"{table}()", marks, ACCEPT)
        for entity in answer.json()["value"]:
            found.add(entity)
        marks = {name: answer.headers[header] for name, header in _MARKS.items() if header in answer.headers}
        if not marks:
            return found
        await job.step(0)
    found.is_whole = False
    return found


def _report(table: Resource, record: TableRecord, seconds: float, sample: TableSample) -> Mapping[str, Json]:
    source = f"a recording of {seconds:,.0f} seconds"
    return report(advise(workload_observed(table, record, seconds, source, sample), CURRENT))
