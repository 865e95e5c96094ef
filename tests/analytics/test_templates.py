"""Lines of requests that templates have answered are those of requests that the service has answered."""

import re
from collections.abc import Callable, Sequence

import pytest

from lazulite.analytics.exchange_buffer import AnalyticsCounts, ExchangeBuffer
from lazulite.analytics.log_container import TICKS_PER_HOUR, LogContainer, folder_of
from lazulite.analytics.log_lines import lines_of
from lazulite.analytics.log_reader import read_line
from lazulite.analytics.log_writer import LogWriter
from lazulite.analytics.requests import AnalyticsRequest, RepeatedRequest, RequestReader
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.metadata import Metadata
from lazulite.server.observability.exchange import Exchange, RepeatedExchange
from lazulite.table.model.edm import format_datetime
from tests.analytics.samples import ALL, NOW
from tests.analytics.world import World, serving

ACCOUNT = DEVELOPMENT_ACCOUNT.name
Use = Callable[[World, int], object]


def _entities(world: World, number: int) -> None:
    table = world.tables.get_table_client("orders")
    table.upsert_entity({"PartitionKey": "p", "RowKey": f"r{number}"})
    table.get_entity("p", f"r{number}")
    table.create_entity({"PartitionKey": "q", "RowKey": f"r{number}"})
    etag = table.get_entity("q", f"r{number}").metadata["etag"]
    from azure.core import MatchConditions  # noqa: PLC0415

    table.update_entity(
        {"PartitionKey": "q", "RowKey": f"r{number}"}, etag=etag, match_condition=MatchConditions.IfNotModified
    )
    table.delete_entity("q", f"r{number}")


def _messages(world: World, number: int) -> None:
    queue = world.queues.get_queue_client("jobs")
    queue.send_message(f"m{number}")
    message = queue.receive_message()
    assert message is not None
    queue.delete_message(message)


def _blobs(world: World, number: int) -> None:
    blob = world.blobs.get_blob_client("box", f"a/b{number}.txt")
    blob.upload_blob(b"x" * 10, overwrite=True)
    blob.download_blob().readall()
    blob.get_blob_properties()
    blob.stage_block(f"{number:04}", b"x")


USES: dict[str, Use] = {"table": _entities, "queue": _messages, "blob": _blobs}


def _read(exchanges: Sequence[Exchange | RepeatedExchange]) -> list[AnalyticsRequest]:
    """Return exchanges as analytics sees them."""
    buffer = ExchangeBuffer([], lambda: NOW)
    for service in USES:
        buffer.note(service, ACCOUNT, ALL)
    for exchange in exchanges:
        if isinstance(exchange, RepeatedExchange):
            buffer.repeat(exchange)
        else:
            buffer.record(exchange)
    reader = RequestReader({name: Addressing([f"{name}.localhost"]) for name in USES}, buffer.wanted)
    return reader.read(buffer.take(10**6))


class _Blobs(LogContainer):
    """Keeps what is published, by the folder."""

    def __init__(self) -> None:
        self.published: dict[str, tuple[bytes, dict[str, str]]] = {}

    async def put(self, account: str, folder: str, content: bytes, metadata: Metadata) -> str:
        """See `LogContainer`."""
        assert folder not in self.published
        self.published[folder] = content, dict(metadata)
        return folder


def _usual(line: str) -> str:
    """Return a line without what differs from request to request."""
    line = re.sub(r"\d\d\d\d-\d\d-\d\dT[\d:.]*Z|[a-z]*day, [\w -]+ [\d:]+ GMT|datetime'[^']*'|0x\w+", "", line)
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "", line)
    line = re.sub(r";(\d+);\d+;\d+;(authenticated)", r";\1;;;\2", line)
    return re.sub(r"r\d+|b\d+\.txt|popreceipt=[^&\"]*|blockid=[^&\"]*", "", line)


@pytest.fixture(scope="module")
def used() -> dict[str, list[Exchange | RepeatedExchange]]:
    """The exchanges of some requests to each service."""
    found: dict[str, list[Exchange | RepeatedExchange]] = {}
    with serving() as world:
        world.tables.create_table("orders")
        world.queues.create_queue("jobs")
        world.blobs.create_container("box")
        for service, use in USES.items():
            world.access.all = found[service] = []
            for number in range(8):
                use(world, number)
    return found


@pytest.mark.parametrize("service", USES)
def test_lines_of_templates_equal_those_of_the_service(
    service: str, used: dict[str, list[Exchange | RepeatedExchange]]
) -> None:
    by_operation: dict[str, dict[bool, list[str]]] = {}
    keys: dict[bool, set[str]] = {True: set(), False: set()}
    for exchange, request in zip(used[service], _read(used[service]), strict=True):
        is_template = isinstance(exchange, RepeatedExchange)
        (line,) = lines_of(request, "1.0")
        by_operation.setdefault(request.operation, {True: [], False: []})[is_template].append(line)
        keys[is_template].add(request.key)
    answered = {name: lines for name, lines in by_operation.items() if lines[True]}
    assert len(answered) >= {"table": 4, "queue": 1, "blob": 2}[service]
    for lines in answered.values():
        sizes = re.compile(r"(;20\d\d-\d\d-\d\d);\d+;\d+;\d+;\d+;")
        usual = {sizes.sub(r"\1;;;;;", _usual(line)) for line in lines[False]}
        assert {sizes.sub(r"\1;;;;;", _usual(line)) for line in lines[True]} <= usual
    if service != "queue":
        assert len(keys[True]) >= 4


def test_sizes_of_heads_are_those_of_the_wire(used: dict[str, list[Exchange | RepeatedExchange]]) -> None:
    sizes: dict[str, dict[bool, set[int]]] = {}
    for exchange, request in zip(used["table"], _read(used["table"]), strict=True):
        found = sizes.setdefault(request.operation, {True: set(), False: set()})
        found[isinstance(exchange, RepeatedExchange)].add(request.request_head_bytes)
    for operation in ("QueryEntity", "InsertEntity"):  # Others have an ETag, whose length differs.
        found = sizes[operation]
        assert found[True] == found[False]


async def test_the_writer_makes_lines_together_and_each_goes_to_its_hour(
    used: dict[str, list[Exchange | RepeatedExchange]],
) -> None:
    exchanges = [each for found in used.values() for each in found]
    requests = [request for request in _read(exchanges) if isinstance(request, RepeatedRequest)]
    assert {request.operation_class for request in requests} == {"read", "write", "delete"}
    requests.sort(key=lambda each: (each.service, each.operation_class, each.operation))  # Many alike in turn.
    gets = [each for each in requests if each.operation == "QueryEntity"]
    assert len(gets) > 4
    for number, request in enumerate(requests):
        request.started += number * 7 % 13 * TICKS_PER_SECOND
    for request in gets[len(gets) // 2 :]:
        request.ended += TICKS_PER_HOUR
    counts, blobs = AnalyticsCounts(), _Blobs()
    writer = LogWriter(blobs, counts, pytest.fail)
    writer.take(requests)
    await writer.publish()
    expected: dict[str, list[str]] = {}
    for request in requests:
        folder = folder_of(request.service, request.ended // TICKS_PER_HOUR)
        expected.setdefault(folder, []).append(lines_of(request, "1.0")[0])
    found = {folder: content.decode().splitlines() for folder, (content, _) in blobs.published.items()}
    assert found == expected
    assert counts.lines == len(requests)
    for folder, (_, metadata) in blobs.published.items():
        those = [each for each in requests if folder_of(each.service, each.ended // TICKS_PER_HOUR) == folder]
        starts = [f"{format_datetime(pick(each.started for each in those))[:19]}Z" for pick in (min, max)]
        assert [metadata["StartTime"], metadata["EndTime"]] == starts
        assert set(metadata["LogType"].split(",")) == {each.operation_class for each in those}


def test_version_2_and_a_secondary(used: dict[str, list[Exchange | RepeatedExchange]]) -> None:
    requests = _read(used["blob"])
    assert all(lines_of(request, "2.0")[0].endswith(";;;;;;;;") for request in requests)
    assert not any(request.is_secondary for request in requests)


NAMES = ("plain", "a&lt;b", "q%22r;s", "%E2%98%83/\u2603", "x?sv=1&sig=SECRET", "sig=SECRET")


def test_names_of_templates_are_decoded_and_masked_as_others() -> None:
    with serving() as world:
        box = world.blobs.create_container("box")
        world.tables.create_table("orders")
        table = world.tables.get_table_client("orders")
        for name in NAMES:
            box.get_blob_client(name).upload_blob(b"x")
            table.upsert_entity({"PartitionKey": "p", "RowKey": re.sub("[/?]", "", name)})
        world.access.all.clear()
        for _ in range(4):
            for name in NAMES:
                box.get_blob_client(name).get_blob_properties()
                table.get_entity("p", re.sub("[/?]", "", name))
    found: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for exchange, request in zip(world.access.all, _read(world.access.all), strict=True):
        (line,) = lines_of(request, "1.0")
        read = read_line(line)
        assert "SECRET" not in line
        assert "sig=" not in read.object_key or read.object_key.endswith("sig=XXXXX")
        found[isinstance(exchange, RepeatedExchange)].add((read.url, read.object_key))
    assert found[True] & found[False], "some were answered both ways"
    all_names = {key: url for url, key in found[True] | found[False]}
    assert len(all_names) == len(found[True] | found[False]), "a key has one URL, whatever answers"
    assert f"/{ACCOUNT}/box/a&lt;b" in {key for _, key in found[True]}
    assert f"/{ACCOUNT}/box/x?sv=1&sig=XXXXX" in {key for _, key in found[True]}
