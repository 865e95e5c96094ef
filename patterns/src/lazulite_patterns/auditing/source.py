"""What the auditor reads from end to end: tables, and other places that have something like rows."""

import typing
from dataclasses import dataclass

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import Continuation, EntityKey, Found, Page, Read, Stored
from lazulite_patterns.outcomes.retries import Policy, begin, read


class Source(typing.Protocol):
    """A place of rows, such as the blobs of a container that are lists."""

    @property
    def name(self) -> str:
        """The name of the place in findings. No table has it."""

    def page(self, continuation: Continuation | None, policy: Policy) -> Protocol[Found]:
        """Read one page of rows.

        Args:
            continuation: where the page begins; None for the first one.
            policy: of each request.
        """

    def row(self, key: EntityKey, policy: Policy) -> Protocol[Stored | None]:
        """Read a row again; None if it is absent."""


@dataclass(frozen=True)
class Rows:
    """The rows of a table."""

    name: str

    def page(self, continuation: Continuation | None, policy: Policy) -> Protocol[Found]:
        """Read one page of rows."""
        return (yield from read(Page(self.name, continuation=continuation), (yield from begin(policy))))

    def row(self, key: EntityKey, policy: Policy) -> Protocol[Stored | None]:
        """Read a row again; None if it is absent."""
        return (yield from read(Read(self.name, key), (yield from begin(policy))))


def name_of(place: str | Source) -> str:
    """Return the name of a table, or of another place."""
    return place if isinstance(place, str) else place.name


def source_of(place: str | Source) -> Source:
    """Return the source of a table's name; another place as it is."""
    return Rows(place) if isinstance(place, str) else place
