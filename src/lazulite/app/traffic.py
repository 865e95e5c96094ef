"""The commands for the traffic of a resource, and for the keys of a table.

One process has counted the traffic, or a primary adds what its workers have counted.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from secrets import token_hex

from lazulite.app.channel import WORKER_SECONDS_MAX, Workers
from lazulite.app.commands import (
    END_RECORDING,
    RECORD,
    TRAFFIC,
    EndRecordingArguments,
    KeySampleArguments,
    RecordArguments,
    TrafficArguments,
)
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control.client import ask_each
from lazulite.control.command import ControlError, Handler, Json, single
from lazulite.engine.contract import Engine, KeyRange
from lazulite.table.catalog import Catalog
from lazulite.traffic.codec import decode, encode, join
from lazulite.traffic.key_sample import ROWS_MAX, KeySample
from lazulite.traffic.meter import Meter, Resource, ResourceTraffic
from lazulite.traffic.recording import Recording

_RECORD_STEP_SECONDS = 0.5
"""The seconds between two checks whether a recording has enough requests."""
_RECORD_REPORT_SECONDS = 10.0
"""How often the client of a recording gets an item."""
_EVERYTHING = KeyRange(("", ""), None)


def traffic_of(
    meter: Meter | None,
    directory: AccountDirectory,
    seconds: Callable[[], float],
    workers: Workers | None = None,
) -> Handler[TrafficArguments]:
    """Return the handler of `TRAFFIC`.

    Args:
        meter: of this process, if it counts.
        directory: the accounts.
        seconds: returns the Unix time now.
        workers: the processes that count instead; None: this is the only process.
    """

    async def traffic(asked: TrafficArguments) -> AsyncGenerator[Json, None]:
        account = account_of(directory, asked.account)
        if workers is not None:
            found = await _of_workers(workers, TrafficArguments(asked.name, account, asked.service))
            weight = 1.0
        elif meter is None:
            raise ControlError("no-meter", "the server counts no traffic: start it with --meter")
        else:
            found = meter.traffic(Resource(account, asked.service, asked.name.lower()))
            weight = meter.weight()
        if found is None:
            noun = "container" if asked.service == "blob" else asked.service
            raise ControlError("no-traffic", f"{noun} {asked.name} of account {account} has had no traffic")
        for item in encode(found, weight, seconds()):
            yield item

    return traffic


def recording_of(
    meter: Meter | None,
    directory: AccountDirectory,
    workers: Workers | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Handler[RecordArguments]:
    """Return the handler of `RECORD`. The arguments are as of `traffic_of`; `sleep` waits so many seconds."""

    async def recorded(asked: RecordArguments) -> AsyncGenerator[Json, None]:
        account = account_of(directory, asked.account) if asked.name or asked.account else ""
        secret = asked.secret or token_hex(16)
        if workers is not None:
            async for item in _recorded_by_workers(workers, replace(asked, account=account, secret=secret), sleep):
                yield item
            return
        if meter is None:
            raise ControlError("no-meter", "the server records no requests: start it with --meter")
        if meter.recording is not None:
            raise ControlError("busy", "another recording is going on")
        only = Resource(account, "table", asked.name.lower()) if asked.name else None
        recording = meter.recording = Recording(_key(secret), only)
        try:
            yield {"requests": 0}
            rest, last = asked.seconds, 0.0
            while rest > 0 and not (recording.is_ending or 0 < asked.requests <= recording.requests):
                step = min(rest, _RECORD_STEP_SECONDS)
                await sleep(step)
                rest -= step
                if last - rest >= _RECORD_REPORT_SECONDS or not last:
                    last = rest
                    yield {"requests": recording.requests}
        finally:
            meter.recording = None
        for found in recording.items():
            yield found

    return recorded


def end_recording_of(meter: Meter | None, workers: Workers | None = None) -> Handler[EndRecordingArguments]:
    """Return the handler of `END_RECORDING`. The arguments are as of `traffic_of`."""

    async def ended(asked: EndRecordingArguments) -> Json:
        if workers is not None:
            results = await ask_each(workers(), END_RECORDING, asked, WORKER_SECONDS_MAX)
            return any(True in result.items for result in results)
        recording = None if meter is None else meter.recording
        if recording is None or not recording.has_secret(_key(asked.secret)):
            return False
        recording.is_ending = True
        return True

    return lambda asked: single(ended(asked))


def _key(secret: str) -> bytes:
    """Return the key of hashes, which has a bound."""
    return secret.encode()[:64]


async def _recorded_by_workers(
    workers: Workers, asked: RecordArguments, sleep: Callable[[float], Awaitable[None]]
) -> AsyncGenerator[Json, None]:
    """Yield what all workers recorded, and items before that, so that the client does not think it is cut."""
    limit = asked.seconds + WORKER_SECONDS_MAX
    asking = asyncio.ensure_future(ask_each(workers(), RECORD, asked, limit))
    try:
        while not asking.done():
            yield {"requests": 0}
            waiting = asyncio.ensure_future(sleep(_RECORD_REPORT_SECONDS))
            await asyncio.wait([asking, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        results = await asking
    finally:
        asking.cancel()
    for result in results:
        if result.error is not None:
            raise ControlError(result.error.code, f"{result.process}: {result.error}")
    for result in results:
        for item in result.items:
            if isinstance(item, Mapping) and "table" in item:
                yield item


def key_sample_of(engine: Engine, directory: AccountDirectory) -> Handler[KeySampleArguments]:
    """Return the handler of `KEY_SAMPLE`, given the store and its accounts."""
    tables = Catalog(engine)

    async def sampled(asked: KeySampleArguments) -> Json:
        account = account_of(directory, asked.account)
        table = await tables.read(account, asked.name)
        if table is None:
            raise ControlError("no-table", f"there is no table {asked.name} of account {account}")
        sample = KeySample()
        async with aclosing(engine.scan(table.space, [_EVERYTHING], ROWS_MAX, keys_only=True)) as slices:
            async for part in slices:
                for partition in part.columns()[0]:
                    sample.add(partition)
        first = KeyRange((asked.partition, ""), (f"{asked.partition}\0", ""))
        async with aclosing(engine.scan(table.space, [first], 1, keys_only=True)) as slices:
            async for part in slices:
                for row in part.columns()[1]:
                    sample.row = row
        return sample.as_json()

    return lambda asked: single(sampled(asked))


async def _of_workers(workers: Workers, asked: TrafficArguments) -> ResourceTraffic | None:
    """Return the sum of what the workers counted; None if none of them has had traffic.

    Raises:
        ControlError: a worker has no answer.
    """
    total: ResourceTraffic | None = None
    for result in await ask_each(workers(), TRAFFIC, asked, WORKER_SECONDS_MAX):
        if result.error is not None:
            if result.error.code == "no-traffic":
                continue
            raise ControlError(result.error.code, f"{result.process}: {result.error}")
        found = decode(result.items)
        if total is None:
            total = found
        else:
            join(total, found)
    return total


def account_of(directory: AccountDirectory, name: str) -> str:
    """Return the account that is asked about.

    Raises:
        ControlError: there are several, or it does not exist.
    """
    names = directory.names()
    if name and name not in names:
        raise ControlError("no-account", f"there is no account {name}")
    if not name and len(names) != 1:
        raise ControlError(
            "no-account", "there are several accounts; pass --account" if names else "there is no account"
        )
    return name or names[0]
