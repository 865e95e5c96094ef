"""Numbers for new spaces.

Invariant: ids are reserved durably in blocks; the rest of a block is skipped, not reused, when a process ends.
"""

from collections.abc import Mapping

from lazulite.engine.compare_and_swap import update_row
from lazulite.engine.contract import LISTED, Engine, Key
from lazulite.records.spaces import COUNTERS, FIRST_FREE_SPACE, Space

BLOCK = 128
_KEY: Key = ("spaces", "next")
_BYTES = 8


def next_free(value: bytes) -> int:
    """Return the first number that no block holds, from the value of the counter's row.

    Raises:
        ValueError: the value is no counter.
    """
    if len(value) != _BYTES:
        raise ValueError(f"the counter of spaces has {len(value)} bytes")
    return int.from_bytes(value, "big")


def _verify(key: Key, value: bytes) -> None:
    if key != _KEY:
        raise ValueError(f"space {COUNTERS} has an unknown row under {key}")
    next_free(value)


COUNTERS_SPACE = Space(number=COUNTERS, owner="", title="the counter of tables", copied=True, verify=_verify)


class SpaceAllocator:
    """Gives out space ids.

    Args:
        engine: has the counter.
        listed: whether the spaces are listed ones, see `LISTED`.
    """

    def __init__(self, engine: Engine, *, listed: bool = False) -> None:
        self._engine = engine
        self._mark = LISTED if listed else 0
        self._free = range(0)

    async def allocate(self) -> int:
        """Return an id that was never returned before, by this process or any other."""
        if not self._free:
            reserved = await self._reserve()
            self._free = self._free or reserved
        space, self._free = self._free[0], self._free[1:]
        return space | self._mark

    async def _reserve(self) -> range:
        block = range(0)

        def move(current: bytes | None) -> Mapping[str, bytes | None]:
            nonlocal block
            start = FIRST_FREE_SPACE if current is None else int.from_bytes(current, "big")
            block = range(start, start + BLOCK)
            return {_KEY[1]: block.stop.to_bytes(_BYTES, "big")}

        await update_row(self._engine, COUNTERS, *_KEY, move)
        return block
