"""Create, read and delete containers; their metadata and stored access policies. Source: reference §34."""

from dataclasses import replace

from lazulite.blob.model.lease import lease_facts
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import require_header
from lazulite.blob.storage.catalog import Container
from lazulite.protocol.clock import TICKS_PER_DAY, format_http_date
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Response
from lazulite.protocol.metadata import metadata_headers, read_metadata
from lazulite.service.responses import XML_TYPE
from lazulite.service.signed_identifiers import read_signed_identifiers, write_signed_identifiers

CONTAINER_PERMISSIONS = "racwdxyltfmei"
_DELETED_NAME, _DELETED_VERSION = "x-ms-deleted-container-name", "x-ms-deleted-container-version"
_PUBLIC = "x-ms-blob-public-access"
_PUBLIC_ACCESS = ("container", "blob")


def version_headers(container: Container) -> list[tuple[str, str]]:
    """Return the ETag and Last-Modified of a container."""
    return [("ETag", f'"{container.etag}"'), ("Last-Modified", format_http_date(container.modified))]


async def create_container(call: Call) -> Response:
    """Create a container."""
    headers = call.request.headers
    described = Container(
        call.resource.container, 0, call.context.clock(), _read_public_access(call), read_metadata(headers)
    )
    return Response(201, version_headers(await call.context.catalog.create(call.account, described)))


async def get_container(call: Call) -> Response:
    """Return properties and metadata, as headers."""
    container = await _readable(call)
    headers = [*version_headers(container), *metadata_headers(container.metadata)]
    headers += [(f"x-ms-lease-{name}", text) for name, text in lease_facts(container.lease, call.context.present())]
    if container.public_access:
        headers.append((_PUBLIC, container.public_access))
    headers += [
        ("x-ms-has-immutability-policy", "false"),
        ("x-ms-has-legal-hold", "false"),
        ("x-ms-immutable-storage-with-versioning-enabled", "false"),
        ("x-ms-default-encryption-scope", "$account-encryption-key"),
        ("x-ms-deny-encryption-scope-override", "false"),
    ]
    return Response(200, headers)


async def get_metadata(call: Call) -> Response:
    """Return the metadata, as headers."""
    container = await _readable(call)
    return Response(200, [*version_headers(container), *metadata_headers(container.metadata)])


async def set_metadata(call: Call) -> Response:
    """Replace the metadata."""
    metadata = read_metadata(call.request.headers)

    def change(container: Container) -> Container:
        now = call.context.clock()
        call.preconditions.allow_write(container, call.context.present())
        return replace(container, metadata=metadata, modified=max(now, container.modified + 1))

    return Response(
        200, version_headers(await call.context.catalog.update(call.account, call.resource.container, change))
    )


async def get_acl(call: Call) -> Response:
    """Return the stored access policies."""
    container = await _readable(call)
    headers = [XML_TYPE, *version_headers(container)]
    if container.public_access:
        headers.append((_PUBLIC, container.public_access))
    return Response(200, headers, write_signed_identifiers(container.policies))


async def set_acl(call: Call) -> Response:
    """Replace the stored access policies and the public access; they hold from the next request on."""
    policies = tuple(read_signed_identifiers(call.request.body, CONTAINER_PERMISSIONS))
    public_access = _read_public_access(call)

    def change(container: Container) -> Container:
        now = call.context.clock()
        call.preconditions.allow_write(container, call.context.present())
        modified = max(now, container.modified + 1)
        return replace(container, policies=policies, public_access=public_access, modified=modified)

    return Response(
        200, version_headers(await call.context.catalog.update(call.account, call.resource.container, change))
    )


async def delete_container(call: Call) -> Response:
    """Delete a container with its blobs, or keep it for the days that the account says. Its name is free at once."""

    def check(container: Container) -> None:
        call.preconditions.allow_write(container, call.context.present())

    days = call.switches.container_retention_days
    keep_until = (lambda now: now + days * TICKS_PER_DAY) if days else None
    await call.context.catalog.delete_if(call.account, call.resource.container, check, keep_until)
    return Response(202)


async def restore_container(call: Call) -> Response:
    """Restore a deleted container under the addressed name."""
    headers = call.request.headers
    name, version = (require_header(headers, header) for header in (_DELETED_NAME, _DELETED_VERSION))
    await call.context.catalog.restore(call.account, name, version, call.resource.container)
    return Response(201)


async def _readable(call: Call) -> Container:
    container = await call.container()
    call.preconditions.allow_read(container, call.context.present())
    return container


def _read_public_access(call: Call) -> str:
    text = call.request.headers.get(_PUBLIC, "")
    if text and text not in _PUBLIC_ACCESS:
        raise invalid_header(_PUBLIC, text)
    if text and not call.switches.public_access:
        raise ServiceError("PublicAccessNotPermitted")
    return text
