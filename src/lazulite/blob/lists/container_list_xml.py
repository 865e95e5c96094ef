"""Pages of List Containers, in XML. Source: REST reference, List Containers; the order of the elements is recorded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lazulite.blob.versions import CONTAINER_ELEMENTS, LIST_WITHOUT_URL_SINCE, has_ended, known
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute

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
