"""How a shape fails beyond what a single write does."""

from lazulite_patterns.errors import PatternsError
from lazulite_patterns.outcomes.errors import Conflict


class Inconsistent(PatternsError):  # noqa: N818 - it is what was found
    """The rows of one entity do not fit together, and no writer is at work: another program changed or removed some."""


class Referred(Conflict):
    """An entity is not deleted: another one refers to it."""


class PeriodExpired(PatternsError):  # noqa: N818 - it is what was found
    """A period is over for so long that its table was dropped, or is about to be. Nothing was written."""
