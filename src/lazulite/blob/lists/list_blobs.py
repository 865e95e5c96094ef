"""List Blobs and List Containers. Source: reference §33.1, §35."""

from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from contextlib import aclosing

from lazulite.auth.grant import authorize, permits
from lazulite.blob.auth.requirements import LIST, LIST_TAGS, LIST_UNPUBLISHED
from lazulite.blob.limits import BLOBS_OF_LIST_MAX, CONTAINERS_MAX
from lazulite.blob.lists.blob_list_xml import BlobPage, RowWriter, write_page
from lazulite.blob.lists.container_list_xml import ListedContainer, write_containers
from lazulite.blob.lists.listing import read_page
from lazulite.blob.lists.page import ListRequest
from lazulite.blob.model.lease import lease_facts
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.paging import echoed, invalid_parameter, read_include, read_marker, read_most, write_marker
from lazulite.blob.resource import WEB, check_container_name
from lazulite.blob.storage.catalog import Container
from lazulite.blob.versions import BLOB_INCLUDES, CONTAINER_INCLUDES, EMPTY_PREFIX_SINCE, known
from lazulite.protocol.clock import TICKS_PER_DAY, format_http_date
from lazulite.protocol.message import Response
from lazulite.service.parameters import read_name_marker
from lazulite.service.responses import XML_TYPE
from lazulite.service.time_slice import TimeSlice

_BLOB_WORDS = frozenset(
    (
        *("snapshots", "metadata", "uncommittedblobs", "copy", "deleted", "tags", "versions", "deletedwithversions"),
        *("immutabilitypolicy", "legalhold", "permissions"),
    )
)
_REQUIREMENTS = {
    "tags": LIST_TAGS,
    "uncommittedblobs": LIST_UNPUBLISHED,
    "deleted": LIST_UNPUBLISHED,
    "deletedwithversions": LIST_UNPUBLISHED,
}
"""Of the words of `include` that need more than `LIST`."""
_CONTAINER_WORDS = frozenset(("metadata", "deleted", "system"))
_ECHOED = (("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults"), ("Delimiter", "delimiter"))


async def list_blobs(call: Call) -> Response:
    """Return a page of the blobs of a container, in the order of their names.

    A token for a directory reaches the names that begin with the prefix.
    """
    parameters = call.parameters
    listed = f"{call.resource.container}/{parameters.get('prefix', '')}"
    authorize(call.grant, LIST, listed)
    most = read_most(parameters, BLOBS_OF_LIST_MAX)
    include = read_include(call.request, known(_BLOB_WORDS, BLOB_INCLUDES, call.version))
    for word, requirement in _REQUIREMENTS.items():
        if word in include:
            authorize(call.grant, requirement, listed)
    delimiter = parameters.get("delimiter", "")
    if delimiter and "snapshots" in include:
        raise invalid_parameter("delimiter", delimiter, "Snapshots cannot be listed with a delimiter.")
    container = await call.container()
    request = ListRequest(
        space=container.space,
        version=call.version,
        most=most,
        prefix=parameters.get("prefix", ""),
        delimiter=delimiter,
        include=include,
        shows_tags=permits(call.grant, LIST_TAGS, listed),
        start=parameters.get("startfrom", ""),
        end=parameters.get("endbefore") or None,
        marker=read_marker(parameters.get("marker", "")),
        deadline=call.deadline,
    )
    about = BlobPage(base=call.address.base, container=container.name, sent=_sent(call, most), version=call.version)
    page = await read_page(call.context, request, RowWriter(about))
    call.record.rows_scanned, call.record.rows_returned = page.scanned, page.entries
    marker = "" if page.next is None else write_marker(page.next)
    return Response(200, [XML_TYPE], write_page(about, page.rows, marker))


async def list_containers(call: Call) -> Response:
    """Return a page of the account's containers, in the order of their names."""
    parameters = call.parameters
    most = read_most(parameters, CONTAINERS_MAX)
    include = read_include(call.request, known(_CONTAINER_WORDS, CONTAINER_INCLUDES, call.version))
    start = read_name_marker(parameters, call.account, check_container_name, "OutOfRangeInput")
    rows: list[ListedContainer] = []
    following = ""
    time_slice = TimeSlice(call.context.limits.slice_seconds, call.context.monotonic)
    async with aclosing(_containers(call, start, parameters.get("prefix", ""), include)) as containers:
        async for container in containers:
            if container.name.startswith("$") and container.name != WEB and "system" not in include:
                continue
            if len(rows) == most or await time_slice.checkpoint() > call.deadline:
                following = f"/{call.account}/{container.name}"
                break
            rows.append(_listed_container(container, call.context.present(), with_metadata="metadata" in include))
    call.record.rows_scanned = call.record.rows_returned = len(rows)
    steps = write_containers(call.address.base, call.version, _sent(call, most), rows, marker=following)
    return Response(200, [XML_TYPE], b"".join(await call.in_slices(steps)))


async def _containers(
    call: Call, start: str, prefix: str, include: AbstractSet[str]
) -> AsyncGenerator[Container, None]:
    """Yield the containers of an account, in the order of their names; the deleted ones only if they are included."""
    catalog, deleted = call.context.catalog, list[Container]()
    if "deleted" in include:
        async with aclosing(catalog.deleted(call.account, prefix)) as found:
            deleted = [each async for each in found if each.name >= start]
    at = 0
    async with aclosing(catalog.list(call.account, start, prefix)) as containers:
        async for container in containers:
            while at < len(deleted) and deleted[at].name < container.name:
                yield deleted[at]
                at += 1
            yield container
    for each in deleted[at:]:
        yield each


def _listed_container(container: Container, now: int, *, with_metadata: bool) -> ListedContainer:
    lease = {"status": "LeaseStatus", "state": "LeaseState", "duration": "LeaseDuration"}
    properties = {"Last-Modified": format_http_date(container.modified), "Etag": f'"{container.etag}"'}
    properties.update((lease[name], text) for name, text in lease_facts(container.lease, now))
    if container.deleted:
        days = max((container.expires - now) // TICKS_PER_DAY, 0)
        properties |= {"LeaseState": "expired", "DeletedTime": format_http_date(container.deleted)}
        properties["RemainingRetentionDays"] = str(days)
    if container.public_access:
        properties["PublicAccess"] = container.public_access
    metadata = container.metadata if with_metadata else ()
    return ListedContainer(container.name, properties, container.version if container.deleted else "", metadata)


def _sent(call: Call, most: int) -> list[tuple[str, str]]:
    """Return elements for the parameters of a request, given how many entries a page has."""
    sent = echoed(call.parameters, _ECHOED, most)
    return sent if call.version >= EMPTY_PREFIX_SINCE else [pair for pair in sent if pair != ("Prefix", "")]
