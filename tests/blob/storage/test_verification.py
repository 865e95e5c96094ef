"""Every row that the Blob service writes is known to the check of stores."""

import pytest

from lazulite.blob.storage.uploads import UPLOADS_SPACE
from lazulite.blob.storage.verification import CONTAINERS_SPACE
from lazulite.engine.contract import KeyRange
from tests.blob.world import ACCOUNT, CONTAINER, opened


async def test_every_row_is_known_to_the_check_of_stores() -> None:
    async with opened() as world:
        await world.ask("PUT", body=b"x", x_ms_blob_type="BlockBlob", x_ms_tags="a=1")
        await world.put_block("a", bytes(20_000))
        await world.put_list(("Latest", "a"), x_ms_tags="a=2")
        await world.ask("PUT", query="comp=snapshot")
        await world.put_block("b", b"1")
        await world.rows()
        space = (await world.context.catalog.require(ACCOUNT, CONTAINER)).space
        catalog, kinds = CONTAINERS_SPACE.catalog, set[str]()
        assert catalog is not None
        async for part in world.engine.scan(space, [KeyRange(("", ""), None)]):
            for index, value in enumerate(part.values):
                catalog.verify(part.key(index), value, 0)
                kinds.add(part.key(index)[1][0])
        assert kinds == set("abstwx")
        with pytest.raises(ValueError, match="index"):
            catalog.verify(("\0a", "t1"), b"", 0)
        async for each in world.context.uploads.due(10**6):
            assert UPLOADS_SPACE.verify is not None
            UPLOADS_SPACE.verify(each.key, b"")
