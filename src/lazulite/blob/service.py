"""The Blob service: its definition, for the kernel that all services share."""

from lazulite.blob.auth.credentials import BLOB_CREDENTIALS
from lazulite.blob.auth.public_access import BlobPublicAccess
from lazulite.blob.call import Call, Context, make_call, make_context
from lazulite.blob.errors import MESSAGES
from lazulite.blob.resource import Resource, resource_of
from lazulite.blob.routes import ROUTES, component
from lazulite.blob.storage.garbage import UNTIDY_SPACE
from lazulite.blob.storage.uploads import UPLOADS_SPACE
from lazulite.blob.storage.verification import CONTAINERS_SPACE
from lazulite.blob.website import Website
from lazulite.protocol.addressing import Addressing
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel

SERVER = "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs look at it."""

BLOB: ServiceDefinition[Context, Resource, Call] = ServiceDefinition(
    name="blob",
    server=SERVER,
    credentials=BLOB_CREDENTIALS,
    routes=ROUTES,
    parse_resource=resource_of,
    make_context=make_context,
    make_call=make_call,
    component=component,
    messages=MESSAGES,
    public_access=lambda context: BlobPublicAccess(context.catalog.public_access),
    spaces=(CONTAINERS_SPACE, UNTIDY_SPACE, UPLOADS_SPACE),
    dropped_code="ContainerNotFound",
    maintain_seconds=60,
)


class BlobService(ServiceKernel[Context, Resource, Call]):
    """The Blob service on one engine.

    Args:
        dependencies: of the process.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(BLOB, dependencies)
        self._accounts = dependencies.accounts
        self._context.inner.begin(self)

    def website(self, addressing: Addressing) -> Website:
        """Return the static websites of all accounts, given how they are addressed."""
        return Website(self, self._context, lambda name: self._accounts.get(name) is not None, addressing, SERVER)
