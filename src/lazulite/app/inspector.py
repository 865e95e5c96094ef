"""The recorded requests of a server: what records them in each process, and the command that reads them.

The first look begins to record, and each look keeps that up for a while, unless a flag has begun it for good. So a
server that is not looked at holds nothing.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from heapq import merge
from typing import TYPE_CHECKING, Any

from lazulite.app.channel import WORKER_SECONDS_MAX, Workers
from lazulite.app.commands import REQUESTS, RecordedArguments
from lazulite.app.stores import Store
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control.client import ProcessResult, ask_each
from lazulite.control.command import ControlError, Handler, Json
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import Clock
from lazulite.server.inspector.recorded import RecordedRequest, RequestFilter, read
from lazulite.server.inspector.recorder import BYTES_MAX, REQUESTS_MAX, Held, RequestRecorder
from lazulite.server.observability.access_log import timestamp
from lazulite.server.observability.exchange import ExchangeLog
from lazulite.settings.config import Settings

if TYPE_CHECKING:
    # Needed while requests are recorded.
    from lazulite.auth.explain.explainer import Explainer

_PAUSE_EACH = 50
"""Requests that are read before the event loop runs other tasks."""


@asynccontextmanager
async def open_recorder(
    settings: Settings, store: Store, logs: list[ExchangeLog], clock: Clock
) -> AsyncIterator[RequestRecorder]:
    """Yield what records the requests of this process, and have its commands read them.

    Args:
        settings: of the process.
        store: of the process.
        logs: of its servers.
        clock: the time now.
    """
    explainers = partial(_explainers, settings, clock, store.directory)
    recorder = RequestRecorder(logs, clock, explainers, BYTES_MAX // settings.workers)
    store.channel.register(REQUESTS, requests_of(recorder))
    if settings.record_requests or settings.ui_port is not None:
        recorder.start(for_good=True)
    try:
        yield recorder
    finally:
        recorder.stop()


def _explainers(settings: Settings, clock: Clock, directory: AccountDirectory) -> "Mapping[str, Explainer]":
    """Return what explains the refusals of each service, by its name."""
    from lazulite.app.registry import SERVICES  # noqa: PLC0415 - needed while requests are recorded
    from lazulite.auth.explain.explainer import AccountKeys, Explainer  # noqa: PLC0415 - likewise

    keys = AccountKeys(directory)
    formats = list(dict.fromkeys(service.credentials.canonicalize for service in SERVICES))
    return {
        service.name: Explainer(
            service.credentials,
            keys,
            directory,
            Addressing(settings.host_suffixes_of(service.name)),
            clock,
            time.monotonic,
            formats,
        )
        for service in SERVICES
    }


def requests_of(recorder: RequestRecorder) -> Handler[RecordedArguments]:
    """Return the handler of `REQUESTS` for this process."""

    async def requests(asked: RecordedArguments) -> AsyncGenerator[Json, None]:
        wanted = _filter_of(asked)
        recorder.start()
        yield {"since": timestamp(lambda: recorder.since)}
        async for each in _newest(recorder, wanted, asked.limit):
            yield _as_json(each, whole=asked.id != "")

    return requests


def requests_of_workers(workers: Workers) -> Handler[RecordedArguments]:
    """Return the handler of `REQUESTS` for a primary: the newest requests of its workers."""

    async def requests(asked: RecordedArguments) -> AsyncGenerator[Json, None]:
        _filter_of(asked)
        results = await ask_each(workers(), REQUESTS, asked, WORKER_SECONDS_MAX)
        yield {"since": max((_since(result.items) for result in results if result.items), default="")}
        for result in results:
            if result.error is not None:
                yield {"process": result.process, "error": str(result.error)}
        for count, item in enumerate(merge(*map(_requests_in, results), key=_ended, reverse=True)):
            if count == asked.limit:
                return
            yield item

    return requests


def _requests_in(result: ProcessResult) -> Sequence[Any]:
    """Return the requests of a process, the newest first, each with the name of the process."""
    items: Sequence[Any] = result.items[1:]
    return [{**item, "process": result.process} for item in items]


def _ended(item: Any) -> float:
    ended: float = item["ended"]
    return ended


def _since(items: Sequence[Any]) -> str:
    since: str = items[0]["since"]
    return since


def _filter_of(asked: RecordedArguments) -> RequestFilter:
    """Return which requests are asked for.

    Raises:
        ControlError: there is no such status, or the count is out of bounds.
    """
    if not 0 < asked.limit <= REQUESTS_MAX:
        raise ControlError("bad-request", f"limit is from 1 to {REQUESTS_MAX}")
    try:
        texts = asked.service, asked.account, asked.status, asked.text
        return RequestFilter(*texts, since=asked.since, without_agent=asked.without_agent, id=asked.id)
    except ValueError as error:
        raise ControlError("bad-request", str(error)) from None


async def _newest(recorder: RequestRecorder, wanted: RequestFilter, limit: int) -> AsyncIterator[RecordedRequest]:
    """Yield the newest requests, in order."""
    found = 0
    rings = recorder.held(wanted.service)
    for count, (service, held) in enumerate(merge(*rings, key=_ended_of, reverse=True), 1):
        if count % _PAUSE_EACH == 0:
            await asyncio.sleep(0)
        if not wanted.may_be(held):
            continue
        request = read(service, held)
        if wanted.is_in(request):
            yield request
            found += 1
            if found == limit:
                return


def _ended_of(each: tuple[str, Held]) -> int:
    return each[1].ended


def _as_json(request: RecordedRequest, *, whole: bool) -> Json:
    """Return a request as the command tells it. Heads and refusals are for `whole` requests."""
    cost = request.cost
    facts: dict[str, Json] = {
        "id": request.id,
        "time": request.time,
        "ended": request.unix_seconds,
        "service": request.service,
        "account": request.account,
        "operation": request.operation,
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "status": request.status,
        "error": request.error_code,
        "ms": round(request.ms, 3),
        "total_ms": round(request.total_ms, 3),
        "bytes_in": request.bytes_in,
        "bytes_out": request.bytes_out,
        "client": request.client,
        "client_request_id": request.client_request_id,
        "authorization": request.authorization,
        "version": request.version,
        "scheme": request.scheme,
        "whole": request.is_whole,
        "scanned": request.scanned,
        "returned": request.returned,
        "gate": request.gate,
        "fault": request.fault,
        "cost": None if cost is None else {**cost._asdict(), "line": cost.line, "advice": cost.advice},
        "mistake": "" if request.refusal is None else request.refusal.mistake,
    }
    if whole:
        facts["timing"] = request.timing
        facts["request_fields"] = [list(each) for each in request.request_fields]
        facts["response_fields"] = [list(each) for each in request.response_fields]
        refusal = request.refusal
        facts["refusal"] = (
            None if refusal is None else {**refusal._asdict(), "fields": [field._asdict() for field in refusal.fields]}
        )
    return facts
