"""Both drivers and the simulation do the same with the same protocol; so does the service."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.data.tables import TableClient
from azure.data.tables.aio import TableClient as AsyncTableClient

from lazulite_patterns.aio.driver import Driver as AsyncDriver
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import Protocol, immediately, perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns.effects.runtime import Gather, NewId, Now, RandomNumber, Runtime, Sleep
from lazulite_patterns.effects.tables import Batch, EntityKey, Found, Kind, Operation, Page, Read, Write
from lazulite_patterns.filters import in_partition
from lazulite_patterns_simulation import Crash, Fault, FaultAt, Simulation

T = TypeVar("T")
Run = Callable[[Protocol[Any]], Any]
KEY = EntityKey("p", "it's")


@pytest.fixture(params=["sync", "async", "simulation"])
def run(request: pytest.FixtureRequest, connection_string: str, table_client: TableClient) -> Iterator[Run]:
    """Yield what runs a protocol on a table named `t`, with one of the drivers."""
    if request.param == "simulation":
        yield Simulation().run
    elif request.param == "sync":
        yield Driver({"t": table_client}).run
    else:

        async def run(protocol: Protocol[Any]) -> Any:
            async with AsyncTableClient.from_connection_string(connection_string, table_client.table_name) as client:
                return await AsyncDriver({"t": client}).run(protocol)

        yield lambda protocol: asyncio.run(run(protocol))


def write(kind: Kind, key: EntityKey = KEY, etag: str | None = None, **properties: object) -> Write:
    return Write("t", Operation(kind, key, properties, etag))


def rejection(effect: Write | Batch) -> Protocol[tuple[int, str, int | None]]:
    try:
        yield from perform(effect)
    except Rejected as error:
        return error.status, error.code, error.index
    raise AssertionError("it was done")


def single_writes() -> Protocol[list[object]]:
    seen: list[object] = [(yield from perform(Read("t", KEY)))]
    first = yield from perform(write(Kind.INSERT, a="x", b=True))
    seen.append((yield from rejection(write(Kind.INSERT))))
    merged = yield from perform(write(Kind.MERGE, etag=first, a="y"))
    seen.append((yield from rejection(write(Kind.REPLACE, etag=first))))
    stored = yield from perform(Read("t", KEY))
    assert stored is not None
    assert (stored.etag, stored.key) == (merged, KEY)
    seen += [first != merged, stored.properties["a"], stored.properties["b"]]
    stored = yield from perform(Read("t", KEY, select=("b",)))
    assert stored is not None
    seen.append(stored.properties["b"])
    replaced = yield from perform(write(Kind.REPLACE, etag=merged, c=1))
    yield from perform(write(Kind.PUT_MERGE, d="d"))
    seen.append((yield from rejection(write(Kind.DELETE, etag=replaced))))
    stored = yield from perform(Read("t", KEY))
    assert stored is not None
    seen.append(sorted(stored.properties))
    yield from perform(write(Kind.PUT, e="e"))
    seen.append((yield from perform(write(Kind.DELETE))))
    for kind in (Kind.DELETE, Kind.REPLACE, Kind.MERGE):
        seen.append((yield from rejection(write(kind))))
    return seen


def test_single_writes(run: Run) -> None:
    changed = (412, "UpdateConditionNotSatisfied", None)
    absent = (404, "ResourceNotFound", None)
    assert run(single_writes()) == [
        *(None, (409, "EntityAlreadyExists", None), changed, True, "y", True, True, changed),
        *(["PartitionKey", "RowKey", "c", "d"], "", absent, absent, absent),
    ]


def batches() -> Protocol[list[object]]:
    keys = [EntityKey("p", str(number)) for number in range(4)]
    inserts = tuple(Operation(Kind.INSERT, key, {"n": 1}) for key in keys)
    etags = yield from perform(Batch("t", inserts))
    again = yield from rejection(Batch("t", (Operation(Kind.PUT, EntityKey("p", "9")), *inserts[2:])))
    mixed = (
        Operation(Kind.DELETE, keys[0], etag=etags[0]),
        Operation(Kind.MERGE, keys[1], {"m": 2}, etags[1]),
        Operation(Kind.REPLACE, keys[2], {"m": 2}),
        Operation(Kind.PUT_MERGE, keys[3], {"m": 2}),
    )
    yield from perform(Batch("t", mixed))
    rows: list[object] = []
    page: Found | None = None
    while page is None or page.continuation is not None:
        continuation = page and page.continuation
        page = yield from perform(Page("t", in_partition("p"), top=2, continuation=continuation))
        assert len(page.entities) <= 2
        rows += [(each.key.row_key, *sorted(set(each.properties) & {"n", "m"})) for each in page.entities]
    everything = yield from perform(Page("t"))
    return [again, rows, len(everything.entities)]


def test_batches_and_pages(run: Run) -> None:
    rows = [("1", "m", "n"), ("2", "m"), ("3", "m", "n")]
    assert run(batches()) == [(409, "EntityAlreadyExists", 1), rows, 3]


def runtime() -> Protocol[tuple[bool, bool, list[object]]]:
    start = yield from perform(Now())
    yield from perform(Sleep(0.001))
    later = (yield from perform(Now())) > start
    ids = ((yield from perform(NewId())), (yield from perform(NewId())))
    drawn = yield from perform(RandomNumber())
    protocols: tuple[Protocol[object], ...] = (immediately(1), perform(Read("t", KEY)))
    both = yield from perform(Gather(protocols, workers=2))
    return later, ids[0] != ids[1] and 0 <= drawn < 1, both


def test_time_randomness_and_doing_things_together(run: Run) -> None:
    assert run(runtime()) == (True, True, [1, None])


def test_errors_of_protocols_that_run_together_are_raised(run: Run) -> None:
    with pytest.raises(Rejected):
        run(perform(Gather((perform(write(Kind.MERGE, EntityKey("p", "absent"))), perform(write(Kind.INSERT))))))
    assert run(perform(Read("t", KEY))) is not None, "the other one ran to its end"


class _Answer(SansIOHTTPPolicy[Any, Any]):
    """Loses the answer of the next request, or makes it 500, after the service gave it."""

    def __init__(self, status: int | None) -> None:
        self.status = status

    def on_response(self, request: Any, response: Any) -> None:
        if self.status is None:
            response.http_response.internal_response.close()
            raise ServiceResponseError("lost")
        response.http_response.status_code = self.status
        response.http_response.headers["Retry-After"] = "7"


@pytest.mark.parametrize(("status", "seconds"), [(None, None), (500, 7.0), (503, 7.0), (429, 7.0)])
@pytest.mark.parametrize("effect", [write(Kind.INSERT), Batch("t", (Operation(Kind.INSERT, KEY),))])
def test_an_answer_that_tells_nothing_is_an_unknown_result_at_once(
    effect: Write | Batch, status: int | None, seconds: float | None, connection_string: str, table_client: TableClient
) -> None:
    policy = _Answer(status)
    with (
        TableClient.from_connection_string(
            connection_string, table_client.table_name, per_retry_policies=[policy]
        ) as client,
        pytest.raises(ResultUnknown) as unknown,
    ):
        Driver({"t": client}).run(perform(effect))
    assert unknown.value.retry_after_seconds == seconds
    assert table_client.get_entity(*KEY)["RowKey"] == KEY.row_key, "it was written, and the SDK did not send it again"


def test_a_table_that_is_absent_is_an_error(connection_string: str) -> None:
    with TableClient.from_connection_string(connection_string, f"T{uuid4().hex}") as client:
        for effect in (Read("t", KEY), write(Kind.DELETE), write(Kind.INSERT), Page("t")):
            with pytest.raises(Rejected, match="TableNotFound"):
                Driver({"t": client}).run(perform(effect))


def test_a_crash_ends_the_run_and_the_protocol_does_not_see_it() -> None:
    seen: list[BaseException] = []

    def protocol() -> Protocol[None]:
        try:
            yield from perform(write(Kind.INSERT))
        except Exception as error:  # noqa: BLE001 - none may come
            seen.append(error)

    for fault, written in ((Fault.CRASH_BEFORE, False), (Fault.CRASH_AFTER, True)):
        simulation = Simulation(failpoints=FaultAt(0, fault))
        with pytest.raises(Crash):
            simulation.run(protocol())
        assert (simulation.world.entity("t", KEY) is not None) is written
    assert seen == []


def test_an_effect_that_no_driver_knows_is_rejected() -> None:
    class Unknown(Now):
        pass

    assert Runtime().answer(Unknown()) is not None
    with pytest.raises(TypeError, match="no driver performs Write"):
        Runtime().answer(write(Kind.INSERT))
