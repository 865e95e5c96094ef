"""The partitions of a process: live, kept in its store, and shared with the other processes; and their commands.

With workers, the primary has the targets, so that a worker that replaces another one has the same, and passes commands
on. Each worker has live partitions. The ranges that a command shows are those of the newest map, with what all workers
of the server have counted.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from lazulite.app.channel import WORKER_SECONDS_MAX, Workers
from lazulite.app.commands import (
    PARTITIONS,
    SET_TARGETS,
    TARGETS,
    PartitionsArguments,
    SetTargetsArguments,
)
from lazulite.app.stderr import report
from lazulite.app.stores import Store
from lazulite.app.traffic import account_of
from lazulite.auth.accounts.account import AccountDirectory
from lazulite.control.channel import Channel
from lazulite.control.client import ask_each
from lazulite.control.command import ControlError, Json, NoArguments
from lazulite.engine.contract import Clock, EngineError
from lazulite.partitions.gate import AccountQuota, ProcessQuota
from lazulite.partitions.ledger import LEDGER, StoredLedger
from lazulite.partitions.live import Charge, LivePartitions
from lazulite.partitions.ranges import TableKey
from lazulite.partitions.rounds import Rounds
from lazulite.partitions.slices import SharedQuota
from lazulite.partitions.stored_maps import StoredMaps
from lazulite.partitions.targets import OFF, PRESETS, Targets, TargetsError, targets_of
from lazulite.protocol.clock import system_clock, unix_seconds
from lazulite.settings.config import Settings
from lazulite.settings.partitions import PartitionSettings
from lazulite.table.catalog import Catalog
from lazulite.traffic.meter import Meter, Resource

_SUMS = ("rate", "refused", "delayed")
"""What workers count of a range."""


def live_partitions(settings: PartitionSettings, store: Store, clock: Clock, meter: Meter | None) -> LivePartitions:
    """Return live partitions, whose refusals the meter counts. By the clock of a test, no request waits.

    Args:
        settings: of the targets.
        store: keeps the maps.
        clock: of the process. The processes of a database go by the time of the database.
        meter: of the process, if it counts.
    """

    def note_refusal(charge: Charge) -> None:
        if meter is not None and charge.resource:
            resource = Resource(charge.account, charge.service, charge.resource)
            meter.note(resource, charge.partition or charge.start, (0, 0, 0, charge.size, 0, 1, 1))

    is_shared = store.shared or store.primary is not None
    rounds = Rounds(store.engine, secrets.token_hex(8)) if is_shared else None
    present = store.present if store.present is not None and clock is system_clock else clock
    return LivePartitions(
        settings.targets,
        lambda: unix_seconds(present()),
        asyncio.sleep if clock is system_clock else _pass_by,
        time_scale=settings.time_scale,
        maps=StoredMaps(store.engine, Catalog(store.engine).has, rounds, report),
        quota=_quota(store),
        note_refusal=note_refusal,
    )


def _quota(store: Store) -> Callable[[float], AccountQuota]:
    """Return what makes the quota of the accounts: that of all processes, if there are several."""
    if store.primary is not None:
        return partial(SharedQuota, LEDGER.stub(store.primary))
    return partial(SharedQuota, StoredLedger(store.engine)) if store.shared else ProcessQuota


async def _pass_by(_: float) -> None:
    """Wait for no time."""


class LiveCommands:
    """The commands of a process that has live partitions.

    Args:
        live: the partitions.
        time_scale: divides the times of their balancer.
        store: has the tables and the accounts.
    """

    def __init__(self, live: LivePartitions, time_scale: float, store: Store) -> None:
        self._live = live
        self._time_scale = time_scale
        self._directory = store.directory
        self._tables = Catalog(store.engine)

    def register(self, channel: Channel) -> None:
        """Take the commands."""
        channel.register(TARGETS, self.targets)
        channel.register(SET_TARGETS, self.set_targets)
        channel.register(PARTITIONS, self.partitions)

    async def targets(self, _: NoArguments) -> AsyncGenerator[Json, None]:
        """See `TARGETS`."""
        yield described(self._live.targets, self._time_scale)

    async def set_targets(self, asked: SetTargetsArguments) -> AsyncGenerator[Json, None]:
        """See `SET_TARGETS`."""
        targets = _asked_targets(asked)
        if targets is not None:
            await self._follow()
        self._live.use(targets)
        yield described(targets, self._time_scale)

    async def partitions(self, asked: PartitionsArguments) -> AsyncGenerator[Json, None]:
        """See `PARTITIONS`."""
        live, account = self._live, account_of(self._directory, asked.account)
        found = await self._tables.read(account, asked.name)
        if found is None:
            raise ControlError("no-table", f"account {account} has no table {asked.name}")
        await self._follow()
        if live.active:
            await live.refresh()
        table = TableKey(account, asked.name.lower(), found.space)
        found_map = live.map_of(table)
        yield {
            "table": found.name,
            "account": account,
            "targets": OFF if live.targets is None else live.targets.name,
            "servers": live.servers,
            "version": found_map.version,
        }
        for index, state in enumerate(live.states(table)):
            each = state.range
            yield {
                "start": each.start,
                "end": found_map.end(index),
                "server": each.server,
                "moving_seconds": round(state.moving_seconds, 3),
                "rate": round(state.rate, 3),
                "peak": round(each.peak, 3),
                "refused": state.refused,
                "delayed": state.delayed,
            }

    async def _follow(self) -> None:
        """Get the maps of the store, which nothing has followed without targets."""
        if not self._live.active:
            with suppress(EngineError):  # As at the start of a server.
                await self._live.start()


class PrimaryCommands:
    """The commands of a primary, whose workers have live partitions.

    Args:
        settings: of the server.
        directory: the accounts.
        workers: connects to each worker.
        use: has workers that start from now on get other settings.
    """

    def __init__(
        self, settings: Settings, directory: AccountDirectory, workers: Workers, use: Callable[[Settings], None]
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._workers = workers
        self._use = use

    def register(self, channel: Channel) -> None:
        """Take the commands."""
        channel.register(TARGETS, self.targets)
        channel.register(SET_TARGETS, self.set_targets)
        channel.register(PARTITIONS, self.partitions)

    async def targets(self, _: NoArguments) -> AsyncGenerator[Json, None]:
        """See `TARGETS`."""
        yield described(*self._settings.partitions)

    async def set_targets(self, asked: SetTargetsArguments) -> AsyncGenerator[Json, None]:
        """See `SET_TARGETS`."""
        changed = self._settings.partitions._replace(targets=_asked_targets(asked))
        self._settings = replace(self._settings, partitions=changed)
        self._use(self._settings)
        for result in await ask_each(self._workers(), SET_TARGETS, asked, WORKER_SECONDS_MAX):
            if result.error is not None:
                raise ControlError(result.error.code, f"{result.process}: {result.error}")
        yield described(*changed)

    async def partitions(self, asked: PartitionsArguments) -> AsyncGenerator[Json, None]:
        """See `PARTITIONS`."""
        account = account_of(self._directory, asked.account)
        found: list[Sequence[Any]] = []
        for result in await ask_each(self._workers(), PARTITIONS, replace(asked, account=account), WORKER_SECONDS_MAX):
            if result.error is not None:
                code, text = result.error.code, str(result.error)
                raise ControlError(code, text if code == "no-table" else f"{result.process}: {text}")
            found.append(result.items)
        if not found:
            raise ControlError("cut", "no worker accepts requests now; try again")
        head, *ranges = max(found, key=lambda items: int(items[0]["version"]))
        yield head
        for each in ranges:
            yield {**each, **_sums(each["start"], found)}


def _sums(start: str, found: Sequence[Sequence[Any]]) -> Mapping[str, float]:
    """Return what workers counted of a range in all."""
    same = [each for _, *ranges in found for each in ranges if each["start"] == start]
    return {name: sum(each[name] for each in same) for name in _SUMS}


def described(targets: Targets | None, time_scale: float) -> Json:
    """Return targets as an item."""
    fields: Mapping[str, Json] = {"name": OFF} if targets is None else asdict(targets)
    return {**fields, "time_scale": time_scale}


def _asked_targets(asked: SetTargetsArguments) -> Targets | None:
    """Return the targets that a command asks for; None: `off`.

    Raises:
        ControlError: there are none of this name, or the document is invalid.
    """
    if asked.document is None:
        if asked.name != OFF and asked.name not in PRESETS:
            raise ControlError("bad-request", f"there are no targets {asked.name[:64]!r}")
        return PRESETS.get(asked.name)
    try:
        return targets_of(asked.document, asked.name[:64])
    except TargetsError as error:
        raise ControlError("bad-request", str(error)) from None
