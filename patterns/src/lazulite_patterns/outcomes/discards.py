"""The deletion of blobs that are needed no more."""

from lazulite_patterns.effects.blobs import BlobDelete
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.outcomes.errors import Unavailable
from lazulite_patterns.outcomes.retries import Policy, begin

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
    unsure = False
    while True:
        try:
            yield from attempts.perform(BlobDelete(container, name, etag))
        except ResultUnknown as unknown:
            unsure = True
            if not (yield from attempts.wait(unknown)):
                raise Unavailable(str(unknown)) from unknown
        except Rejected as rejected:
            if rejected.status == _NOT_FOUND:
                return unsure
            if rejected.status == _CHANGED and etag is not None:
                return False
            raise
        else:
            return True
