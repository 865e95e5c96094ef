"""Get Account Information, the container of a website, and operations that Lazulite does not have.

Source: reference §33.3, §47, §48.
"""

from contextlib import suppress

from lazulite.blob.names import WEB
from lazulite.blob.requests.call import Call
from lazulite.blob.storage.catalog import Container
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.service.properties import PropertiesUpdate

_INFORMATION = (
    ("x-ms-sku-name", "Standard_LRS"),
    ("x-ms-account-kind", "StorageV2"),
    ("x-ms-is-hns-enabled", "false"),
)


async def get_account_information(call: Call) -> Response:  # noqa: ARG001 - it is the same for all accounts
    """Return the kind of the account. The addressed container or blob need not exist."""
    return Response(200, list(_INFORMATION))


async def create_website(call: Call, update: PropertiesUpdate) -> None:
    """Create the container `$web` if an update of the service properties enables the website and there is none."""
    website, catalog = update.blob.website, call.context.catalog
    if website is not None and website.enabled and await catalog.get(call.account, WEB) is None:
        with suppress(ServiceError):  # Another request has just created it.
            await catalog.create(call.account, Container(WEB, 0, call.context.clock()))


async def reject_unbuilt(call: Call) -> Response:  # noqa: ARG001 - as the other operations
    """Reject an operation that Azure has and Lazulite has not; see docs/blobs.md.

    Raises:
        ServiceError: `NotImplemented`.
    """
    raise ServiceError("NotImplemented")
