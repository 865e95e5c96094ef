"""The first pass of a copy: what the source has is made in the target, page after page, several items at once.

Invariants:
- A copy that is repeated makes the same: rows and blobs are replaced, resources that are there are kept.
- Nothing of the target is deleted, but the messages of a queue that an interrupted copy began to fill.
- Memory holds a page of a list, and a piece of a blob for each worker.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from lazulite.account_copy.journal import CopyError, Journal
from lazulite.account_copy.sender_pairs import SenderPairs
from lazulite.resources import blobs, containers, queues, tables
from lazulite.resources.blobs import BlobAddress, ListedBlob
from lazulite.resources.policies import is_same_metadata
from lazulite.resources.queues import Message
from lazulite.resources.sender import RequestError

LISTED_MAX = 20
"""Names of blobs that were left out; the others are counted."""
_SYSTEM_CONTAINERS = ("$logs", "$blobchangefeed")
_ARCHIVED = "BlobArchived"
_FOLLOWING = "marker"


class MessageSource(Protocol):
    """Tells the messages of a queue of the source."""

    repeats: bool
    """Whether a second reading tells the same messages."""

    def __call__(self, queue: str) -> Iterator[Message]:
        """Yield the messages, in their order. Raises `RequestError` and `CopyError`."""
        ...


@dataclass(slots=True)
class Copied:
    """What was copied. It is also shown as the progress."""

    entities: int = 0
    messages: int = 0
    blobs: int = 0
    bytes: int = 0
    resource: str = ""
    left_out: list[str] = field(default_factory=list)
    """Why something was not copied, a line each."""
    verb: str = "copied"

    @property
    def done(self) -> int:
        """What the rate is of."""
        return self.entities + self.messages + self.blobs

    @property
    def of_total(self) -> None:
        """The total is unknown."""
        return None

    @property
    def counts(self) -> Mapping[str, int | None]:
        """The numbers by their names."""
        return {"entities": self.entities, "messages": self.messages, "blobs": self.blobs, "bytes": self.bytes}

    def describe(self, rate: float) -> str:
        """Return the progress in words."""
        counts = f"{self.entities:,} entities, {self.messages:,} messages, {self.blobs:,} blobs"
        return f"{self.resource}: {counts}, {self.bytes / (1 << 20):,.1f} MiB {self.verb} ({rate:,.0f}/s)"


class _Kind(NamedTuple):
    """One kind of resource."""

    name: str
    names: Callable[[], Iterable[str]]
    copy: Callable[[str, Mapping[str, str]], None]
    """Takes the name and what leads to the next page."""


class AccountCopy:
    """One copy of an account.

    Args:
        sides: of the copy.
        journal: of the copy.
        messages: tells the messages of the source; None: they are left out.
        show: called often, each time with the same object.
    """

    def __init__(
        self, sides: SenderPairs, journal: Journal, messages: MessageSource | None, show: Callable[[Copied], None]
    ) -> None:
        self._sides = sides
        self._journal = journal
        self._messages = messages
        self._show = show
        self.copied = Copied()
        """What was copied since this process began."""

    def run(self) -> Copied:
        """Copy all tables, queues and containers that the journal does not have.

        Raises:
            CopyError: a request was rejected, or got no response. The same copy goes on later.
        """
        source = self._sides.pair().source
        kinds = (
            _Kind("table", lambda: tables.table_names(source), self._table),
            _Kind("queue", lambda: queues.queue_names(source), self._queue),
            _Kind("container", lambda: containers.container_names(source), self._container),
        )
        done = set(self._journal.done)
        for kind in kinds:
            for name in self._named(kind):
                resource = f"{kind.name}/{name}"
                if resource not in done:
                    self._copy(kind, name, resource)
        return self.copied

    def _named(self, kind: _Kind) -> list[str]:
        try:
            return [name for name in kind.names() if name not in _SYSTEM_CONTAINERS]
        except RequestError as error:
            raise CopyError(f"the {kind.name}s of the source: {error}") from None

    def _copy(self, kind: _Kind, name: str, resource: str) -> None:
        self.copied.resource = f"{kind.name} {name}"
        try:
            kind.copy(name, self._journal.begin(resource))
        except RequestError as error:
            raise CopyError(f"{kind.name} {name}: {error}") from None
        self._journal.end()

    def _table(self, name: str, following: Mapping[str, str]) -> None:
        source, target = self._sides.pair()
        if not tables.has_table(target, name):
            tables.create_table(target, name)
        policies = tables.table_policies(source, name)
        if policies:
            tables.set_table_policies(target, name, policies)
        while True:
            page = tables.entity_page(source, name, following)
            for count in self._sides.pool.map(lambda batch: self._put(name, batch), tables.batches(page.entities)):
                self.copied.entities += count
                self._show(self.copied)
            following = page.following
            if not following:
                return
            self._journal.note(following)

    def _put(self, table: str, batch: list[tables.Entity]) -> int:
        tables.put_entities(self._sides.pair().target, table, batch)
        return len(batch)

    def _queue(self, name: str, _: Mapping[str, str]) -> None:
        source, target = self._sides.pair()
        state, there = queues.find_queue(source, name), queues.find_queue(target, name)
        if state is None:
            return
        if there is None:
            queues.create_queue(target, name, state.metadata)
        elif not is_same_metadata(state.metadata, there.metadata):
            queues.set_queue_metadata(target, name, state.metadata)
        policies = queues.queue_policies(source, name)
        if policies:
            queues.set_queue_policies(target, name, policies)
        if self._messages is not None:
            self._copy_messages(name, 0 if there is None else there.messages, self._messages)

    def _copy_messages(self, name: str, count: int, messages: MessageSource) -> None:
        """Put the messages of a queue of the source, if the target has none that another program has put."""
        began = self._journal.following.get("messages") == "begun"
        target = self._sides.pair().target
        if count and not began:
            self.copied.left_out.append(f"messages of queue {name}: the target has {count:,} already")
            return
        if count and messages.repeats:
            queues.clear_messages(target, name)
        self._journal.note({"messages": "begun"})
        for message in messages(name):
            queues.put_message(target, name, message)
            self.copied.messages += 1
            self._show(self.copied)

    def _container(self, name: str, following: Mapping[str, str]) -> None:
        source, target = self._sides.pair()
        state, there = containers.find_container(source, name), containers.find_container(target, name)
        if state is None:
            return
        access = containers.container_access(source, name)
        if there is None:
            containers.create_container(target, name, state.metadata, "")
        elif not is_same_metadata(state.metadata, there.metadata):
            containers.set_container_metadata(target, name, state.metadata)
        self._set_access(name, access)
        marker = following.get(_FOLLOWING, "")
        while True:
            page = blobs.blob_page(source, name, marker)
            copy_one = self._copier(name, is_new=there is None)
            for bytes_ in self._sides.pool.map(copy_one, page.blobs):
                self.copied.blobs += 1
                self.copied.bytes += bytes_
                self._show(self.copied)
            marker = page.marker
            if not marker:
                return
            self._journal.note({_FOLLOWING: marker})

    def _set_access(self, name: str, access: containers.ContainerAccess) -> None:
        target = self._sides.pair().target
        if not (access.public or access.policies):
            return
        try:
            containers.set_container_access(target, name, access.public, access.policies)
        except RequestError as error:
            if error.code != "PublicAccessNotPermitted":
                raise
            self.copied.left_out.append(f"public access of container {name}: the target's account does not permit it")
            containers.set_container_access(target, name, "", access.policies)

    def _copier(self, container: str, *, is_new: bool) -> Callable[[ListedBlob], int]:
        def copy(listed: ListedBlob) -> int:
            address = BlobAddress(container, listed.name)
            try:
                return self._copy_blob(address, listed.state, is_new=is_new)
            except RequestError as error:
                if error.code != _ARCHIVED:
                    raise
                self._leave_out(f"blob {container}/{listed.name}: it is archived, and cannot be read")
                return 0

        return copy

    def _leave_out(self, line: str) -> None:
        if len(self.copied.left_out) <= LISTED_MAX:
            more = "more was left out" if len(self.copied.left_out) == LISTED_MAX else line
            self.copied.left_out.append(more)

    def _copy_blob(self, address: BlobAddress, state: blobs.BlobState, *, is_new: bool) -> int:
        """Copy a blob, unless the target has it; return the bytes that were read."""
        source, target = self._sides.pair()
        tags = blobs.blob_tags(source, address, state)
        if not is_new and state.md5:
            there = blobs.find_blob(target, address)
            if there is not None and is_same_state(state, there) and blobs.blob_tags(target, address, there) == tags:
                return 0

        def read(start: int, stop: int) -> bytes:
            return b"".join(
                blobs.read_range(source, address, at, min(at + blobs.PIECE_BYTES, stop), state.etag)
                for at in range(start, stop, blobs.PIECE_BYTES)
            )

        blobs.write_blob(target, address, state, tags, read)
        return state.length


def is_same_state(first: blobs.BlobState, second: blobs.BlobState) -> bool:
    """Tell whether two blobs have the same properties, metadata, length and MD5, as far as the services know it."""
    return (
        (first.kind, first.length, first.md5) == (second.kind, second.length, second.md5)
        and _fields(first) == _fields(second)
        and (not first.tier or first.tier == second.tier)
        and is_same_metadata(first.metadata, second.metadata)
    )


def _fields(state: blobs.BlobState) -> dict[str, str]:
    return {name: text for name, text in state.fields.items() if (name, text) != ("Content-Type", blobs.DEFAULT_TYPE)}
