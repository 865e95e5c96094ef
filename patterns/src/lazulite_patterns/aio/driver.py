"""Run protocols with the SDK's asynchronous clients."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from azure.core.exceptions import HttpResponseError
from azure.data.tables.aio import TableClient

from lazulite_patterns.effects import blob_sdk, queue_sdk, sdk
from lazulite_patterns.effects.blobs import BlobEffect, BlobGet, BlobPage
from lazulite_patterns.effects.calls import Call, WithHeartbeat, WithTimeout
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.queues import QueueEffect, Receive
from lazulite_patterns.effects.runtime import Gather, Runtime, Sleep
from lazulite_patterns.effects.tables import Batch, Page, Read, Write

if TYPE_CHECKING:  # Extras: only programs with queues and blobs have them.
    from azure.storage.blob.aio import ContainerClient
    from azure.storage.queue.aio import QueueClient

T = TypeVar("T")


class Driver:
    """Performs effects with asynchronous clients."""

    def __init__(
        self,
        tables: Mapping[str, TableClient],
        runtime: Runtime | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        queues: "Mapping[str, QueueClient] | None" = None,
        containers: "Mapping[str, ContainerClient] | None" = None,
    ) -> None:
        """Take the clients by the names that protocols use.

        Raises:
            TypeError: a client is not asynchronous.
        """
        self.tables = dict(tables)
        self.queues = dict(queues or {})
        self.containers = dict(containers or {})
        for clients in (self.tables, self.queues, self.containers):
            sdk.check_clients(clients.values(), "asynchronous")
        self.runtime = runtime or Runtime()
        self._sleep = sleep

    async def run(self, protocol: Protocol[T]) -> T:
        """Run a protocol to its end, and return what it returns or raise what it raises."""
        answer: object = None
        error: Exception | None = None
        while True:
            try:
                effect = protocol.send(answer) if error is None else protocol.throw(error)
            except StopIteration as stop:
                return cast(T, stop.value)
            answer, error = None, None
            try:
                answer = await self._perform(effect)
            except Crash:
                raise
            except Exception as failed:  # noqa: BLE001 - the protocol sees every error of its effect.
                error = failed

    async def _perform(self, effect: Effect[object]) -> object:
        options = sdk.NO_LIMITS
        if isinstance(effect, WithTimeout):
            options, effect = sdk.limits(effect.seconds), effect.effect
        if not isinstance(effect, (Read, Write, Batch, Page, QueueEffect, BlobEffect, Call)):
            return await self._runtime(effect)
        self.runtime.failpoints.before(effect)
        if isinstance(effect, Call):
            answer = effect.function(*effect.arguments, **(options if effect.requests else {}))
            answer = await answer if isawaitable(answer) else answer
        elif isinstance(effect, BlobEffect):
            answer = await self._blob(effect, options)
        else:
            answer = await (
                self._message(effect, options) if isinstance(effect, QueueEffect) else self._request(effect, options)
            )
        self.runtime.failpoints.after(effect)
        return answer

    async def _runtime(self, effect: Effect[object]) -> object:
        """Perform an effect that is no request."""
        if isinstance(effect, Sleep):
            await self._sleep(effect.seconds)
            return None
        if isinstance(effect, Gather):
            return await self._gather(effect)
        if isinstance(effect, WithHeartbeat):
            return await self._with_heartbeat(effect)
        return self.runtime.answer(effect)

    async def _request(self, effect: Read | Write | Batch | Page, options: sdk.Options) -> object:
        client = self.tables[effect.table]
        hook = sdk.Hook(self.runtime.hear)
        with sdk.translated():
            if isinstance(effect, Page):
                hooked = {**options, "raw_response_hook": hook}
                iterator = sdk.pages(effect, client.query_entities, client.list_entities, hooked)
                page = await anext(iterator, None)
                entities = [] if page is None else [each async for each in page]
                return sdk.found(entities, iterator.continuation_token)
            if (request := sdk.request_of(effect, client)) is not None:
                answer = await cast(Any, client)._client.send_request(request, stream=True, **sdk.NO_RETRIES, **options)
                self.runtime.hear(answer.headers.get("Date"))
                return sdk.result_of(effect, answer.status_code, answer.headers, await answer.read())
            made = sdk.call(effect)
            try:
                answer = await getattr(client, made.method)(
                    *made.args, **made.options, **options, raw_response_hook=hook
                )
            except HttpResponseError as error:
                if isinstance(effect, Read) and sdk.is_absent(error):
                    return None
                raise
            return sdk.result(effect, answer, hook.response)

    async def _message(self, effect: QueueEffect, options: sdk.Options) -> object:
        made = queue_sdk.call(effect)
        method = getattr(queue_sdk.client_of(effect, self.queues[effect.queue]), made.method)
        with sdk.translated(effect.queue):
            try:
                if isinstance(effect, Receive):
                    page = await anext(method(*made.args, **made.options, **options).by_page(), None)
                    return queue_sdk.result(effect, [] if page is None else [each async for each in page])
                return queue_sdk.result(effect, await method(*made.args, **made.options, **options))
            except HttpResponseError as error:
                if queue_sdk.is_done(effect, error):
                    return None
                raise

    async def _blob(self, effect: BlobEffect, options: sdk.Options) -> object:
        container, made = self.containers[effect.container], blob_sdk.call(effect)
        options = {**options, "raw_response_hook": sdk.Hook(self.runtime.hear)}
        with sdk.translated():
            if isinstance(effect, BlobPage):
                pages = cast(Any, container).list_blobs(**made.options, **options).by_page(effect.continuation)
                page = await anext(pages, None)
                blobs = [] if page is None else [each async for each in page]
                return blob_sdk.found(blobs, getattr(pages, "continuation_token", None))
            try:
                answer = await getattr(_client(container, effect.name, blob_sdk.lease_id(effect)), made.method)(
                    *made.args, **made.options, **options
                )
                return blob_sdk.result(effect, await answer.readall() if isinstance(effect, BlobGet) else answer)
            except HttpResponseError as error:
                if blob_sdk.is_absent(effect, error):
                    return None
                raise

    async def _with_heartbeat(self, effect: WithHeartbeat[object]) -> object:
        ended = asyncio.Event()

        async def beat() -> None:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), effect.every_seconds)
                    return
                with suppress(Exception, Crash):
                    await self.run(effect.heartbeat())

        task = asyncio.create_task(beat())
        try:
            return await self.run(effect.protocol)
        finally:
            ended.set()
            await task

    async def _gather(self, effect: Gather[object]) -> list[object]:
        allowed = asyncio.Semaphore(max(1, effect.workers))

        async def run(protocol: Protocol[object]) -> object:
            async with allowed:
                return await self.run(protocol)

        ended = await asyncio.gather(*map(run, effect.protocols), return_exceptions=True)
        for each in ended:
            if isinstance(each, BaseException):
                raise each
        return ended


def _client(container: "ContainerClient", name: str, lease_id: str | None) -> Any:
    """Return the client of a blob, or that of its lease."""
    blob = container.get_blob_client(name)
    if lease_id is None:
        return blob
    from azure.storage.blob.aio import BlobLeaseClient  # noqa: PLC0415 - an extra, as above

    return BlobLeaseClient(blob, lease_id)
