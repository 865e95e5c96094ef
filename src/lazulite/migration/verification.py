"""Verify a store through its engine: every row, and every content to which one refers.

The checks are those of `records.verification`, whatever the engine, but for timestamps, as no engine tells the
greatest of them. Other processes may serve meanwhile: a content that cannot be read is a problem only if its row still
refers to it afterwards. Memory holds a slice of rows and a few windows of some contents.
"""

from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from lazulite.engine.content.contract import WINDOW_BYTES, ContentStore
from lazulite.engine.contract import Engine, EngineError, KeyRange
from lazulite.engine.key_encoding import encode_key
from lazulite.migration.in_flight import CommitWindow
from lazulite.records.spaces import COUNTERS, Spaces
from lazulite.records.verification import Reference, Verification, VerificationReport

_MEMORY_BYTES = 8 * WINDOW_BYTES
"""The memory of one content that is read: windows that are looked at, and windows that were read ahead."""
_TIMESTAMP_MAX: Final = 2**63 - 1


class StoreVerifier:
    """Verifies one store.

    Args:
        engine: has the rows.
        contents: those to which the rows refer.
        spaces: the registry of all services.
    """

    def __init__(self, engine: Engine, contents: ContentStore, spaces: Spaces) -> None:
        self._engine = engine
        self._contents = contents
        self._spaces = spaces
        self._verification = Verification(_TIMESTAMP_MAX, spaces)

    async def run(self, report: Callable[[VerificationReport], None]) -> VerificationReport:
        """Read everything; return what was found. `report` is called often, each time with the same findings.

        Raises:
            EngineError: the store cannot be read.
        """
        verification = self._verification
        async with CommitWindow[None](lambda _: None) as window:
            # The counter comes last, as spaces are given out while the catalogs are read.
            own = sorted((space.number for space in self._spaces), key=lambda number: (number == COUNTERS, number))
            for space in own:
                await self._look_at(space, window, report)
            for space in verification.owned:
                await self._look_at(space, window, report)
        verification.finish(is_still=False)
        return verification.findings

    async def _look_at(
        self, space: int, window: CommitWindow[None], report: Callable[[VerificationReport], None]
    ) -> None:
        async with aclosing(self._engine.scan(space, [KeyRange(("", ""), None)])) as slices:
            async for piece in slices:
                for index, value in enumerate(piece.values):
                    raw = encode_key(space, *piece.key(index))
                    for reference in self._verification.verify_row(raw, value):
                        await window.add(self._read(reference), _MEMORY_BYTES, None)
                report(self._verification.findings)

    async def _read(self, reference: Reference) -> None:
        findings = self._verification.findings
        try:
            length = await self._contents.length(reference.content, reference.claim)
            async with aclosing(self._contents.read(reference.content, 0, length, reference.claim)) as pieces:
                async for _ in pieces:
                    pass
        except EngineError as error:
            value = await self._engine.get(reference.space, *reference.key)
            if value is not None and self._verification.refers(reference, value):
                findings.note(reference.problem(error))
        else:
            findings.content_bytes += length
