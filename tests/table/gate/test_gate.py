"""Requests to tables behind the gate: what is charged, refused and made, and what the client is told."""

import json
import re
from dataclasses import replace

import pytest

from lazulite.engine.contract import Engine
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.partitions.targets import STUDY_2010, Rate
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Response
from lazulite.table.indexes.definition import Scope
from tests.table.batches import CONTENT_TYPE, Operation, query
from tests.table.client import ACCOUNT, header, values
from tests.table.gate.world import NARROW, WIDE, World
from tests.table.indexes.builders import builder_of

BUSY = "The server is currently unable to receive requests. Please retry your request."
TIMED_OUT = "The operation could not be completed within the permitted time."


@pytest.fixture(name="world")
async def _world(engine: Engine) -> World:
    world = World(engine)
    assert (await world.client("POST", "Tables", body={"TableName": "Orders"})).status == 201
    return world


def outcome(response: Response) -> tuple[int, str]:
    """Return status and first line of the message; "" for a success."""
    if response.status < 400:
        return response.status, ""
    document = json.loads(response.body)["odata.error"]
    assert document["code"] == header(response, "x-ms-error-code")
    assert re.fullmatch(r"[^\n]+\nRequestId:id\nTime:[0-9TZ:.-]+", document["message"]["value"])
    return response.status, document["message"]["value"].partition("\n")[0]


async def test_a_partition_takes_its_cap_and_another_one_is_not_touched(world: World) -> None:
    for number in range(10):
        assert outcome(await world.insert("p", str(number))) == (201, "")
    refused = await world.insert("p", "10")
    assert outcome(refused) == (503, BUSY)
    assert header(refused, "server-timing") == 'gate;desc="partition"'
    assert outcome(await world.get("p", "0")) == (503, BUSY)
    assert outcome(await world.insert("q")) == (201, "")
    world.now += 0.125
    assert outcome(await world.get("p", "0")) == (200, "")
    assert outcome(await world.get("p", "10")) == (503, BUSY)
    world.now += 0.125
    assert (await world.get("p", "10")).status == 404  # What was refused was not made.


async def test_all_writes_are_charged_and_a_batch_costs_its_entities(world: World) -> None:
    path = "Orders(PartitionKey='p',RowKey='r')"
    assert (await world.client("PUT", path, body={"V": 1})).status == 204
    assert (await world.client("MERGE", path, body={"V": 2})).status == 204
    assert (await world.client("DELETE", path, headers={"if-match": "*"})).status == 204
    assert (await world.batch("p", 7)).status == 202
    assert outcome(await world.client("PUT", path, body={"V": 1})) == (503, BUSY)
    assert outcome(await world.client("DELETE", path, headers={"if-match": "*"})) == (503, BUSY)
    refused = await world.batch("p", 2)
    assert outcome(refused) == (503, BUSY)  # As a whole, and not as a part of a 202.
    world.now += 0.25
    assert (await world.batch("p", 2)).status == 202


async def test_the_query_of_a_batch_is_refused_as_a_whole(world: World) -> None:
    body = query(Operation("GET", "Orders()?$filter=PartitionKey%20eq%20'p'"))
    assert (await world.client("POST", "$batch", body=body, headers=CONTENT_TYPE)).status == 202
    await world.batch("p", 9)
    assert outcome(await world.client("POST", "$batch", body=body, headers=CONTENT_TYPE)) == (503, BUSY)


async def test_scanned_rows_are_a_debt_of_partition_and_server(world: World) -> None:
    for first in (0, 10, 20):
        await world.batch("p", 10, first)
        world.now += 1
    page = await world.client("GET", "Orders()", "$filter=PartitionKey%20eq%20'p'%20and%20V%20eq%207")
    assert (page.status, values(page)) == (200, [])
    assert outcome(await world.get("p", "1")) == (503, BUSY)
    assert outcome(await world.get("q")) != (503, BUSY)
    world.now += 1.875
    assert outcome(await world.get("p", "1")) == (503, BUSY)
    world.now += 0.25
    assert outcome(await world.get("p", "1")) == (200, "")
    for _ in range(2):
        await world.client("GET", "Orders()")
    assert header(await world.client("GET", "Orders()"), "server-timing") == 'gate;desc="server"'


async def test_an_account_is_refused_with_texts_of_its_own(engine: Engine) -> None:
    world = World(engine, replace(NARROW, account=Rate(3, 3), egress_bytes=Rate(10_000, 10_000)))
    await world.client("POST", "Tables", body={"TableName": "Orders"})
    assert (await world.client("GET", "Tables")).status == 200
    assert (await world.insert("p")).status == 201
    for refused in (await world.insert("q"), await world.client("GET", "Tables")):
        assert outcome(refused) == (503, "Operations per second is over the account limit.")
        assert header(refused, "server-timing") == 'gate;desc="account"'
    world.now += 1
    assert (await world.insert("big", "r", V="x" * 10_500)).status == 201
    assert outcome(await world.get("p")) == (503, "Egress is over the account limit.")
    world.now += 10
    narrow = World(engine, replace(NARROW, ingress_bytes=Rate(1_000, 1_000)))
    assert (await narrow.insert("r", "r", V="x" * 2_000)).status == 201
    assert outcome(await narrow.insert("s")) == (503, "Ingress is over the account limit.")
    narrow.now += 10
    assert (await narrow.batch("r", 5)).status == 202
    assert outcome(await narrow.batch("s", 5)) == (503, "Ingress is over the account limit.")


async def test_a_share_of_refusals_is_a_time_out_whose_write_may_have_been_made(engine: Engine) -> None:
    world = World(engine, replace(NARROW, timeout_share=0.5))
    await world.client("POST", "Tables", body={"TableName": "Orders"})
    for number in range(10):
        await world.insert("p", f"first{number}")
    outcomes = {f"{number:03}": outcome(await world.insert("p", f"{number:03}")) for number in range(100)}
    assert set(outcomes.values()) == {(503, BUSY), (500, TIMED_OUT)}
    made = {row["RowKey"] for row in values(await world.plain("GET", "Orders()", "$select=RowKey"))}
    timed_out = {row for row, found in outcomes.items() if found[0] == 500}
    assert {row for row in made if not row.startswith("first")} < timed_out
    assert 15 <= len(made) - 10 <= 35
    batches = [(await world.batch("p", 3, 3 * number)).status for number in range(40)]
    assert set(batches) == {500, 503}
    assert sum(row["RowKey"].isdigit() for row in values(await world.plain("GET", "Orders()"))) > len(made) - 10
    before = values(await world.plain("GET", "Orders()"))
    reads = [(await world.get("p", "first0")).status for _ in range(40)]
    assert set(reads) == {500, 503}
    assert values(await world.plain("GET", "Orders()")) == before


async def test_requests_wait_for_those_before_them(engine: Engine) -> None:
    world = World(engine, STUDY_2010)
    await world.client("POST", "Tables", body={"TableName": "Orders"})
    first, second = await world.insert("p", "1"), await world.batch("p", 100)
    assert header(first, "server-timing") == 'gate;desc="partition";dur=1.000'
    assert header(second, "server-timing") == 'gate;desc="partition";dur=40.610'
    assert world.slept == pytest.approx([0.001, 0.04061])
    timings = [text for name, text in (await world.get("p", "1")).fields() if name == "Server-Timing"]
    assert timings[0].startswith('query;desc="point"')
    assert timings[1:] == ['gate;desc="partition";dur=41.610']


async def test_a_moving_range_is_refused_and_no_other(world: World) -> None:
    for partition in ("a", "m", "z"):
        await world.insert(partition)
    await world.divide("k", "t", moving="k")
    moving = await world.insert("m", "2")
    assert outcome(moving) == (503, BUSY)
    assert header(moving, "server-timing") == 'gate;desc="move"'
    assert outcome(await world.batch("m", 2)) == (503, BUSY)
    assert outcome(await world.client("GET", "Orders()", "$filter=PartitionKey%20ge%20'm'")) == (503, BUSY)
    for partition in ("a", "z"):
        assert outcome(await world.get(partition)) == (200, "")
    world.now += 4.999
    assert outcome(await world.get("m")) == (503, BUSY)
    world.now += 0.002
    assert outcome(await world.get("m")) == (200, "")
    (table,) = world.live.maps
    assert [(each.refused, each.delayed) for each in world.live.states(table)] == [(0, 0), (4, 0), (0, 0)]


async def test_without_targets_the_map_stays_and_nothing_is_refused(world: World) -> None:
    await world.insert("p", "1")
    world.live.use(None)
    assert {(await world.insert("p", f"r{number}")).status for number in range(50)} == {201}
    world.live.use(NARROW)
    assert {(await world.insert("p", f"s{number}")).status for number in range(50)} == {201, 503}


async def test_a_gated_server_makes_no_plan_and_no_template(world: World) -> None:
    for number in range(5):
        assert (await world.insert(f"p{number}")).status == 201
        assert (await world.get(f"p{number}")).status == 200
    assert len(world.client.service.plans) == 0


async def test_queries_are_charged_for_the_scan_that_the_cloud_would_make() -> None:
    """Unless the targets say so, no index serves them."""
    world = World(RocksEngine.open(None, system_clock), replace(WIDE, indexes=False))
    await world.client("POST", "Tables", body={"TableName": "Orders"})
    for number in range(20):
        await world.insert("p", f"{number}", V=number % 10)
    builder = builder_of(world.engine, world.client)
    await builder.create(ACCOUNT, "Orders", "by_v", ["V"], Scope.TABLE)
    async for _ in builder.build(ACCOUNT, "Orders", "by_v"):
        pass

    async def scanned() -> str:
        timing = header(await world.client("GET", "Orders()", "$filter=V%20eq%203"), "server-timing") or ""
        return timing.partition('scanned;desc="')[2].partition('"')[0]

    assert await scanned() == "20"
    world.live.use(WIDE)
    assert await scanned() == "2"
    world.live.use(None)
    assert await scanned() == "2"
    await world.engine.close()
