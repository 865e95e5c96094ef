"""Blocks and lists against a model: for any history, reads, lists of blocks, rows and contents are what they should."""

import asyncio
from contextlib import AsyncExitStack
from xml.etree import ElementTree as ET

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lazulite.blob.model.blob import INLINE_BYTES_MAX
from tests.blob.world import World, id_of, opened

NAMES = st.sampled_from("abcd")
SIZES = st.sampled_from([1, 5, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1])
ENTRIES = st.lists(st.tuples(st.sampled_from(["Latest", "Committed", "Uncommitted"]), NAMES), max_size=4)
LIST = "comp=blocklist&blocklisttype=all"

Blocks = list[tuple[str, bytes]]


class BlockMachine(RuleBasedStateMachine):
    """Puts blocks, lists and whole blobs; reads all after each step."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.world: World = self._runner.run(self._stack.enter_async_context(opened()))
        self.content: bytes | None = None
        self.committed: Blocks = []
        self.uncommitted: dict[str, bytes] = {}

    def teardown(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    @rule(name=NAMES, size=SIZES, letter=st.sampled_from(b"xyz"))
    def put_block(self, name: str, size: int, letter: int) -> None:
        data = bytes([letter]) * size
        assert self._runner.run(self.world.put_block(name, data)).status == 201
        self.uncommitted[name] = data

    @rule(entries=ENTRIES)
    def put_list(self, entries: list[tuple[str, str]]) -> None:
        chosen = [self._chosen(source, name) for source, name in entries]
        answer = self._runner.run(self.world.put_list(*entries))
        if None in chosen:
            assert (answer.status, answer.code) == (400, "InvalidBlockList")
            return
        assert answer.status == 201
        self.committed = [block for block in chosen if block is not None]
        self.content = b"".join(data for _, data in self.committed)
        self.uncommitted = {}

    @rule(size=SIZES)
    def put_blob(self, size: int) -> None:
        data = b"b" * size
        assert self._runner.run(self.world.ask("PUT", body=data, x_ms_blob_type="BlockBlob")).status == 201
        self.content, self.committed, self.uncommitted = data, [], {}

    @precondition(lambda self: self.content is not None)
    @rule()
    def delete(self) -> None:
        assert self._runner.run(self.world.ask("DELETE")).status == 202
        self.content, self.committed, self.uncommitted = None, [], {}

    @rule()
    def restart(self) -> None:
        self._runner.run(self.world.context.garbage.wait_until_idle())
        self.world.restart()

    @invariant()
    def reads_agree(self) -> None:
        self._runner.run(self._check())

    async def _check(self) -> None:
        answer = await self.world.ask("GET")
        assert (answer.status, answer.body if answer.status == 200 else None) == (
            (404, None) if self.content is None else (200, self.content)
        )
        listed = await self.world.ask("GET", query=LIST)
        if self.content is None and not self.uncommitted:
            assert listed.code == "BlobNotFound"
        else:
            assert _listed(listed.body) == (
                [(id_of(name), len(data)) for name, data in self.committed],
                sorted((id_of(name), len(data)) for name, data in self.uncommitted.items()),
            )
        datas = [data for _, data in self.committed] or ([] if self.content is None else [self.content])
        large = {data for data in [*datas, *self.uncommitted.values()] if len(data) > INLINE_BYTES_MAX}
        # A list may name two blocks of the same bytes, and one block twice.
        assert {self.world.contents._contents[each].data for each in await self.world.kept()} == large
        rows = [row for row in await self.world.rows() if row != "a"]
        most = (self.content is not None) + len(self.uncommitted) + bool(self.committed)
        assert len(rows) == most, rows

    def _chosen(self, source: str, name: str) -> tuple[str, bytes] | None:
        if source != "Committed" and name in self.uncommitted:
            return name, self.uncommitted[name]
        found = [block for block in self.committed if block[0] == name]
        return found[0] if source != "Uncommitted" and found else None


def _listed(body: bytes) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    committed, uncommitted = (
        [(block.findtext("Name", ""), int(block.findtext("Size", ""))) for block in part]
        for part in ET.fromstring(body.decode("utf-8-sig"))
    )
    return committed, sorted(uncommitted)


TestBlocks = BlockMachine.TestCase
TestBlocks.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
