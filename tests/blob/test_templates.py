"""Reads and puts with templates and without: the same bytes, and the same lines in the log.

Two servers with the same clock and the same ids get the bytes of the same requests. One of them finds plans by the
bytes of heads. The questions and the changes are those of `test_plans`.
"""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.protocol.addressing import HOST_SUFFIX
from lazulite.protocol.clock import TICKS_PER_DAY, TICKS_PER_SECOND
from lazulite.protocol.message import Request
from lazulite.server.admission.budgets import budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.limits import Limits
from tests.blob.test_plans import (
    BODIES,
    CHANGES,
    ENCODED,
    NAME,
    RETENTION,
    Answer,
    Both,
    Question,
    World,
    account_properties,
    blocks,
    change,
    put,
    reads,
    writes,
)
from tests.server.wire import Clock, Transport, settle
from tests.table.template.side import Lines, Scheduler, in_memory


class Wire(World):
    """A server without sockets.

    Args:
        templates: whether it finds plans by the bytes of heads.
    """

    def __init__(self, *, templates: bool) -> None:
        super().__init__(in_memory)
        self.log, self.clock = Lines(), Clock()
        limits = Limits()
        self.state = ServerState(
            self.service,
            limits,
            lambda: "id",
            self.clock,
            (self.log,),
            scheduler=Scheduler(),
            budgets=budgets_of(limits, self.clock),
        )
        if not templates:
            self.state.templates = None
        self.transport = self.connect()

    @property
    def hits(self) -> int:
        """How many requests templates have answered."""
        return 0 if self.state.templates is None else self.state.templates.hits

    @property
    def is_syncing(self) -> bool:
        """Whether the service works on a request that is whole."""
        running = self.transport.protocol.running  # type: ignore[attr-defined]  # a Connection
        return running is not None and running.complete

    def connect(self) -> Transport:
        connection = Connection(self.state)
        transport = Transport(connection)
        connection.connection_made(transport)
        return transport

    async def respond(self, request: Request, *, steady: bool) -> Answer:
        """Send the bytes of a request; return those of its response. After the end of a connection, make another."""
        target = f"{request.path}?{request.query}" if request.query else request.path
        sent = dict(request.headers)
        if request.method != "PUT":
            del sent["content-length"]  # No client sends it.
        lines = "".join(f"{name}: {text}\r\n" for name, text in sent.items())
        transport = self.transport
        data = f"{request.method} {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + request.body
        transport.protocol.data_received(data)
        await settle()
        while self.is_syncing:  # noqa: ASYNC110 - a thread syncs
            await asyncio.sleep(0.0001)
        await settle()
        written, transport.written = transport.written, b""
        if transport.closed or transport.eof:
            transport.abort()
            await settle()
            self.transport = self.connect()
        head, _, body = written.partition(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        fields = tuple((name, text) for name, _, text in (each.partition(": ") for each in rest))
        return Answer(int(line.split(" ")[1]), fields, body, "\n".join(self.log.lines[-1:]))


HOSTS = ("", f"{NAME}.{HOST_SUFFIX}")


async def both_servers(host: str = "") -> Both:
    both = Both(Wire(templates=True), Wire(templates=False))
    for world in both.worlds:
        world.host = host
    assert (await both.ask("PUT", "docs", "restype=container")).status == 201
    return both


def hits_of(both: Both) -> int:
    quick = both.worlds[0]
    assert isinstance(quick, Wire)
    return quick.hits


async def run(steps: Sequence[tuple[int, object]], host: str) -> int:
    both = await both_servers(host)
    for body in BODIES[:1]:
        await both.ask(*put(body=body))
    for times, step in steps:
        for _ in range(times):
            await change(both, step)
    await both.end()
    return hits_of(both)


@given(
    st.lists(st.tuples(st.integers(1, 6), reads() | reads() | writes() | blocks() | CHANGES), min_size=5, max_size=20),
    st.sampled_from(HOSTS),
)
@settings(max_examples=30, deadline=None)
def test_templates_change_no_byte(steps: list[tuple[int, object]], host: str) -> None:
    asyncio.run(run(steps, host))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("credentials", ["account", "key", "container"])
async def test_a_template_is_for_all_blobs_of_a_container(credentials: str, host: str) -> None:
    both = await both_servers(host)
    for number in range(6):
        name, body = f"folder/{number}.txt", b"%d123456789" % number
        before = hits_of(both)
        await both.ask(*put(name, body, credentials))
        assert hits_of(both) - before == (1 if number > 1 else 0), "two requests make a template"
        before = hits_of(both)
        ranged, current = {"range": f"bytes={number}-9"}, {"if-match": both.etags[-1]}
        for method, headers, status, expected in (
            ("GET", {}, 200, body),
            ("GET", ranged, 206, body[number:]),
            ("HEAD", current, 200, b""),
        ):
            answer = await both.ask(method, f"docs/{name}", "", headers, b"", credentials)
            assert (answer.status, answer.body) == (status, expected)
        assert hits_of(both) - before == (3 if number > 1 else 0), "two requests make a template"
        other = {"if-match": f'{current["if-match"][:-2]}G"'}
        assert (await both.ask("HEAD", f"docs/{name}", "", other, b"", credentials)).status == 412
    await both.end()


@pytest.mark.parametrize("credentials", ["account", "key", "container"])
async def test_a_template_is_for_names_that_are_encoded(credentials: str) -> None:
    both = await both_servers()
    for number, name in enumerate((*ENCODED, *ENCODED)):
        before = hits_of(both)
        body = b"%04d" % number
        await both.ask(*put(name, body, credentials))
        answer = await both.ask("GET", f"docs/{name}", "", {}, b"", credentials)
        assert (answer.status, answer.body) == (200, body)
        assert hits_of(both) - before == (2 if number > 1 else 0), name
    listed = await both.ask("GET", "docs", "restype=container&comp=list")
    assert listed.body.count(b"<Blob>") == len(ENCODED)
    await both.end()


@pytest.mark.parametrize("host", HOSTS)
async def test_a_template_is_for_all_blocks_of_a_container(host: str) -> None:
    both = await both_servers(host)
    for credentials in ("account", "key"):
        for number in range(5):
            before = hits_of(both)
            query = f"comp=block&blockid={quote(b64encode(b'%06d.' % number).decode(), safe='')}"
            assert query.endswith("%3D%3D")
            blob = f"{credentials}{number % 2}"
            assert (await both.ask("PUT", f"docs/{blob}", query, {}, b"x", credentials)).status == 201
            assert hits_of(both) - before == (1 if number > 1 else 0), "its first block begins the upload of a blob"
        listed = await both.ask("GET", f"docs/{credentials}0", "comp=blocklist&blocklisttype=all")
        assert listed.body.count(b"<Name>") == 3
        assert (await both.ask("PUT", "docs/a", "comp=block&blockid=x", {}, b"x", credentials)).status == 400
        assert (await both.ask("PUT", f"docs/{credentials}0", "comp=block&blockid=MQ==", {}, b"x")).status == 400
        assert (await both.ask("PUT", f"docs/{credentials}0", "comp=block&blockid=MQ%3D%3D", {}, b"x")).status == 400
    await both.end()


async def test_a_path_is_of_another_blob_where_the_host_names_the_account() -> None:
    both = await both_servers()
    assert (await both.ask("PUT", NAME, "restype=container")).status == 201
    names = {"": "docs/b", HOSTS[1]: f"{NAME}/docs/b"}
    for number in range(5):
        for host, name in names.items():
            for world in both.worlds:
                world.host = host
            before, body = hits_of(both), b"%d %b" % (number, host.encode())
            assert (await both.ask("PUT", name, "", {"x-ms-blob-type": "BlockBlob"}, body)).status == 201
            assert (await both.ask("GET", name)).body == body
            assert hits_of(both) - before == (2 if number > 1 else 0), host
    await both.end()


@pytest.mark.parametrize("body", BODIES)
async def test_what_a_template_does_not_answer_goes_the_usual_way(body: bytes) -> None:
    both = await both_servers()
    await both.ask(*put(body=b"x"))
    for _ in range(4):
        assert (await both.ask("GET", "docs/a")).body == b"x"
    assert hits_of(both) > 0
    await both.ask(*put(body=body))
    assert (await both.ask("GET", "docs/a")).body == body
    assert (await both.ask("GET", "docs/none")).status == 404
    await both.ask("DELETE", "docs/a")
    assert (await both.ask("GET", "docs/a")).status == 404
    await both.ask("DELETE", "docs", "restype=container")
    assert (await both.ask("GET", "docs/a")).status == 404
    for world in both.worlds:
        world.now += 3600 * 24 * 30 * TICKS_PER_SECOND
    assert (await both.ask("GET", "docs/a")).status == 403
    await both.end()


async def test_puts_that_leave_something_behind_go_the_usual_way() -> None:
    both = await both_servers()
    quick = both.worlds[0]
    assert isinstance(quick, Wire)

    async def hit(question: Question) -> int:
        before = quick.hits
        assert (await both.ask(*question)).status == 201
        return quick.hits - before

    block = Question("PUT", "docs/b", f"comp=block&blockid={b64encode(b'1').decode()}", {}, b"x")
    retained, not_retained = (RETENTION.format(text) for text in ("true</Enabled><Days>1</Days>", "false</Enabled>"))
    for _ in range(3):
        await both.ask(*put())
        await both.ask(*block)
    assert [await hit(each) for each in (put(), block)] == [1, 1]
    await both.ask(*put(body=BODIES[-1]))
    assert len(quick.contents._contents) == 1
    assert [await hit(put()) for _ in range(2)] == [0, 1], "the content that it replaces is garbage"
    await quick.service.garbage.wait_until_idle()
    assert not quick.contents._contents
    for text, expected in ((retained, [0, 0]), (not_retained, [0, 1])):
        assert (await both.ask(*account_properties(text))).status == 202
        assert [await hit(put()) for _ in range(2)] == expected, "what it replaces is kept"
    for world in both.worlds:
        world.now += TICKS_PER_DAY
    assert [await hit(block) for _ in range(2)] == [0, 1], "a later day has to be scheduled"
    await both.end()
