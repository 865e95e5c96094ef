"""The Queue service: its definition, for the kernel that all services share, and its space of queues.

The registry has that space, by which `lazulite check` and copies read it and the queues' own spaces.
"""

from lazulite.engine.contract import Key
from lazulite.queue.call import Call, Context, make_context
from lazulite.queue.catalog import Queue
from lazulite.queue.credentials import QUEUE_CREDENTIALS
from lazulite.queue.model.expirations import EXPIRATIONS_SPACE
from lazulite.queue.model.message import EXPIRES, VISIBLE, read_index, read_message
from lazulite.queue.model.moves import STATE_ROW, read_state
from lazulite.queue.processes import PROCESSES_SPACE
from lazulite.queue.resource import USUAL_PATH, USUAL_START, Resource, resource_of
from lazulite.queue.routes import ROUTES, component
from lazulite.records.spaces import QUEUES, CatalogFormat, ReportNouns, Space
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel

SERVER = "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs read it."""


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
    in_checksum=True,
    catalog=CatalogFormat(ReportNouns("queue", "queues", "messages"), _read_queue, _verify_row, counted=_is_message),
)


QUEUE: ServiceDefinition[Context, Resource, Call] = ServiceDefinition(
    name="queue",
    server=SERVER,
    credentials=QUEUE_CREDENTIALS,
    routes=ROUTES,
    parse_resource=resource_of,
    make_context=make_context,
    make_call=Call,
    component=component,
    keyed_path=USUAL_PATH,
    keyed_starts=(USUAL_START,),
    spaces=(QUEUES_SPACE, EXPIRATIONS_SPACE, PROCESSES_SPACE),
    dropped_code="QueueNotFound",
    maintain_seconds=5,
)


class QueueService(ServiceKernel[Context, Resource, Call]):
    """The Queue service on one engine.

    Args:
        dependencies: of the process.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(QUEUE, dependencies)
