"""Requests with plans and without: the same responses, field by field, and the same facts in the logs."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.auth.accounts.document import StoredAccount
from lazulite.protocol.clock import TICKS_PER_SECOND

from .test_mutations import CORS, POLICY
from .world import HEAD, JSON, KEYS, NAME, NOW, World

PATHS = st.sampled_from(
    [
        "orders(PartitionKey='p',RowKey='r')",
        "orders(PartitionKey='p',RowKey='s')",
        "Orders(PartitionKey='p',RowKey='r')",
        "orders(RowKey='r',PartitionKey='p')",
        "orders(PartitionKey='p',RowKey='%C3%A9')",
        "orders(PartitionKey='',RowKey='')",
        "orders",
        "orders()",
        "others(PartitionKey='p',RowKey='r')",
        "Tables(PartitionKey='p',RowKey='r')",
        "orders(PartitionKey='p',RowKey='r')/",
    ]
)
HEADERS: dict[str, list[str | None]] = {
    "accept": [JSON, f"{JSON};odata=nometadata", f"{JSON};odata=fullmetadata", "application/atom+xml", "text/html"],
    "x-ms-version": ["2019-02-02", "2013-08-15", "2012-02-12", "x", None],
    "if-match": [None, None, "*", "W/\"datetime'2031-01-01T00%3A00%3A00.0000000Z'\"", "x"],
    "prefer": [None, "return-no-content", "return-content", "x"],
    "origin": [None, "http://a", "http://b"],
    "x-http-method": [None, None, None, "MERGE", "x"],
    "x-ms-client-request-id": [None, "mine", "a\tb"],
    "host": ["h", "other:1"],
    "content-type": [JSON, "application/atom+xml"],
    "content-md5": [None, None, None, "1B2M2Y8AsgTpgAmY7PhCfg=="],
}
OPTIONS = st.sampled_from(
    ["", "", "", "$select=A", "$format=json", "timeout=5", "timeout=x", "comp=acl", "$filter=A eq 1"]
)
QUERIES: dict[str, Callable[[World], str]] = {
    "account": World.sas,
    "key": lambda _: "",
    "table": World.table_sas,
    "range": lambda world: world.table_sas(start_partition="p", start_row="r", end_partition="p", end_row="r"),
    "policy": lambda world: world.table_sas(permission="", start="", expiry="", policy_id="one"),
    "https": lambda world: world.sas(protocol="https"),
    "address": lambda world: world.sas(ip="192.0.2.1"),
    "read": lambda world: world.sas("r"),
    "old": lambda world: world.sas(expiry="2030-12-31T12:00:00Z"),
    "wrong": lambda _: "",
    "none": lambda _: "x=y",
}
"""Credentials, and the part of the query string that they are."""
CREDENTIALS = st.sampled_from(["account", "key", *QUERIES])
BODIES = st.sampled_from(
    [
        {"A": 1},
        {"PartitionKey": "p", "RowKey": "r", "A": 1},
        {"PartitionKey": "p", "RowKey": "é", "A": "x"},
        {"PartitionKey": "p"},
        b"{",
        b"",
    ]
)
REQUESTS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["GET", "GET", "GET", "POST", "PUT", "MERGE", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
        "path": PATHS,
        "options": OPTIONS,
        "credentials": CREDENTIALS,
        "body": BODIES,
        "root": st.sampled_from([f"/{NAME}/", f"/{NAME}/", f"/{NAME}-secondary/", f"/{NAME}-secondary/{NAME}/"]),
        "scheme": st.sampled_from(["http", "https"]),
        "headers": st.fixed_dictionaries({name: st.sampled_from(values) for name, values in HEADERS.items()}),
    }
)
CHANGES = st.sampled_from(["none", "none", "cors", "no cors", "rotate", "delete", "create", "policy", "day", "back"])


Step: TypeAlias = tuple[str, dict[str, Any], int]
"""A change, and a request that is then sent so many times."""


async def _change(world: World, change: str) -> None:
    properties = f"restype=service&comp=properties&{world.sas()}"
    match change:
        case "cors":
            await world.ask("PUT", "", properties, CORS % b"a")
        case "no cors":
            await world.ask("PUT", "", properties, b"<StorageServiceProperties><Cors/></StorageServiceProperties>")
        case "rotate":
            world.accounts.replace({NAME: StoredAccount((b"third", b"fourth") if world.account.keys == KEYS else KEYS)})
        case "delete":
            await world.ask("DELETE", "Tables('orders')")
        case "create":
            await world.ask("POST", "Tables", body={"TableName": "Orders"})
        case "policy":
            signed = world.shared_key("PUT", f"/{NAME}/orders", HEAD, "comp=acl")
            await world.ask("PUT", "orders", "comp=acl", POLICY, signed)
        case "day" | "back":
            world.now = NOW + (100_000 * TICKS_PER_SECOND if change == "day" else 0)


async def _ask(world: World, request: dict[str, Any], *, steady: bool) -> object:
    headers = {name: value for name, value in request["headers"].items() if value is not None}
    if request["credentials"] == "wrong":
        headers |= {"authorization": f"SharedKey {NAME}:AAAA", "x-ms-date": "x"}
    query = "&".join(filter(None, (request["options"], QUERIES[request["credentials"]](world))))
    if request["credentials"] == "key":
        path = request["root"] + request["path"]
        headers |= world.shared_key(request["method"], path, {**HEAD, **headers}, query)
    arguments = {name: request[name] for name in ("root", "scheme")}
    return await world.ask(
        request["method"], request["path"], query, request["body"], headers, steady=steady, **arguments
    )


async def _both_ways(steps: Sequence[Step]) -> Counter[str]:
    """Take each step with plans and without; return how many requests of each method had a plan."""
    planned: Counter[str] = Counter()
    with_plans, without = [await World().prepare() for _ in range(2)]
    for change, request, again in steps:
        for world in (with_plans, without):
            await _change(world, change)
        for _ in range(again):
            expected = await _ask(without, request, steady=False)
            before = with_plans.planned
            assert await _ask(with_plans, request, steady=True) == expected
            planned[request["method"]] += with_plans.planned - before
    assert without.planned == 0
    return planned


@settings(deadline=None)
@given(st.lists(st.tuples(CHANGES, REQUESTS, st.integers(1, 4)), min_size=1, max_size=6))
def test_plans_change_no_response(steps: list[Step]) -> None:
    asyncio.run(_both_ways(steps))


def _usual(random: Random) -> Step:
    """Return a step with one of the requests that have plans."""
    method = random.choice(["GET", "PUT", "MERGE", "DELETE", "POST"])
    request = {
        "method": method,
        "path": "orders" if method == "POST" else f"orders(PartitionKey='p',RowKey='{random.choice('rs')}')",
        "options": "",
        "credentials": random.choice(["account", "key", "table"]),
        "body": random.choice([{"A": 1}, {"PartitionKey": "p", "RowKey": str(random.random()), "A": 2}, b"{"]),
        "root": f"/{NAME}/",
        "scheme": "http",
        "headers": {"if-match": random.choice([None, "*"]), "prefer": random.choice([None, "return-no-content"])},
    }
    changes = ["none"] * 60 + ["create", "back"] * 4 + ["cors", "no cors", "rotate", "delete", "day"]
    return random.choice(changes), request, random.randint(1, 4)


async def test_plans_change_no_response_of_usual_requests() -> None:
    planned: Counter[str] = Counter()
    for seed in range(8):
        random = Random(seed)
        planned += await _both_ways([_usual(random) for _ in range(100)])
    assert min(planned[method] for method in ("GET", "POST", "PUT", "MERGE", "DELETE")) > 0, planned
