"""Whatever a template does not look for in a head is looked for again for each request: one test for each thing."""

import pytest

from lazulite.auth.accounts.document import StoredAccount
from lazulite.engine.contract import UNKNOWN
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.message import Service
from lazulite.server.middleware.host_guard import HostGuard
from lazulite.table.model.row import LARGE_BYTES
from tests.table.plan.test_mutations import CORS, LETTERS, POLICY
from tests.table.plan.world import ENTITY, HEAD, JSON, NAME

from .side import Side

SECOND = "orders(PartitionKey='p',RowKey='second')"
IDS = ("5e7c1f9a-8d3b-11ef-b864-0242ac120002", "6f7c1f9a-8d3b-11ef-b864-0242ac120003")


@pytest.fixture(name="side")
async def _side() -> Side:
    return await Side().prepare()


def status(response: bytes) -> int:
    return int(response[9:12])


async def missed(side: Side, data: bytes, why: str = "unknown") -> int:
    """Send a request that no template answers; return the status."""
    before = dict(side.templates.outcomes)
    response = await side.send(data)
    assert side.templates.outcomes == {**before, why: before[why] + 1}
    return status(response)


async def test_keys_of_any_length_have_one_template(side: Side) -> None:
    assert b'"A":1}' in await side.warm(side.head())
    hits = side.templates.hits
    assert b'"A":2}' in await side.send(side.head(path=SECOND))
    assert (side.templates.hits, len(side.templates)) == (hits + 1, 1)


async def test_the_values_of_a_signed_head_are_new_each_time(side: Side) -> None:
    head = {"x-ms-client-request-id": IDS[0], "traceparent": "00-1"}
    await side.warm(side.head(query="", fields=head))
    side.world.now += 60 * TICKS_PER_SECOND
    hits = side.templates.hits
    response = await side.send(side.head(path=SECOND, query="", fields={**head, "x-ms-client-request-id": IDS[1]}))
    assert f"x-ms-client-request-id: {IDS[1]}\r\n".encode() in response
    assert side.templates.hits == hits + 1


async def test_a_signature_of_another_request_is_rejected(side: Side) -> None:
    head, other = side.head(query=""), side.head(path=SECOND, query="")
    await side.warm(head)
    assert await missed(side, other.replace(b"second", b"r"), "credentials") == 403
    at = head.index(b"SharedKey ") + 30
    assert await missed(side, head[:at] + bytes([head[at] ^ 1]) + head[at + 1 :], "credentials") == 403
    assert await missed(side, head.replace(NAME.encode() + b":", b"other:")) == 403


async def test_an_old_date_is_rejected(side: Side) -> None:
    head = side.head(query="")
    await side.warm(head)
    for seconds, expected in ((900, 200), (901, 403), (-901, 403)):
        now = side.world.now
        side.world.now += seconds * TICKS_PER_SECOND
        hits = side.templates.hits
        assert (status(await side.send(head)), side.templates.hits - hits) == (expected, expected == 200)
        side.world.now = now


async def test_an_expired_token_is_rejected(side: Side) -> None:
    head = side.head()
    await side.warm(head)
    side.world.now += 24 * 3600 * TICKS_PER_SECOND + 1
    assert await missed(side, head, "credentials") == 403


@pytest.mark.parametrize("query", [None, ""])
async def test_a_rotated_key_is_rejected(side: Side, query: str | None) -> None:
    head = side.head(query=query)
    await side.warm(head)
    side.world.accounts.replace({NAME: StoredAccount((b"third", b"fourth"))})
    assert await missed(side, head, "credentials") == 403
    await side.warm(side.head(query=query))
    side.world.accounts.replace({})
    assert await missed(side, head, "credentials") == 404


@pytest.mark.parametrize(("policy", "times"), [(POLICY, {"start": "", "expiry": ""}), (LETTERS, {})])
async def test_a_revoked_policy_is_followed(side: Side, policy: bytes, times: dict[str, str]) -> None:
    async def set_policy(document: bytes) -> None:
        signed = side.world.shared_key("PUT", f"/{NAME}/orders", HEAD, "comp=acl")
        assert (await side.world.ask("PUT", "orders", "comp=acl", document, signed)).status == 204

    await set_policy(policy)
    head = side.head(query=side.world.table_sas(permission="", policy_id="one", **times))
    for _ in range(4):
        assert status(await side.send(head)) == 200
    await set_policy(b"")
    assert status(await side.send(head)) == 403


async def test_a_token_for_an_address_or_a_scheme_has_no_template(side: Side) -> None:
    world = side.world
    for query in (world.sas(ip="192.0.2.7"), world.sas("r", protocol="https")):
        for _ in range(4):
            await side.send(side.head(query=query))
    assert len(side.templates) == 0


async def test_a_token_for_keys_has_no_template(side: Side) -> None:
    query = side.world.table_sas(start_partition="p", start_row="r", end_partition="p", end_row="r")
    for _ in range(4):
        assert status(await side.send(side.head(query=query))) == 200
    assert status(await side.send(side.head(path=SECOND, query=query))) == 403


async def test_the_scheme_is_part_of_the_key(side: Side) -> None:
    head = side.head(query=side.world.sas(protocol="https"))
    side.transport = side.connect("https")
    await side.warm(head)
    side.transport = side.connect("http")
    assert status(await side.send(head)) == 403
    assert status(await side.send(side.head())) == 200
    assert await missed(side, head) == 403


async def test_changed_cors_rules_are_followed(side: Side) -> None:
    head = side.head(fields={"Origin": "http://a"})
    await side.warm(head)
    properties = f"restype=service&comp=properties&{side.world.sas()}"
    assert (await side.world.ask("PUT", "", properties, CORS % b"a")).status == 202
    assert await missed(side, head, "rules") == 200
    assert b"Access-Control-Allow-Origin" in await side.send(head)


async def test_a_dropped_table_is_missing(side: Side) -> None:
    head = side.head()
    await side.warm(head)
    assert (await side.world.ask("DELETE", "Tables('orders')")).status == 204
    assert await missed(side, head, "operation") == 404


async def test_a_missing_entity_is_missing(side: Side) -> None:
    head = side.head()
    await side.warm(head)
    assert await missed(side, side.head(path="orders(PartitionKey='p',RowKey='x')"), "operation") == 404


async def test_a_large_entity_goes_the_usual_way(side: Side) -> None:
    await side.warm(side.head())
    body = {f"P{number}": "x" * 30000 for number in range(LARGE_BYTES // 30000 + 1)}
    assert (await side.world.ask("PUT", body=body)).status == 204
    assert await missed(side, side.head(), "operation") == 200


async def test_a_value_that_is_not_ready_is_awaited(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    await side.warm(side.head())
    monkeypatch.setattr(side.world.engine, "get_now", lambda *_: UNKNOWN)
    assert await missed(side, side.head(), "operation") == 200


async def test_a_defect_is_met_again(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    await side.warm(side.head())

    def fail(*_: object) -> None:
        raise RuntimeError("defect")

    monkeypatch.setattr(side.world.engine, "get_now", fail)
    with pytest.raises(RuntimeError, match="defect"):
        await side.send(side.head())
    assert side.templates.outcomes["failed"] == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x-ms-version: 2019-02-02", b"x-ms-version: 2019-07-07"),
        (b"Host: h", b"Host: g"),
        (f"Accept: {JSON}".encode(), b"Accept: application/jsom"),
        (b"/acct/", b"/acc2/"),
        (b"User-Agent: sdk", b"Connection: bye"),
        (b"User-Agent: sdk", b"If-Match: abcde"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"GET ", b"PUT "),
    ],
)
async def test_another_constant_is_another_head(side: Side, before: bytes, after: bytes) -> None:
    head = side.head()
    await side.warm(head)
    changed = head.replace(before, after)
    assert len(changed) == len(head)
    assert changed != head
    await missed(side, changed)


@pytest.mark.parametrize("option", ["$select=A", "$format=json", "timeout=30"])
async def test_another_query_is_another_head(side: Side, option: str) -> None:
    await side.warm(side.head())
    await missed(side, side.head(query=f"{option}&{side.world.sas()}"))


@pytest.mark.parametrize("value", ["a\tb", " ab", "ab ", "a\x7fb", "a\xe9b"])
async def test_an_unusual_value_is_read_by_the_usual_way(side: Side, value: str) -> None:
    head = side.head(fields={"x-ms-client-request-id": "abc"})
    await side.warm(head)
    await missed(side, head.replace(b"abc", value.encode("latin-1").ljust(3)), "values")


@pytest.mark.parametrize(
    "change", [("Jan", "jan"), (", ", ",\t"), ("GMT", "GM\xe9"), ("GMT", "GM "), ("GMT", "\x7fMT")]
)
async def test_a_date_of_another_form_is_read_by_the_usual_way(side: Side, change: tuple[str, str]) -> None:
    head = side.head(query="")
    await side.warm(head)
    line = next(line for line in head.split(b"\r\n") if line.startswith(b"x-ms-date: "))
    before, after = (text.encode("latin-1") for text in change)
    assert before in line
    await missed(side, head.replace(line, line.replace(before, after)), "credentials")


async def test_a_line_in_a_value_is_another_field(side: Side) -> None:
    head = side.head(fields={"x-ms-client-request-id": "x" * 19})
    await side.warm(head)
    injected = head.replace(b"x" * 19, b"a\r\nIf-None-Match: x")
    assert len(injected) == len(head)
    response = await side.send(injected)
    assert b"x-ms-client-request-id: a\r\n" in response


async def test_a_host_that_is_unknown_passes_until_there_is_a_public_key() -> None:
    guarded = False

    def wrap(service: Service) -> Service:
        return HostGuard(service, lambda: guarded, names=(), suffixes=(), report=lambda _: None)

    side = await Side(wrap=wrap).prepare()
    head = side.head(fields={"Host": "unknown.example"})
    await side.warm(head)
    guarded = True
    assert await missed(side, head, "watched") == 400


async def test_a_server_that_stops_closes_its_connections(side: Side) -> None:
    head = side.head()
    await side.warm(head)
    side.state.stopping = True
    assert b"Connection: close" in await side.send(head)


async def test_a_log_that_reads_heads_switches_templates_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.table.template.side.Lines.reads_heads", True)
    assert Side().state.templates is None


async def test_a_slow_reader_is_waited_for(side: Side) -> None:
    head = side.head()
    await side.warm(head)
    transport = side.transport
    transport.stalled = True
    hits = side.templates.hits
    transport.set_write_buffer_limits(1, 0)
    first = await side.send(head)
    assert await side.send(head) == b""
    transport.stalled = False
    transport.take(transport.waiting_bytes)
    assert status(first) == 200
    assert status(await side.send(head)) == 200
    assert side.templates.hits - hits in (1, 2)


async def test_a_connection_that_is_silent_is_closed_later_by_each_answer(side: Side) -> None:
    await side.warm(side.head())
    protocol = side.transport.protocol
    deadline_s = protocol.deadline_s  # type: ignore[attr-defined]  # a Connection
    side.clock.now_s += 5
    await side.send(side.head(path=ENTITY))
    assert protocol.deadline_s == deadline_s + 5  # type: ignore[attr-defined]  # likewise
