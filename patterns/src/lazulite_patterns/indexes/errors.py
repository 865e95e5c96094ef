"""Why a unique index rejects a value."""

from lazulite_patterns.outcomes.errors import Conflict


class NotUnique(Conflict):
    """Another entity has the value of a unique index. The entity was not written."""


class Busy(Conflict):
    """Another writer has just claimed the value of a unique index, and did not commit yet. The entity was not written.

    If that writer crashed, the value can be taken when its claim is older than `GRACE_SECONDS`.
    """
