"""The journal of a copy, in its target: a killed copy can be resumed, and an unfinished one is not served.

While a copy is unfinished, the space `COPIES` has one row, with partition and row `copy`, in JSON:

    {"version": 1, "source": "/srv/data", "space": 1024, "partition": "p", "row": "r", "entities": 17}

Invariants:

- The row is written before the first row of the copy. It is removed once source and target are found equal.
- All rows up to and including the one that it names are durable in the target.
"""

import json
from dataclasses import asdict, dataclass, replace

from lazulite.engine.commit import compare_and_swap
from lazulite.engine.contract import Engine, StoreUnusableError
from lazulite.engine.key_encoding import encode_key
from lazulite.migration.endpoint import MigrationError
from lazulite.records.spaces import COPIES, Space

VERSION = 1
_KEY = "copy"


UNFINISHED = "an unfinished copy; finish it with the same lazulite copy, or remove it"
COPIES_SPACE = Space(number=COPIES, owner="", title="the journal of a copy", unfinished_state=UNFINISHED)


@dataclass(frozen=True, slots=True)
class Position:
    """The last durable row of a copy, and the number of entities up to it."""

    source: str
    space: int = 0
    partition: str = ""
    row: str = ""
    """The last durable row of `space`. The rows before it and all lower spaces are durable, too."""
    entities: int = 0

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return json.dumps({"version": VERSION, **asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "Position":
        """Read the stored form.

        Raises:
            MigrationError: a newer Lazulite wrote the journal.
        """
        fields = json.loads(value)
        if fields.pop("version") != VERSION:
            raise MigrationError("the target is the unfinished copy of a newer Lazulite; finish it with that version")
        return cls(**fields)


class Journal:
    """The journal of one copy, in its target."""

    def __init__(self, engine: Engine, value: bytes) -> None:
        """Use `begin`, or `unfinished`."""
        self._engine = engine
        self._value = value
        self.position = Position.from_bytes(value)

    @classmethod
    async def unfinished(cls, engine: Engine) -> "Journal | None":
        """Return the journal of an unfinished copy; None if there is none."""
        value = await engine.get(COPIES, _KEY, _KEY)
        return None if value is None else cls(engine, value)

    @classmethod
    async def begin(cls, engine: Engine, source: str) -> "Journal":
        """Begin a copy to an engine without a journal.

        Raises:
            MigrationError: another copy has begun meanwhile.
        """
        value = Position(source).to_bytes()
        await _swap(engine, None, value)
        return cls(engine, value)

    async def record(self, space: int, partition: str, row: str, entities: int) -> None:
        """Record the position of the copy, durably.

        Raises:
            MigrationError: another copy writes to the same journal.
        """
        position = replace(self.position, space=space, partition=partition, row=row, entities=entities)
        value = position.to_bytes()
        await _swap(self._engine, self._value, value)
        self._value, self.position = value, position

    async def end(self) -> None:
        """Remove the journal, so that the target may be served.

        Raises:
            MigrationError: see `record`.
        """
        await _swap(self._engine, self._value, None)


JOURNAL_KEY = encode_key(COPIES, _KEY, _KEY)
"""The key of the row in a store that no engine has open."""


async def reject_unfinished(engine: Engine, name: str) -> None:
    """Reject a store that is the target of an unfinished copy.

    Raises:
        StoreUnusableError: the copy is unfinished.
    """
    if await engine.get(COPIES, _KEY, _KEY) is not None:
        raise StoreUnusableError(f"{name} is {UNFINISHED}")


async def _swap(engine: Engine, before: bytes | None, after: bytes | None) -> None:
    if not await engine.commit(COPIES, _KEY, compare_and_swap({_KEY: before}, {_KEY: after})):
        raise MigrationError("another lazulite copy writes to the target")
