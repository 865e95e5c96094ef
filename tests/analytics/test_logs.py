"""`$logs` of a server, by the official SDKs. Source: reference §18.1."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableAnalyticsLogging, TableRetentionPolicy
from azure.storage.blob import BlobAnalyticsLogging, BlobServiceClient, RetentionPolicy
from azure.storage.queue import QueueAnalyticsLogging

from lazulite.analytics.log_reader import LogLine
from tests.analytics.world import ON, World, logged, serving

HOSTILE = '"a";b;1.0;&quot;<c>\''
"""The name of a blob that would break a line."""
HOSTILE_AGENT = f'";{"x;" * 600}"'
"""What some client calls itself."""


def use_tables(world: World) -> None:
    """Write and read entities, with and without success."""
    table = world.tables.create_table_if_not_exists("orders")
    for number in range(5):  # Enough for templates.
        table.upsert_entity({"PartitionKey": "p;\"x'", "RowKey": f"r{number}", "Text": "x"})
        table.get_entity("p;\"x'", f"r{number}")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "missing")
    table.submit_transaction([("create", {"PartitionKey": "b", "RowKey": str(number)}) for number in range(3)])
    with pytest.raises(HttpResponseError):
        table.submit_transaction([("create", {"PartitionKey": "b", "RowKey": "1"})])
    list(table.query_entities("PartitionKey eq 'b'"))
    table.delete_entity("b", "0")


def use_queues(world: World) -> None:
    """Put, get and delete messages."""
    queue = world.queues.create_queue("jobs")
    for number in range(4):
        queue.send_message(f"m{number}")
        message = queue.receive_message()
        assert message is not None
        queue.delete_message(message)
    assert queue.receive_message() is None
    queue.peek_messages(5)
    queue.clear_messages()


def use_blobs(world: World) -> None:
    """Write, read, copy and delete blobs, and a batch of them."""
    container = world.blobs.create_container("box")
    for number in range(4):
        container.upload_blob(f"a b;{number}", b"x" * 100, overwrite=True)
        container.download_blob(f"a b;{number}").readall()
    container.get_blob_client("copy").start_copy_from_url(container.get_blob_client("a b;0").url)
    container.get_blob_client(HOSTILE).upload_blob(b"x", headers={"User-Agent": HOSTILE_AGENT})
    with pytest.raises(ResourceNotFoundError):
        container.download_blob("missing")
    container.delete_blobs("a b;1", "a b;2")
    lease = container.get_blob_client("copy").acquire_lease(15)
    lease.release()


_FIELD = r'(?:"([^"]*)"|([^;"]*))'
TRIGGER_LINE = re.compile(";".join([_FIELD] * 30))
"""A line, as the trigger of the WebJobs SDK reads it. Source: reference §18.1."""
TRIGGER_KEY = re.compile("/([^/]+)/([^/]+)/(.+)")
TRIGGER_OPERATIONS = frozenset(
    {
        *("ClearPage", "CopyBlob", "CopyBlobDestination", "PutBlob", "PutBlockList", "PutPage"),
        *("SetBlobMetadata", "SetBlobProperties"),
    }
)
LOG_NAME = re.compile(r"(?:blob|queue|table)/\d{4}/\d\d/\d\d/\d\d00/\d{6}\.log", re.ASCII)


def triggered(blobs: BlobServiceClient) -> set[tuple[str, str]]:
    """Return the containers and names of the blobs that the trigger finds written in the last two hours."""
    found = set()
    now = datetime.now(UTC)
    for hour in (now - timedelta(hours=1), now):
        prefix = f"blob/{hour:%Y/%m/%d/%H}00"
        container = blobs.get_container_client("$logs")
        for each in container.list_blobs(name_starts_with=prefix, include=["metadata"]):
            if "write" not in each.metadata["LogType"]:
                continue
            for line in container.download_blob(each.name).readall().decode().splitlines():
                read = TRIGGER_LINE.fullmatch(line)
                assert read is not None, line
                fields = [
                    unescape(quoted or bare or "") for quoted, bare in zip(*[iter(read.groups())] * 2, strict=True)
                ]
                key = TRIGGER_KEY.fullmatch(fields[12])
                if fields[0] == "1.0" and fields[2] in TRIGGER_OPERATIONS and key is not None:
                    found.add((key[2], key[3]))
    return found


def switch_on(world: World, version: str = "1.0") -> None:
    """Ask for all logs, and make the server see it."""
    world.tables.set_service_properties(analytics_logging=_table_logging())
    world.queues.set_service_properties(analytics_logging=_queue_logging())
    world.blobs.set_service_properties(analytics_logging=_blob_logging(version))
    world.tables.get_service_properties()
    world.queues.get_service_properties()
    world.blobs.get_service_properties()


def _table_logging() -> TableAnalyticsLogging:
    return TableAnalyticsLogging(**ON, retention_policy=TableRetentionPolicy(enabled=False))


def _queue_logging() -> QueueAnalyticsLogging:
    return QueueAnalyticsLogging(**ON)


def _blob_logging(version: str = "1.0") -> BlobAnalyticsLogging:
    return BlobAnalyticsLogging(**ON | {"version": version})


def line_counts(world: World) -> Counter[str]:
    """Return how many lines each request is to have, by its id."""
    expected: Counter[str] = Counter()
    for exchange in world.access.exchanges:
        request, record = exchange.request, exchange.request.record
        if record.operation.startswith("Set") and record.operation.endswith("ServiceProperties"):
            continue  # Before the switch.
        if record.parts:
            expected.update(part.id for part, _ in record.parts)
        else:
            expected[request.id] += 1 + len(record.operations) + 2 * (record.operation == "CopyBlob")
    return expected


def test_each_request_has_exactly_its_lines(tmp_path: Path) -> None:
    with serving(tmp_path) as world:
        switch_on(world)
        use_tables(world)
        use_queues(world)
        use_blobs(world)
        expected = line_counts(world)
    assert world.counts.dropped_lines == world.counts.dropped_exchanges == 0
    with serving(tmp_path) as again:
        lines, found = logged(again.blobs), triggered(again.blobs)
    assert found == {*(("box", f"a b;{number}") for number in range(4)), ("box", "copy"), ("box", HOSTILE)}
    assert Counter(line.request_id for line in lines) == expected
    assert len(lines) == world.counts.lines
    by_id: dict[str, list[LogLine]] = {}
    for line in lines:
        by_id.setdefault(line.request_id, []).append(line)
    for each in by_id.values():
        assert [line.number for line in each] == list(range(len(each)))
    names = {line.operation for line in lines}
    assert {"InsertOrMergeEntity", "QueryEntity", "EntityGroupTransaction", "InsertEntity"} <= names
    assert {"PutMessage", "GetMessage", "DeleteMessage", "PeekMessages", "ClearMessages"} <= names
    assert {"PutBlob", "GetBlob", "CopyBlob", "CopyBlobSource", "CopyBlobDestination", "DeleteBlob"} <= names
    assert {"AcquireBlobLease", "ReleaseBlobLease"} <= names
    entities = [line for line in lines if line.operation == "QueryEntity" and not line.is_failed]
    assert {line.object_key for line in entities} == {f"/devstoreaccount1/orders/p;\"x'/r{n}" for n in range(5)}
    assert all(line.user_agent.startswith("azsdk-python-data-tables/") for line in entities)
    parts = [line for line in lines if line.operation == "DeleteBlob"]
    assert all(line.request_header_bytes and line.response_header_bytes for line in lines if line not in parts)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A server with logs on."""
    with serving() as found:
        switch_on(found)
        use_tables(found)
        yield found


def published(blobs: BlobServiceClient) -> list[str]:
    """Return the names of blobs, once there are some."""
    container = blobs.get_container_client("$logs")
    while True:
        try:
            names = [each.name for each in container.list_blobs()]
        except ResourceNotFoundError:
            continue
        if names:
            return names


def test_the_container_is_hidden_and_open_by_name(world: World) -> None:
    names = published(world.blobs)
    assert all(LOG_NAME.fullmatch(name) for name in names)
    assert "$logs" not in [each.name for each in world.blobs.list_containers()]
    assert world.blobs.get_container_client("$logs").get_container_properties().public_access is None


def test_metadata(world: World) -> None:
    name = next(each for each in published(world.blobs) if each.startswith("table/"))
    container = world.blobs.get_container_client("$logs")
    (found,) = container.list_blobs(name_starts_with=name, include=["metadata"])
    assert set(found.metadata) == {"LogType", "StartTime", "EndTime", "LogVersion"}
    assert found.metadata["LogVersion"] == "1.0"
    assert set(found.metadata["LogType"].split(",")) <= {"read", "write", "delete"}
    lines = logged(world.blobs, name)
    times = sorted(f"{line.start:%Y-%m-%dT%H:%M:%S}Z" for line in lines)
    assert (found.metadata["StartTime"], found.metadata["EndTime"]) == (times[0], times[-1])
    assert found.content_settings.content_type == "application/octet-stream"


WRITES: list[Callable[[BlobServiceClient], object]] = [
    lambda blobs: blobs.get_container_client("$logs").upload_blob("table/x", b"x"),
    lambda blobs: blobs.get_blob_client("$logs", "x").stage_block("0000", b"x"),
    lambda blobs: blobs.get_blob_client("$logs", published(blobs)[0]).set_blob_metadata({"a": "b"}),
    lambda blobs: blobs.get_blob_client("$logs", published(blobs)[0]).create_snapshot(),
    lambda blobs: blobs.get_blob_client("$logs", published(blobs)[0]).acquire_lease(),
    lambda blobs: blobs.get_blob_client("$logs", published(blobs)[0]).set_standard_blob_tier("Cool"),
    lambda blobs: blobs.get_blob_client("$logs", published(blobs)[0]).set_blob_tags({"a": "b"}),
    lambda blobs: blobs.get_container_client("$logs").set_container_metadata({"a": "b"}),
    lambda blobs: blobs.get_container_client("$logs").set_container_access_policy({}, public_access="container"),
    lambda blobs: blobs.get_container_client("$logs").acquire_lease(),
    lambda blobs: blobs.get_container_client("$logs").delete_container(),
    lambda blobs: blobs.create_container("$logs"),
]


@pytest.mark.parametrize("number", range(len(WRITES)))
def test_what_clients_may_not_do(world: World, number: int) -> None:
    with pytest.raises(HttpResponseError) as refused:
        WRITES[number](world.blobs)
    assert refused.value.status_code == 403
    assert "InsufficientAccountPermissions" in str(refused.value)


def test_a_blob_is_deleted_forever_whatever_the_account_keeps(world: World) -> None:
    world.blobs.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=7))
    name = published(world.blobs)[0]
    container = world.blobs.get_container_client("$logs")
    container.delete_blob(name)
    assert name not in [each.name for each in container.list_blobs(include=["deleted", "versions", "snapshots"])]
    with pytest.raises(ResourceNotFoundError):
        container.download_blob(name)


def test_logs_are_written_where_blobs_are_not_served(tmp_path: Path) -> None:
    with serving(tmp_path, services=("table",)) as tables:
        tables.tables.set_service_properties(analytics_logging=_table_logging())
        use_tables(tables)
        expected = line_counts(tables)
    with serving(tmp_path) as again:
        assert Counter(line.request_id for line in logged(again.blobs)) == expected


def test_version_2_is_for_blobs_and_queues_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as world:
        switch_on(world, "2.0")
        use_blobs(world)
        use_tables(world)
    with serving(tmp_path) as again:
        blobs, tables = logged(again.blobs, "blob/"), logged(again.blobs, "table/")
        container = again.blobs.get_container_client("$logs")
        versions = {each.name[:5]: each.metadata["LogVersion"] for each in container.list_blobs(include=["metadata"])}
    assert {line.version for line in blobs} == {"2.0"}
    assert {line.version for line in tables} == {"1.0"}
    assert (versions["blob/"], versions["table"]) == ("2.0", "1.0")


def test_only_the_classes_that_were_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path) as world:
        world.tables.set_service_properties(
            analytics_logging=TableAnalyticsLogging(version="1.0", read=False, write=False, delete=True)
        )
        use_tables(world)
    with serving(tmp_path) as again:
        assert {line.operation for line in logged(again.blobs)} == {"DeleteEntity"}


def test_nothing_is_logged_by_default(tmp_path: Path) -> None:
    with serving(tmp_path) as world:
        use_tables(world)
    with serving(tmp_path) as again, pytest.raises(ResourceNotFoundError):
        logged(again.blobs)
    assert world.counts.lines == 0
