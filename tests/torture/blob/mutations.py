"""Servers that break one promise of leases or conditional writes each, which the campaign must find."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import TypeVar
from uuid import UUID

from lazulite.blob.blobs import delete_blob, properties, put_blob, tiers
from lazulite.blob.blocks import append_blob, put_block
from lazulite.blob.blocks.put_block_list import NewList
from lazulite.blob.containers import leases
from lazulite.blob.model.conditions import Conditions, Outcome
from lazulite.blob.model.lease import Lease, LeaseError, acquire
from lazulite.blob.model.ledger import Ledger
from lazulite.blob.model.transaction import Decide, Transaction
from lazulite.blob.pages import put_page
from lazulite.blob.requests.preconditions import Leasable, LeaseUse, Preconditions
from lazulite.blob.storage.partitions import Partitions
from lazulite.blob.tags import blob_tags

T = TypeVar("T")


def two_holders() -> None:
    """Give a lease to whatever client asks for one."""

    def give(lease: Lease | None, now: int, proposed: UUID, duration: int) -> Lease:
        try:
            return acquire(lease, now, proposed, duration)
        except LeaseError:
            return acquire(None, now, proposed, duration)

    vars(leases)["acquire"] = give


def unchecked_lease() -> None:
    """Let writes of a whole blob and of its properties keep the lease, and not ask for its id."""
    _ask_no_id(properties, put_blob, delete_blob)


def unchecked_append() -> None:
    """Let Append Block do so."""
    _ask_no_id(append_blob)


def unchecked_pages() -> None:
    """Let Put Page do so."""
    _ask_no_id(put_page)


def unchecked_tags_and_blocks() -> None:
    """Let Set Blob Tags, Set Blob Tier and Put Block do so."""
    _ask_no_id(put_block, blob_tags, tiers)


def _ask_no_id(*modules: ModuleType) -> None:
    """Let operations of some modules accept a write without the id of the lease that is held."""
    names, allow = {module.__name__ for module in modules}, Preconditions.allow_write

    def keep(self: Preconditions, found: Leasable | None, present: int) -> Lease | None:
        if sys._getframe(1).f_globals["__name__"] in names:
            self = self._replace(row=self.row._replace(lease=LeaseUse.CHECKED))
        return allow(self, found, present)

    Preconditions.allow_write = keep  # type: ignore[method-assign]


def check_then_commit() -> None:
    """Decide by what is stored before the commit."""
    commit = Partitions.commit

    async def late(
        partitions: Partitions, space: int, name: str, decide: Decide[T], rows: Sequence[str] = ()
    ) -> tuple[Transaction, T]:
        found: list[tuple[Transaction, T]] = []

        def look(transaction: Transaction) -> None:
            found[:] = [(transaction, decide(transaction))]
            raise _LookedError

        with suppress(_LookedError):
            await commit(partitions, space, name, look, rows)
        early, result = found[0]

        def write(transaction: Transaction) -> T:
            transaction.ledger = early.ledger
            transaction.changes = early.changes  # type: ignore[method-assign]  # That is the mutation.
            return result

        await asyncio.sleep(0)
        return await commit(partitions, space, name, write, [*early._values])

    Partitions.commit = late  # type: ignore[method-assign, assignment]


def lost_lease() -> None:
    """Let a blob that is overwritten lose its lease."""
    put = put_blob.NewBlob.put
    put_blob.NewBlob.put = (  # type: ignore[method-assign]
        lambda self, transaction, blob: put(self, transaction, blob._replace(lease=None))
    )


def kept_blocks() -> None:
    """Keep uncommitted blocks when the blob is replaced."""
    Ledger.end_upload = lambda self: self  # type: ignore[method-assign]


def any_blocks() -> None:
    """Commit a list whose blocks were replaced meanwhile."""
    NewList.is_current = lambda *_: True  # type: ignore[method-assign]


def unmet() -> None:
    """Take every If-Match for met."""
    write = Conditions.write

    def met(conditions: Conditions, found: object, *, creates: bool = False) -> Outcome:
        outcome = write(conditions, found, creates=creates)  # type: ignore[arg-type]  # as there
        return Outcome.MET if outcome is Outcome.FAILED else outcome

    Conditions.write = met  # type: ignore[method-assign, assignment]


class _LookedError(Exception):
    pass


MUTATIONS: dict[str, Callable[[], None]] = {
    f"blob-{each.__name__.replace('_', '-')}": each
    for each in (
        *(two_holders, unchecked_lease, unchecked_append, unchecked_pages, unchecked_tags_and_blocks),
        *(check_then_commit, lost_lease, kept_blocks, any_blocks, unmet),
    )
}
