"""Waits double up to a bound, however many there are; no request is waited for longer than the deadline."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient
from azure.data.tables.aio import TableClient as AsyncTableClient
from azure.data.tables.aio import TableServiceClient as AsyncTableServiceClient

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.aio.shapes.periods import Periods as AsyncPeriods
from lazulite_patterns.aio.table import Table as AsyncTable
from lazulite_patterns.effects.calls import WithTimeout
from lazulite_patterns.effects.drive import drive
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Effect, Protocol
from lazulite_patterns.effects.errors import ResultUnknown
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Page, Read, Write
from lazulite_patterns.entities.bags import Bag
from lazulite_patterns.outcomes.errors import OutcomeUnknown, Unavailable
from lazulite_patterns.outcomes.retries import Attempts, Policy, begin, read
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write
from lazulite_patterns.shapes.periods import Periods
from lazulite_patterns.table.table import Table
from lazulite_patterns_simulation import Simulation

T = TypeVar("T")
UNKNOWN = ResultUnknown("503")


def test_waits_are_bounded_after_a_thousand_requests() -> None:
    simulation = Simulation()
    attempts = Attempts(Policy(deadline_seconds=1e6, first_wait_seconds=0.1, wait_max_seconds=10), 0)
    waits = []
    for _ in range(1100):
        before = simulation.now_seconds
        assert simulation.run(attempts.wait(UNKNOWN))
        waits.append(simulation.now_seconds - before)
    assert all(wait <= min(10, 0.1 * 2**number) + 1e-6 for number, wait in enumerate(waits[:20]))
    assert 5 < max(waits) <= 10.001


def test_no_wait_goes_beyond_the_deadline() -> None:
    simulation = Simulation()
    attempts = Attempts(Policy(deadline_seconds=5), 0)
    while simulation.run(attempts.wait(UNKNOWN)):
        assert simulation.now_seconds <= 5
    assert simulation.run(attempts.wait(ResultUnknown("503", retry_after_seconds=6))) is False


class Hanging:
    """Lets requests hang for the time that they get. Others take a second and are answered by a simulation."""

    def __init__(self, hangs: Callable[[Effect[object]], bool]) -> None:
        self.simulation, self.hangs = Simulation(), hangs
        self.waited: list[float] = []

    def run(self, protocol: Protocol[T]) -> T:
        def perform(effect: Effect[object]) -> object:
            if isinstance(effect, WithTimeout):
                answer_seconds = effect.seconds if self.hangs(effect.effect) else 1.0
                self.simulation.now_seconds += answer_seconds
                answer = self.simulation.perform(effect.effect)
                if self.hangs(effect.effect):
                    self.waited.append(effect.seconds)
                    raise ResultUnknown("no answer")
                return answer
            assert not isinstance(effect, Read | Write), "a request without a limit"
            return self.simulation.perform(effect)

        return drive(protocol, perform)


POLICY = Policy(deadline_seconds=20)
KEY = EntityKey("p", "r")
INSERT = Planned(Operation(Kind.INSERT, KEY))


def test_a_read_that_hangs_ends_at_the_deadline() -> None:
    service = Hanging(lambda _: True)
    with pytest.raises(Unavailable):
        service.run(read(Read("t", KEY), service.run(begin(POLICY))))
    assert service.waited == [20.0]


def test_time_for_the_read_that_tells_is_kept_from_a_write_that_hangs() -> None:
    service = Hanging(lambda effect: isinstance(effect, Write))
    written = service.run(write("t", [INSERT], POLICY))
    assert written.etags == ("",), "it was done, as the read says"
    assert service.waited == [15.0]
    assert service.simulation.now_seconds == 16.0


def test_a_write_ends_at_the_deadline_where_the_read_hangs_too() -> None:
    service = Hanging(lambda _: True)
    with pytest.raises(OutcomeUnknown):
        service.run(write("t", [INSERT], POLICY))
    assert service.simulation.now_seconds == 20.0


def test_a_request_gets_some_time_when_the_deadline_has_just_passed() -> None:
    service = Hanging(lambda _: True)
    attempts = service.run(begin(POLICY))
    service.simulation.now_seconds = 21
    with pytest.raises(ResultUnknown):
        service.run(attempts.perform(Read("t", KEY)))
    assert service.waited == [0.1]


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Yield the URL of an account whose server accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/devstoreaccount1"


def test_the_sdk_does_not_wait_longer_than_the_deadline(silent_server: str) -> None:
    """Otherwise the SDK waits for 300 seconds."""
    credential, policy = AzureNamedKeyCredential("devstoreaccount1", "a2V5"), Policy(deadline_seconds=0.2)
    with TableClient(silent_server, "Hang", credential=credential) as client:
        for effect in (Read("t", KEY), Page("t")):
            driver = Driver({"t": client})
            with pytest.raises(Unavailable):
                driver.run(read(effect, driver.run(begin(policy))))

    async def asynchronous() -> None:
        async with AsyncTableClient(silent_server, "Hang", credential=credential) as client:
            driver = AsyncDriver({"t": client})
            for effect in (Read("t", KEY), Page("t")):
                with pytest.raises(Unavailable):
                    await driver.run(read(effect, await driver.run(begin(policy))))

    asyncio.run(asynchronous())


def test_tables_are_not_created_listed_or_dropped_for_longer_than_the_deadline(silent_server: str) -> None:
    credential, policy = AzureNamedKeyCredential("devstoreaccount1", "a2V5"), Policy(deadline_seconds=0.2)
    day = timedelta(days=1)
    with TableServiceClient(silent_server, credential=credential) as client:
        periods = Periods(client, "Hang", Bag, keep=day, policy=policy)
        for call in (periods.names, periods.prepare, periods.expire):
            with pytest.raises(Unavailable):
                call()
        with pytest.raises(Unavailable):
            Table.open(client.get_table_client("Hang"), Bag, policy=policy)

    async def asynchronous() -> None:
        async with AsyncTableServiceClient(silent_server, credential=credential) as client:
            with pytest.raises(Unavailable):
                await AsyncPeriods(client, "Hang", Bag, keep=day, policy=policy).prepare()
            with pytest.raises(Unavailable):
                await AsyncTable.open(client.get_table_client("Hang"), Bag, policy=policy)

    asyncio.run(asynchronous())
