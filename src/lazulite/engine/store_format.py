"""The format of a store, which rises with its first index or expiry, so that older versions reject the store.

Older versions would write rows without the entries of indexes, and misread the tables that have them. They would show
entities that have expired. Invariant: the format is raised durably before either is declared. A crash between the two
leaves a raised format, which does no other harm. It stays when these are dropped, as their tables keep the form that
older versions misread.
"""

from typing import Protocol, runtime_checkable

from lazulite.engine.contract import Engine


@runtime_checkable
class StoredFormat(Protocol):
    """An engine whose store says its format to the versions that open it."""

    async def raise_format(self) -> None:
        """Raise the format durably to that of stores with indexes, unless it is.

        Raises:
            EngineError: it may be raised or not.
        """
        ...

    async def has_raised_format(self) -> bool:
        """Return whether the format is that of stores with indexes. Raises EngineError."""
        ...


async def raise_format(engine: Engine) -> None:
    """Raise the format of an engine's store; see `StoredFormat.raise_format`."""
    if isinstance(engine, StoredFormat):
        await engine.raise_format()


async def copy_format(source: Engine, target: Engine) -> None:
    """Raise the format of a target if that of a source is raised. Raises as `raise_format`."""
    if isinstance(source, StoredFormat) and await source.has_raised_format():
        await raise_format(target)
