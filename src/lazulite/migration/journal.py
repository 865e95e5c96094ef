"""How far a copy has come, noted in its target, so that it can go on after a kill and nobody serves half a store.

The space `COPIES` has one row as long as the copy is not finished, partition and row `copy`, JSON:

    {"version": 1, "from": "/srv/data", "space": 1024, "partition": "p", "row": "r", "entities": 17}

Invariants: the row is there before the first row of the copy is, and until the target was found to be equal to the
source; all rows up to and with the one that it names are durable in the target.
"""

import json
from dataclasses import asdict, dataclass, replace

from lazulite.engine.compare_and_swap import RowChangedError, Swap
from lazulite.engine.contract import Engine, StoreUnusableError
from lazulite.migration.endpoint import TransferError
from lazulite.records.spaces import COPIES

VERSION = 1
_KEY = "copy"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a copy has come."""

    source: str
    space: int = 0
    partition: str = ""
    row: str = ""
    """The last row of `space` that is durable, with those before it, and with all lower spaces."""
    entities: int = 0
    """So many were copied up to there."""

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return json.dumps({"version": VERSION, **asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "Progress":
        """Read the stored form.

        Raises:
            TransferError: a newer Lazulite wrote it.
        """
        fields = json.loads(value)
        if fields.pop("version") != VERSION:
            raise TransferError("the target is the unfinished copy of a newer Lazulite; finish it with that")
        return cls(**fields)


class Journal:
    """The journal of one copy, in its target."""

    def __init__(self, engine: Engine, value: bytes) -> None:
        """Use `begin`, or `unfinished`."""
        self._engine = engine
        self._value = value
        self.progress = Progress.from_bytes(value)

    @classmethod
    async def unfinished(cls, engine: Engine) -> "Journal | None":
        """Return the journal of a copy that has not been finished; None if there is none."""
        value = await engine.get(COPIES, _KEY, _KEY)
        return None if value is None else cls(engine, value)

    @classmethod
    async def begin(cls, engine: Engine, source: str) -> "Journal":
        """Begin a copy to an engine that has none.

        Raises:
            TransferError: another one was faster.
        """
        value = Progress(source).to_bytes()
        await _swap(engine, None, value)
        return cls(engine, value)

    async def note(self, space: int, partition: str, row: str, entities: int) -> None:
        """Note, durably, how far the copy has come.

        Raises:
            TransferError: another copy writes to the same journal.
        """
        progress = replace(self.progress, space=space, partition=partition, row=row, entities=entities)
        value = progress.to_bytes()
        await _swap(self._engine, self._value, value)
        self._value, self.progress = value, progress

    async def end(self) -> None:
        """Let the target be served.

        Raises:
            TransferError: as `note`.
        """
        await _swap(self._engine, self._value, None)


async def refuse_unfinished(engine: Engine, name: str) -> None:
    """Refuse a store that is half a copy.

    Raises:
        StoreUnusableError: it is.
    """
    if await engine.get(COPIES, _KEY, _KEY) is not None:
        raise StoreUnusableError(f"{name} is an unfinished copy; finish it with the same lazulite copy, or remove it")


async def _swap(engine: Engine, before: bytes | None, after: bytes | None) -> None:
    try:
        await engine.commit(COPIES, _KEY, [_KEY], Swap(before, {_KEY: after}))
    except RowChangedError:
        raise TransferError("another lazulite copy writes to the target") from None
