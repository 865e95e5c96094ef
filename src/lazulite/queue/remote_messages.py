"""The messages of all queues, kept by another process: the primary, which has the store.

All workers of a primary share its `Messages`: its clock, what it knows of each shard, and above all its look-ahead, so
that it hands each message to one consumer, whichever worker the consumer asked. An operation is one call each way.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from lazulite.engine.commit import Plain
from lazulite.engine.remote.messages import Primary, Procedure
from lazulite.queue.catalog import Queue
from lazulite.queue.messages import Messages
from lazulite.queue.model.message import Message, Receipt

_PUT, _GET, _PEEK, _UPDATE, _DELETE, _COUNT = (
    f"queue.{name}" for name in ("put", "get", "peek", "update", "delete", "count")
)


class RemoteMessages:
    """As `Messages`, method for method; see there.

    Args:
        primary: has the messages.
    """

    def __init__(self, primary: Primary) -> None:
        self._primary = primary

    async def put(self, queue: Queue, text: bytes, delay_seconds: int, ttl_seconds: int | None) -> Message:
        """See `Messages.put`."""
        return _decode(await self._primary.call(_PUT, *_encode_queue(queue), text, delay_seconds, ttl_seconds))

    async def get(self, queue: Queue, count: int, timeout_seconds: int) -> list[Message]:
        """See `Messages.get`."""
        return _decode_all(await self._primary.call(_GET, *_encode_queue(queue), count, timeout_seconds))

    async def peek(self, queue: Queue, count: int) -> list[Message]:
        """See `Messages.peek`."""
        return _decode_all(await self._primary.call(_PEEK, *_encode_queue(queue), count))

    async def update(
        self, queue: Queue, message: UUID, receipt: Receipt, timeout_seconds: int, text: bytes | None
    ) -> Message | None:
        """See `Messages.update`."""
        arguments = message.bytes, tuple(receipt), timeout_seconds, text
        updated = await self._primary.call(_UPDATE, *_encode_queue(queue), *arguments)
        return None if updated is None else _decode(updated)

    async def delete(self, queue: Queue, message: UUID, receipt: Receipt) -> bool:
        """See `Messages.delete`."""
        deleted: bool = await self._primary.call(_DELETE, *_encode_queue(queue), message.bytes, tuple(receipt))
        return deleted

    async def count(self, queue: Queue) -> int:
        """See `Messages.count`."""
        count: int = await self._primary.call(_COUNT, *_encode_queue(queue))
        return count

    async def remove_expired(self) -> int:
        """Return 0: the primary removes them."""
        return 0


def procedures(messages: Messages) -> Mapping[str, Procedure]:
    """Return the procedures that `RemoteMessages` calls.

    Args:
        messages: of the primary.
    """

    async def put(name: str, space: int, shards: int, *arguments: Plain) -> Plain:
        return _encode(await messages.put(Queue(name, space, shards), *arguments))

    async def get(name: str, space: int, shards: int, *arguments: Plain) -> Plain:
        return _encode_all(await messages.get(Queue(name, space, shards), *arguments))

    async def peek(name: str, space: int, shards: int, *arguments: Plain) -> Plain:
        return _encode_all(await messages.peek(Queue(name, space, shards), *arguments))

    async def update(name: str, space: int, shards: int, message: Plain, receipt: Plain, *arguments: Plain) -> Plain:
        queue = Queue(name, space, shards)
        updated = await messages.update(queue, UUID(bytes=message), Receipt(*receipt), *arguments)
        return None if updated is None else _encode(updated)

    async def delete(name: str, space: int, shards: int, message: Plain, receipt: Plain) -> Plain:
        return await messages.delete(Queue(name, space, shards), UUID(bytes=message), Receipt(*receipt))

    async def count(name: str, space: int, shards: int) -> Plain:
        return await messages.count(Queue(name, space, shards))

    return {_PUT: put, _GET: get, _PEEK: peek, _UPDATE: update, _DELETE: delete, _COUNT: count}


def _encode_queue(queue: Queue) -> tuple[str, int, int]:
    """Return what `Messages` needs of a queue."""
    return queue.name, queue.space, queue.shards


def _encode(message: Message) -> Plain:
    return message.id.bytes, *message[1:]


def _encode_all(messages: Sequence[Message]) -> Plain:
    return [_encode(message) for message in messages]


def _decode(payload: Plain) -> Message:
    identity, *rest = payload
    return Message(UUID(bytes=identity), *rest)


def _decode_all(payload: Plain) -> list[Message]:
    return [_decode(each) for each in payload]
