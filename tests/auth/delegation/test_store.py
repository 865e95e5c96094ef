"""Secrets of user delegation keys, shared by processes, and the users that have keys."""

import asyncio
from itertools import count

import pytest

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.delegation.key import KEY_SECONDS_MAX, KEY_SKEW_SECONDS, SECRET_SECONDS, DelegationKey, Secret
from lazulite.auth.delegation.store import DELEGATIONS_SPACE, DelegationStore
from lazulite.auth.grant import Identity
from lazulite.engine.contract import KeyRange
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.records.catalog import TimeToLive
from lazulite.records.spaces import DELEGATIONS
from tests.fuzz.memory import MemoryEngine

NOW_S = 1_900_000_000
USER = Identity("user", "tenant", frozenset({"role"}), float(NOW_S))


class World:
    """One engine, and processes on it."""

    def __init__(self) -> None:
        self.now_s = NOW_S
        self.engine = MemoryEngine(self.ticks)
        self.accounts = AccountDirectory({})
        self.accounts.replace({"acct": StoredAccount((b"1", b"2"))})
        self._numbers = count(1)

    def ticks(self) -> int:
        return self.now_s * TICKS_PER_SECOND + UNIX_EPOCH_TICKS

    def process(self, service: str = "queue") -> DelegationStore:
        ttl = TimeToLive(1, lambda: float(self.now_s))
        return DelegationStore(self.engine, service, self.accounts, self.ticks, self._random_bytes, ttl)

    def _random_bytes(self, size: int) -> bytes:
        return next(self._numbers).to_bytes(size, "big")

    def revoke(self) -> None:
        self.accounts.replace({"acct": StoredAccount((b"1", b"2"), self.now_s + 1)})

    def until(self, seconds: int = KEY_SECONDS_MAX) -> int:
        return self.ticks() + seconds * TICKS_PER_SECOND

    async def rows(self) -> list[str]:
        rows = []
        async for part in self.engine.scan(DELEGATIONS, [KeyRange(("", ""), None)]):
            for index, value in enumerate(part.values):
                assert DELEGATIONS_SPACE.verify is not None
                DELEGATIONS_SPACE.verify(part.key(index), value)
                rows.append(part.key(index)[1])
        return rows


async def test_processes_share_a_secret() -> None:
    world = World()
    one, two = world.process(), world.process()
    secret = await one.delegate("acct", USER, world.until())
    assert await two.delegate("acct", USER, world.until()) == secret
    assert list(await world.process().secrets("acct")) == [secret], "as after a restart"
    assert list(await one.secrets("other")) == []
    assert list(await world.process("blob").secrets("acct")) == []
    assert str(secret.content) not in repr(secret)


async def test_absent_secrets_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    store, reads = world.process(), []
    get = world.engine.get

    async def counted(space: int, partition: str, row: str) -> bytes | None:
        reads.append(row)
        return await get(space, partition, row)

    monkeypatch.setattr(world.engine, "get", counted)
    for _ in range(10):
        assert list(await store.secrets("acct")) == []
    assert reads == ["queue!secrets"]
    secret = await store.delegate("acct", USER, world.until())
    assert list(await store.secrets("acct")) == [secret]


async def test_a_secret_verifies_the_last_of_its_keys() -> None:
    world = World()
    store = world.process()
    first = await store.delegate("acct", USER, world.until())
    world.now_s += SECRET_SECONDS - 1
    assert await store.delegate("acct", USER, world.until()) == first
    world.now_s += 1
    second = await store.delegate("acct", USER, world.until())
    assert second != first
    assert set(await store.secrets("acct")) == {first, second}
    world.now_s = NOW_S + SECRET_SECONDS + KEY_SECONDS_MAX + KEY_SKEW_SECONDS
    assert set(await store.secrets("acct")) == {first, second}
    world.now_s += 1
    assert set(await store.secrets("acct")) == {second}
    for _ in range(10):
        world.now_s += SECRET_SECONDS
        await store.delegate("acct", USER, world.until())
        assert len(await store.secrets("acct")) <= 3


async def test_a_revocation_ends_all_secrets() -> None:
    world = World()
    one, two = world.process(), world.process()
    first = await one.delegate("acct", USER, world.until())
    assert list(await two.secrets("acct")) == [first]
    world.revoke()
    assert list(await one.secrets("acct")) == list(await two.secrets("acct")) == []
    second = await one.delegate("acct", USER, world.until())
    assert second != first
    assert await one.delegate("acct", USER, world.until()) == second
    world.now_s += 2
    assert list(await two.secrets("acct")) == [second]
    world.accounts.replace({"acct": StoredAccount((b"1", b"2"))})
    assert list(await one.secrets("acct")) == [second], "an older process that drops the revocation revives nothing"


async def test_a_user_is_forgotten_after_the_last_key() -> None:
    world = World()
    store = world.process()
    await store.delegate("acct", USER, world.until(60))
    await store.delegate("acct", USER._replace(oid="other"), world.until(KEY_SECONDS_MAX))
    assert len(await world.rows()) == 3
    world.now_s += SECRET_SECONDS
    await store.delegate("acct", USER._replace(oid="third"), world.until())
    assert sorted(await world.rows()) == ["queue!secrets", "queue!usertenant\nother", "queue!usertenant\nthird"]
    assert await store.user("acct", "user", "tenant") is None


@pytest.mark.parametrize(("issued", "is_taken"), [(1, True), (0, True), (-1, False)])
async def test_the_token_that_was_issued_last_has_the_roles(issued: int, is_taken: bool) -> None:
    world = World()
    one, two = world.process(), world.process()
    await one.delegate("acct", USER, world.until())
    newer = Identity("user", "tenant", frozenset(), NOW_S + issued)
    await two.note("acct", newer)
    world.now_s += 2
    known = await one.user("acct", "user", "tenant")
    assert known is not None
    assert known.identity == (newer if is_taken else USER)
    assert known.until == world.until() - 2 * TICKS_PER_SECOND


async def test_a_token_without_keys_stores_nothing() -> None:
    world = World()
    store = world.process()
    await store.note("acct", USER)
    assert await world.rows() == []
    await world.process().delegate("acct", USER._replace(roles=frozenset(), issued=0), world.until())
    world.now_s += 60
    await store.note("acct", USER)
    known = await store.user("acct", "user", "tenant")
    assert known is not None
    assert known.identity == USER, "a token is compared again after a minute"


def test_every_field_is_part_of_a_key() -> None:
    world = World()
    fields = {"oid": "o", "tid": "t", "start": "s", "expiry": "e", "service": "q", "version": "v", "delegated_tid": "d"}
    secret = Secret(world.ticks(), b"secret")
    known = {DelegationKey(**fields).value(secret, "acct"), DelegationKey(**fields).value(secret, "other")}
    for name in fields:
        known.add(DelegationKey(**(fields | {name: "x"})).value(secret, "acct"))
    assert len(known) == len(fields) + 2


@pytest.mark.parametrize("seconds", [0, SECRET_SECONDS])
async def test_a_secret_that_another_process_has_just_added_is_found(seconds: int) -> None:
    world = World()
    one, two = world.process(), world.process()
    if seconds:
        await one.delegate("acct", USER, world.until())
        world.now_s += seconds
    known = list(await two.secrets("acct"))
    added = await one.delegate("acct", USER, world.until())
    assert list(await two.secrets("acct")) == known, "they are cached"
    assert list(await two.newest_secrets("acct")) == [*known, added]
    assert list(await two.secrets("acct")) == [*known, added]


async def test_newest_secrets_are_read_one_at_a_time_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    times, reads, reading = count(), 0, 0
    ttl = TimeToLive(10_000, lambda: float(next(times)))
    store = DelegationStore(world.engine, "queue", world.accounts, world.ticks, world._random_bytes, ttl)
    get = world.engine.get

    async def counted(space: int, partition: str, row: str) -> bytes | None:
        nonlocal reads, reading
        reads, reading = reads + 1, reading + 1
        assert reading == 1
        await asyncio.sleep(0)
        reading -= 1
        return await get(space, partition, row)

    monkeypatch.setattr(world.engine, "get", counted)
    await asyncio.gather(*(store.newest_secrets("acct") for _ in range(100)))
    assert reads <= 2
    await store.newest_secrets("acct")
    assert reads <= 3
