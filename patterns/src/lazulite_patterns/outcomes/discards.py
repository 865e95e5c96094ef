"""The deletion of blobs that are needed no more."""

from lazulite_patterns.effects.blobs import BlobDelete
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.outcomes.errors import Unavailable
from lazulite_patterns.outcomes.retries import Policy, at_least_once, begin

_NOT_FOUND, _CHANGED = 404, 412


def discard(container: str, name: str, policy: Policy, etag: str | None = None) -> Protocol[bool]:
    """Delete a blob; False if it was absent, or has not the ETag.

    Args:
        container: the name by which the driver knows the container.
        name: of the blob.
        policy: of the request, which is repeated until there is an answer.
        etag: that the blob must have; None for any.

    Raises:
        Rejected: the service does not allow it.
        Unavailable: there was no answer before the deadline.
    """
    attempts = yield from begin(policy)
    try:
        yield from at_least_once(BlobDelete(container, name, etag), attempts, Unavailable)
    except Rejected as rejected:
        if rejected.status == _NOT_FOUND:
            return attempts.repeated
        if rejected.status == _CHANGED and etag is not None:
            return False
        raise
    return True
