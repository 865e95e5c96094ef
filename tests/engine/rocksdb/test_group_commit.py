"""What a group shows while a group is on its way to the disk: `durable_within` against `durable`, key by key."""

import asyncio

import pytest

from lazulite.engine.rocksdb.commit_group import UNCHANGED, CommitGroup
from lazulite.engine.rocksdb.group_commit import Bounds, GroupCommit
from lazulite.engine.rocksdb.worker_thread import WorkerThread

KEYS = [b"a", b"b", b"b\0", b"c", b"d", b"e"]
FLUSHING = [(b"a", b"1", b"2"), (b"b", None, b"new"), (b"c", b"3", None), (b"e", b"5", b"6")]
OPEN = [(b"c", None, b"open"), (b"d", b"4", b"open")]


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([], id="no range"),
        pytest.param([(b"a", b"f")], id="one range"),
        pytest.param([(b"b", b"d")], id="a range in the middle"),
        pytest.param([(b"a", b"b"), (b"c", b"d")], id="two ranges with a key between them"),
        pytest.param([(b"a", b"b"), (b"b", b"c")], id="two ranges side by side"),
        pytest.param([(b"b", b"b\0"), (b"d", b"e"), (b"e", b"f")], id="three ranges"),
        pytest.param([(b"0", b"1"), (b"e", b"f")], id="a range before all keys"),
        pytest.param([(b"a", b"b"), (b"x", b"z")], id="a range after all keys"),
    ],
)
async def test_ranges_show_what_their_keys_show(ranges: list[Bounds]) -> None:
    writing, over = asyncio.Event(), asyncio.Event()

    async def write(group: CommitGroup) -> None:
        writing.set()
        await over.wait()

    with WorkerThread("test") as worker:
        group = GroupCommit(write, lambda: None, worker)
        group.join(FLUSHING)
        flushed = group.until_all_durable()
        await writing.wait()
        group.join(OPEN)
        inside = [key for key in KEYS if any(start <= key < end for start, end in ranges)]
        expected = {key: value for key in inside if (value := group.durable(key)) is not UNCHANGED}
        found = group.durable_within(ranges)
        over.set()
        await flushed
        assert found == expected
        assert group.durable_within(ranges) == {}
