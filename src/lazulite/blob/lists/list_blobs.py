"""List Blobs. Source: reference §35."""

from lazulite.auth.grant import authorize, permits
from lazulite.blob.auth.requirements import LIST, LIST_TAGS, LIST_UNPUBLISHED
from lazulite.blob.limits import BLOBS_OF_LIST_MAX
from lazulite.blob.lists.blob_list_xml import BlobPage, RowWriter, write_page
from lazulite.blob.lists.listing import read_page
from lazulite.blob.lists.page import ListRequest, echoed_elements
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.paging import invalid_parameter, read_include, read_marker, read_most, write_marker
from lazulite.blob.versions import BLOB_INCLUDES, known
from lazulite.protocol.message import Response
from lazulite.service.fault_injection import page_entries
from lazulite.service.responses import XML_TYPE

_WORDS = frozenset(
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
"""The requirements of the words of `include` that need more than `LIST`."""


async def list_blobs(call: Call) -> Response:
    """Return a page of the blobs of a container, in the order of their names.

    A token for a directory reaches the names that begin with the prefix.
    """
    parameters = call.parameters
    listed = f"{call.resource.container}/{parameters.get('prefix', '')}"
    authorize(call.grant, LIST, listed)
    most = read_most(parameters, BLOBS_OF_LIST_MAX)
    include = read_include(call.request, known(_WORDS, BLOB_INCLUDES, call.version))
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
        most=page_entries(call, most),
        prefix=parameters.get("prefix", ""),
        delimiter=delimiter,
        include=include,
        shows_tags=permits(call.grant, LIST_TAGS, listed),
        start=parameters.get("startfrom", ""),
        end=parameters.get("endbefore") or None,
        marker=read_marker(parameters.get("marker", "")),
        deadline=call.deadline,
    )
    about = BlobPage(
        base=call.address.base, container=container.name, sent=echoed_elements(call, most), version=call.version
    )
    page = await read_page(call.context, request, RowWriter(about))
    call.record.rows_scanned, call.record.rows_returned = page.scanned, page.entries
    marker = "" if page.next is None else write_marker(page.next)
    return Response(200, [XML_TYPE], write_page(about, page.rows, marker))
