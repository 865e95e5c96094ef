"""`lazulite serve --workers N`: the primary, which starts and replaces the workers.

The primary has the store of a location, and workers ask it for rows and call the procedures of services. Each worker
opens a database itself. Then the primary only checks, before it starts the workers, that the database can be opened,
and has the rules of faults.
"""

import asyncio
import os
import pickle
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from socket import socket
from typing import TypeAlias, TypeVar

from lazulite.app import worker
from lazulite.app.account_data import AccountData
from lazulite.app.channel import open_channel, status_of
from lazulite.app.commands import END_RECORDING, KEY_SAMPLE, RECORD, REQUESTS, STATUS, TRAFFIC
from lazulite.app.expiry import ExpiryCommands
from lazulite.app.faults import RuleCommands, hold_rows
from lazulite.app.indexes import IndexCommands
from lazulite.app.inspector import requests_of_workers
from lazulite.app.partitions import PrimaryCommands
from lazulite.app.registry import CODEC, SERVICES, SPACES
from lazulite.app.servers import explained
from lazulite.app.services import certificate_of, maintenance, take_over, tune_garbage_collector
from lazulite.app.stderr import report
from lazulite.app.stores import Seeder, Store, meanwhile, open_location, open_store, seeded
from lazulite.app.telemetry import new_metrics, workers_metrics_server
from lazulite.app.traffic import end_recording_of, key_sample_of, recording_of, traffic_of
from lazulite.engine.content.remote import content_procedures
from lazulite.engine.remote.messages import Procedure
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.change_log import ChangeLog, can_share_memory
from lazulite.engine.rocksdb.flush_stats import FlushObserver
from lazulite.engine.write_check import WriteCheck
from lazulite.faults.remote import KEY, SPACE, fault_procedures
from lazulite.faults.rules import FaultRules
from lazulite.partitions.ledger import LEDGER, MemoryLedger
from lazulite.server import lifecycle
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.net.certificate import Certificate
from lazulite.server.server import Ports
from lazulite.server.workers.locked_output import new_lock
from lazulite.server.workers.metrics import WorkerMetrics
from lazulite.server.workers.socket_directory import socket_directory
from lazulite.server.workers.supervisor import Address, WorkerSupervisor
from lazulite.service.definition import ServiceDependencies
from lazulite.settings.config import Settings, replica_path

T = TypeVar("T")
Attach: TypeAlias = Callable[[socket, Callable[[], None]], Awaitable[None]]


Beside: TypeAlias = Callable[[Settings, Store, Certificate | None], AbstractAsyncContextManager[T]]
"""Opens what the primary has beside the workers, given its settings, its store and its certificate."""
Announce: TypeAlias = Callable[[Store, T, Mapping[str, Ports], int | None], None]
"""Called once requests are accepted, with the store, what is beside, the ports of each service and that for metrics."""


async def serve_by_workers(
    settings: Settings, beside: Beside[T], announce: Announce[T], seeder: Seeder | None = None
) -> None:
    """Serve by workers until a signal.

    Args:
        settings: of the process.
        beside: opens what the primary has beside the workers.
        announce: called once requests are accepted.
        seeder: puts initial data into the store; None: nothing.
    """
    with _peers(settings) as joined:
        await _serve_by_workers(joined, beside, announce, seeder)


async def _serve_by_workers(
    settings: Settings, beside: Beside[T], announce: Announce[T], seeder: Seeder | None
) -> None:
    certificate = certificate_of(settings)
    lock = new_lock()
    log = _new_change_log(settings)
    shared = [lock] if log is None else [lock, log.descriptor]
    metrics, worker_metrics = new_metrics(settings), WorkerMetrics(settings.workers)
    try:
        async with (
            _behind(settings, None if metrics is None else metrics.flushed, log, seeder) as (store, attach),
            workers_metrics_server(settings, metrics, worker_metrics, store.statistics, store.counts) as page,
            beside(settings, store, certificate) as opened,
        ):
            tune_garbage_collector()
            workers = WorkerSupervisor(
                partial(worker.command, lock, None if log is None else log.descriptor),
                _sent(settings),
                count=settings.workers,
                addresses={names: Address(*settings.address(names[0])) for names in settings.servers},
                limits=settings.limits,
                attach=attach,
                report=report,
                shared=shared,
                listener=None if metrics is None else worker_metrics,
                explained=lambda error, names: explained(error, names, settings),
            )
            store.channel.register(STATUS, status_of("primary", dict, workers.connects))
            store.channel.register(RECORD, recording_of(None, store.directory, workers.connects))
            store.channel.register(END_RECORDING, end_recording_of(None, workers.connects))
            store.channel.register(TRAFFIC, traffic_of(None, store.directory, time.time, workers.connects))
            store.channel.register(KEY_SAMPLE, key_sample_of(store.engine, store.directory))
            store.channel.register(REQUESTS, requests_of_workers(workers.connects))
            commands = PrimaryCommands(
                settings, store.directory, workers.connects, lambda changed: workers.use(_sent(changed))
            )
            commands.register(store.channel)
            metrics_port = None if page is None else page.port

            def on_ready(ports: Mapping[tuple[str, ...], Ports]) -> None:
                announce(store, opened, {name: found for names, found in ports.items() for name in names}, metrics_port)

            await lifecycle.serve(workers, on_ready=on_ready, on_hangup=None if certificate is None else workers.reload)
    finally:
        for descriptor in shared:
            os.close(descriptor)


def _sent(settings: Settings) -> bytes:
    """Return the settings of a worker, as they are sent to it."""
    return pickle.dumps(replace(settings, control_socket=None))


def _new_change_log(settings: Settings) -> ChangeLog | None:
    """Return the change log from which workers read; None if they must ask this process for each row."""
    if settings.location is None or settings.database is not None or not can_share_memory():
        return None
    return ChangeLog()


@contextmanager
def _peers(settings: Settings) -> Iterator[Settings]:
    """Yield the settings; with a database, its processes find one another in a directory from then on."""
    if settings.database is None:
        yield settings
        return
    with ExitStack() as stack:
        try:
            path = stack.enter_context(socket_directory())
        except OSError as error:
            report(f"workers do not commit for each other: no temporary directory: {error.strerror}")
        else:
            settings = replace(settings, database=replace(settings.database, peers=path))
        yield settings


@asynccontextmanager
async def _behind(
    settings: Settings,
    flush_observer: FlushObserver | None = None,
    log: ChangeLog | None = None,
    seeder: Seeder | None = None,
) -> AsyncIterator[tuple[Store, Attach]]:
    """Yield the store, and the function that connects a worker to it.

    Args:
        settings: of the process.
        flush_observer: called with each flush.
        log: receives each commit group that is durable.
        seeder: puts initial data into the store.
    """
    if settings.database is not None:
        alone = replace(settings, control_socket=None, database=replace(settings.database, peers=None))
        async with open_store(alone) as store, seeded(store, seeder):
            pass
        async with open_channel(settings) as channel:
            rules = FaultRules(may_change_clock=False)
            server = EngineServer(None, CODEC, (), report, procedures=fault_procedures(rules))
            async with _rule_commands(settings, rules, store, server).opened(settings, channel):
                try:
                    yield replace(store, channel=channel), partial(_join, server)
                finally:
                    await server.close()
        return
    async with open_location(settings, flush_observer, change_log=log) as opened:
        if settings.location is not None:  # Workers of an earlier process may have been killed.
            shutil.rmtree(replica_path(settings.location), ignore_errors=True)
        rules = FaultRules(may_change_clock=False)
        scheduler, check = FairScheduler(), WriteCheck(opened.engine.check_writable)
        store = opened.store()
        async with seeded(store, seeder), _procedures(settings, store, scheduler) as procedures:
            server = EngineServer(
                opened.engine,
                CODEC,
                SPACES.watched,
                report,
                schedule_fairly=scheduler.schedule_fairly,
                passed=scheduler.note_short_request,
                check=check.passed,
                procedures={**procedures, **fault_procedures(rules)},
            )
            data = AccountData(opened.engine, opened.contents, server.invalidated)
            data.register(store.channel)
            indexes = IndexCommands(opened.engine, store.directory, server.invalidated, counts=store.builds)
            indexes.register(store.channel)
            ExpiryCommands(opened.engine, store.directory, server.invalidated).register(store.channel)
            try:
                async with (
                    _rule_commands(settings, rules, store, server).opened(settings, store.channel),
                    indexes.running(),
                ):
                    yield store, partial(_join, server)
            finally:
                scheduler.close()
                await server.close()


@asynccontextmanager
async def _procedures(
    settings: Settings, store: Store, scheduler: FairScheduler
) -> AsyncIterator[Mapping[str, Procedure]]:
    """Yield what workers call; do the work of the services that is due without a request meanwhile."""
    procedures = dict(LEDGER.procedures(MemoryLedger()))
    if store.contents is not None:
        procedures |= content_procedures(store.contents)
    schedule = scheduler.schedule_in_background
    async with AsyncExitStack() as stack:
        for service in SERVICES:
            if service.name in settings.services:
                context = service.make_context(
                    ServiceDependencies(engine=store.engine, accounts=store.directory, contents=store.contents)
                )
                procedures |= context.procedures()
                await context.start()
                await stack.enter_async_context(meanwhile(take_over(context, store.engine)))
                if service.maintain_seconds:
                    await stack.enter_async_context(maintenance(context, service.maintain_seconds, schedule))
        yield procedures


def _rule_commands(settings: Settings, rules: FaultRules, store: Store, server: EngineServer) -> RuleCommands:
    return RuleCommands(rules, partial(hold_rows, settings, store.engine), partial(_announce_faults, server))


async def _announce_faults(server: EngineServer) -> None:
    """Return when all workers know that the rules of faults have changed."""
    async with server.invalidated(SPACE, [KEY]):
        pass


async def _join(server: EngineServer, stream: socket, kill: Callable[[], None]) -> None:
    channel = server.open_channel(kill)
    await asyncio.get_running_loop().create_unix_connection(lambda: channel, sock=stream)
