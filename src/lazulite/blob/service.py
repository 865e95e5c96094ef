"""The Blob service: its definition, for the kernel that all services share."""

from collections.abc import Mapping
from http import HTTPStatus

from lazulite.blob.auth.credentials import BLOB_CREDENTIALS, BlobPublicAccess
from lazulite.blob.errors import MESSAGES
from lazulite.blob.requests.call import Call, Context, make_call, make_context
from lazulite.blob.resource import (
    BLOCK_START,
    HOST_STARTS,
    USUAL_HOST_PATH,
    USUAL_PATH,
    USUAL_START,
    Resource,
    resource_of,
)
from lazulite.blob.routes import ROUTES, component
from lazulite.blob.storage.garbage import UNTIDY_SPACE
from lazulite.blob.storage.uploads import UPLOADS_SPACE
from lazulite.blob.storage.verification import CONTAINERS_SPACE
from lazulite.blob.website import Website
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.message import Response
from lazulite.protocol.version import DEFAULT_VERSION, NEWEST
from lazulite.service.definition import ServiceDefinition, ServiceDependencies
from lazulite.service.kernel import ServiceKernel
from lazulite.service.rejection import Rejection, reject_in_xml
from lazulite.service.responses import XML_TYPE

SERVER = "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"
"""Some SDKs read it."""


def _assumed_version(headers: Mapping[str, str], _: Mapping[str, str]) -> str:
    """Return the version of a request that names none; the newest for one of whose head nothing is known."""
    return DEFAULT_VERSION if headers else NEWEST


def _reject(rejection: Rejection) -> Response:
    """Return a rejection. The 304 of Get Page Ranges has the type of the body that it lacks (recorded, §38.2)."""
    response = reject_in_xml(rejection)
    if response.status == HTTPStatus.NOT_MODIFIED and rejection.request.record.operation == "GetPageRanges":
        response.headers.insert(0, XML_TYPE)
    return response


BLOB: ServiceDefinition[Context, Resource, Call] = ServiceDefinition(
    name="blob",
    server=SERVER,
    credentials=BLOB_CREDENTIALS,
    routes=ROUTES,
    parse_resource=resource_of,
    make_context=make_context,
    make_call=make_call,
    component=component,
    keyed_path=USUAL_PATH,
    keyed_starts=(BLOCK_START, USUAL_START),
    keyed_host_path=USUAL_HOST_PATH,
    keyed_host_starts=HOST_STARTS,
    assumed_version=_assumed_version,
    reject=_reject,
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

    @property
    def context(self) -> Context:
        """What its operations work with."""
        return self._context

    def website(self, addressing: Addressing) -> Website:
        """Return the static websites of all accounts, given how they are addressed."""
        return Website(self, self._context, lambda name: self._accounts.get(name) is not None, addressing, SERVER)
