"""One client: an operation of any kind on a blob, sent, and recorded with what came of it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from tests.torture.http_client import Answer, Connection, LostConnectionError

from .model import ABSENT, ANY, SOURCE, Action, Blob, Bytes, Kind, LeaseChange, Read, Verb, Write
from .recorder import UNANSWERED_MAX, Recorder
from .wire import CONTAINER, SOURCE_NAME, Wire, content_of, read_blob, read_code

IDS = 2
"""Lease ids that clients use: few, so that they meet."""
_KINDS = {"reads": 30, "writes": 45, "lease actions": 25}
_OF_ALL = {Verb.PUT: 4, Verb.METADATA: 4, Verb.PROPERTIES: 1, Verb.TAGS: 1, Verb.SNAPSHOT: 1, Verb.DELETE: 1}
_VERBS = {
    Kind.BLOCK: {**_OF_ALL, Verb.BLOCK: 3, Verb.LIST: 4, Verb.FROM_URL: 1, Verb.COPY: 1, Verb.TIER: 1},
    Kind.APPEND: {**_OF_ALL, Verb.PUT: 2, Verb.APPEND: 6},
    Kind.PAGE: {**_OF_ALL, Verb.PUT: 2, Verb.PAGE: 4, Verb.CLEAR: 2},
}
"""Each write of the reference's matrix of leases, on the blobs that have it."""
_ACTIONS = {Action.ACQUIRE: 5, Action.RENEW: 2, Action.CHANGE: 2, Action.RELEASE: 3, Action.BREAK: 1}
_BLOCKS_KNOWN = 3
PAUSE_SECONDS = 0.05
UNAVAILABLE = 500
T = TypeVar("T")


class Client:
    """Sends one operation at a time, to any of `wires`. Clients share `now`, which never returns a moment twice."""

    def __init__(
        self, wires: Callable[[], Sequence[Wire]], random: Random, now: Callable[[], int], counts: Counter[str]
    ) -> None:
        self._wires = wires
        self._wire: Wire | None = None
        self._random = random
        self._now = now
        self._counts = counts
        self._connection: Connection | None = None
        self.pause_seconds = PAUSE_SECONDS
        """After a 5xx, or the loss of a connection."""

    async def run(self, choose: Callable[[Random], Recorder], over: asyncio.Event) -> None:
        """Do one operation after the other until it is over.

        Raises:
            UnexpectedAnswerError: see there.
        """
        kinds = {"reads": self._read, "writes": self._write, "lease actions": self._lease}
        while not over.is_set():
            wires = self._wires()
            if not wires:
                await asyncio.sleep(self.pause_seconds)
                continue
            recorder = choose(self._random)
            kind = "reads" if recorder.unanswered >= UNANSWERED_MAX else self._one_of(_KINDS)
            recorder.running += 1
            try:
                if self._connection is None:
                    self._wire = self._random.choice(wires)
                    self._connection = await Connection.open(self._wire.host)
                await kinds[kind](recorder)
                self._counts[kind] += 1
            except LostConnectionError:
                await self.close()
                await asyncio.sleep(self.pause_seconds)
            finally:
                recorder.running -= 1
        await self.close()

    async def close(self) -> None:
        """Let go of the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _ask(self, request: bytes) -> Answer:
        """Send a request.

        Raises:
            LostConnectionError: there is no response, or it is a 5xx: it may have been done.
        """
        assert self._connection is not None
        answer = await self._connection.ask(request)
        if answer.status >= UNAVAILABLE:
            self._counts[f"answered with {answer.status}"] += 1
            raise LostConnectionError(str(answer.status))
        return answer

    async def _read(self, recorder: Recorder) -> None:
        assert self._wire is not None
        given, invoked = self._given(recorder), self._now()
        answer = await self._ask(self._wire.read(recorder.name, given))
        code = read_code(answer)
        if code:
            found: Blob | str = code
        else:
            recorder.writer = recorder.writer_of(answer.headers["etag"])
            found = read_blob(answer, recorder.writer, recorder.kind)
            if recorder.kind is Kind.PAGE:
                recorder.history.append(Bytes(invoked, self._now(), found.content or ()))
                found = found._replace(content=None)
        recorder.history.append(Read(invoked, self._now(), given, found))
        if code == "BlobNotFound":
            recorder.writer = None

    async def _write(self, recorder: Recorder) -> None:
        assert self._wire is not None
        verb, invoked = self._one_of(_VERBS[recorder.kind]), self._now()
        condition = self._condition(recorder, absent=verb.creates) if verb.is_conditional else None
        given = self._given(recorder)
        block = self._random.choice(recorder.blocks or [invoked])
        write = Write(invoked, None, verb, condition, given, block, recorder.kind)
        request = self._wire.write(recorder.name, write, recorder.etags.get(condition or 0, ""))
        answer, code = await self._change(recorder, write, request)
        if code:
            return
        if verb is Verb.BLOCK:
            recorder.blocks = [*recorder.blocks, invoked][-_BLOCKS_KNOWN:]
        elif verb.sets_etag:
            recorder.see(invoked, answer.headers["etag"])

    async def _lease(self, recorder: Recorder) -> None:
        assert self._wire is not None
        invoked, random = self._now(), self._random
        ids = range(1, IDS + 1)
        change = LeaseChange(
            *(invoked, None, self._one_of(_ACTIONS), self._condition(recorder, absent=False)),
            *(random.choice(ids), random.choice(ids), random.random() < 0.5, random.random() < 0.5),
        )
        request = self._wire.lease(recorder.name, change, recorder.etags.get(change.condition or 0, ""))
        _, code = await self._change(recorder, change, request)
        if not code and change.action in (Action.ACQUIRE, Action.CHANGE):
            recorder.lease = change.proposed
        elif not code and change.action in (Action.RELEASE, Action.BREAK):
            recorder.lease = None

    async def _change(self, recorder: Recorder, change: Write | LeaseChange, request: bytes) -> tuple[Answer, str]:
        """Send a change and record it; return the response and its error code."""
        try:
            answer = await self._ask(request)
        except LostConnectionError:
            recorder.history.append(change)
            recorder.unanswered += 1
            self._counts["unanswered"] += 1
            raise
        code = read_code(answer)
        recorder.history.append(change._replace(returned=self._now(), code=code))
        self._counts["rejected"] += bool(code)
        return answer, code

    def _given(self, recorder: Recorder) -> int | None:
        """Return the lease id of a read or write, as a rule the one that the blob had last."""
        ids: list[int | None] = [*[recorder.lease] * 6, None, *range(1, IDS + 1)]
        return self._random.choice(ids)

    def _condition(self, recorder: Recorder, *, absent: bool) -> int | None:
        """Return the writer that If-Match is to name, or another condition, or None."""
        seen = [recorder.writer] * 3 if recorder.writer is not None else [ANY]
        return self._random.choice([None, None, *seen, *([ABSENT] if absent else [])])

    def _one_of(self, weights: dict[T, int]) -> T:
        return self._random.choices(list(weights), list(weights.values()))[0]


async def created(wire: Wire) -> None:
    """Create the container, and the source of copies. Raises `UnexpectedAnswerError`."""
    connection = await Connection.open(wire.host)
    try:
        read_code(await connection.ask(wire.create_container()))
        path, headers = f"{CONTAINER}/{SOURCE_NAME}", {"x-ms-blob-type": Kind.BLOCK.value}
        read_code(await connection.ask(wire.request("PUT", path, headers, body=content_of(SOURCE))))
    finally:
        await connection.close()
