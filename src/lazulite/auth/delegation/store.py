"""The store of the secrets of user delegation keys, and of users that have keys: rows of the space `DELEGATIONS`.

    partition = account, row = service + "!secrets": the secrets, JSON
    partition = account, row = service + "!user" + tenant + line feed + user: a `DelegatingUser`

The roles of a user bound each SAS of the user's keys. The server has no directory of users: it takes the roles from the
newest token of the user that it saw.

Invariants: every process on a store derives the same keys. A secret makes keys for a week, and verifies them until the
last of them has expired, so an account has few secrets. A user is forgotten after the user's last key.
"""

import asyncio
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.delegation.key import SECRET_BYTES, Secret
from lazulite.auth.grant import Identity
from lazulite.engine.commit import Decision, change_row
from lazulite.engine.contract import Clock, Engine, Key, KeyRange
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.protocol.lru_cache import LruCache
from lazulite.records.catalog import RowCache, TimeToLive
from lazulite.records.spaces import DELEGATIONS, Space

_SEPARATOR = "\n"
"""Stands in no id."""

_SECRETS, _USER = "!secrets", "!user"
_NO_SECRETS = b"[]"
_NOTED_MAX = 4096
_NOTED_TICKS = 60 * TICKS_PER_SECOND
"""How long the roles of a token need not be compared with the stored ones again."""

T = TypeVar("T")
Secrets: TypeAlias = tuple[Secret, ...]


@dataclass(frozen=True, slots=True)
class DelegatingUser:
    """A user, as stored."""

    identity: Identity
    until: int
    """The expiry in ticks of the user's last key."""

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        oid, tid, roles, issued = self.identity
        fields = {"oid": oid, "tid": tid, "roles": sorted(roles), "issued": issued, "until": self.until}
        return json.dumps(fields).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "DelegatingUser":
        """Read the stored form. Raises what reading malformed bytes raises."""
        fields = json.loads(value)
        identity = Identity(fields["oid"], fields["tid"], frozenset(fields["roles"]), float(fields["issued"]))
        return cls(identity, int(fields["until"]))

    def renewed(self, identity: Identity) -> "DelegatingUser":
        """Return the user after another token of the same identity: the token that was issued last has the roles."""
        return self if identity.issued < self.identity.issued else DelegatingUser(identity, self.until)


def row_of(oid: str, tid: str) -> str:
    """Return the end of the row of a user."""
    return f"{tid}{_SEPARATOR}{oid}"


def _verify(key: Key, value: bytes) -> None:
    _, mark, kind = key[1].partition("!")
    kind = mark + kind
    if kind == _SECRETS:
        _read_secrets(value)
        return
    user = DelegatingUser.from_bytes(value)
    if kind != _USER + row_of(user.identity.oid, user.identity.tid):
        raise ValueError(f"space {DELEGATIONS} has another user under {key}")


DELEGATIONS_SPACE = Space(
    number=DELEGATIONS, owner="", title="the user delegation keys", watched=True, copied=True, verify=_verify
)


def _read_secrets(value: bytes) -> Secrets:
    return tuple(Secret(entry["created"], b64decode(entry["secret"])) for entry in json.loads(value))


def _write_secrets(secrets: Secrets) -> bytes:
    entries = [{"created": each.created, "secret": b64encode(each.content).decode()} for each in secrets]
    return json.dumps(entries).encode()


class DelegationStore:
    """The secrets and the users of all accounts for one service.

    Args:
        engine: holds the rows.
        service: the name of the service.
        accounts: for the revocations of the accounts' keys.
        clock: the time now.
        random_bytes: returns so many random bytes, for secrets.
        ttl: how long a row is cached if other processes change rows without invalidation; None: until it changes.
    """

    def __init__(
        self,
        engine: Engine,
        service: str,
        accounts: AccountDirectory,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        ttl: TimeToLive | None = None,
    ) -> None:
        self._engine = engine
        self._service = service
        self._accounts = accounts
        self._clock = clock
        self._random_bytes = random_bytes
        self._ttl = ttl
        self._cache: RowCache[Key, bytes] = RowCache(ttl=ttl)
        self._reread = asyncio.Lock()
        self._reread_s: dict[str, float] = {}
        """By account, when the last read of `newest_secrets` began."""
        self._noted: LruCache[tuple[str, Identity], int] = LruCache(_NOTED_MAX)

    @property
    def invalidation(self) -> CacheInvalidation:
        """The cache to invalidate when other processes change rows of `DELEGATIONS`."""
        return self._cache

    async def secrets(self, account: str) -> Sequence[Secret]:
        """Return the secrets whose keys may be valid: neither expired nor revoked ones."""
        # That there are none is cached, too: a client without credentials can ask.
        value = await self._read(account, self._service + _SECRETS, absent=_NO_SECRETS)
        return () if value is None else self._in_force(_read_secrets(value), account, self._clock())

    async def newest_secrets(self, account: str) -> Sequence[Secret]:
        """Return as `secrets` does, with the ones that other processes of a database added just now.

        One read at a time is made for all calls, as clients without valid credentials can cause them.
        """
        if self._ttl is None:
            return await self.secrets(account)
        called_s = self._ttl.monotonic()
        async with self._reread:
            began_s = self._ttl.monotonic()
            if self._reread_s.get(account, -math.inf) <= called_s:
                before = self._cache.before_read()
                row = self._service + _SECRETS
                value = await self._engine.get(DELEGATIONS, account, row) or _NO_SECRETS
                self._cache.fill((account, row), value, before)
                self._reread_s[account] = began_s
        return await self.secrets(account)

    async def delegate(self, account: str, identity: Identity, until: int) -> Secret:
        """Return the secret for a new key, and keep the user of the key.

        Args:
            account: the name of the account.
            identity: the user.
            until: the expiry of the key in ticks.
        """
        now = self._clock()
        newest = max(await self.secrets(account), key=_created, default=None)
        if newest is None or not newest.makes_keys(now):
            newest = await self._add_secret(account, now)
        row = self._row(identity.oid, identity.tid)

        def keep_user(current: bytes | None) -> Decision[None]:
            if current is None:
                return Decision({row: DelegatingUser(identity, until).to_bytes()}, None)
            known = DelegatingUser.from_bytes(current)
            known = DelegatingUser(known.renewed(identity).identity, max(known.until, until))
            return Decision({} if (value := known.to_bytes()) == current else {row: value}, None)

        await self._change(account, row, keep_user)
        return newest

    async def user(self, account: str, oid: str, tid: str) -> DelegatingUser | None:
        """Return a user that has keys; None if there is none."""
        value = await self._read(account, self._row(oid, tid))
        return None if value is None else DelegatingUser.from_bytes(value)

    async def note(self, account: str, identity: Identity) -> None:
        """Take over the roles of a token, if its bearer has keys and the token is the newest."""
        now = self._clock()
        noted = self._noted.get((account, identity))
        if noted is not None and 0 <= now - noted < _NOTED_TICKS:
            return
        known = await self.user(account, identity.oid, identity.tid)
        if known is not None and known.renewed(identity) != known:
            row = self._row(identity.oid, identity.tid)

            def renew(current: bytes | None) -> Decision[None]:
                if current is None:
                    return Decision({}, None)
                return Decision({row: DelegatingUser.from_bytes(current).renewed(identity).to_bytes()}, None)

            await self._change(account, row, renew)
        self._noted.put((account, identity), now)

    async def _add_secret(self, account: str, now: int) -> Secret:
        """Add a secret, unless another process just did; remove the expired ones, and forget users without keys."""
        row = self._service + _SECRETS
        fresh = Secret(max(now, self._since(account)), self._random_bytes(SECRET_BYTES))

        def add(current: bytes | None) -> Decision[Secret]:
            kept = () if current is None else self._in_force(_read_secrets(current), account, now)
            young = [each for each in kept if each.makes_keys(now)]
            if young:
                return Decision({}, max(young, key=_created))
            return Decision({row: _write_secrets((*kept, fresh))}, fresh)

        added = await self._change(account, row, add)
        await self._forget_users(account, now)
        return added

    async def _forget_users(self, account: str, now: int) -> None:
        first = (account, self._service + _USER)
        last = (account, self._service + _USER + "\uffff")
        expired: list[str] = []
        async with aclosing(self._engine.scan(DELEGATIONS, [KeyRange(first, last)])) as slices:
            async for part in slices:
                for index, value in enumerate(part.values):
                    if DelegatingUser.from_bytes(value).until < now:
                        expired.append(part.key(index)[1])
        for row in expired:

            def forget(current: bytes | None, row: str = row) -> Decision[None]:
                is_over = current is not None and DelegatingUser.from_bytes(current).until < now
                return Decision({row: None} if is_over else {}, None)

            await self._change(account, row, forget)

    def _in_force(self, secrets: Secrets, account: str, now: int) -> Secrets:
        """Return the secrets that are neither expired nor revoked."""
        since = self._since(account)
        return tuple(each for each in secrets if each.created >= since and each.expiry >= now)

    def _since(self, account: str) -> int:
        """Return the time in ticks before which all secrets are revoked."""
        known = self._accounts.get(account)
        since_s = 0 if known is None else known.delegation_keys_since
        return UNIX_EPOCH_TICKS + since_s * TICKS_PER_SECOND if since_s else 0

    def _row(self, oid: str, tid: str) -> str:
        return self._service + _USER + row_of(oid, tid)

    async def _read(self, account: str, row: str, absent: bytes | None = None) -> bytes | None:
        """Return a row, perhaps from the cache; `absent` stands for a row that does not exist."""
        key = (account, row)

        async def read() -> bytes | None:
            before = self._cache.before_read()
            value = await self._engine.get(DELEGATIONS, account, row) or absent
            if value is not None:
                self._cache.fill(key, value, before)
            return value

        value = self._cache.get(key)
        return await self._cache.renewed(key, read) if value is None else value

    async def _change(self, account: str, row: str, change: Callable[[bytes | None], Decision[T]]) -> T:
        with self._cache.changing((account, row)):
            return await self._engine.commit(DELEGATIONS, account, change_row(row, change))


def _created(secret: Secret) -> int:
    return secret.created
