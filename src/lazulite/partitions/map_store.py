"""Stores of maps: each keeps the maps of a server's tables, and chooses the process that balances them."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from lazulite.partitions.balancer import Loads
from lazulite.partitions.ranges import RangeMap, TableKey

TABLES_MAX: Final = 1_000
"""The most maps. A table beyond has one range, which never splits."""

Maps: TypeAlias = Mapping[TableKey, RangeMap]
TableLoads: TypeAlias = Mapping[TableKey, Loads]
Balance: TypeAlias = Callable[[Maps, TableLoads, float], Maps]
"""Takes maps, what their ranges took, and in how many seconds; returns the maps after a round of the balancer. Tables
that are not worth a map any more are left out."""


class MapStore(Protocol):
    """Keeps one map for each table, for all processes and across restarts.

    A table without a map has one range. Each process takes part by one call of `take_turn` a round, and follows the
    changes of the others in between.
    """

    @property
    def is_shared(self) -> bool:
        """Return whether other processes may change the maps."""
        ...

    async def follow(self, maps: Maps) -> Maps:
        """Return the maps as they are now.

        Args:
            maps: as of `take_turn`.

        Raises:
            EngineError: as `take_turn`.
        """
        ...

    async def take_turn(self, maps: Maps, loads: TableLoads, now: float, seconds: float, balance: Balance) -> Maps:
        """Take part in a round, and return the maps as they are then.

        What the process counted is added to what the others did. One process, whichever the store chooses, balances:
        it calls `balance` with the maps of the store and the loads of all, and the store keeps what that returns.

        Args:
            maps: as this process knows them. Of these, tables that the store does not know are new.
            loads: what this process has counted, by the ranges of `maps`: operations since its last turn, and bytes
                since the range was made. They change after the call.
            now: the time in seconds.
            seconds: the time since this process's last turn.
            balance: makes a round; called once at most.

        Raises:
            EngineError: the store cannot be reached. The process goes on with the maps that it has.
        """
        ...


class ProcessMaps:
    """A `MapStore` of one process that forgets its maps when it ends: it need not keep them elsewhere."""

    is_shared = False

    async def follow(self, maps: Maps) -> Maps:
        """See `MapStore`."""
        return maps

    async def take_turn(self, maps: Maps, loads: TableLoads, now: float, seconds: float, balance: Balance) -> Maps:  # noqa: ARG002 - see `MapStore`
        """See `MapStore`."""
        return balance(maps, loads, seconds)
