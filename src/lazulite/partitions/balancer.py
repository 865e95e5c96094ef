"""The balancer: once in a round it splits hot ranges, moves ranges between virtual servers, and merges cold neighbours.

Invariants:
- it acts only on what lasts: a range is split, and a server relieved, after `decide_after_seconds` above the threshold;
- a range that was just made is not merged again at once, nor are two whose loads of the last while are too much for
  one, so that a load that comes and goes does not split and merge the same range again and again;
- one range of a table moves at a time, so that a client meets one refusal after the other;
- a round is a function of the maps, the loads and the time.

Source: `[WAS]` §5 of the SOSP paper; the times are those of the study.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from lazulite.partitions.load import RangeLoad, median_key
from lazulite.partitions.ranges import Range, RangeMap, TableKey
from lazulite.partitions.targets import Balancing, Targets

Loads = Mapping[str, RangeLoad]
"""The loads of a table's ranges, by their starts."""


_HALVINGS = 4
"""The peak of a range halves in so many times `cold_after_seconds`."""


class Event(NamedTuple):
    """What the balancer did."""

    action: str
    """`split`, `move` or `merge`."""
    table: TableKey
    start: str
    """The start of the range that is new, moves, or has become larger."""
    reason: str
    """A sentence for people."""


@dataclass(slots=True)
class Balancer:
    """Balances the ranges of all tables.

    Args:
        targets: the caps and the times.
        time_scale: divides the times, and no rate.
    """

    targets: Targets
    time_scale: float = 1
    _hot_servers: dict[int, float] = field(default_factory=dict)
    """Since when servers have been above their threshold."""
    _last_round: float = field(default=float("-inf"), init=False)
    """The time of the last round that this process made."""

    @property
    def round_seconds(self) -> float:
        """The pause between two rounds."""
        return self._settings.round_seconds / self.time_scale

    @property
    def move_seconds(self) -> float:
        """How long a move takes."""
        return self._settings.move_seconds / self.time_scale

    @property
    def _settings(self) -> Balancing:
        return self.targets.balancing

    def place(self, maps: Mapping[TableKey, RangeMap]) -> int:
        """Return the server for a new table: the one with the fewest ranges."""
        counts = self._range_counts(maps)
        return counts.index(min(counts))

    def balance(
        self, maps: Mapping[TableKey, RangeMap], loads: Mapping[TableKey, Loads], now: float, seconds: float
    ) -> tuple[dict[TableKey, RangeMap], list[Event]]:
        """Return the maps after a round, and what was done.

        Args:
            maps: the maps of all tables.
            loads: what the ranges of tables took since the last round.
            now: the time in seconds.
            seconds: how long ago the last round was.
        """
        if now - self._last_round >= 2 * self.round_seconds:  # Another process may have moved ranges since.
            self._hot_servers.clear()
        self._last_round = now
        rates = {
            table: [_rate(loads.get(table, {}).get(each.start), seconds) for each in found.ranges]
            for table, found in maps.items()
        }
        after = {table: self._observe(found, rates[table], now, seconds) for table, found in maps.items()}
        events = self._split(after, rates, loads, now)
        events += self._relieve(after, rates, {event.table for event in events}, now)
        events += self._merge(after, {event.table for event in events}, now)
        return after, events

    # The steps of a round. Each changes the maps that are given to it, and returns what it did.

    def _observe(self, found: RangeMap, rates: list[float], now: float, seconds: float) -> RangeMap:
        """Return a map whose ranges know since when they are hot or cold."""
        hot = self._settings.split_share * self.targets.server
        cold = self._settings.merge_share * self.targets.server
        decay = math.pow(0.5, seconds / (_HALVINGS * self._scaled(self._settings.cold_after_seconds)))
        return found.updated(
            [
                replace(
                    each,
                    hot_since=_since(rate > hot, each.hot_since, now),
                    cold_since=_since(rate < cold, each.cold_since, now),
                    peak=max(rate, round(each.peak * decay, 3)),
                )
                for each, rate in zip(found.ranges, rates, strict=True)
            ]
        )

    def _split(
        self,
        maps: dict[TableKey, RangeMap],
        rates: dict[TableKey, list[float]],
        loads: Mapping[TableKey, Loads],
        now: float,
    ) -> list[Event]:
        """Split the worst ranges, and move their upper halves to the servers with the least load."""
        settings, events = self._settings, list[Event]()
        room = settings.servers * settings.ranges_high - sum(len(found.ranges) for found in maps.values())
        candidates = [
            (rates[table][index], table, each)
            for table, found in maps.items()
            for index, each in enumerate(found.ranges)
            if self._is_to_split(each, loads.get(table, {}).get(each.start), now)
        ]
        for rate, table, each in sorted(candidates, key=lambda one: -one[0])[: settings.splits_per_round]:
            key = median_key(loads[table][each.start].samples, each.start)
            if key is None or room <= 0 or _moving(maps[table], now):
                continue
            index, server = maps[table].index(each.start), self._least(maps, rates)
            maps[table] = maps[table].split(index, key, server, now, self.move_seconds)
            rates[table][index : index + 1] = [rate / 2, rate / 2]
            room -= 1
            events.append(Event("split", table, key, f"{rate:,.0f} operations/s in one range"))
        return events

    def _is_to_split(self, each: Range, load: RangeLoad | None, now: float) -> bool:
        """Return whether a range has been hot for long enough, or is too large."""
        if load is None:
            return False
        is_hot = each.hot_since is not None and now - each.hot_since >= self._scaled(
            self._settings.decide_after_seconds
        )
        return is_hot or load.bytes_written > self._settings.split_bytes

    def _relieve(
        self, maps: dict[TableKey, RangeMap], rates: Mapping[TableKey, list[float]], changed: set[TableKey], now: float
    ) -> list[Event]:
        """Move a range from the server with the most load to the one with the least, if that lowers the most."""
        servers = self._server_rates(maps, rates)
        threshold = self._settings.split_share * self.targets.server
        for server, rate in enumerate(servers):
            since = _since(rate > threshold, self._hot_servers.get(server), now)
            self._hot_servers.pop(server, None)
            if since is not None:
                self._hot_servers[server] = since
        most, least = servers.index(max(servers)), servers.index(min(servers))
        since = self._hot_servers.get(most)
        if since is None or now - since < self._scaled(self._settings.decide_after_seconds):
            return []
        movable = [
            (rates[table][index], table, index)
            for table, found in maps.items()
            if table not in changed and not _moving(found, now)
            for index, each in enumerate(found.ranges)
            if each.server == most and 0 < rates[table][index] < servers[most] - servers[least]
        ]
        if not movable:
            return []
        rate, table, index = max(movable)
        maps[table] = maps[table].move(index, least, now, self.move_seconds)
        del self._hot_servers[most]
        reason = f"{servers[most]:,.0f} operations/s on server {most}, {servers[least]:,.0f} on server {least}"
        return [Event("move", table, maps[table].ranges[index].start, reason)]

    def _merge(self, maps: dict[TableKey, RangeMap], changed: set[TableKey], now: float) -> list[Event]:
        """Merge one pair of cold neighbours of each table."""
        settings, events = self._settings, list[Event]()
        count = sum(len(found.ranges) for found in maps.values())
        is_many = count > settings.servers * settings.ranges_low
        wanted = self._scaled(settings.cold_after_seconds) / (2 if is_many else 1)
        hot = settings.split_share * self.targets.server
        for table, found in maps.items():
            if table in changed or _moving(found, now):
                continue
            for index, (left, right) in enumerate(pairwise(found.ranges)):
                if _is_cold(left, wanted, now) and _is_cold(right, wanted, now) and left.peak + right.peak < hot / 2:
                    maps[table] = found.merge(index, now, self.move_seconds)
                    events.append(Event("merge", table, left.start, "two neighbours are cold"))
                    break
        return events

    def _server_rates(self, maps: Mapping[TableKey, RangeMap], rates: Mapping[TableKey, list[float]]) -> list[float]:
        """Return the load of each server."""
        servers = [0.0] * self._settings.servers
        for table, found in maps.items():
            for each, rate in zip(found.ranges, rates[table], strict=True):
                servers[each.server % len(servers)] += rate
        return servers

    def _least(self, maps: Mapping[TableKey, RangeMap], rates: Mapping[TableKey, list[float]]) -> int:
        """Return the server with the least load, and of several the one with the fewest ranges."""
        loads, counts = self._server_rates(maps, rates), self._range_counts(maps)
        return min(range(len(loads)), key=lambda number: (loads[number], counts[number], number))

    def _range_counts(self, maps: Mapping[TableKey, RangeMap]) -> list[int]:
        counts = [0] * self._settings.servers
        for found in maps.values():
            for each in found.ranges:
                counts[each.server % len(counts)] += 1
        return counts

    def _scaled(self, seconds: float) -> float:
        return seconds / self.time_scale


def _rate(load: RangeLoad | None, seconds: float) -> float:
    return 0 if load is None or seconds <= 0 else load.operations / seconds


def _since(holds: bool, since: float | None, now: float) -> float | None:
    """Return since when something holds, given since when it held before; None if it does not."""
    return None if not holds else now if since is None else since


def _moving(found: RangeMap, now: float) -> bool:
    return any(each.is_moving(now) for each in found.ranges)


def _is_cold(each: Range, seconds: float, now: float) -> bool:
    """Return whether a range has been cold for so long, and was not just made."""
    return each.cold_since is not None and now - max(each.cold_since, each.changed) >= seconds
