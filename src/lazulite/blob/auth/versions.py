"""The versions at which credentials of blobs changed, oldest first: rows of the table in `protocol/version.py`.

Source: REST reference, "Versioning for Azure Storage" and the pages of each SAS.

Each constant is the first version with the behaviour in its text. The behaviour of older versions follows "Before:".
"""

SHARED_KEY_SINCE = "2009-09-19"
"""Shared Key of blobs signs all query parameters and more headers. Before: it signs what Shared Key Lite does."""
VERSION_SIGNED_SINCE = "2012-02-12"
"""A SAS of blobs has `sv`. Before: it has none, and is valid for an hour at most if it has no stored access policy."""
OVERRIDES_SINCE = "2013-08-15"
"""A SAS of blobs signs fields of the response (`rscc`, `rscd`, `rsce`, `rscl`, `rsct`). Before: they are ignored."""
BEARER_SINCE = "2017-11-09"
"""Bearer tokens on blobs. Before: 400 `InvalidAuthenticationInfo`."""
RESOURCE_SIGNED_SINCE = "2018-11-09"
"""A SAS of blobs signs `sr`, and can be for one snapshot (`bs`). Before: 403 `AuthenticationFailed` for a snapshot."""
DELEGATION_SINCE = "2018-11-09"
"""User delegation keys and user delegation SAS for blobs. Before: 400 `InvalidQueryParameterValue`, and 403
`AuthenticationFailed`."""
CHALLENGE_SINCE = "2019-12-12"
"""A rejected bearer token for blobs, and a request without credentials, get 401 with a challenge. Before: 400
`InvalidAuthenticationInfo`, and 404 `ResourceNotFound`."""
VERSION_SAS_SINCE = "2019-12-12"
"""A SAS can be for one version of a blob (`bv`). Before: 403 `AuthenticationFailed`."""
OBJECT_IDS_SIGNED_SINCE = "2020-02-10"
"""A user delegation SAS of blobs signs `saoid`, `suoid` and `scid`. Before: they are ignored."""
USER_SIGNED_SINCE = "2025-07-05"
"""A user delegation SAS of blobs can be bound to a user (`sduoid`, `skdutid`). Before: 403 `AuthenticationFailed`."""
CROSS_TENANT_SINCE = "2026-04-06"
"""`DelegatedUserTid` in the request for a user delegation key of blobs. Before: 400 `UnsupportedXmlNode`."""
REQUEST_SIGNED_SINCE = "2026-04-06"
"""A user delegation SAS of blobs can sign fields of the request (`srh`, `srq`). Before: 403 `AuthenticationFailed`."""
DIRECTORY_SAS_SINCE = "2026-06-06"
"""A SAS of blobs can be for the blobs below one prefix (`d`). Before: 403 `AuthenticationFailed`."""
NEW_BLOCKS_SINCE = "2026-06-06"
"""The permission to create a blob permits Put Block and Put Block List. Before: only the permission to write does."""
