"""The gate: decides for each request whether it passes, waits, or is refused as the cloud refuses it.

A request is charged to its partition, the virtual server of its range, and its account. Each has a token bucket that
fills at its cap. What a request costs is counted in entities, at least one; the rows that a page scanned are known
afterwards, and are charged then, as a debt.

Invariants:
- a refused request is charged nothing;
- the tokens of accounts come from an `AccountQuota`, which several processes may share; all others are of this process;
- the memory for buckets is bounded: a bucket that has not been used for a burst is full, so it can be dropped;
- the same requests at the same times get the same decisions: what is left to chance comes from a hash of the seed, the
  partition, and how often the partition refused.

Source: the texts of the service, compared by clients from their first character to their last.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol
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


class ThrottledError(ServiceError):
    """A refusal of the gate: of the whole request, also where errors of its parts are parts of a response."""


class Decision(NamedTuple):
    """What happens to a request."""

    limit: Limit | None = None
    """What refuses or delays it; None: it passes at once."""
    delay_seconds: float = 0
    """How long it waits before it passes."""
    error: ThrottledError | None = None
    """The refusal; None: it passes."""
    is_made: bool = False
    """Whether a refused write is made all the same: a time-out."""


PASS = Decision()
"""A request passes at once."""


class Subject(NamedTuple):
    """What a request is charged to."""

    account: str
    partition: tuple[str, ...] | None
    """Its account, service, resource and, in tables, PartitionKey; None: it is of no one partition."""
    rate: Rate
    """The rate of such a partition."""
    server: int | None = None
    """The virtual server of its range; None: it has no range."""
    is_moving: bool = False
    """Whether its range moves."""
    bytes_rate: Rate | None = None
    """The rate of such a partition in bytes; None: it has none."""


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
        if now != self.at:  # A clock that was set back adds nothing, and goes on from there.
            self.tokens = min(self.size, self.tokens + max(0, now - self.at) * self.cap)
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


class AccountQuota(Protocol):
    """The tokens of accounts: their operations (`Limit.ACCOUNT`), and their bytes in and out (`INGRESS`, `EGRESS`).

    All processes of a server may spend from it, each from buckets of its own.
    """

    def bucket(self, account: str, limit: Limit, cap: float, now: float) -> Bucket:
        """Return what this process may spend of an account now. The gate takes tokens from it, and makes debts in it.

        Args:
            account: the account.
            limit: `ACCOUNT`, `INGRESS` or `EGRESS`.
            cap: of the account, tokens per second.
            now: the time in seconds.
        """
        ...

    async def refill(self, account: str, limit: Limit, cost: float, cap: float, now: float) -> None:
        """Put tokens into a bucket that has fewer than a cost, as far as the account has any left.

        Called before a request is decided about. It raises nothing; without tokens the request is refused. The other
        arguments are those of `bucket`.
        """
        ...


class ProcessQuota:
    """An `AccountQuota` of one process: each bucket fills with time, so that it need not be refilled.

    Args:
        burst_seconds: how many seconds of unused rate a bucket holds.
    """

    def __init__(self, burst_seconds: float) -> None:
        self._buckets = Buckets(burst_seconds)

    def bucket(self, account: str, limit: Limit, cap: float, now: float) -> Bucket:
        """See `AccountQuota`."""
        return self._buckets.get((account, limit), cap, now)

    async def refill(self, account: str, limit: Limit, cost: float, cap: float, now: float) -> None:
        """See `AccountQuota`."""


@dataclass(slots=True)
class Gate:
    """Decides for the requests of one process.

    Args:
        targets: the caps.
        seed: of what is left to chance.
        quota: of the accounts; None: this process has them for itself.
    """

    targets: Targets
    seed: int = 0
    quota: AccountQuota | None = None
    _accounts: AccountQuota = field(init=False)
    _buckets: Buckets = field(init=False)

    def __post_init__(self) -> None:
        """Begin with full buckets."""
        self._buckets = Buckets(self.targets.burst_seconds)
        self._accounts = self.quota or ProcessQuota(self.targets.burst_seconds)

    async def prepare(self, account: str, cost: float, now: float, size: int = 0) -> None:
        """Have the quota of an account refilled for a request, before it is decided about."""
        for limit, cap, price in self._prices(cost, size):
            if not self._accounts.bucket(account, limit, cap, now).has(price, now):
                await self._accounts.refill(account, limit, price, cap, now)

    def decide(self, subject: Subject, cost: float, now: float, size: int = 0) -> Decision:
        """Decide about a request whose body was received, and charge it if it passes.

        Args:
            subject: what it is charged to.
            cost: the entities that it reads or writes, at least 1; those that it scans are charged by `owe`.
            now: the time in seconds.
            size: the bytes of its body.
        """
        partition = self._partition(subject, now)
        if subject.is_moving:
            return self._refuse(subject, partition, Limit.MOVE)
        buckets = [
            (limit, self._accounts.bucket(subject.account, limit, cap, now), price)
            for limit, cap, price in self._prices(cost, size)
        ]
        buckets += [(limit, bucket, cost) for limit, bucket in self._of_operations(subject, now)]
        if subject.bytes_rate is not None:
            buckets.append((Limit.PARTITION, self._bytes(subject, subject.bytes_rate, now), size))
        for limit, bucket, price in buckets:
            if not bucket.has(price, now):
                return self._refuse(subject, partition, limit)
        delay = 0.0 if subject.partition is None else self._delay(partition, cost, now)
        if delay is None:
            return self._refuse(subject, partition, Limit.PARTITION)
        for _, bucket, price in buckets:
            bucket.tokens -= price
        return Decision(Limit.PARTITION, delay) if delay else PASS

    def owe(self, subject: Subject, cost: float, now: float, size: int = 0) -> None:
        """Charge what was known only after a request: the rows that it scanned, and a partition's bytes out."""
        self._accounts.bucket(subject.account, Limit.ACCOUNT, self.targets.account.cap, now).tokens -= cost
        for _, bucket in self._of_operations(subject, now):
            bucket.tokens -= cost
        if subject.bytes_rate is not None:
            self._bytes(subject, subject.bytes_rate, now).tokens -= size

    def owe_bytes(self, account: str, size: int, now: float) -> None:
        """Charge an account for the bytes of a response."""
        self._accounts.bucket(account, Limit.EGRESS, self.targets.egress_bytes.cap, now).tokens -= size

    def _prices(self, cost: float, size: int) -> tuple[tuple[Limit, float, float], ...]:
        """Return the limits of an account, their caps, and what a request costs there before its response is known."""
        targets = self.targets
        return (
            (Limit.ACCOUNT, targets.account.cap, cost),
            (Limit.INGRESS, targets.ingress_bytes.cap, size),
            (Limit.EGRESS, targets.egress_bytes.cap, 0),
        )

    def _partition(self, subject: Subject, now: float) -> Bucket:
        """Return the bucket of a partition; for what is of no one partition, one that counts refusals."""
        return self._buckets.get(subject.partition or (subject.account,), subject.rate.cap, now)

    def _of_operations(self, subject: Subject, now: float) -> list[tuple[Limit, Bucket]]:
        """Return the buckets of a partition's and a server's operations."""
        buckets = [] if subject.partition is None else [(Limit.PARTITION, self._partition(subject, now))]
        if subject.server is not None:
            buckets.append((Limit.SERVER, self._buckets.get(subject.server, self.targets.server, now)))
        return buckets

    def _bytes(self, subject: Subject, rate: Rate, now: float) -> Bucket:
        return self._buckets.get((subject.partition, "bytes"), rate.cap, now)

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
            return Decision(limit, error=ThrottledError("ServerBusy", text))
        partition.refusals += 1
        chance = crc32(repr((self.seed, subject.partition, partition.refusals)).encode()) / 2**32
        share = self.targets.timeout_share
        if chance >= share:
            return Decision(limit, error=ThrottledError("ServerBusy"))
        return Decision(limit, error=ThrottledError("OperationTimedOut"), is_made=chance < share / 2)


_ACCOUNT_TEXTS = {Limit.ACCOUNT: OPERATIONS_OVER, Limit.INGRESS: INGRESS_OVER, Limit.EGRESS: EGRESS_OVER}
"""The texts of refusals by an account."""
