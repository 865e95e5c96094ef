"""What a test does around each effect on a service."""

from typing import Protocol

from lazulite_patterns.effects.effect import Effect


class Crash(BaseException):
    """The process ends here. A driver raises it out of `run`, and the protocol sees nothing of it."""


class Failpoints(Protocol):
    """Called around each effect on a service. Both raise to fail: `Crash`, `Rejected` or `ResultUnknown`."""

    def before(self, effect: Effect[object]) -> None:
        """Do something before the effect; if this raises, the effect does not happen."""

    def after(self, effect: Effect[object]) -> None:
        """Do something after the effect happened; if this raises, its answer is lost."""


class NoFailpoints:
    """Nothing fails."""

    def before(self, effect: Effect[object]) -> None:
        """Do nothing."""

    def after(self, effect: Effect[object]) -> None:
        """Do nothing."""
