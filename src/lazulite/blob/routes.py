"""The operations of the Blob service as a table, read like the reference's own."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

from lazulite.blob.auth import requirements as may
from lazulite.blob.auth.sas import LIST_COMPONENT
from lazulite.blob.batch.parts import BODY_BYTES_MAX
from lazulite.blob.batch.run_batch import run_batch
from lazulite.blob.blobs.delete_blob import delete_blob, undelete_blob
from lazulite.blob.blobs.properties import set_metadata, set_properties
from lazulite.blob.blobs.put_blob import TYPE, put_blob, put_blob_now
from lazulite.blob.blobs.read_blob import get_blob, get_metadata, get_properties
from lazulite.blob.blobs.snapshots import snapshot_blob
from lazulite.blob.blobs.tiers import set_tier
from lazulite.blob.blocks import block_list_xml
from lazulite.blob.blocks.append_blob import append_block, seal_blob
from lazulite.blob.blocks.put_block import get_block_list, put_block, put_block_now
from lazulite.blob.blocks.put_block_list import put_block_list
from lazulite.blob.containers.account import BLOB_PARTS, create_website, get_account_information, reject_unbuilt
from lazulite.blob.containers.containers import (
    create_container,
    delete_container,
    get_acl,
    get_container,
    restore_container,
    set_acl,
)
from lazulite.blob.containers.containers import get_metadata as get_container_metadata
from lazulite.blob.containers.containers import set_metadata as set_container_metadata
from lazulite.blob.containers.leases import lease_blob, lease_container
from lazulite.blob.content.sources import SOURCE
from lazulite.blob.content.structured_body import framing_bytes
from lazulite.blob.copies.copy_blob import abort_copy, copy_blob, put_blob_from_url
from lazulite.blob.limits import (
    APPEND_BLOCK_BYTES_MAX,
    PUT_BLOB_BYTES_MAX,
    PUT_BLOCK_BYTES_MAX,
    PUT_PAGE_BYTES_MAX,
)
from lazulite.blob.lists.list_blobs import list_blobs
from lazulite.blob.lists.list_containers import list_containers
from lazulite.blob.pages.get_page_ranges import get_page_ranges
from lazulite.blob.pages.put_page import ACTION, LENGTH, put_page, set_page_properties
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.operation import (
    READ_VARIES,
    WRITE_VARIES,
    Begin,
    BlobOperation,
    Operate,
    OperationForm,
    ReadPreconditions,
)
from lazulite.blob.requests.preconditions import PRECONDITIONS, LeaseUse, reader_of
from lazulite.blob.resource import Kind
from lazulite.blob.tags.blob_tags import get_tags, set_tags
from lazulite.blob.tags.find_blobs import find_blobs
from lazulite.blob.versions import (
    BATCH_SINCE,
    CONTAINER_BATCH_SINCE,
    CONTAINER_FIND_SINCE,
    CROSS_TENANT_SINCE,
    DELEGATION_SINCE,
    INFORMATION_SINCE,
    RESTORE_SINCE,
    SEAL_SINCE,
    TAGS_SINCE,
    TIERS_SINCE,
    UNDELETE_SINCE,
)
from lazulite.protocol.errors import ServiceError
from lazulite.service.account_operations import AccountOperations
from lazulite.service.responses import XML_TYPE
from lazulite.service.routing import (
    PAGE,
    XML_BODY,
    Route,
    Routes,
    component_of,
    unknown_component,
)
from lazulite.service.user_delegation import UserDelegation

_SERVICE, _CONTAINER, _BLOB = Kind

_ACCOUNT = AccountOperations(
    service="Blob",
    logging_versions=("1.0", "2.0"),
    own_parts=BLOB_PARTS,
    read_headers=(XML_TYPE,),
    before_update=create_website,
)

_UNBUILT = (
    (_BLOB, "POST", "query", "QueryBlobContents"),
    (_BLOB, "PUT", "expiry", "SetBlobExpiry"),
    (_BLOB, "PUT", "immutabilitypolicies", "SetBlobImmutabilityPolicy"),
    (_BLOB, "DELETE", "immutabilitypolicies", "DeleteBlobImmutabilityPolicy"),
    (_BLOB, "PUT", "legalhold", "SetBlobLegalHold"),
    (_BLOB, "PUT", "incrementalcopy", "IncrementalCopyBlob"),
    (_CONTAINER, "PUT", "container/rename", "RenameContainer"),
)
"""The operations of Azure that are rejected with 501."""

_TABLE: tuple[Route[Call], ...] = (
    *_ACCOUNT.routes(_SERVICE),
    *(
        Route(
            kind,
            method,
            "account/properties",
            "GetAccountInformation",
            get_account_information,
            requires=may.ACCOUNT_INFORMATION,
            since=INFORMATION_SINCE,
        )
        for kind in Kind
        for method in ("GET", "HEAD")
    ),
    *(Route(*address, reject_unbuilt, requires=may.WRITE) for address in _UNBUILT),
    UserDelegation("b", DELEGATION_SINCE, CROSS_TENANT_SINCE).route(_SERVICE),
    Route(
        _SERVICE,
        "GET",
        "blobs",
        "FindBlobsByTags",
        find_blobs,
        requires=may.FIND_IN_ACCOUNT,
        since=TAGS_SINCE,
        deadline=PAGE,
    ),
    Route(
        _CONTAINER,
        "GET",
        "container/blobs",
        "FindBlobsByTagsInContainer",
        find_blobs,
        requires=may.FIND,
        since=CONTAINER_FIND_SINCE,
        deadline=PAGE,
    ),
    Route(_SERVICE, "GET", "list", "ListContainers", list_containers, requires=may.LIST_CONTAINERS, deadline=PAGE),
    Route(_CONTAINER, "GET", LIST_COMPONENT, "ListBlobs", list_blobs, requires=None, deadline=PAGE),
    Route(
        _CONTAINER,
        "PUT",
        "container/undelete",
        "RestoreContainer",
        restore_container,
        requires=may.WRITE_CONTAINER,
        since=RESTORE_SINCE,
    ),
    Route(_CONTAINER, "PUT", "container/", "CreateContainer", create_container, requires=may.CREATE_CONTAINER),
    Route(_CONTAINER, "GET", "container/", "GetContainerProperties", get_container, requires=may.READ_CONTAINER),
    Route(_CONTAINER, "HEAD", "container/", "GetContainerProperties", get_container, requires=may.READ_CONTAINER),
    Route(_CONTAINER, "DELETE", "container/", "DeleteContainer", delete_container, requires=may.DELETE_CONTAINER),
    Route(
        _CONTAINER,
        "GET",
        "container/metadata",
        "GetContainerMetadata",
        get_container_metadata,
        requires=may.READ_CONTAINER,
    ),
    Route(
        _CONTAINER,
        "HEAD",
        "container/metadata",
        "GetContainerMetadata",
        get_container_metadata,
        requires=may.READ_CONTAINER,
    ),
    Route(
        _CONTAINER,
        "PUT",
        "container/metadata",
        "SetContainerMetadata",
        set_container_metadata,
        requires=may.WRITE_CONTAINER,
    ),
    Route(_CONTAINER, "GET", "container/acl", "GetContainerACL", get_acl, requires=may.OWNER),
    Route(_CONTAINER, "HEAD", "container/acl", "GetContainerACL", get_acl, requires=may.OWNER),
    Route(_CONTAINER, "PUT", "container/acl", "SetContainerACL", set_acl, requires=may.OWNER, body=XML_BODY),
    *(
        # The JavaScript SDK takes the account of an address in path style for a container.
        Route(
            _SERVICE,
            "POST",
            component,
            "BlobBatch",
            run_batch,
            requires=may.BATCH,
            since=BATCH_SINCE,
            body=BODY_BYTES_MAX,
        )
        for component in ("batch", "container/batch")
    ),
    Route(
        _CONTAINER,
        "POST",
        "container/batch",
        "BlobBatch",
        run_batch,
        requires=may.CONTAINER_BATCH,
        since=CONTAINER_BATCH_SINCE,
        body=BODY_BYTES_MAX,
    ),
    Route(
        _CONTAINER,
        "PUT",
        "container/lease",
        "LeaseContainer",
        lease_container,
        requires=None,
        requires_of=lambda call: may.container_lease_requirement(call.request.headers),
    ),
    Route(
        _BLOB,
        "PUT",
        "",
        "PutBlob",
        put_blob,
        requires=may.CREATE_OR_WRITE,
        body=PUT_BLOB_BYTES_MAX,
        framing=framing_bytes,
        streams=True,
        varies=WRITE_VARIES,
    ),
    Route(_BLOB, "GET", "", "GetBlob", get_blob, requires=may.READ, varies=READ_VARIES),
    Route(_BLOB, "HEAD", "", "GetBlobProperties", get_properties, requires=may.READ, varies=READ_VARIES),
    Route(
        _BLOB,
        "DELETE",
        "",
        "DeleteBlob",
        delete_blob,
        requires=None,
        requires_of=lambda call: may.delete_requirement(call.parameters),
    ),
    Route(_BLOB, "GET", "metadata", "GetBlobMetadata", get_metadata, requires=may.READ),
    Route(_BLOB, "HEAD", "metadata", "GetBlobMetadata", get_metadata, requires=may.READ),
    Route(_BLOB, "PUT", "metadata", "SetBlobMetadata", set_metadata, requires=may.WRITE),
    Route(_BLOB, "PUT", "", "CopyBlob", copy_blob, requires=may.CREATE_OR_WRITE, headers=frozenset({SOURCE})),
    Route(
        _BLOB,
        "PUT",
        "",
        "PutBlobFromURL",
        put_blob_from_url,
        requires=may.CREATE_OR_WRITE,
        headers=frozenset({SOURCE, TYPE}),
    ),
    Route(_BLOB, "PUT", "copy", "AbortCopyBlob", abort_copy, requires=may.WRITE),
    Route(
        _BLOB, "PUT", "page", "PutPage", put_page, requires=may.WRITE, body=PUT_PAGE_BYTES_MAX, framing=framing_bytes
    ),
    Route(_BLOB, "GET", "pagelist", "GetPageRanges", get_page_ranges, requires=may.READ),
    *(
        Route(
            _BLOB,
            "PUT",
            "properties",
            "SetBlobProperties",
            set_page_properties,
            requires=may.WRITE,
            headers=frozenset({name}),
        )
        for name in (LENGTH, ACTION)
    ),
    Route(_BLOB, "PUT", "properties", "SetBlobProperties", set_properties, requires=may.WRITE),
    Route(_BLOB, "GET", "tags", "GetBlobTags", get_tags, requires=may.READ_TAGS, since=TAGS_SINCE),
    Route(_BLOB, "PUT", "tags", "SetBlobTags", set_tags, requires=may.WRITE_TAGS, body=XML_BODY, since=TAGS_SINCE),
    Route(_BLOB, "PUT", "snapshot", "SnapshotBlob", snapshot_blob, requires=may.CREATE_OR_WRITE),
    Route(_BLOB, "PUT", "undelete", "UndeleteBlob", undelete_blob, requires=may.UNDELETE, since=UNDELETE_SINCE),
    Route(_BLOB, "PUT", "tier", "SetBlobTier", set_tier, requires=may.WRITE, since=TIERS_SINCE),
    Route(
        _BLOB,
        "PUT",
        "block",
        "PutBlock",
        put_block,
        requires=None,
        requires_of=lambda call: may.block_requirement(call.version),
        body=PUT_BLOCK_BYTES_MAX,
        framing=framing_bytes,
        streams=True,
        varies=WRITE_VARIES,
        varies_parameter="blockid",
    ),
    Route(
        _BLOB,
        "PUT",
        "blocklist",
        "PutBlockList",
        put_block_list,
        requires=None,
        requires_of=lambda call: may.block_requirement(call.version),
        body=block_list_xml.BODY_BYTES_MAX,
        framing=framing_bytes,
        varies=WRITE_VARIES,
    ),
    Route(
        _BLOB,
        "GET",
        "blocklist",
        "GetBlockList",
        get_block_list,
        requires=None,
        requires_of=lambda call: may.block_list_requirement(call.parameters),
    ),
    Route(
        _BLOB,
        "PUT",
        "appendblock",
        "AppendBlock",
        append_block,
        requires=may.ADD_OR_WRITE,
        body=APPEND_BLOCK_BYTES_MAX,
        framing=framing_bytes,
        streams=True,
    ),
    Route(_BLOB, "PUT", "seal", "SealAppendBlob", seal_blob, requires=may.WRITE, since=SEAL_SINCE),
    Route(
        _BLOB,
        "PUT",
        "lease",
        "LeaseBlob",
        lease_blob,
        requires=None,
        requires_of=lambda call: may.lease_requirement(call.request.headers),
    ),
)

_SELECTING = frozenset({"tags", "tier"})
"""The components of writes that can be for a snapshot or a version."""


def _is_of_current(route: Route[Call]) -> bool:
    """Tell whether an operation is a write that changes only current blobs."""
    return (
        route.kind is _BLOB
        and route.method == "PUT"
        and route.component not in _SELECTING
        and route.operate is not reject_unbuilt
    )


def _require_current(call: Call, read: ReadPreconditions | None) -> None:
    """Reject a request for a snapshot or a version. Raises `InvalidQueryParameterValue`, or before that as `read`."""
    for name in ("snapshot", "versionid"):
        if call.parameters.get(name):
            if read is not None:
                read(call)
            raise ServiceError("InvalidQueryParameterValue", details=[("QueryParameterName", name)])


_FROM_URL = frozenset({"AppendBlock", "PutBlock", "PutPage"})
"""The writes of which a body or the bytes at a URL are a part."""


def _forms(route: Route[Call]) -> Iterator[Route[Call]]:
    """Yield a route, and that of the same write from a URL."""
    yield route
    if route.operation in _FROM_URL:
        name = f"{route.operation}FromURL"
        yield replace(route, operation=name, headers=frozenset({SOURCE}), varies=None, varies_parameter="")


_COMPARING = frozenset(
    {
        *("PutBlob", "PutBlobFromURL", "PutBlock", "PutBlockFromURL", "PutBlockList", "AppendBlock"),
        *("AppendBlockFromURL", "PutPage", "PutPageFromURL", "CopyBlob", "SetBlobTags"),
    }
)
"""The operations that read their rows of the table of checksums (§36.5)."""


def _with_checksums(route: Route[Call]) -> Route[Call]:
    """Let the kernel leave the checksums of a request to an operation that compares them."""
    return replace(route, compares_checksums=route.operation in _COMPARING)


def _reader_of(name: str) -> ReadPreconditions | None:
    """Return what reads the preconditions that an operation knows; None: it knows none.

    Raises:
        KeyError: the operation is not in the table of preconditions.
    """
    row = PRECONDITIONS[name]
    if not row.headers and row.lease is LeaseUse.IGNORED:
        return None
    read = reader_of(row)
    return lambda call: read(call.request.headers, call.version)


_BEGUN: Mapping[str, Begin] = {"PutBlob": put_blob_now, "PutBlock": put_block_now}
"""The writes that templates answer."""


def _prepared(route: Route[Call]) -> Route[Call]:
    """Let a route prepare its operation."""
    read, of_current = _reader_of(route.operation), _is_of_current(route)
    operate, begin = cast("Operate", route.operate), _BEGUN.get(route.operation)
    form = OperationForm(route.operation, operate, read, route.varies_parameter, begin)

    def prepare(call: Call) -> BlobOperation:
        if of_current:
            _require_current(call, read)
        return BlobOperation(call, form)

    return replace(route, operate=prepare)


class _Routes(Routes[Call]):
    """The routes; an account has no address of its own, only its parts have (§33)."""

    def rejection(self, call: Call, component: str) -> ServiceError:
        """See `Routes.rejection`."""
        error = super().rejection(call, component)
        return unknown_component() if error.code == "InvalidUri" and call.resource.kind is _SERVICE else error


def _whole(route: Route[Call]) -> Route[Call]:
    return _prepared(_with_checksums(route))


ROUTES: Routes[Call] = _Routes(*(_whole(form) for route in _TABLE for form in _forms(route)))


def component(call: Call) -> str:
    """Return the component that a call addresses."""
    return component_of(call.parameters)
