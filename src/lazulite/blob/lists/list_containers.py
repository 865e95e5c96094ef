"""List Containers. Source: reference §33.1; REST reference, List Containers. The order of the elements is recorded."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass

from lazulite.blob.limits import CONTAINERS_MAX
from lazulite.blob.lists.page import echoed_elements
from lazulite.blob.model.lease import lease_facts
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.paging import read_include, read_most
from lazulite.blob.resource import WEB, check_container_name
from lazulite.blob.storage.catalog import Container
from lazulite.blob.versions import CONTAINER_ELEMENTS, CONTAINER_INCLUDES, LIST_WITHOUT_URL_SINCE, has_ended, known
from lazulite.protocol.clock import TICKS_PER_DAY, format_http_date
from lazulite.protocol.message import Response
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute
from lazulite.service.fault_injection import page_entries
from lazulite.service.parameters import read_name_marker
from lazulite.service.responses import XML_TYPE
from lazulite.service.time_slice import TimeSlice

_FACTS = ("Last-Modified", "Etag", "LeaseStatus", "LeaseState", "LeaseDuration", "PublicAccess")
_CONSTANTS = {
    "DefaultEncryptionScope": "$account-encryption-key",
    "DenyEncryptionScopeOverride": "false",
    "HasImmutabilityPolicy": "false",
    "HasLegalHold": "false",
    "ImmutableStorageWithVersioningEnabled": "false",
}
"""Properties that all containers have, with their values."""
_DELETION = ("DeletedTime", "RemainingRetentionDays")
_IDENTITY = ("Deleted", "Version")
_ROWS_OF_A_STEP = 50
_LEASE = {"status": "LeaseStatus", "state": "LeaseState", "duration": "LeaseDuration"}
_WORDS = frozenset(("metadata", "deleted", "system"))


@dataclass(slots=True)
class ListedContainer:
    """One container of a page."""

    name: str
    properties: Mapping[str, str]
    """`Last-Modified`, `Etag` in quotes, `LeaseStatus`, `LeaseState`, `LeaseDuration`, `PublicAccess`, `DeletedTime`,
    `RemainingRetentionDays`, as far as there are such."""
    deleted_version: str = ""
    """The name of this deleted container among those of its name; "" if it is not deleted."""
    metadata: Sequence[tuple[str, str]] = ()
    """The pairs to be shown."""


async def list_containers(call: Call) -> Response:
    """Return a page of the account's containers, in the order of their names."""
    parameters = call.parameters
    most = read_most(parameters, CONTAINERS_MAX)
    include = read_include(call.request, known(_WORDS, CONTAINER_INCLUDES, call.version))
    start = read_name_marker(parameters, call.account, check_container_name, "OutOfRangeInput")
    rows: list[ListedContainer] = []
    following = ""
    time_slice = TimeSlice(call.context.limits.slice_seconds, call.context.monotonic)
    async with aclosing(_containers(call, start, parameters.get("prefix", ""), include)) as containers:
        async for container in containers:
            if container.name.startswith("$") and container.name != WEB and "system" not in include:
                continue
            if len(rows) == page_entries(call, most) or await time_slice.checkpoint() > call.deadline:
                following = f"/{call.account}/{container.name}"
                break
            rows.append(_listed_container(container, call.context.present(), with_metadata="metadata" in include))
    call.record.rows_scanned = call.record.rows_returned = len(rows)
    steps = write_containers(call.address.base, call.version, echoed_elements(call, most), rows, marker=following)
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
    properties = {"Last-Modified": format_http_date(container.modified), "Etag": f'"{container.etag}"'}
    properties.update((_LEASE[name], text) for name, text in lease_facts(container.lease, now))
    if container.deleted:
        days = max((container.expires - now) // TICKS_PER_DAY, 0)
        properties |= {"LeaseState": "expired", "DeletedTime": format_http_date(container.deleted)}
        properties["RemainingRetentionDays"] = str(days)
    if container.public_access:
        properties["PublicAccess"] = container.public_access
    metadata = container.metadata if with_metadata else ()
    return ListedContainer(container.name, properties, container.version if container.deleted else "", metadata)


def write_containers(
    base: str, version: str, sent: Sequence[tuple[str, str]], rows: Iterable[ListedContainer], *, marker: str
) -> Steps[list[bytes]]:
    """Return a page in steps, in parts.

    Args:
        base: the URL of the account, with its slash at the end.
        version: of the request.
        sent: elements for the parameters of the request: `Prefix`, `Marker`, `MaxResults`.
        rows: in their order.
        marker: of the next page; "" if this is the last one.
    """
    name = "ServiceEndpoint" if version >= LIST_WITHOUT_URL_SINCE else "AccountName"
    parameters = "".join(xml.leaf(name, text) for name, text in sent)
    writer = _ContainerWriter(base, version)
    written = []
    for number, row in enumerate(rows):
        written.append(writer.container(row))
        if number % _ROWS_OF_A_STEP == 0:
            yield
    listed = xml.element("Containers", *written)
    root = f'<EnumerationResults {name}="{attribute(base)}">{parameters}{listed}{xml.leaf("NextMarker", marker)}'
    return [xml.document(f"{root}</EnumerationResults>")]


class _ContainerWriter:
    """Writes the containers of a page, with the elements that its version knows."""

    def __init__(self, base: str, version: str) -> None:
        self._url = "" if has_ended("Url", version) else base
        self._identity = known(_IDENTITY, CONTAINER_ELEMENTS, version)
        self._facts = known(_FACTS, CONTAINER_ELEMENTS, version)
        constants = known(_CONSTANTS, CONTAINER_ELEMENTS, version)
        self._constants = "".join(xml.leaf(name, _CONSTANTS[name]) for name in constants)
        self._deletion = known(_DELETION, CONTAINER_ELEMENTS, version)

    def container(self, row: ListedContainer) -> str:
        """Return the markup of a container."""
        identity = [xml.leaf("Name", row.name)]
        if self._url:
            identity.append(xml.leaf("Url", self._url + row.name))
        if row.deleted_version:
            texts = {"Deleted": "true", "Version": row.deleted_version}
            identity += [xml.leaf(name, texts[name]) for name in self._identity]
        facts, deletion = _leaves(row, self._facts), _leaves(row, self._deletion)
        properties = xml.element("Properties", facts, self._constants, deletion)
        pairs = (xml.leaf(name, text) for name, text in row.metadata)
        metadata = [xml.element("Metadata", *pairs)] if row.metadata else []
        return xml.element("Container", *identity, properties, *metadata)


def _leaves(row: ListedContainer, names: Sequence[str]) -> str:
    return "".join(xml.leaf(name, row.properties[name]) for name in names if name in row.properties)
