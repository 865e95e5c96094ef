"""The roles of the Blob service: Azure's built-in ones, and the actions that each permits.

Source: "Azure built-in roles for Storage", and "Authorize with Microsoft Entra ID" of the REST reference.
"""

from lazulite.auth.bearer.rules import BearerConventions, Role
from lazulite.auth.delegation.key import DELEGATE
from lazulite.blob.auth.versions import BEARER_SINCE, CHALLENGE_SINCE

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
