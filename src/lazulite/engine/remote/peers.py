"""Commits for each other: the processes of one machine that share a database, over Unix sockets in one directory.

The *owner* of a partition is the live process that rendezvous hashing chooses. A process that meets contention on a
partition sends it the commit instead of a statement to the database, so the owner's statements have the rows of all.

    to the owner                                               to the sender
    (FORWARD, n, deadline, space, partition, name, argument)   (DONE, n, result), (REJECTED, n, rejection),
                                                               (FAILED, n, kind of EngineError, text)
                                                               (DECLINED, n): nothing was done, nor will be
    (PING, n)                                                  (PONG, n)
                                                               (LEAVE, 0): send no more, close once all is answered

Invariants:

1. The owner is a hint. It commits as each process does, so the database decides. Two processes may each take another
   one for the owner; this costs time only.
2. What was forwarded is not forwarded again.
3. A commit is sent once. If the owner declines it, the sender makes it. If the owner is lost, or does not answer until
   the deadline, the outcome is unknown, as that of a statement whose connection is lost.
4. The owner begins no commit after its deadline, which is a time of the machine's monotonic clock. So a process that
   was stopped for long does not write what others have given up.
5. A process is live while it answers a ping a second. One that is stopped gets no commits from then on.
6. A process that leaves answers what it has got, and no commit is lost.

Both ends are the same program under the same user: the directory is closed to others (see `channel`).
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, TypeVar

from lazulite.engine.commit import Commit, CommitProcedure, Plain
from lazulite.engine.contract import EngineUnavailableError
from lazulite.engine.remote import messages
from lazulite.engine.remote.channel import Channel, Message
from lazulite.engine.remote.codec import Codec

DISCOVERY_SECONDS = 1.0
"""The seconds between two searches for new processes, which also ping the known ones."""
LEAVE_SECONDS_MAX = 3.0
"""How long a process that leaves waits for others to close their connections."""

T = TypeVar("T")


class DeclinedError(Exception):
    """The owner did nothing with a commit; another process may make it."""


class Committer(Protocol):
    """Commits in this process, although another one may be the owner; see `Engine.commit`."""

    def __call__(self, space: int, partition: str, commit: Commit[T], /) -> Awaitable[T]:
        """Return an awaitable of the commit's result."""
        ...


class Peer:
    """The connection to another process, to which commits are sent.

    Args:
        name: of its socket.
        codec: the same as its.
        lost: called when it is gone.
    """

    def __init__(self, name: str, codec: Codec, lost: Callable[["Peer"], None]) -> None:
        self.name = name
        self.channel = Channel(self._received, self._gone)
        self.live = False
        """Whether it answered the latest ping."""
        self._codec = codec
        self._lost = lost
        self._number = 0
        self._pinged = False
        self._leaving = False
        self._pending: dict[int, asyncio.Future[Plain]] = {}

    def ping(self) -> None:
        """Ask whether it is live; it is not if it has not answered the last time."""
        if self._pinged:
            self.live = False
            return
        self._pinged = True
        self.channel.post((messages.PING, 0))

    async def commit(
        self, space: int, partition: str, procedure: CommitProcedure[T], argument: object, seconds_max: float
    ) -> T:
        """Have it commit.

        Raises:
            DeclinedError: it has done nothing, and will not.
            EngineUnavailableError: it is gone or silent; the outcome is unknown.
            EngineError: its engine failed.
        """
        self._number += 1
        number = self._number
        answer: asyncio.Future[Plain] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        deadline = time.monotonic() + seconds_max
        payload = procedure.encode(argument)
        self.channel.post((messages.FORWARD, number, deadline, space, partition, procedure.name, payload))
        try:
            async with asyncio.timeout(seconds_max):
                return procedure.decode_result(await answer)
        except TimeoutError:
            raise EngineUnavailableError("the process that commits to the partition does not answer") from None
        finally:
            self._pending.pop(number, None)
            del answer  # An error's traceback refers to this frame, and the frame would refer to the error.
            self._hang_up()

    def _hang_up(self) -> None:
        if self._leaving and not self._pending:
            self.channel.close()

    def _received(self, message: Message) -> None:
        kind, number = message[0], message[1]
        if kind == messages.PONG:
            self._pinged = False
            self.live = not self._leaving
        elif kind == messages.LEAVE:
            self._leaving, self.live = True, False
            self._hang_up()
        elif (answer := self._pending.pop(number, None)) is not None and not answer.done():
            if kind == messages.DONE:
                answer.set_result(message[2])
            elif kind == messages.DECLINED:
                answer.set_exception(DeclinedError())
            else:
                answer.set_exception(self._codec.decode_failure(message))

    def _gone(self) -> None:
        self.live = False
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(EngineUnavailableError("the process that commits to the partition is gone"))
        self._pending.clear()
        self._lost(self)


class _PeerSession:
    """The connection from another process, for which this one commits."""

    def __init__(self, peers: "Peers") -> None:
        self.channel = Channel(self._received, self._lost, patient=True)
        self._peers = peers
        self._tasks: set[asyncio.Task[None]] = set()
        peers.sessions.add(self)
        if peers.leaving:
            self.channel.post((messages.LEAVE, 0))

    def _received(self, message: Message) -> None:
        kind, number, *rest = message
        if kind == messages.PING:
            self.channel.post((messages.PONG, number))
            return
        deadline, space, partition, name, payload = rest
        procedure = self._peers.codec.commits.get(name)
        if procedure is None or self._peers.leaving or time.monotonic() > deadline:
            self.channel.post((messages.DECLINED, number))
            return
        task = asyncio.get_running_loop().create_task(self._commit(number, space, partition, procedure, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _commit(
        self, number: int, space: int, partition: str, procedure: CommitProcedure[Plain], payload: Plain
    ) -> None:
        try:
            result = await self._peers.commit_here(space, partition, procedure.make(payload))
        except Exception as failure:  # noqa: BLE001 - whatever it is, the sender waits for a response
            self.channel.post(self._peers.codec.encode_failure(number, failure, self._peers.report))
        else:
            self.channel.post((messages.DONE, number, procedure.encode_result(result)))

    def _lost(self) -> None:
        """Forget the sender; its commits go on, so that none is left half done."""
        self._peers.sessions.discard(self)


class Peers:
    """The other processes in a directory, and this one's place among them.

    Args:
        directory: of the sockets. Only this user may enter it.
        codec: the same as the others'.
        commit_here: makes the commits of others.
        report: takes a line for people about a commit that failed by a defect.

    Attributes:
        leaving: whether commits of others are declined from now on.
        sessions: the connections from others.
    """

    def __init__(self, directory: Path, codec: Codec, commit_here: Committer, report: Callable[[str], None]) -> None:
        self.codec = codec
        self.commit_here = commit_here
        self.report = report
        self.leaving = False
        self.sessions: set[_PeerSession] = set()
        self._directory = directory
        self._name = secrets.token_hex(4)
        self._peers: dict[str, Peer] = {}
        """The processes that this one is connected to, by name."""
        self._server: asyncio.AbstractServer | None = None
        self._discovering: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take commits of others from now on, and look for them.

        Raises:
            OSError: there can be no socket in the directory.
        """
        unready = self._directory / f".{self._name}"  # No process connects to it before it listens.
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: _PeerSession(self).channel, path=str(unready)
        )
        unready.rename(self._directory / self._name)
        self._discovering = asyncio.create_task(self._discover_repeatedly())

    def owner(self, space: int, partition: str) -> Peer | None:
        """Return the process that commits to a partition; None: this one."""
        key = f"{space} {partition}".encode("utf-8", "surrogatepass")
        names = [self._name, *(name for name, peer in self._peers.items() if peer.live)]
        return self._peers.get(max(names, key=lambda name: _weight(name, key)))

    async def discover(self) -> None:
        """Connect to the processes that are new, and ping all."""
        for name in self._names():
            if name not in self._peers and name != self._name:
                await self._connect(name)
        for peer in self._peers.values():
            peer.ping()

    def _names(self) -> Sequence[str]:
        with suppress(OSError):
            return [path.name for path in self._directory.iterdir() if not path.name.startswith(".")]
        return ()

    async def _connect(self, name: str) -> None:
        peer = self._peers[name] = Peer(name, self.codec, self._lost)
        path = self._directory / name
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: peer.channel, path=str(path))
        except OSError as error:
            self._lost(peer)
            if isinstance(error, ConnectionRefusedError):  # Its process has ended.
                path.unlink(missing_ok=True)

    def _lost(self, peer: Peer) -> None:
        self._peers.pop(peer.name, None)

    async def _discover_repeatedly(self) -> None:
        while True:
            await self.discover()
            await asyncio.sleep(DISCOVERY_SECONDS)

    def leave(self) -> None:
        """Decline commits of others from now on; go on with the commits that were taken."""
        self.leaving = True
        (self._directory / self._name).unlink(missing_ok=True)
        if self._discovering is not None:
            self._discovering.cancel()
        for session in self.sessions:
            session.channel.post((messages.LEAVE, 0))

    async def close(self) -> None:
        """Return when the others have closed their connections, after `leave` and all commits."""
        if self._discovering is not None:
            await asyncio.wait([self._discovering])
        ends = [session.channel.closed() for session in self.sessions]
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS_MAX):
                await asyncio.gather(*ends)
        channels = [session.channel for session in self.sessions]
        channels += [peer.channel for peer in self._peers.values()]
        for channel in channels:
            channel.close()
        await asyncio.gather(*(channel.closed() for channel in channels))
        if self._server is not None:
            self._server.close()


def _weight(name: str, key: bytes) -> bytes:
    return blake2b(key, key=name.encode(), digest_size=8).digest()
