"""The partitions of a running process: targets, a map for each table, the rounds of the balancer, and the gate.

Invariants:
- nothing here changes a result: a request passes, waits or is refused, and a page may end earlier;
- without targets, nothing is counted, split or read: no request passes here (`ServiceContext.gate`);
- all times are of one clock, which a test may move. Rounds that are due are made up for by the next request, each at
  the time when it was due, so no timer runs and a server at rest does nothing;
- memory is bounded: `TABLES_MAX` maps, and the buckets of the gate. A table beyond has one range, which never splits.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from lazulite.engine.contract import EngineError
from lazulite.partitions.balancer import Balancer, Event
from lazulite.partitions.gate import PASS, AccountQuota, Decision, Gate, Limit, ProcessQuota, Subject
from lazulite.partitions.load import RangeLoad, loads_of
from lazulite.partitions.map_store import TABLES_MAX, Maps, MapStore, ProcessMaps, TableLoads
from lazulite.partitions.ranges import Range, RangeMap, TableKey
from lazulite.partitions.targets import STUDY_2010, Rate, Targets
from lazulite.protocol.message import RequestRecord

T = TypeVar("T")

EVENTS_MAX: Final = 100
FOLLOWED_A_MOVE: Final = 16
"""How often a process follows the changes of others in the time of one move, so that it refuses what moves."""
ROUNDS_MAX: Final = 240
"""The rounds that are made up for at a time; earlier ones are left out."""


class Charge(NamedTuple):
    """What a request is charged for."""

    account: str
    service: str
    """`table`, `queue` or `blob`; "" if it is of no one partition."""
    resource: str = ""
    """The table in lower case, the queue, or the container; "" for the account itself."""
    partition: str | None = None
    """The PartitionKey, the name of a blob, or "" for a queue; None: it is of no one partition."""
    start: str = ""
    """The PartitionKey at which a page of a query starts."""
    space: int | None = None
    """The number of the table's space; None: it is not of the entities of a table."""
    cost: float = 1
    """The entities, messages or requests."""
    size: int = 0
    """The bytes of its body."""
    counts_rows: bool = False
    """Whether each row that it returns beside the first one costs as much as the first one."""
    writes: bool = False
    """Whether it can be a write that is made although its client learns of a time-out."""

    @property
    def table(self) -> TableKey:
        """The table whose map has the range of its partition; only with a `space`."""
        assert self.space is not None, "it is of the entities of a table"
        return TableKey(self.account, self.resource, self.space)


class RangeState(NamedTuple):
    """A range as it is now."""

    range: Range
    rate: float
    """What it took in the last round, in operations per second."""
    refused: int
    """The requests that were refused since the range was made, by this process."""
    delayed: int
    """The requests that waited, likewise."""
    moving_seconds: float
    """How long its requests are still refused because it moves."""


class LivePartitions:
    """See above. For one event loop.

    Args:
        targets: the caps; None: off, until there are some.
        clock: returns the time in seconds, of all processes on the same store.
        time_scale: divides the times of the balancer, and no rate.
        seed: of what is left to chance.
        maps: keeps the maps.
        quota: makes the quota of the accounts, given how many seconds of unused rate a burst may use.
        sleep: waits for some seconds; with a clock that a test moves, it does not.
        note_refusal: called with what each refused request would have been charged for.

    Attributes:
        active: whether there are targets, so that requests are to pass here.
        on_change: called when that has changed.
        outcomes: how many requests were refused or delayed, by what did it and whether it was a refusal.
        events: what the balancer did last in this process, with its time.
    """

    def __init__(
        self,
        targets: Targets | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        *,
        time_scale: float = 1,
        seed: int = 0,
        maps: MapStore | None = None,
        quota: Callable[[float], AccountQuota] = ProcessQuota,
        note_refusal: Callable[[Charge], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._time_scale = time_scale
        self._seed = seed
        self._store: MapStore = maps or ProcessMaps()
        self._quota = quota
        self._note_refusal = note_refusal
        self._maps: dict[TableKey, RangeMap] = {}
        self._loads: dict[TableKey, dict[str, RangeLoad]] = {}
        """The loads of each table that has a map, by the starts of its ranges."""
        self._rates: dict[TableKey, Mapping[str, float]] = {}
        """The rates of the last round, by the starts of ranges."""
        self._followed = float("-inf")
        """When this process has looked for changes of others."""
        self._is_turning = False
        self.outcomes: Counter[tuple[Limit, bool]] = Counter()
        self.events: deque[tuple[float, Event]] = deque(maxlen=EVENTS_MAX)
        self.active = False
        self.on_change: list[Callable[[], None]] = []
        self.use(targets)

    def use(self, targets: Targets | None) -> None:
        """Have other targets from now on, or none. Maps stay; all buckets of this process are full."""
        self.targets = targets
        self._gate = None if targets is None else Gate(targets, self._seed, self._quota(targets.burst_seconds))
        self._balancer = Balancer(targets or STUDY_2010, self._time_scale)
        self._last_round = self._last_turn = self._clock()
        active = targets is not None
        if active is not self.active:
            self.active, self._rates = active, {}
            for call in self.on_change:
                call()

    # The map.

    @property
    def servers(self) -> int:
        """The number of virtual servers."""
        return self._balancer.targets.balancing.servers

    @property
    def maps(self) -> Maps:
        """The maps that this process knows. A table without one has one range."""
        return self._maps

    def map_of(self, table: TableKey) -> RangeMap:
        """Return the map of a table, a new one if it has none."""
        found = self._maps.get(table)
        if found is None:
            if len(self._maps) >= TABLES_MAX:  # To count the ranges of that many tables takes longer than a request.
                return RangeMap.of_new_table(table.space % self.servers, self._clock())
            found = self._maps[table] = RangeMap.of_new_table(self._balancer.place(self._maps), self._clock())
            self._loads[table] = loads_of(found, {})
        return found

    def states(self, table: TableKey) -> list[RangeState]:
        """Return the ranges of a table, in the order of their keys."""
        loads, rates, now = self._loads.get(table, {}), self._rates.get(table, {}), self._clock()
        return [
            RangeState(each, rates.get(each.start, 0), load.refused, load.delayed, self._moving_seconds(each, now))
            for each in self.map_of(table).ranges
            for load in [loads.get(each.start, RangeLoad())]
        ]

    async def start(self) -> None:
        """Get the maps of the store, before the first request that passes here.

        Raises:
            EngineError: the store cannot be reached. It is asked again later.
        """
        self._adopt(await self._store.follow(self._maps))

    async def refresh(self) -> None:
        """Make the rounds of the balancer that are due, and follow what other processes have changed."""
        now, step = self._clock(), self._balancer.round_seconds
        missed = (now - self._last_round) / step
        if self._is_turning:
            return
        if 0 <= missed < 1:
            if self._store.is_shared and not 0 <= now - self._followed < self._balancer.move_seconds / FOLLOWED_A_MOVE:
                await self._follow(now)
            return
        if not 0 <= missed <= ROUNDS_MAX:  # The clock was set, or the server was at rest for long.
            self._last_round = self._last_turn = now - (0 if missed < 0 else ROUNDS_MAX * step)
        times = list[float]()
        while now - self._last_round >= step:
            self._last_round += step
            times.append(self._last_round)
        if not times:
            return
        self._is_turning = True
        try:
            await self._take_turn(times, step)
        finally:
            self._is_turning = False

    async def _follow(self, now: float) -> None:
        self._followed, self._is_turning = now, True
        try:
            with suppress(EngineError):  # The maps that are known stand meanwhile.
                self._adopt(await self._store.follow(self._maps))
        finally:
            self._is_turning = False

    def _adopt(self, maps: Maps) -> None:
        """Have other maps from now on. What a range took stands if it is still the same."""
        self._maps = dict(maps)
        self._loads = {table: loads_of(found, self._loads.get(table, {})) for table, found in maps.items()}

    async def _take_turn(self, times: Sequence[float], step: float) -> None:
        """Take part in the rounds of some times: hand in the loads, and get the maps.

        The loads are of the first of these rounds, as the next request after it makes the rounds that are due.
        """
        first, *others = times

        def balance(maps: Maps, loads: TableLoads, seconds: float) -> Maps:
            maps = self._balanced(maps, loads, first, seconds)
            for now in others:
                maps = self._balanced(maps, {}, now, step)
            return maps

        seconds = first - self._last_turn
        with suppress(EngineError):  # The loads are handed in with those of the next round.
            maps = await self._store.take_turn(self._maps, self._loads, times[-1], seconds, balance)
            self._last_turn = self._followed = times[-1]
            self._rates = {
                table: {start: 0 if others else load.operations / max(seconds, 1e-9) for start, load in loads.items()}
                for table, loads in self._loads.items()
            }
            self._adopt(maps)
            for load in (load for loads in self._loads.values() for load in loads.values()):
                for _ in times[:2]:  # Nothing came in the second one, and those after it are like it.
                    load.next_round()

    def _balanced(self, maps: Maps, loads: TableLoads, now: float, seconds: float) -> Maps:
        """Return maps after a round, without those of tables that are not used."""
        after, events = self._balancer.balance(maps, loads, now, seconds)
        self.events.extend((now, event) for event in events)
        return {table: found for table, found in after.items() if not self._is_idle(found, now)}

    def _is_idle(self, found: RangeMap, now: float) -> bool:
        """Return whether a map tells no more than that of a new table, and its table is not used."""
        only = found.ranges[0]
        kept = self._balancer.targets.balancing.cold_after_seconds / self._time_scale
        is_cold = only.cold_since is not None and now - only.cold_since >= kept
        return len(found.ranges) == 1 and is_cold and not only.peak >= 1 and not only.is_moving(now)

    # The gate.

    async def admit(self, charge: Charge) -> Decision:
        """Decide about an authenticated request whose body was received, before it touches the store; have it wait.

        Returns:
            The decision. One with an error is a refusal: raise it at once, or if `is_made`, after the write was made.
        """
        await self.refresh()
        now, gate = self._clock(), self._gate
        if gate is None:
            self._note(charge, charge.cost, charge.size)
            return PASS
        await gate.prepare(charge.account, charge.cost, now, charge.size)
        decision = gate.decide(self._subject(charge, gate.targets, now), charge.cost, now, charge.size)
        if decision.limit is not None:
            self._count(charge, decision)
        if decision.error is None:
            self._note(charge, charge.cost, charge.size)
        if decision.delay_seconds:
            await self._sleep(decision.delay_seconds)
        return decision if charge.writes or not decision.is_made else decision._replace(is_made=False)

    async def run(self, charge: Charge, record: RequestRecord, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a request's work at the store, unless the gate refuses it.

        Args:
            charge: what the request is charged for.
            record: gets what the gate did.
            work: begins the work.

        Raises:
            ThrottledError: the refusal. After a time-out, the work may have been done.
        """
        decision = await self.admit(charge)
        if decision.limit is not None:
            record.gate, record.gate_seconds = decision.limit.value, decision.delay_seconds
        if decision.error is not None:
            if decision.is_made:
                await work()
            raise decision.error
        return await work()

    def owe(self, charge: Charge, cost: float, size: int = 0) -> None:
        """Charge what was known only after a request.

        Args:
            charge: of the request.
            cost: what it cost beside `charge.cost`, such as the rows that a page scanned.
            size: the bytes of its response; the account is charged for these by `owe_bytes`.
        """
        now, gate = self._clock(), self._gate
        if cost:
            self._note(charge, cost, 0)
        if gate is not None:
            gate.owe(self._subject(charge, gate.targets, now), cost, now, size)

    def owe_bytes(self, account: str, size: int) -> None:
        """Charge an account for the bytes of a response."""
        if self._gate is not None:
            self._gate.owe_bytes(account, size, self._clock())

    def _subject(self, charge: Charge, targets: Targets, now: float) -> Subject:
        account, service, resource, partition = charge[:4]
        rate, bytes_rate = _rates_of(targets, service)
        keys = None if partition is None else (account, service, resource, partition)
        if charge.space is None:
            return Subject(account, keys, rate, bytes_rate=None if keys is None else bytes_rate)
        found = self.map_of(charge.table).find(partition or charge.start)
        is_moving = self._moving_seconds(found, now) > 0
        return Subject(account, keys, rate, found.server % targets.balancing.servers, is_moving)

    def _moving_seconds(self, found: Range, now: float) -> float:
        """Return how long the move of a range takes; 0: it does not move."""
        left = found.moving_until - now
        # A move that ends later than one that begins now is of a clock that was set back since.
        return left if 0 < left <= self._balancer.move_seconds else 0

    def _load(self, charge: Charge) -> RangeLoad | None:
        """Return the load of the range that a request is about."""
        if charge.space is None:
            return None
        start = self.map_of(charge.table).find(charge.partition or charge.start).start
        return self._loads.get(charge.table, {}).get(start)

    def _note(self, charge: Charge, cost: float, size: int) -> None:
        load = self._load(charge)
        if load is not None:
            load.note(charge.partition or charge.start, cost, size)

    def _count(self, charge: Charge, decision: Decision) -> None:
        """Count a request that was refused, or waited."""
        assert decision.limit is not None
        is_refused, load = decision.error is not None, self._load(charge)
        self.outcomes[decision.limit, is_refused] += 1
        if is_refused:
            self._note_refusal(charge)
        if load is not None:
            load.refused += is_refused
            load.delayed += not is_refused


def _rates_of(targets: Targets, service: str) -> tuple[Rate, Rate | None]:
    """Return the rates of a partition of a service, in operations and in bytes."""
    rates = {"queue": (targets.queue, None), "blob": (targets.blob, targets.blob_bytes)}
    return rates.get(service, (targets.partition, None))
