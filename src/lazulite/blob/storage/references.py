"""The contents to which the rows of a blob's partition refer, as the sweep of a content store asks for them."""

from collections.abc import Collection
from contextlib import aclosing

from lazulite.blob.model.references import contents_of_row
from lazulite.engine.content.contract import ContentId, Owner
from lazulite.engine.contract import Engine, KeyRange


async def references(engine: Engine, owner: Owner) -> Collection[ContentId]:
    """Return the contents to which the rows of an owner refer, as of one snapshot.

    Raises:
        EngineError: they cannot be read.
    """
    space, name = owner
    found: set[ContentId] = set()
    async with aclosing(engine.scan(space, [KeyRange((name, ""), (name + "\0", ""))])) as parts:
        async for part in parts:
            for index, value in enumerate(part.values):
                found.update(contents_of_row(space, part.key(index)[1], value))
    return found
