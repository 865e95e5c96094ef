"""Find Blobs by Tags, in an account and in a container. Source: reference §43.1."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from lazulite.blob.limits import BLOBS_OF_LIST_MAX
from lazulite.blob.model.tag_expression import TagQuery, read_where
from lazulite.blob.model.tags import Tags, tags_element
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.paging import LAST_TIME, Marker, echoed, read_include, read_marker, read_most, write_marker
from lazulite.blob.resource import Kind
from lazulite.blob.storage.catalog import Container
from lazulite.blob.tags.tag_search import FoundBlob, SearchPosition, search
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute
from lazulite.service.fault_injection import page_entries
from lazulite.service.responses import XML_TYPE
from lazulite.service.time_slice import TimeSlice

_WORDS = frozenset(("none", "versions"))
_ECHOED = (("Where", "where"), ("Marker", "marker"), ("MaxResults", "maxresults"))
_ROWS_OF_A_STEP = 100


async def find_blobs(call: Call) -> Response:
    """Return a page of the blobs whose tags fit an expression."""
    parameters = call.parameters
    in_account = call.resource.kind is Kind.SERVICE
    where = parameters.get("where")
    if not where:
        raise ServiceError("MissingRequiredQueryParameter", details=[("QueryParameterName", "where")])
    query = read_where(where, in_account=in_account)
    most = read_most(parameters, BLOBS_OF_LIST_MAX)
    with_versions = "versions" in read_include(call.request, _WORDS)
    marker = read_marker(parameters.get("marker", "")) or Marker("")
    rows: list[Found] = []
    following = ""
    scanned = 0
    time_slice = TimeSlice(call.context.limits.slice_seconds, call.context.monotonic)
    async with aclosing(_candidates(call, query, marker, with_versions=with_versions)) as candidates:
        async for container, found in candidates:
            scanned += 1
            is_late = await time_slice.checkpoint() > call.deadline and scanned > 1
            if is_late or (len(rows) == page_entries(call, most) and found.tags is not None):
                following = write_marker(Marker(f"{container}/{found.at.row}", found.at.time))
                break
            if found.tags is not None:
                named = {name: value for name, value in found.tags.items() if name in query.names}
                version = found.version if with_versions else ""
                rows.append(Found(found.name, container, named, version, is_current=found.at.time == LAST_TIME))
    call.record.rows_scanned, call.record.rows_returned = scanned, len(rows)
    sent = echoed(parameters, _ECHOED, most)
    steps = write_found(call.address.base, sent, rows, following)
    return Response(200, [XML_TYPE], b"".join(await call.in_slices(steps)))


async def _candidates(
    call: Call, query: TagQuery, start: Marker, *, with_versions: bool
) -> AsyncGenerator[tuple[str, FoundBlob], None]:
    """Yield the places of the search, with the names of their containers, from a marker on."""
    first, _, row = start.name.partition("/")
    async for container in _containers(call, query, first):
        at = SearchPosition(row, start.time) if container.name == first else SearchPosition()
        found_blobs = search(call.context, container.space, query, at, with_versions=with_versions)
        async with aclosing(found_blobs) as found:
            async for each in found:
                yield container.name, each


async def _containers(call: Call, query: TagQuery, first: str) -> AsyncGenerator[Container, None]:
    """Yield the containers that are searched, in the order of their names."""
    if call.resource.kind is not Kind.SERVICE:
        yield await call.container()
        return
    if not query.comparisons:
        return
    catalog = call.context.catalog
    if query.container is not None:
        container = await catalog.get(call.account, query.container)
        if container is not None:
            yield container
        return
    async with aclosing(catalog.list(call.account, first)) as containers:
        async for container in containers:
            yield container


class Found(NamedTuple):
    """One blob that was found."""

    name: str
    container: str
    tags: Tags
    """Those that the expression names."""
    version: str = ""
    """The id of its version; "": it is not shown."""
    is_current: bool = True
    """Whether it is no past version."""


def write_found(base: str, sent: Sequence[tuple[str, str]], rows: Iterable[Found], marker: str) -> Steps[list[bytes]]:
    """Return a page in steps, in parts.

    Args:
        base: the URL of the account, with its slash at the end.
        sent: elements for the parameters of the request: `Where`, `Marker`, `MaxResults`.
        rows: in their order.
        marker: of the next page; "" if this is the last one.
    """
    written = []
    for number, row in enumerate(rows):
        names = xml.leaf("Name", row.name), xml.leaf("ContainerName", row.container)
        version = [xml.leaf("VersionId", row.version)] if row.version else []
        if row.version and row.is_current:
            version.append(xml.leaf("IsCurrentVersion", "true"))
        written.append(xml.element("Blob", *names, tags_element(row.tags), *version))
        if number % _ROWS_OF_A_STEP == 0:
            yield
    parameters = "".join(xml.leaf(name, text) for name, text in sent)
    blobs = xml.element("Blobs", *written)
    root = (
        f'<EnumerationResults ServiceEndpoint="{attribute(base)}">{parameters}{blobs}{xml.leaf("NextMarker", marker)}'
    )
    return [xml.document(f"{root}</EnumerationResults>")]
