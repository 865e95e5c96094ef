"""Files against memory, for any order of calls and restarts."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, ContentMissingError, Owner
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.contract import SpaceDroppedError

from .test_contract import get, put
from .test_files import kill

_INDEXES = st.sampled_from([0, 1])
_FATES = st.sampled_from(["kept", "row only", "no row"])
_LENGTHS = st.sampled_from([0, 1, 100, WINDOW_BYTES, WINDOW_BYTES + 1])


class Contents(RuleBasedStateMachine):
    """What a row refers to is there; what none refers to is gone after the next start."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.temporary = TemporaryDirectory()
        self.path = Path(self.temporary.name) / "content"
        self.store = ContentFiles(self.path)
        self.left: list[ContentFiles] = []
        self.rows: dict[ContentId, bytes] = {}
        self.owners: dict[ContentId, Owner] = {}
        self.gone: set[ContentId] = set()
        self.undecided: set[ContentId] = set()
        self.dropped: set[int] = set()
        self.spaces = [5, 6]
        self.count = 0

    @rule(index=_INDEXES, length=_LENGTHS, fate=_FATES)
    def write(self, index: int, length: int, fate: str) -> None:
        self.count += 1
        data = self.count.to_bytes(4, "big") * (length // 4) + bytes(length % 4)
        self.add(self.spaces[index], data, fate, lambda owner: put(self.store, data, owner))

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), index=_INDEXES, fate=_FATES)
    def copy(self, data: st.DataObject, index: int, fate: str) -> None:
        self.count += 1
        source = data.draw(st.sampled_from(sorted(self.rows)))
        self.add(self.spaces[index], self.rows[source], fate, lambda owner: self.store.copy(source, owner))

    def add(self, space: int, data: bytes, fate: str, make: Callable[[Owner], Awaitable[ContentId]]) -> None:
        async def made() -> ContentId:
            return await make(Owner(space, str(self.count % 3)))

        try:
            content = self.loop.run_until_complete(made())
        except SpaceDroppedError:
            assert space in self.dropped
            return
        assert space not in self.dropped
        assert content not in self.rows.keys() | self.gone | self.undecided
        self.owners[content] = Owner(space, str(self.count % 3))
        if fate == "no row":
            self.undecided.add(content)
        else:
            self.rows[content] = data
        if fate == "kept":
            self.store.keep(content)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        content = data.draw(st.sampled_from(sorted(self.rows)))
        del self.rows[content]
        self.loop.run_until_complete(self.store.delete([content]))
        self.gone.add(content)

    async def references(self, owner: Owner) -> Collection[ContentId]:
        return {content for content in self.rows if self.owners[content] == owner}

    @rule(orderly=st.booleans())
    def restart(self, *, orderly: bool) -> None:
        if orderly:
            self.loop.run_until_complete(self.store.close())
        else:
            kill(self.store)
            self.left.append(self.store)
        self.store = ContentFiles(self.path)
        self.loop.run_until_complete(self.store.sweep(self.references))
        self.gone |= self.undecided
        self.undecided.clear()
        # A dropped space has no catalog row any more, so a later process does not hear of it.
        self.spaces = [space + 10 if space in self.dropped else space for space in self.spaces]

    @rule(index=_INDEXES)
    def drop(self, index: int) -> None:
        space = self.spaces[index]
        self.loop.run_until_complete(self.store.drop(space))
        self.dropped.add(space)
        for content in [content for content in self.rows if content.space == space]:
            del self.rows[content]
            self.gone.add(content)
        self.undecided = {content for content in self.undecided if content.space != space}

    @rule()
    def look(self) -> None:
        for content, data in self.rows.items():
            assert self.loop.run_until_complete(get(self.store, content, 0, len(data))) == data
        for content in self.gone:
            try:
                self.loop.run_until_complete(get(self.store, content, 0, 1))
            except ContentMissingError:
                continue
            raise AssertionError(content)

    def teardown(self) -> None:
        if hasattr(self, "loop"):
            self.look()
            for store in (self.store, *self.left):
                self.loop.run_until_complete(store.close())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()
            self.temporary.cleanup()


TestContents = Contents.TestCase
TestContents.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
