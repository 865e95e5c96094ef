"""The faults of a process: its rules, and the commands that change them.

The process that has the store has the rules and counts. A worker asks it about each request while there are rules. That
there are some is invalidated as a cached row is: no worker misses a change (`engine.remote.server`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from lazulite.app.registry import OPERATIONS
from lazulite.app.stderr import report
from lazulite.app.stores import Store
from lazulite.control.channel import Channel
from lazulite.control.command import ControlError, Json, NoArguments, single
from lazulite.engine.contract import Clock, Engine, EngineError
from lazulite.engine.frozen import HeldSnapshot
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.faults.commands import (
    ADD_FAULTS,
    CLEAR_FAULTS,
    LIST_FAULTS,
    REMOVE_FAULT,
    RuleArguments,
    RulesArguments,
)
from lazulite.faults.remote import SPACE, RemoteFaults
from lazulite.faults.rules import MOMENTS_MAX, FaultRules, FaultSource, RulesError
from lazulite.faults.rules_file import parse_rules, source_of
from lazulite.protocol.fault import Effect
from lazulite.settings.config import ConfigError, Settings

_CONNECTIONS = 2
"""For the rows, and for what an engine does beside them."""


@asynccontextmanager
async def open_faults(
    settings: Settings, store: Store, *, for_test: bool, breaks_connections: bool = True
) -> AsyncIterator[FaultRules | RemoteFaults]:
    """Yield the faults of a process that serves, and have commands change them if they are its own.

    Args:
        settings: of the process.
        store: of the process.
        for_test: whether a test may add every rule at any time.
        breaks_connections: whether the connections are this process's.

    Raises:
        ConfigError: see `RuleCommands.opened`.
    """
    if store.faults is not None:
        yield RemoteFaults(store.faults)
        return
    rules = FaultRules(may_change_clock=for_test or settings.faults is not None, breaks_connections=breaks_connections)
    async with RuleCommands(rules, partial(hold_rows, settings, store.engine)).opened(settings, store.channel):
        yield rules


async def hold_rows(settings: Settings, engine: Engine) -> HeldSnapshot:
    """Return the rows of now. Those of a database take a connection of their own, which may be idle for any time.

    Args:
        settings: of the process.
        engine: of the process, if there is no database.

    Raises:
        EngineError: they cannot be read.
    """
    if settings.database is None:
        return await HeldSnapshot.of(engine)
    from lazulite.app.database import open_database  # noqa: PLC0415 - the import of an unused client would slow the start

    own = replace(settings.database, connections_max=_CONNECTIONS, holds_snapshots=True, peers=None)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(own, lambda _: None))
        return await HeldSnapshot.of(database, stack.pop_all())


def clock_of(faults: FaultSource, service: str, right: Clock) -> Clock:
    """Return the clock of a service: one that rules can change, if this process has rules."""
    return faults.clock(service, right) if isinstance(faults, FaultRules) and faults.may_change_clock else right


def with_faults(
    caches: Mapping[int, Sequence[CacheInvalidation]], faults: FaultSource
) -> Mapping[int, Sequence[CacheInvalidation]]:
    """Return the caches of a process, with that of the rules in a worker."""
    return {**caches, SPACE: [faults]} if isinstance(faults, RemoteFaults) else caches


class RuleCommands:
    """The commands that list and change the rules of this process.

    Args:
        rules: of this process.
        hold: returns the rows of now, for rules that show them; None: there are none.
        changed: returns when all processes know of a change.
    """

    def __init__(
        self,
        rules: FaultRules,
        hold: Callable[[], Awaitable[HeldSnapshot]] | None = None,
        changed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._rules = rules
        self._hold = hold
        self._announce = changed
        self._held: set[HeldSnapshot] = set()

    @asynccontextmanager
    async def opened(self, settings: Settings, channel: Channel) -> AsyncIterator[None]:
        """Add the rules that the settings name, and have a channel take the commands during the block.

        Raises:
            ConfigError: the file cannot be read, has no rules of the schema, or this server cannot have one of them.
        """
        if settings.faults is not None:
            try:
                source, text = source_of(settings.faults)
                await self._add(text, source)
                count = len(self._rules)
                rules = "1 rule of {} injects" if count == 1 else f"{count} rules of {{}} inject"
                report(f"{rules.format(settings.faults)} faults into requests")
            except ValueError as error:
                raise ConfigError(f"--faults: {error}") from None
        channel.register(LIST_FAULTS, self._list)
        channel.register(ADD_FAULTS, lambda given: single(self._add_given(given)))
        channel.register(REMOVE_FAULT, lambda given: single(self._remove(given)))
        channel.register(CLEAR_FAULTS, lambda _: single(self._clear()))
        try:
            yield
        finally:
            await self._release(self._held)

    async def _list(self, _: NoArguments) -> AsyncGenerator[Json, None]:
        for item in self._rules.listed():
            yield item

    async def _add_given(self, given: RulesArguments) -> int:
        try:
            await self._add(given.text, given.source)
        except ValueError as error:
            raise ControlError("bad-rules", str(error)) from None
        return len(self._rules)

    async def _add(self, text: str, source: str) -> None:
        """Add rules.

        Raises:
            RulesFileError, RulesError: there are none, or they cannot be added.
        """
        rules = parse_rules(text, OPERATIONS, source)
        before = None
        if self._hold is not None and any(rule.effect is Effect.STALE for rule in rules):
            if len(self._held) >= MOMENTS_MAX:
                raise RulesError(f"{Effect.STALE} shows the rows of {MOMENTS_MAX} moments at most: remove a rule")
            try:
                before = await self._hold()
            except EngineError as error:
                raise RulesError(f"the rows of now cannot be kept: {error}") from error
            self._held.add(before)
        try:
            self._rules.add(rules, before)
        finally:
            await self._changed()

    async def _remove(self, given: RuleArguments) -> int:
        if not self._rules.remove(given.name):
            raise ControlError("no-rule", f"there is no rule {given.name[:64]!r}")
        await self._changed()
        return len(self._rules)

    async def _clear(self) -> int:
        count = self._rules.clear()
        await self._changed()
        return count

    async def _changed(self) -> None:
        """Release what no rule needs, and tell other processes."""
        await self._release(self._held.difference(self._rules.all_rows_before))
        if self._announce is not None:
            await self._announce()

    async def _release(self, unused: set[HeldSnapshot]) -> None:
        self._held = self._held - unused
        for rows in unused:
            await rows.close()
