"""The space of the queues in the registry: how `lazulite check` and copies read it and the queues' own spaces."""

from lazulite.engine.contract import Key
from lazulite.queue.catalog import Queue
from lazulite.queue.model.message import EXPIRES, VISIBLE, read_index, read_message
from lazulite.queue.model.moves import STATE_ROW, read_state
from lazulite.records.spaces import QUEUES, CatalogFormat, Nouns, Space


def _read_queue(row: str, value: bytes) -> tuple[int, str]:
    queue = Queue.from_bytes(value)
    if queue.name != row:
        raise ValueError(f"queue {row} is called {queue.name}")
    return queue.space, queue.name


def _verify_row(key: Key, value: bytes, _: int) -> None:
    row = key[1]
    if row == STATE_ROW:
        read_state(value)
    elif row.startswith(EXPIRES):
        read_index(row, value)
    else:
        message = read_message(row, value)
        message.text.decode()
        if (message.row, message.value) != (row, value):
            raise ValueError("the message is not as Lazulite writes it")


def _is_message(key: Key) -> bool:
    return key[1].startswith(VISIBLE)


QUEUES_SPACE = Space(
    number=QUEUES,
    owner="queue",
    title="the list of queues",
    watched=True,
    copied=True,
    content=True,
    catalog=CatalogFormat(Nouns("queue", "queues", "messages"), _read_queue, _verify_row, counted=_is_message),
)
