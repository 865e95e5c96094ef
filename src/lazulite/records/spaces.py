"""Which spaces of the engine hold what, and how a service gets a new one.

Invariants: spaces below `FIRST_FREE_SPACE` belong to the services themselves; the others are given out once each, ever.
Ids are reserved durably in blocks; what is left of a block when a process ends is skipped, not reused.
"""

from collections.abc import Mapping

from lazulite.engine.compare_and_swap import rewrite
from lazulite.engine.contract import Engine

COUNTERS = 1
"""Partition `spaces`, row `next`: the first id that no block holds, 8 bytes big endian."""
SERVICE_PROPERTIES = 2
"""Partition = account, row = service name (`table`): JSON of its service properties."""
TABLES = 3
"""Partition = account; see table/catalog.py."""
ACCOUNTS = 4
"""Partition and row `accounts`: the accounts of a database, see auth/accounts/engine_store.py. Those of a location are
in a file."""
COPIES = 5
"""Partition and row `copy`: how far a copy to this store has come; see migration/journal.py."""

WATCHED = frozenset({SERVICE_PROPERTIES, TABLES})
"""The spaces whose rows services remember."""

FIRST_FREE_SPACE = 1024
BLOCK = 128


class SpaceAllocator:
    """Gives out space ids."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._free = range(0)

    async def allocate(self) -> int:
        """Return an id that was never returned before, by this process or any other."""
        if not self._free:
            reserved = await self._reserve()
            self._free = self._free or reserved
        space, self._free = self._free[0], self._free[1:]
        return space

    async def _reserve(self) -> range:
        block = range(0)

        def move(current: bytes | None) -> Mapping[str, bytes | None]:
            nonlocal block
            start = FIRST_FREE_SPACE if current is None else int.from_bytes(current, "big")
            block = range(start, start + BLOCK)
            return {"next": block.stop.to_bytes(8, "big")}

        await rewrite(self._engine, COUNTERS, "spaces", "next", move)
        return block
