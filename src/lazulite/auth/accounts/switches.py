"""The switches of an account's Blob service. In Azure they are settings of the account, not service properties."""

from collections.abc import Mapping
from typing import NamedTuple, Self

RETENTION_DAYS_MAX = 365
REHYDRATE_SECONDS_MAX = 30 * 24 * 3600


class Switches(NamedTuple):
    """The switches of an account. The defaults are Azure's for a new account."""

    versioning: bool = False
    """Whether a write keeps the previous state of a blob as a version."""
    container_retention_days: int = 0
    """How long a deleted container can be restored, in days up to 365; 0: not at all."""
    public_access: bool = False
    """Whether containers can be public. Without it, public containers are private."""
    rehydrate_after: int = 0
    """How long an archived blob takes to be in another tier, in seconds up to 30 days; 0: it is at once."""

    @classmethod
    def read(cls, stored: Mapping[str, object]) -> Self:
        """Return the switches that `write` stored. Names of a newer Lazulite are ignored.

        Raises:
            ValueError: a value is not one.
        """
        versioning, days, public_access, seconds = ({**cls._field_defaults, **stored}[name] for name in cls._fields)
        if not (isinstance(versioning, bool) and isinstance(public_access, bool)):
            raise ValueError("a switch is neither on nor off")
        if type(days) is not int or not 0 <= days <= RETENTION_DAYS_MAX:
            raise ValueError("the days are no number in their range")
        if type(seconds) is not int or not 0 <= seconds <= REHYDRATE_SECONDS_MAX:
            raise ValueError("the seconds are no number in their range")
        return cls(versioning, days, public_access, seconds)

    def write(self) -> Mapping[str, bool | int]:
        """Return what is stored: the switches that differ from the defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}


DEFAULTS = Switches()
EMULATORS = Switches(public_access=True)
"""The switches of an account with the public development key, as the emulator has them."""
