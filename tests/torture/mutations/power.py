"""Mutations that power cuts must bring to light."""

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lazulite.auth.accounts import file_store
from lazulite.cli import backup_manifest
from lazulite.engine.rocksdb import data_directory
from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.database import OpenDatabase
from lazulite.engine.rocksdb.group_commit import UNCHANGED, Bounds, GroupCommit


def _sync_nothing() -> None:
    """Flush the log without a sync."""
    DataDirectory.durable = property(lambda _: False)  # type: ignore[assignment,method-assign]  # That is the mutation.


def _leave_out_syncs() -> None:
    """Leave out the sync of each 100th group."""
    sync = OpenDatabase._sync
    numbers = itertools.count(1)

    def mostly(self: OpenDatabase) -> None:
        if next(numbers) % 100:
            sync(self)

    OpenDatabase._sync = mostly  # type: ignore[method-assign]


def _answer_early() -> None:
    """Answer when a group is written, and sync it afterwards."""

    async def flush_group(self: Any) -> None:
        group = self._close()
        await self._write(group)
        self._acknowledge(group)
        await self._worker.run(self._sync)

    GroupCommit._flush_group = flush_group  # type: ignore[method-assign]


def _show_unsynced() -> None:
    """Show readers what the database holds, whether it is durable or not."""
    GroupCommit.durable = lambda *_: UNCHANGED  # type: ignore[method-assign]
    GroupCommit.durable_within = lambda *_: {}  # type: ignore[method-assign]


def _show_unsynced_ranges() -> None:
    """Show queries of several key ranges what the database holds, and be right with all others."""
    within = GroupCommit.durable_within

    def durable_within(self: GroupCommit, ranges: Sequence[Bounds]) -> dict[bytes, bytes | None]:
        return {} if len(ranges) > 1 else within(self, ranges)

    GroupCommit.durable_within = durable_within  # type: ignore[method-assign]


def _forget_names() -> None:
    """Make directories without a sync of the one above."""

    def make(path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    for module in (data_directory, file_store, backup_manifest):
        module.make_private = make  # type: ignore[attr-defined]  # Imported there, not exported.


def _accounts_unsynced() -> None:
    """Replace the account file without a sync."""

    def replace(path: Path, content: bytes) -> None:
        temporary = path.with_name(f"{path.name}.new")
        temporary.write_bytes(content)
        os.rename(temporary, path)

    file_store.replace_durably = replace


MUTATIONS: dict[str, Callable[[], None]] = {
    "sync-nothing": _sync_nothing,
    "leave-out-syncs": _leave_out_syncs,
    "answer-early": _answer_early,
    "show-unsynced": _show_unsynced,
    "show-unsynced-ranges": _show_unsynced_ranges,
    "forget-names": _forget_names,
    "accounts-unsynced": _accounts_unsynced,
}
