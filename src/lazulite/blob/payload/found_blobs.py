"""Pages of Find Blobs by Tags, in XML. Source: REST reference; the order of the elements is recorded."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lazulite.blob.model.tags import Tags
from lazulite.blob.payload.tags import tags_element
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute

_ROWS_OF_A_STEP = 100


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
