"""Lists of containers and blobs, read from the service page by page.

Invariant: nothing but one page is held, and the history of one blob has at most `HISTORY_MAX` rows.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET

from lazulite.blob.resource import STORED_NAME, is_addressable
from lazulite.ui.backend import ServiceClient

SHOWN = 100
"""Rows of a page."""
READ_AT_ONCE = 1000
"""Rows of a request of a job."""
HISTORY_MAX = 5000
"""The snapshots and versions of one blob that are shown."""
CONTAINER = {"restype": "container"}
WITH_DELETED = "deleted,deletedwithversions"
_EVERYTHING = "snapshots,versions,deleted,deletedwithversions,metadata,tags"


class Address(NamedTuple):
    """A blob in a request: the path below the account, percent-encoded, and parameters that belong to it."""

    path: str
    parameters: Mapping[str, str]


def address_of(container: str, name: str, snapshot: str = "", version: str = "") -> Address:
    """Return how a request addresses a blob, one of its snapshots or of its versions."""
    selected = {"snapshot": snapshot, "versionid": version}
    if is_addressable(container, name):
        return Address(quote(f"{container}/{name}", safe="/$"), selected)
    return Address(quote(container, safe="$"), {**selected, STORED_NAME: name})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRow:
    """A blob, a snapshot or a version in a list."""

    name: str
    snapshot: str = ""
    version: str = ""
    is_current: bool = False
    """Whether it is the current one of several versions."""
    is_deleted: bool = False
    has_versions_only: bool = False
    """Whether nothing is left but versions that can be promoted."""
    properties: Mapping[str, str]
    """As the service names them; none is empty."""
    metadata: Mapping[str, str]
    tags: Mapping[str, str]

    @property
    def is_blob(self) -> bool:
        """Whether it is the blob itself, neither old nor deleted."""
        is_old = bool(self.snapshot) or (bool(self.version) and not self.is_current)
        return not (is_old or self.is_deleted or self.has_versions_only)

    @property
    def length(self) -> int:
        """The bytes of its content."""
        return int(self.properties.get("Content-Length", "0"))

    @property
    def media_type(self) -> str:
        """The type that its owner states."""
        return self.properties.get("Content-Type", "")

    @property
    def kind(self) -> str:
        """`Block`, `Append` or `Page`."""
        return self.properties.get("BlobType", "").removesuffix("Blob")

    @property
    def etag(self) -> str:
        """The ETag with its quotes."""
        found = self.properties.get("Etag", "")
        return found if found.startswith('"') or not found else f'"{found}"'

    @property
    def modified(self) -> str:
        """When it was written last."""
        return time_of(self.properties.get("Last-Modified", ""))

    @property
    def created(self) -> str:
        """When it was created."""
        return time_of(self.properties.get("Creation-Time", ""))

    @property
    def tier(self) -> str:
        """Its access tier."""
        return self.properties.get("AccessTier", "")


class BlobPage(NamedTuple):
    """A page of a list of blobs."""

    blobs: Sequence[BlobRow]
    prefixes: Sequence[str]
    """The beginnings of further names, up to the delimiter."""
    next: str
    """The marker of the next page; "" at the end."""


class ContainerRow(NamedTuple):
    """A container in a list."""

    name: str
    modified: str
    etag: str
    public_access: str
    """`container`, `blob`, or "" for none."""
    lease: str
    """`available`, `leased`, `breaking`, `broken` or `expired`."""
    metadata: Mapping[str, str]
    version: str = ""
    """The version of a deleted container, which distinguishes it from others of its name."""
    deleted: str = ""
    """When it was deleted; "" if it is not."""
    days_left: str = ""
    """How long a deleted container is kept."""


class ContainerPage(NamedTuple):
    """A page of a list of containers."""

    containers: Sequence[ContainerRow]
    next: str


async def list_containers(
    client: ServiceClient, prefix: str = "", marker: str = "", results_max: int = SHOWN, *, with_deleted: bool = False
) -> ContainerPage:
    """Return a page of the containers of an account, those of the service included. Raises `BackendError`."""
    include = "metadata,system,deleted" if with_deleted else "metadata,system"
    given = {"comp": "list", "include": include, "maxresults": str(results_max)}
    root = (await client.send("GET", "", {**given, "prefix": prefix, "marker": marker})).xml()
    return ContainerPage(
        [_container(each) for each in root.iterfind("Containers/Container")], root.findtext("NextMarker") or ""
    )


async def find_container(client: ServiceClient, name: str) -> ContainerRow | None:
    """Return a container; None if there is none. Raises `BackendError`."""
    page = await list_containers(client, name, results_max=1)
    return next((each for each in page.containers if each.name == name), None)


async def list_blobs(
    client: ServiceClient,
    container: str,
    prefix: str = "",
    marker: str = "",
    *,
    delimiter: str = "",
    include: str = "",
    results_max: int = SHOWN,
) -> BlobPage:
    """Return a page of the blobs of a container, in the order of their names.

    Args:
        client: of the Blob service.
        container: whose blobs are listed.
        prefix: with which their names begin.
        marker: of the page; "" for the first one.
        delimiter: up to which names are joined; "": they are not.
        include: what else is listed.
        results_max: the rows of the page.

    Raises:
        BackendError: the service rejects the request.
    """
    given = {"prefix": prefix, "marker": marker, "delimiter": delimiter, "include": include}
    parameters = {**CONTAINER, "comp": "list", "maxresults": str(results_max), **given}
    root = (await client.send("GET", quote(container, safe="$"), parameters)).xml()
    prefixes = [_name(each) for each in root.iterfind("Blobs/BlobPrefix")]
    return BlobPage([_blob(each) for each in root.iterfind("Blobs/Blob")], prefixes, root.findtext("NextMarker") or "")


async def all_blobs(client: ServiceClient, container: str, prefix: str) -> AsyncIterator[Sequence[BlobRow]]:
    """Yield the blobs below a prefix, a page at a time. Raises `BackendError`."""
    marker = ""
    while True:
        page = await list_blobs(client, container, prefix, marker, results_max=READ_AT_ONCE)
        yield page.blobs
        marker = page.next
        if not marker:
            return


class History(NamedTuple):
    """A blob with all that is kept of it."""

    rows: Sequence[BlobRow]
    """The blob, its snapshots and versions, deleted or not, the newest last."""
    is_cut: bool
    """Whether more is kept than `HISTORY_MAX` rows."""

    @property
    def blob(self) -> BlobRow | None:
        """The blob itself; None if it is deleted."""
        return next((each for each in self.rows if each.is_blob), None)

    @property
    def snapshots(self) -> Sequence[BlobRow]:
        """The snapshots, the newest first."""
        return [each for each in reversed(self.rows) if each.snapshot and not each.is_deleted]

    @property
    def versions(self) -> Sequence[BlobRow]:
        """The versions, the newest first, without the current one."""
        return [each for each in reversed(self.rows) if each.version and not each.is_current and not each.is_deleted]

    @property
    def deleted(self) -> Sequence[BlobRow]:
        """What an undeletion brings back."""
        return [each for each in reversed(self.rows) if each.is_deleted]

    def find(self, snapshot: str, version: str) -> BlobRow | None:
        """Return a snapshot or a version; the blob if none is named; None if there is no such one."""
        if not (snapshot or version):
            return self.blob
        return next((each for each in self.rows if (each.snapshot, each.version) == (snapshot, version)), None)


async def history_of(client: ServiceClient, container: str, name: str) -> History:
    """Return a blob with all that is kept of it. Raises `BackendError`."""
    rows: list[BlobRow] = []
    marker = ""
    while len(rows) < HISTORY_MAX:
        page = await list_blobs(client, container, name, marker, include=_EVERYTHING, results_max=READ_AT_ONCE)
        rows += [each for each in page.blobs if each.name == name]
        marker = page.next
        if not marker or page.blobs[-1].name != name:
            return History(rows, is_cut=False)
    return History(rows, is_cut=True)


def time_of(text: str) -> str:
    """Return a date of HTTP in a form that sorts; "" for none."""
    return parsedate_to_datetime(text).strftime("%Y-%m-%d %H:%M:%S") if text else ""


def _container(item: ET.Element) -> ContainerRow:
    properties = {each.tag: each.text or "" for each in item.iterfind("Properties/*")}
    return ContainerRow(
        name=item.findtext("Name") or "",
        modified=time_of(properties.get("Last-Modified", "")),
        etag=properties.get("Etag", ""),
        public_access=properties.get("PublicAccess", ""),
        lease=properties.get("LeaseState", ""),
        metadata={each.tag: each.text or "" for each in item.iterfind("Metadata/*")},
        version=item.findtext("Version") or "",
        deleted=time_of(properties.get("DeletedTime", "")),
        days_left=properties.get("RemainingRetentionDays", ""),
    )


def _blob(item: ET.Element) -> BlobRow:
    return BlobRow(
        name=_name(item),
        snapshot=item.findtext("Snapshot") or "",
        version=item.findtext("VersionId") or "",
        is_current=item.findtext("IsCurrentVersion") == "true",
        is_deleted=item.findtext("Deleted") == "true",
        has_versions_only=item.findtext("HasVersionsOnly") == "true",
        properties={each.tag: each.text for each in item.iterfind("Properties/*") if each.text},
        metadata={each.tag: each.text or "" for each in item.iterfind("Metadata/*")},
        tags={each.findtext("Key", ""): each.findtext("Value", "") for each in item.iterfind("Tags/TagSet/Tag")},
    )


def _name(item: ET.Element) -> str:
    element = item.find("Name")
    text = "" if element is None else element.text or ""
    return unquote(text) if element is not None and element.get("Encoded") == "true" else text
