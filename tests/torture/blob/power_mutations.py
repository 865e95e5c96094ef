"""Servers whose contents a power cut damages, takes away, or leaves in disagreement with their rows."""

from collections.abc import Callable

from lazulite.blob.model.references import contents_of_row
from lazulite.blob.storage.garbage import Garbage
from lazulite.engine.content import content_file, linked_file
from lazulite.engine.content.space_files import SpaceFiles


def unsynced_contents() -> None:
    """Seal a content without a sync of its bytes."""
    vars(content_file)["sync_data"] = lambda _: None
    vars(linked_file)["sync_data"] = lambda _: None


def unsynced_names() -> None:
    """Seal a content without a sync of its name."""

    async def sync_name(_: SpaceFiles, number: int) -> None:
        """Sync nothing."""

    SpaceFiles.sync_name = sync_name  # type: ignore[method-assign, assignment]


def contents_before_rows() -> None:
    """Delete the contents of a list before its rows."""
    delete_rows = Garbage._delete_rows

    async def delete(self: Garbage, partition, rows, live):  # type: ignore[no-untyped-def]  # as there
        space, name = partition
        for row in rows:
            value = await self._engine.get(space, name, row)
            if value is not None:
                await self._contents.delete(set(contents_of_row(space, row, value)) - live)
        return await delete_rows(self, partition, rows, live)

    Garbage._delete_rows = delete  # type: ignore[method-assign]


MUTATIONS: dict[str, Callable[[], None]] = {
    f"blob-power-{each.__name__.replace('_', '-')}": each
    for each in (unsynced_contents, unsynced_names, contents_before_rows)
}
