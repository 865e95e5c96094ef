"""The gate: decides for each request whether it passes, waits, or is refused as the cloud refuses it.

A request is charged to its partition, the virtual server of its range, and its account. Each has a token bucket that
fills at its cap. What a request costs is counted in entities, at least one; the rows that a page scanned are known
afterwards, and are charged then, as a debt.

Invariants:
- a refused request is charged nothing;
- the memory for buckets is bounded: a bucket that has not been used for a burst is full, so it can be dropped;
- the same requests at the same times get the same decisions: what is left to chance comes from a hash of the seed, the
  partition, and how often the partition refused.

Source: the texts of the service, compared by clients from their first character to their last.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from zlib import crc32

from lazulite.partitions.targets import Rate, Targets
from lazulite.protocol.errors import ServiceError

OPERATIONS_OVER = "Operations per second is over the account limit."
INGRESS_OVER = "Ingress is over the account limit."
EGRESS_OVER = "Egress is over the account limit."
BUCKETS_MAX = 20_000
"""The partitions whose rate is known at a time. A generation of these is dropped when another one is full."""


class Limit(Enum):
    """What refused or delayed a request, as it stands in logs and metrics."""

    PARTITION = "partition"
    SERVER = "server"
    ACCOUNT = "account"
    INGRESS = "ingress"
    EGRESS = "egress"
    MOVE = "move"


class Decision(NamedTuple):
    """What happens to a request."""

    limit: Limit | None = None
    """What refuses or delays it; None: it passes at once."""
    delay_seconds: float = 0
    """How long it waits before it passes."""
    error: ServiceError | None = None
    """The refusal; None: it passes."""
    is_made: bool = False
    """Whether a refused write is made all the same: a time-out."""


PASS = Decision()
"""A request passes at once."""


class Subject(NamedTuple):
    """What a request is charged to."""

    account: str
    partition: tuple[str, ...]
    """Its account, service, resource and, in tables, PartitionKey."""
    rate: Rate
    """The rate of such a partition."""
    server: int | None = None
    """The virtual server of its range; None: it has no range."""
    is_moving: bool = False
    """Whether its range moves."""


@dataclass(slots=True)
class Bucket:
    """A token bucket."""

    cap: float
    """Tokens per second."""
    size: float
    """The most tokens."""
    tokens: float
    at: float
    """When `tokens` was right, in seconds."""
    busy_until: float = 0
    """When its partition has served the requests before."""
    refusals: int = 0
    """How often its partition refused a request."""

    def level(self, now: float) -> float:
        """Return the tokens, fewer than none after a debt."""
        if now > self.at:
            self.tokens = min(self.size, self.tokens + (now - self.at) * self.cap)
            self.at = now
        return self.tokens

    def has(self, cost: float, now: float) -> bool:
        """Return whether a cost can be paid; one that is above the size of the bucket needs a full bucket."""
        return self.level(now) >= min(cost, self.size)


class Buckets:
    """Buckets by key, the recently used ones: in two generations, of which the old one is dropped."""

    def __init__(self, burst_seconds: float, buckets_max: int = BUCKETS_MAX) -> None:
        self._burst_seconds = burst_seconds
        self._generation_max = max(1, buckets_max // 2)
        self._young: dict[object, Bucket] = {}
        self._old: dict[object, Bucket] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: object, cap: float, now: float) -> Bucket:
        """Return the bucket of a key; a new one is full."""
        bucket = self._young.get(key)
        if bucket is None:
            bucket = self._old.pop(key, None)
            if bucket is None:
                size = cap * self._burst_seconds
                bucket = Bucket(cap, size, size, now)
            if len(self._young) >= self._generation_max:
                self._old, self._young = self._young, {}
            self._young[key] = bucket
        return bucket


@dataclass(slots=True)
class Gate:
    """Decides for the requests of one process.

    Args:
        targets: the caps.
        seed: of what is left to chance.
    """

    targets: Targets
    seed: int = 0
    _buckets: Buckets = field(init=False)

    def __post_init__(self) -> None:
        """Begin with full buckets."""
        self._buckets = Buckets(self.targets.burst_seconds)

    def decide(self, subject: Subject, cost: float, now: float, size: int = 0) -> Decision:
        """Decide about a request whose body was received, and charge it if it passes.

        Args:
            subject: what it is charged to.
            cost: the entities that it reads or writes, at least 1; those that it scans are charged by `owe`.
            now: the time in seconds.
            size: the bytes of its body.
        """
        targets, account = self.targets, subject.account
        partition = self._buckets.get(subject.partition, subject.rate.cap, now)
        if subject.is_moving:
            return self._refuse(subject, partition, Limit.MOVE)
        buckets = [
            (Limit.ACCOUNT, self._buckets.get(account, targets.account.cap, now), cost),
            (Limit.INGRESS, self._buckets.get((account, "in"), targets.ingress_bytes.cap, now), size),
            (Limit.EGRESS, self._buckets.get((account, "out"), targets.egress_bytes.cap, now), 0),
            (Limit.PARTITION, partition, cost),
        ]
        if subject.server is not None:
            buckets.append((Limit.SERVER, self._buckets.get(subject.server, targets.server, now), cost))
        for limit, bucket, price in buckets:
            if not bucket.has(price, now):
                return self._refuse(subject, partition, limit)
        delay = self._delay(partition, cost, now)
        if delay is None:
            return self._refuse(subject, partition, Limit.PARTITION)
        for _, bucket, price in buckets:
            bucket.tokens -= price
        return Decision(Limit.PARTITION, delay) if delay else PASS

    def owe(self, subject: Subject, cost: float, now: float, size: int = 0) -> None:
        """Charge what was known only after a request: the rows that it scanned, and the bytes of its response."""
        targets = self.targets
        self._buckets.get(subject.account, targets.account.cap, now).tokens -= cost
        self._buckets.get((subject.account, "out"), targets.egress_bytes.cap, now).tokens -= size
        self._buckets.get(subject.partition, subject.rate.cap, now).tokens -= cost
        if subject.server is not None:
            self._buckets.get(subject.server, targets.server, now).tokens -= cost

    def _delay(self, partition: Bucket, cost: float, now: float) -> float | None:
        """Return how long a request takes behind those before it; None if it would wait too long. It takes its turn."""
        targets = self.targets
        if not targets.request_seconds:
            return 0
        begins = max(now, partition.busy_until)
        if begins - now > targets.queue_seconds:
            return None
        partition.busy_until = begins + targets.request_seconds + max(0, cost - 1) * targets.entity_seconds
        return partition.busy_until - now

    def _refuse(self, subject: Subject, partition: Bucket, limit: Limit) -> Decision:
        """Return a refusal: by an account its text, else now and then a time-out, whose write may have been made."""
        text = _ACCOUNT_TEXTS.get(limit)
        if text is not None:
            return Decision(limit, error=ServiceError("ServerBusy", text))
        partition.refusals += 1
        chance = crc32(repr((self.seed, subject.partition, partition.refusals)).encode()) / 2**32
        share = self.targets.timeout_share
        if chance >= share:
            return Decision(limit, error=ServiceError("ServerBusy"))
        return Decision(limit, error=ServiceError("OperationTimedOut"), is_made=chance < share / 2)


_ACCOUNT_TEXTS = {Limit.ACCOUNT: OPERATIONS_OVER, Limit.INGRESS: INGRESS_OVER, Limit.EGRESS: EGRESS_OVER}
"""The texts of refusals by an account."""
