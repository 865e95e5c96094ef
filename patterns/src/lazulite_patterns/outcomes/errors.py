"""How a write ends that was not done, or of which that is not known."""

from lazulite_patterns.errors import PatternsError


class Conflict(PatternsError):  # noqa: N818 - it is an outcome
    """The entity is not as the write expected. Nothing was written.

    Attributes:
        index: the operation of a transaction; None if it is not known, or for a single write.
    """

    def __init__(self, message: str = "", index: int | None = None) -> None:
        """Take what is known."""
        super().__init__(message)
        self.index = index


class Exists(Conflict):
    """An insert met an entity with the same keys."""


class Absent(Conflict):
    """There is no such entity."""


class Restart(PatternsError):  # noqa: N818 - it is an outcome
    """The answer to an insert was lost, and the row is absent: it was not inserted, or it was deleted again.

    A protocol that did steps before the insert begins again with its first step, with the same `Identity`: a program
    that deleted the row removed what these steps wrote. No caller of a table sees this.
    """


class OutcomeUnknown(PatternsError):  # noqa: N818 - it is an outcome
    """The write may have been done or not, and the entity does not tell. A program must look by itself."""


class Unavailable(PatternsError):  # noqa: N818 - it is an outcome
    """The service did not answer a read before the deadline."""
