"""Run protocols with the SDK's clients, in the caller's thread."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from inspect import iscoroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableClient

from lazulite_patterns.effects import blob_sdk, queue_sdk, sdk
from lazulite_patterns.effects.blobs import BlobEffect, BlobGet, BlobPage
from lazulite_patterns.effects.calls import Call, WithHeartbeat, WithTimeout
from lazulite_patterns.effects.drive import drive
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns.effects.queues import QueueEffect, Receive
from lazulite_patterns.effects.runtime import Gather, Runtime, Sleep
from lazulite_patterns.effects.tables import Batch, Page, Read, Write

if TYPE_CHECKING:  # Extras: only programs with queues and blobs have them.
    from azure.storage.blob import ContainerClient
    from azure.storage.queue import QueueClient

T = TypeVar("T")


class Driver:
    """Performs effects with synchronous clients."""

    def __init__(
        self,
        tables: Mapping[str, TableClient],
        runtime: Runtime | None = None,
        sleep: Callable[[float], None] = time.sleep,
        queues: "Mapping[str, QueueClient] | None" = None,
        containers: "Mapping[str, ContainerClient] | None" = None,
    ) -> None:
        """Take the clients by the names that protocols use.

        Raises:
            TypeError: a client is not synchronous.
        """
        self.tables = dict(tables)
        self.queues = dict(queues or {})
        self.containers = dict(containers or {})
        for clients in (self.tables, self.queues, self.containers):
            sdk.check_clients(clients.values(), "synchronous")
        self.runtime = runtime or Runtime()
        self._sleep = sleep

    def run(self, protocol: Protocol[T]) -> T:
        """Run a protocol to its end, and return what it returns or raise what it raises."""
        return drive(protocol, self._perform)

    def _perform(self, effect: Effect[object]) -> object:
        options = sdk.NO_LIMITS
        if isinstance(effect, WithTimeout):
            options, effect = sdk.limits(effect.seconds), effect.effect
        if not isinstance(effect, (Read, Write, Batch, Page, QueueEffect, BlobEffect, Call)):
            return self._runtime(effect)
        self.runtime.failpoints.before(effect)
        if isinstance(effect, Call):
            answer = _called(effect, options)
        elif isinstance(effect, BlobEffect):
            answer = self._blob(effect, options)
        else:
            answer = (
                self._message(effect, options) if isinstance(effect, QueueEffect) else self._request(effect, options)
            )
        self.runtime.failpoints.after(effect)
        return answer

    def _runtime(self, effect: Effect[object]) -> object:
        """Perform an effect that is no request."""
        if isinstance(effect, Sleep):
            self._sleep(effect.seconds)
            return None
        if isinstance(effect, Gather):
            return self._gather(effect)
        if isinstance(effect, WithHeartbeat):
            return self._with_heartbeat(effect)
        return self.runtime.answer(effect)

    def _request(self, effect: Read | Write | Batch | Page, options: sdk.Options) -> object:
        client = self.tables[effect.table]
        hook = sdk.Hook(self.runtime.hear)
        with sdk.translated():
            if isinstance(effect, Page):
                hooked = {**options, "raw_response_hook": hook}
                iterator = sdk.pages(effect, client.query_entities, client.list_entities, hooked)
                entities = list(next(iterator, ()))
                return sdk.found(entities, iterator.continuation_token)
            if (request := sdk.request_of(effect, client)) is not None:
                answer = cast(Any, client)._client.send_request(request, stream=True, **sdk.NO_RETRIES, **options)
                self.runtime.hear(answer.headers.get("Date"))
                return sdk.result_of(effect, answer.status_code, answer.headers, answer.read())
            made = sdk.call(effect)
            try:
                answer = getattr(client, made.method)(*made.args, **made.options, **options, raw_response_hook=hook)
            except HttpResponseError as error:
                if isinstance(effect, Read) and sdk.is_absent(error):
                    return None
                raise
            return sdk.result(effect, answer, hook.response)

    def _message(self, effect: QueueEffect, options: sdk.Options) -> object:
        made = queue_sdk.call(effect)
        with sdk.translated(effect.queue):
            try:
                answer = getattr(queue_sdk.client_of(effect, self.queues[effect.queue]), made.method)(
                    *made.args, **made.options, **options
                )
                if isinstance(effect, Receive):
                    answer = next(answer.by_page(), ())
                return queue_sdk.result(effect, answer)
            except HttpResponseError as error:
                if queue_sdk.is_done(effect, error):
                    return None
                raise

    def _blob(self, effect: BlobEffect, options: sdk.Options) -> object:
        container, made = self.containers[effect.container], blob_sdk.call(effect)
        options = {**options, "raw_response_hook": sdk.Hook(self.runtime.hear)}
        with sdk.translated():
            if isinstance(effect, BlobPage):
                pages = cast(Any, container).list_blobs(**made.options, **options).by_page(effect.continuation)
                blobs = list(next(pages, ()))
                return blob_sdk.found(blobs, getattr(pages, "continuation_token", None))
            try:
                answer = getattr(_client(container, effect.name, blob_sdk.lease_id(effect)), made.method)(
                    *made.args, **made.options, **options
                )
                return blob_sdk.result(effect, answer.readall() if isinstance(effect, BlobGet) else answer)
            except HttpResponseError as error:
                if blob_sdk.is_absent(effect, error):
                    return None
                raise

    def _with_heartbeat(self, effect: WithHeartbeat[object]) -> object:
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(effect.every_seconds):
                with suppress(Exception, Crash):
                    self.run(effect.heartbeat())

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            return self.run(effect.protocol)
        finally:
            ended.set()
            thread.join()

    def _gather(self, effect: Gather[object]) -> list[object]:
        with ThreadPoolExecutor(max(1, min(effect.workers, len(effect.protocols)))) as pool:
            running = [pool.submit(self.run, each) for each in effect.protocols]
        return [each.result() for each in running]


def _called(effect: Call, options: sdk.Options) -> object:
    """Call a function of the program. One that sends a request gets the options.

    Raises:
        TypeError: the function is asynchronous, so that nothing would wait for it.
    """
    answer = effect.function(*effect.arguments, **(options if effect.requests else {}))
    if iscoroutine(answer):
        answer.close()
        raise TypeError(f"{effect.function} is asynchronous: a driver of lazulite_patterns.aio awaits it")
    return answer


def _client(container: "ContainerClient", name: str, lease_id: str | None) -> Any:
    """Return the client of a blob, or that of its lease."""
    blob = container.get_blob_client(name)
    if lease_id is None:
        return blob
    from azure.storage.blob import BlobLeaseClient  # noqa: PLC0415 - an extra, as above

    return BlobLeaseClient(blob, lease_id)
