"""The names that Storage Analytics has for operations, and their classes. Source: reference §18.1.

Most operations of Lazulite have these names already; the tables here have the others.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

OperationClass: TypeAlias = Literal["read", "write", "delete"]

UNKNOWN: Final = "Unknown"
"""The operation of a request that failed before its operation was known."""
COPY_BLOB: Final = "CopyBlob"

_RENAMED: Final = {
    "GetTableAcl": "GetTableACL",
    "SetTableAcl": "SetTableACL",
    "GetQueueAcl": "GetQueueACL",
    "SetQueueAcl": "SetQueueACL",
    "AppendBlockFromURL": "AppendBlockThroughCopy",
    "SealAppendBlob": "SealBlob",
    "FindBlobsByTagsInContainer": "FindBlobsByTags",
    "SetBlobImmutabilityPolicy": "SetContainerServiceMetadata",
    "DeleteBlobImmutabilityPolicy": "SetContainerServiceMetadata",
    "SetBlobLegalHold": "SetContainerServiceMetadata",
}
_LEASES: Final = {"LeaseBlob": "BlobLease", "LeaseContainer": "ContainerLease"}
_ACTIONS: Final = frozenset({"acquire", "renew", "release", "change", "break"})
_ONE_MESSAGE: Final = {"GetMessages": "GetMessage", "PeekMessages": "PeekMessage"}
_READS: Final = ("Get", "List", "Query", "Peek", "Find")


def operation_name(operation: str, headers: Mapping[str, str], query: str) -> str:
    """Return the name that analytics has for an operation.

    Args:
        operation: the name that Lazulite has; "" if it was not known.
        headers: of the request, lower-case names.
        query: of the request.
    """
    if operation in _RENAMED:
        return _RENAMED[operation]
    if operation in _LEASES:
        action = headers.get("x-ms-lease-action", "").lower()
        return f"{action.title() if action in _ACTIONS else 'Acquire'}{_LEASES[operation]}"
    if operation in _ONE_MESSAGE:
        return operation if _asks_for_several(query) else _ONE_MESSAGE[operation]
    if operation == "PutPage" and headers.get("x-ms-page-write", "").lower() == "clear":
        return "ClearPage"
    if operation == COPY_BLOB and headers.get("x-ms-requires-sync", "").lower() == "true":
        return "CopyBlobFromURL"
    return operation or UNKNOWN


def _asks_for_several(query: str) -> bool:
    """Tell whether a request asks for more than one message."""
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() == "numofmessages":
            return value != "1"
    return False


def class_of(name: str, rows_returned: int) -> OperationClass:
    """Return the class of an operation, by which logging is switched.

    Get Messages that returned messages has hidden them, so it is a write.

    Args:
        name: as analytics has it.
        rows_returned: by the request.
    """
    if name in ("GetMessage", "GetMessages"):
        return "write" if rows_returned else "read"
    if name.startswith(_READS) or name.endswith("PreflightRequest"):
        return "read"
    return "delete" if name.startswith("Delete") or name == "ClearMessages" else "write"
