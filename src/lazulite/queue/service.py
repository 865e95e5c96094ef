"""The Queue service: its definition, for the kernel that all services share."""

from lazulite.queue.call import Call, Context, make_context
from lazulite.queue.credentials import QUEUE_CREDENTIALS
from lazulite.queue.model.expirations import EXPIRATIONS_SPACE
from lazulite.queue.processes import PROCESSES_SPACE
from lazulite.queue.resource import USUAL_PATH, Resource, resource_of
from lazulite.queue.routes import ROUTES, component
from lazulite.queue.verification import QUEUES_SPACE
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel

SERVER = "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs look at it."""

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
