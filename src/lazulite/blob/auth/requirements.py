"""The permissions that the operations on blobs demand, and the roles that give them.

`WRITE_TAGS` is demanded beside the permission of a write, if the write has `x-ms-tags`.

Source: "Create a service SAS", "Create an account SAS", "Permissions for blob service operations" and "Authorize with
Microsoft Entra ID" of the REST reference; "Azure built-in roles for Storage".
"""

from collections.abc import Mapping
from dataclasses import replace

from lazulite.auth.bearer.rules import BearerConventions, Role
from lazulite.auth.delegation.key import DELEGATE
from lazulite.auth.grant import Grant, Requirement, either, permits
from lazulite.blob.versions import BEARER_SINCE, CHALLENGE_SINCE, NEW_BLOCKS_SINCE

BLOB, CONTAINER = "blob", "container"
"""The levels of public access."""
LEVELS: Mapping[str, frozenset[str]] = {BLOB: frozenset({BLOB}), CONTAINER: frozenset({BLOB, CONTAINER})}
"""The level of a container -> what it includes."""
_ANY = tuple("rwdxylacuptfi")
_CREATE = either("blobs/write", "blobs/add")

ACCOUNT_INFORMATION = Requirement("", ("",), ("",), either(""))
"""Any SAS will do (§44); *unverified*: any bearer token, too."""
LIST_CONTAINERS = Requirement("s", ("l",), actions=either("containers/read"))
FIND_IN_ACCOUNT = Requirement("o", ("f",), actions=either("blobs/filter"))
BATCH = Requirement("", _ANY, actions=either("containers/write"))

CREATE_CONTAINER = Requirement("c", ("c", "w"), actions=either("containers/write"))
READ_CONTAINER = Requirement("c", ("r",), actions=either("containers/read"), public=CONTAINER)
WRITE_CONTAINER = Requirement("c", ("w",), actions=either("containers/write"))
DELETE_CONTAINER = Requirement("c", ("d",), actions=either("containers/delete"))
BREAK_CONTAINER_LEASE = Requirement("c", ("d", "w"), actions=either("containers/write"))
LIST = Requirement("c", ("l",), ("l",), either("blobs/read"), public=CONTAINER)
LIST_UNPUBLISHED = replace(LIST, public="")
"""The requirement of lists with uncommitted or deleted blobs. *Unverified* for the latter: without credentials, no
request sees them."""
LIST_TAGS = Requirement("c", ("t",), ("t",), either("tags/read"))
"""Beside `LIST`. Source: azure-sdk-for-rust#1318, azure-sdk-for-python#35718."""
FIND = Requirement("o", ("f",), ("f",), either("blobs/filter"))
CONTAINER_BATCH = Requirement("", _ANY, _ANY, either("containers/write"))
OWNER = Requirement("c", shared_key_only=True)

READ = Requirement("o", ("r",), ("r",), either("blobs/read"), public=BLOB)
READ_UNCOMMITTED = replace(READ, public="")
WRITE = Requirement("o", ("w",), ("w",), either("blobs/write"))
CREATE_OR_WRITE = Requirement("o", ("c", "w"), ("c", "w"), _CREATE)
"""The requirement of an operation that creates a blob; where there is one, `may_overwrite` is demanded, too."""
ADD_OR_WRITE = Requirement("o", ("a", "w"), ("a", "w"), _CREATE)
DELETE = Requirement("o", ("d",), ("d",), either("blobs/delete"))
DELETE_OR_WRITE = Requirement("o", ("d", "w"), ("d", "w"), either("blobs/write"))
DELETE_VERSION = Requirement("o", ("x",), ("x",), either("versions/delete"))
PERMANENT_DELETE = Requirement("o", ("y",), ("y",), either("blobs/purge"))
UNDELETE = Requirement("o", ("w",), ("w",), either("containers/write"))
READ_TAGS = Requirement("o", ("t",), ("t",), either("tags/read"))
WRITE_TAGS = Requirement("o", ("t",), ("t",), either("tags/write"))

_BREAK = "break"


def block_list_requirement(parameters: Mapping[str, str]) -> Requirement:
    """Return what Get Block List demands: only the committed blocks of a public blob are public."""
    return READ if parameters.get("blocklisttype", "committed").lower() == "committed" else READ_UNCOMMITTED


def delete_requirement(parameters: Mapping[str, str]) -> Requirement:
    """Return what Delete Blob demands: a version and permanent deletion have permissions of their own."""
    if is_permanent(parameters):
        return PERMANENT_DELETE
    return DELETE_VERSION if parameters.get("versionid") else DELETE


def is_permanent(parameters: Mapping[str, str]) -> bool:
    """Tell whether Delete Blob is to remove forever what was deleted and kept."""
    return parameters.get("deletetype", "").lower() == "permanent"


def lease_requirement(headers: Mapping[str, str]) -> Requirement:
    """Return what Lease Blob demands."""
    return DELETE_OR_WRITE if _is_break(headers) else WRITE


def container_lease_requirement(headers: Mapping[str, str]) -> Requirement:
    """Return what Lease Container demands."""
    return BREAK_CONTAINER_LEASE if _is_break(headers) else WRITE_CONTAINER


def _is_break(headers: Mapping[str, str]) -> bool:
    return headers.get("x-ms-lease-action", "").lower() == _BREAK


def block_requirement(version: str) -> Requirement:
    """Return what Put Block and Put Block List demand in a version."""
    return CREATE_OR_WRITE if version >= NEW_BLOCKS_SINCE else WRITE


def may_overwrite(grant: Grant, resource: str) -> bool:
    """Tell whether credentials that may create a blob may replace it, too. Otherwise: `UnauthorizedBlobOverwrite`."""
    return permits(grant, WRITE, resource)


_READER = frozenset({"containers/read", "blobs/read", DELEGATE})
_CONTRIBUTOR = _READER | {"containers/write", "containers/delete", "blobs/write", "blobs/add", "blobs/delete"}
_OWNER = _CONTRIBUTOR | {"blobs/filter", "tags/read", "tags/write", "versions/delete", "blobs/purge"}

BLOB_ROLES = (
    Role("blob-reader", "Storage Blob Data Reader", "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1", _READER),
    Role("blob-contributor", "Storage Blob Data Contributor", "ba92f5b4-2d11-453d-a403-e96b0029c9fe", _CONTRIBUTOR),
    Role("blob-owner", "Storage Blob Data Owner", "b7e6dc6d-f1e8-4753-8033-0f276bb0955b", _OWNER),
    Role("blob-delegator", "Storage Blob Delegator", "db58b8e5-c6ad-4a2a-8342-4190687cbf4a", frozenset({DELEGATE})),
)
BLOB_BEARER = BearerConventions(
    roles=BLOB_ROLES,
    since=BEARER_SINCE,
    challenge_since=CHALLENGE_SINCE,
    rejection="NoAuthenticationInformation",
    unchallenged_rejection="InvalidAuthenticationInfo",
    audience="https://{account}.blob.core.windows.net",
)
