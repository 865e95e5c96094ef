"""The syncs of operations, one at a time: as many as a single insert of a table takes."""

import pytest

from .world import opened


@pytest.mark.parametrize("seconds", [0, 3])
async def test_each_operation_takes_one_sync(seconds: float) -> None:
    count = 0

    def sync() -> None:
        nonlocal count
        count += 1

    async with opened(alone=True, failpoints={"after_sync": sync}) as world:
        assert await world.delete(await world.put())  # It lists the shard among those to be swept.
        found: list[int] = []
        for _ in range(10):
            world.advance(seconds)  # A commit raises the barrier now and then.
            before = count
            await world.put()
            [message] = await world.get()
            assert await world.delete(message)
            found.append(count - before)
        assert found == [3] * 10
