"""A seed applied inside of the process that has the store, before it serves.

Requests go to services of their own, without sockets, faults or targets. They are closed before the services of the
server are opened on the same store, so no cache shows what was before.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from lazulite import __version__
from lazulite.app.services import open_services
from lazulite.app.stores import Store
from lazulite.auth.accounts.account import Account
from lazulite.auth.accounts.document import AccountStore, StoredAccount
from lazulite.auth.accounts.switches import DEFAULTS
from lazulite.control.channel import Channel
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request, Service, response_of
from lazulite.resources.sender import Call, Reply
from lazulite.resources.signing import AccountSigner, reply_of
from lazulite.seed.apply import Application, Changes
from lazulite.seed.document import AccountSeed, Seed, SeedFileError, read_seed
from lazulite.seed.value import SeedError
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.settings.addresses import SERVICES
from lazulite.settings.config import ConfigError, Settings
from lazulite.settings.partitions import NO_TARGETS

_HOST = "127.0.0.1"


class ServerSeed:
    """A server that begins with a seed: first its accounts, then what they have.

    Args:
        seed: the desired data of the server.
        own: the account of what the seed has outside of its accounts; "": the only one.
    """

    def __init__(self, seed: Seed, own: str = "") -> None:
        self._seed = seed
        self._own = own
        self._changes = Changes()

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """Read a seed file.

        Raises:
            ConfigError: it cannot be read, or is wrong.
        """
        try:
            return cls(read_seed(path))
        except SeedFileError as error:
            raise ConfigError(str(error)) from None

    def settings(self, settings: Settings, environ: Mapping[str, str]) -> Settings:
        """Return the settings of a server with the accounts of the seed among those of the environment.

        Raises:
            ConfigError: a key cannot be read.
        """
        accounts = dict(settings.accounts)
        with self._config_errors():
            for each in self._seed.accounts:
                known = accounts.get(each.name)
                found = (
                    None if known is None else StoredAccount(known.keys, known.delegation_keys_since, known.switches)
                )
                stored = AccountTerms.read(each, environ).applied(found)
                if stored is not None:
                    accounts[each.name] = Account(each.name, *stored)
        return replace(settings, accounts=accounts)

    def store_accounts(self, store: AccountStore, environ: Mapping[str, str]) -> None:
        """Add the accounts of the seed to the stored ones, and change what differs.

        Raises:
            ConfigError: a key cannot be read, or an account has none.
            AccountsError: the accounts cannot be read or written.
        """
        with self._config_errors():
            store_accounts(self._seed, store, self._changes, environ)

    async def fill(self, settings: Settings, store: Store, clock: Clock = system_clock) -> None:
        """Put the desired data of the accounts into a store that nothing serves yet.

        Raises:
            ConfigError: something is rejected, or a file cannot be read.
        """
        with self._config_errors():
            await seed_store(self._seed, settings, store, self._changes, self._own, clock)

    def lines(self) -> list[str]:
        """Return what was done, a line each."""
        return self._changes.lines()

    @contextmanager
    def _config_errors(self) -> Iterator[None]:
        try:
            yield
        except SeedError as error:
            raise ConfigError(self._seed.described(error)) from None


class InProcessSender:
    """Sends requests to services of this process, from a thread beside their event loop. Implements `Sender`.

    Args:
        account: signs the requests.
        services: by name.
        loop: of the services.
        clock: of the services.
    """

    def __init__(
        self, account: Account, services: Mapping[str, Service], loop: asyncio.AbstractEventLoop, clock: Clock
    ) -> None:
        self._signed = AccountSigner(account)
        self._services = services
        self._loop = loop
        self._clock = clock

    @property
    def account(self) -> str:
        """See `Sender`."""
        return self._signed.account.name

    def request(
        self,
        service: str,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        """See `Sender`."""
        call = Call(service, method, path, parameters, headers, body)
        request = self._signed.request(call, f"/{self.account}", _HOST, self._clock())
        request.client = _HOST
        return asyncio.run_coroutine_threadsafe(_reply(self._services[service], request), self._loop).result()


async def _reply(service: Service, request: Request) -> Reply:
    response = await response_of(service, request)
    headers = {name.lower(): text for name, text in response.fields()}
    content = response.content
    headers.setdefault("content-length", str(len(response.body) if content is None else content.length))
    body = bytearray() if request.method == "HEAD" else bytearray(response.body)
    if content is not None:
        try:
            if request.method != "HEAD":
                async for piece in content.chunks():
                    body += piece
        finally:
            await content.aclose()
    return reply_of(response.status, headers, bytes(body))


async def seed_store(seed: Seed, settings: Settings, store: Store, changes: Changes, own: str, clock: Clock) -> None:
    """Apply the data of a seed to a store that nothing serves yet.

    Args:
        seed: whose accounts are there already.
        settings: of the server.
        store: of the process.
        changes: counts what is done.
        own: the account of what is outside of the accounts; "": the only one.
        clock: of the server.

    Raises:
        SeedError: something is rejected, or a file cannot be read.
    """
    alone = replace(settings, services=SERVICES, partitions=NO_TARGETS, faults=None, bearer=None, meter=False)
    scheduler = FairScheduler()
    private = replace(store, channel=Channel(__version__))
    loop = asyncio.get_running_loop()
    try:
        async with open_services(alone, private, scheduler, clock=clock) as served:
            services = {name: each.service for name, each in served.items()}
            for account in (seed.own, *seed.accounts):
                if account.has_data:
                    found = _account(account, store, own)
                    sender = InProcessSender(found, services, loop, clock)
                    await asyncio.to_thread(Application(sender, changes).run, account)
    finally:
        scheduler.close()


def _account(seed: AccountSeed, store: Store, own: str) -> Account:
    """Return the account that a part of a seed is for. Raises `SeedError`."""
    name = seed.name or own
    names = [name] if name else store.directory.names()
    if len(names) > 1:
        raise SeedError(seed.at, f"there are several accounts; write [accounts.NAME] with one of {', '.join(names)}")
    account = store.directory.get(names[0]) if names else None
    if account is None:
        raise SeedError(seed.at, f"there is no account {seed.name}" if seed.name else "there is no account")
    return account


@dataclass(frozen=True, slots=True)
class AccountTerms:
    """The keys and switches that a seed gives an account."""

    keys: tuple[bytes, ...]
    switches: Mapping[str, Any]

    @classmethod
    def read(cls, seed: AccountSeed, environ: Mapping[str, str]) -> "AccountTerms":
        """Read the keys of a part of a seed. Raises `SeedError`."""
        return cls(tuple(source.read(environ) for source in seed.keys), seed.switches)

    def applied(self, found: StoredAccount | None) -> StoredAccount | None:
        """Return an account as it is to be stored; None if it needs keys and has none."""
        if found is None and not self.keys:
            return None
        keys = found.keys if found is not None and not self.keys else self.keys
        known = found or StoredAccount(keys, switches=DEFAULTS)
        keys = keys if len(keys) > 1 or found is None else (keys[0], *found.keys[1:])
        both = keys if len(keys) > 1 else (keys[0], keys[0])
        return known._replace(keys=both, switches=known.switches._replace(**self.switches))


def store_accounts(seed: Seed, store: AccountStore, changes: Changes, environ: Mapping[str, str]) -> None:
    """Add the accounts of a seed to the stored ones, and change what differs.

    Raises:
        SeedError: a key cannot be read, or an account has none.
        AccountsError: the accounts cannot be read or written.
    """
    for each in seed.accounts:
        if each.keys or each.switches:
            _store_account(each, AccountTerms.read(each, environ), store, changes)


def _store_account(seed: AccountSeed, account: AccountTerms, store: AccountStore, changes: Changes) -> None:
    name, before = seed.name, store.stored()
    found = (before or {}).get(name)
    stored = account.applied(found)
    if stored is None:
        raise SeedError(seed.at, f"there is no account {name}; a new one needs a key")
    if stored == found:
        changes.unchanged["accounts"] += 1
        return
    store.edit(lambda accounts: {**(accounts or {}), name: stored})
    counts = changes.created if found is None else changes.replaced
    counts["accounts"] += 1
