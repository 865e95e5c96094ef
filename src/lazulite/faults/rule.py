"""A rule: which requests it is for, how often it hits, and what happens to a request that it hits."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from lazulite.control.command import Json
from lazulite.faults.patterns import Pattern
from lazulite.protocol.fault import DELIVERY, Effect, Fault, Moment

LISTS = frozenset(
    (
        *("QueryEntities", "QueryTables", "ListQueues", "ListContainers", "ListBlobs"),
        *("FindBlobsByTags", "FindBlobsByTagsInContainer"),
    )
)
"""The operations that return pages."""
OPERATIONS: Mapping[Effect, frozenset[str]] = {
    Effect.PAGE: LISTS,
    Effect.DUPLICATE: frozenset({"GetMessages"}),
    Effect.STALE: frozenset({"QueryEntity", "QueryEntities"}),
}
"""The only operations that an effect is for."""

_CREATED: Mapping[str, str] = {"InsertEntity": "EntityAlreadyExists"}
"""The errors of creations that came too late. A table, queue or container that another client created would be there.
"""
_CHANGED: Mapping[str, str] = {"table": "UpdateConditionNotSatisfied", "blob": "ConditionNotMet"}
"""The errors of conditional writes that came too late, by service."""
_HASHES = 2**64


class Subject(NamedTuple):
    """What rules know of a request whose credentials are good."""

    service: str
    """`table`, `queue` or `blob`."""
    operation: str
    account: str
    resource: str
    """The table, queue or container, in lower case; "" for the account itself."""
    key: str
    """PartitionKey and RowKey with a slash between them, the id of a message, or the name of a blob; "" for none."""
    headers: Mapping[str, str]
    """Names in lower case."""
    secondary: bool = False
    """Whether it came to the secondary endpoint."""
    changes: bool = False
    """Whether the operation may change something."""
    is_part: bool = False
    """Whether it is a part of a batch."""

    @property
    def overtaken_code(self) -> str:
        """The error that it gets if another writer was faster; "" if no writer can be."""
        if self.operation in _CREATED:
            return _CREATED[self.operation]
        if not self.changes:
            return ""
        if self.headers.get("if-match", "*") != "*":
            return _CHANGED.get(self.service, "")
        is_creation = self.service == "blob" and self.headers.get("if-none-match") == "*"
        return "BlobAlreadyExists" if is_creation else ""


class Condition(NamedTuple):
    """The requests that a rule is for. What is None or empty admits every request."""

    services: tuple[str, ...] = ()
    operations: tuple[Pattern, ...] = ()
    account: Pattern | None = None
    resource: Pattern | None = None
    key: Pattern | None = None
    headers: tuple[tuple[str, Pattern], ...] = ()
    """Names in lower case. A header that a request lacks is of no pattern."""
    secondary: bool | None = None
    changes: bool | None = None
    from_seconds: float = 0
    """The window of time, in seconds since the rule was added."""
    until_seconds: float | None = None

    def is_open(self, seconds: float) -> bool:
        """Return whether the window is open so many seconds after the rule was added."""
        return self.from_seconds <= seconds and (self.until_seconds is None or seconds < self.until_seconds)

    def admits(self, subject: Subject) -> bool:
        """Return whether the rule is for a request, if the window is open."""
        return (
            (not self.services or subject.service in self.services)
            and (not self.operations or any(each.matches(subject.operation) for each in self.operations))
            and (self.account is None or self.account.matches(subject.account))
            and (self.resource is None or self.resource.matches(subject.resource))
            and (self.key is None or self.key.matches(subject.key))
            and (self.secondary is None or self.secondary is subject.secondary)
            and (self.changes is None or self.changes is subject.changes)
            and all(name in subject.headers and value.matches(subject.headers[name]) for name, value in self.headers)
        )


class Rule(NamedTuple):
    """One rule."""

    name: str
    condition: Condition
    effect: Effect
    value: float | str
    """See `Fault.value`."""
    moment: Moment = Moment.BEFORE
    probability: float = 1
    every: int = 1
    """It hits each request of this number among those that it is for."""
    first: int | None = None
    """It hits none behind so many of those that it is for."""
    seed: int = 0
    shown: bool = False
    given: Mapping[str, Json] = {}
    """The rule as it was written."""

    def is_for(self, subject: Subject) -> bool:
        """Return whether the rule counts a request."""
        only = OPERATIONS.get(self.effect)
        return (
            self.effect is not Effect.CLOCK
            and (only is None or subject.operation in only)
            and not (subject.is_part and self.effect in DELIVERY)
            and (self.effect is not Effect.STALE or subject.secondary)
            and (self.effect is not Effect.OVERTAKEN or subject.overtaken_code != "")
            and self.condition.admits(subject)
        )

    def hits(self, subject: Subject, seen: int, seen_of_resource: int) -> bool:
        """Return whether the rule hits a request.

        Args:
            subject: one that the rule is for.
            seen: how many such requests there were, with this one.
            seen_of_resource: how many of them had its operation and resource.
        """
        if seen % self.every or (self.first is not None and seen > self.first):
            return False
        facts = self.seed, self.name, seen_of_resource, *resource_of(subject)
        return self.probability >= 1 or hashed(facts) < self.probability * _HASHES

    def fault(self, subject: Subject) -> Fault:
        """Return what happens to a request that the rule hits."""
        value = subject.overtaken_code if self.effect is Effect.OVERTAKEN else self.value
        return Fault(self.name, self.effect, value, self.moment, self.shown)


def resource_of(subject: Subject) -> tuple[str, ...]:
    """Return what a rule tells requests apart by, when it counts them."""
    return subject.service, subject.operation, subject.account, subject.resource, subject.key


def hashed(facts: tuple[object, ...]) -> int:
    """Return a number from 0 to 2⁶⁴ that depends on these facts alone."""
    return int.from_bytes(blake2b(repr(facts).encode(), digest_size=8).digest())
