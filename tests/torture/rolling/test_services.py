"""All services behind the load balancers of `deploy/`, where they are installed, by Microsoft's SDKs."""

from contextlib import ExitStack
from pathlib import Path

from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient
from benchmarks.requests import ACCOUNT, KEY

from tests.postgres.server import shared
from tests.server_process import LAZULITE

from .balancers import Balancer
from .process import Process
from .test_balancers import both

MESSAGES = 20
CONTENT = bytes(range(256)) * 24 * 1024
"""More than nginx takes of a request to tables."""


@both
def test_all_services_of_two_processes(kind: type[Balancer], tmp_path: Path) -> None:
    with ExitStack() as stack:
        dsn = stack.enter_context(shared().database())
        processes = [Process(name, dsn, 0.1, tmp_path, LAZULITE, all_services=True) for name in ("one", "two")]
        for process in processes:
            stack.callback(process.close)
            process.start()
        balancer = kind(
            tmp_path,
            [process.address for process in processes],
            [process.queue_address for process in processes],
            [process.blob_address for process in processes],
        )
        stack.callback(balancer.close)
        credentials = f"AccountName={ACCOUNT};AccountKey={KEY};"
        addresses = {"Table": balancer.address, "Queue": balancer.queue_address, "Blob": balancer.blob_address}
        endpoints = "".join(f"{name}Endpoint=http://{address}/{ACCOUNT};" for name, address in addresses.items())
        connection_string = f"DefaultEndpointsProtocol=http;{credentials}{endpoints}"
        tables = stack.enter_context(TableServiceClient.from_connection_string(connection_string, retry_total=0))
        orders = tables.create_table("Orders")
        orders.create_entity({"PartitionKey": "p", "RowKey": "1"})
        assert [entity["RowKey"] for entity in orders.list_entities()] == ["1"]
        queues = stack.enter_context(QueueServiceClient.from_connection_string(connection_string, retry_total=0))
        jobs = stack.enter_context(queues.create_queue("jobs"))
        for number in range(MESSAGES):
            jobs.send_message(str(number))
        got = []
        while message := jobs.receive_message():
            got.append(int(message.content))
            jobs.delete_message(message)
        assert sorted(got) == list(range(MESSAGES))
        assert jobs.get_queue_properties().approximate_message_count == 0
        assert [queue.name for queue in queues.list_queues()] == ["jobs"]
        blobs = stack.enter_context(BlobServiceClient.from_connection_string(connection_string, retry_total=0))
        docs = stack.enter_context(blobs.create_container("docs"))
        for number in range(MESSAGES):
            docs.upload_blob(str(number), CONTENT)
            assert docs.download_blob(str(number)).readall() == CONTENT
