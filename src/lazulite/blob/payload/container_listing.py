"""Pages of List Containers, in XML. Source: REST reference, List Containers; the order of the elements is recorded."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lazulite.blob.versions import (
    IMMUTABILITY_SINCE,
    LIST_WITHOUT_URL_SINCE,
    SCOPE_SINCE,
    VERSION_IMMUTABILITY_SINCE,
)
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute

_FACTS = ("Last-Modified", "Etag", "LeaseStatus", "LeaseState", "LeaseDuration", "PublicAccess")
_CONSTANTS = (
    (SCOPE_SINCE, "DefaultEncryptionScope", "$account-encryption-key"),
    (SCOPE_SINCE, "DenyEncryptionScopeOverride", "false"),
    (IMMUTABILITY_SINCE, "HasImmutabilityPolicy", "false"),
    (IMMUTABILITY_SINCE, "HasLegalHold", "false"),
    (VERSION_IMMUTABILITY_SINCE, "ImmutableStorageWithVersioningEnabled", "false"),
)
"""Properties that all containers have: the first version, the name, the value."""
_DELETION = ("DeletedTime", "RemainingRetentionDays")
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
    name, url = ("ServiceEndpoint", "") if version >= LIST_WITHOUT_URL_SINCE else ("AccountName", base)
    parameters = "".join(xml.leaf(name, text) for name, text in sent)
    constants = "".join(xml.leaf(name, text) for since, name, text in _CONSTANTS if version >= since)
    written = []
    for number, row in enumerate(rows):
        written.append(_container(row, url, constants))
        if number % _ROWS_OF_A_STEP == 0:
            yield
    listed = xml.element("Containers", *written)
    root = f'<EnumerationResults {name}="{attribute(base)}">{parameters}{listed}{xml.leaf("NextMarker", marker)}'
    return [xml.document(f"{root}</EnumerationResults>")]


def _container(row: ListedContainer, url: str, constants: str) -> str:
    identity = [xml.leaf("Name", row.name)]
    if url:
        identity.append(xml.leaf("Url", url + row.name))
    if row.deleted_version:
        identity += [xml.leaf("Deleted", "true"), xml.leaf("Version", row.deleted_version)]
    properties = xml.element("Properties", _leaves(row, _FACTS), constants, _leaves(row, _DELETION))
    pairs = (xml.leaf(name, text) for name, text in row.metadata)
    metadata = [xml.element("Metadata", *pairs)] if row.metadata else []
    return xml.element("Container", *identity, properties, *metadata)


def _leaves(row: ListedContainer, names: Sequence[str]) -> str:
    return "".join(xml.leaf(name, row.properties[name]) for name in names if name in row.properties)
