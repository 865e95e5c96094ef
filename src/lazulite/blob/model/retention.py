"""The past of blobs that an account keeps after an overwrite or a deletion: versions, and soft-deleted blobs."""

from typing import NamedTuple

from lazulite.protocol.clock import TICKS_PER_DAY


class Retention(NamedTuple):
    """What is kept."""

    versioning: bool = False
    """Whether each state of a blob becomes a version."""
    days: int = 0
    """How long deleted blobs are kept; 0: not at all."""
    allows_permanent_delete: bool = False
    """Whether a deleted snapshot or version may be deleted for ever before its days are over."""

    def expiry(self, now: int) -> int:
        """Return when what is deleted now goes for ever, in ticks."""
        return now + self.days * TICKS_PER_DAY
