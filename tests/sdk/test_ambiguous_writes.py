"""The page on writes whose answers are lost is true of each call of the SDKs, and of the pattern library."""

from collections.abc import Iterator

import pytest
from azure.data.tables import TableClient, TableServiceClient
from azure.storage.blob import BlobClient, BlobLeaseClient, BlobServiceClient, ContainerClient
from azure.storage.queue import QueueClient, QueueServiceClient

import lazulite.testing

from .ambiguous_writes import (
    LOSSES,
    ORDER,
    PACKAGES,
    PAGE,
    SUCCEEDS,
    Case,
    Clients,
    _added,
    _increment,
    _orders,
    outcome,
)

CLASSES = (
    *(TableServiceClient, TableClient, QueueServiceClient, QueueClient),
    *(BlobServiceClient, ContainerClient, BlobClient, BlobLeaseClient),
)
READING = ("close", "download", "exists", "find", "from_", "get_", "list_", "peek", "query", "send_request", "walk")
"""What the names of methods begin with that change nothing."""
ELSEWHERE = {
    "BlobClient.abort_copy": "a copy on one server is done at once",
    "BlobClient.delete_immutability_policy": "it is not served",
    "BlobClient.set_immutability_policy": "it is not served",
    "BlobClient.set_legal_hold": "it is not served",
    "BlobClient.set_premium_page_blob_tier": "it is set_standard_blob_tier of page blobs of premium accounts",
    "BlobServiceClient.undelete_container": "the account must keep deleted containers",
    "ContainerClient.set_premium_page_blob_tier_blobs": "it is set_standard_blob_tier_blobs of premium accounts",
}
"""The methods that have no case, and why."""
CASES = [(package, case) for package, cases in PACKAGES.items() for case in cases]


@pytest.fixture(scope="module")
def storage() -> Iterator[lazulite.testing.Storage]:
    with lazulite.testing.server() as running:
        yield running


def stated() -> dict[str, list[str]]:
    """Return what the page says about each call."""
    lines = PAGE.read_text(encoding="utf-8").partition("## The calls\n")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {name.replace("`", ""): outcomes for name, *outcomes in rows}


@pytest.mark.parametrize(("package", "case"), CASES, ids=[case.name for _, case in CASES])
def test_a_call_does_what_the_page_says(storage: lazulite.testing.Storage, package: str, case: Case) -> None:
    found = [outcome(storage, case, loss) for loss in LOSSES.values()]
    assert stated()[case.name] == found, "python -m tests.sdk.ambiguous_writes writes the page again"
    if package == "lazulite-patterns":
        assert set(found) <= {SUCCEEDS, "`OutcomeUnknown`"}


def test_the_page_has_each_call_once() -> None:
    assert list(stated()) == [case.name for _, case in CASES]


def test_each_method_has_a_case() -> None:
    methods = {
        f"{each.__name__}.{name}"
        for each in CLASSES
        for name in dir(each)
        if not name.startswith(("_", *READING)) and callable(getattr(each, name))
    }
    tried = {case.name.partition(" (")[0] for _, case in CASES if not case.name.startswith("Table.")}
    assert methods == tried | ELSEWHERE.keys()


def test_the_pattern_library_counts_right_under_the_preset(storage: lazulite.testing.Storage) -> None:
    clients = Clients.of(storage.account())
    table = _orders(ORDER)(clients)
    storage.faults.add("ambiguous-writes")
    try:
        for _ in range(50):
            _increment(table)
        assert storage.faults.hits()["lost-answer"] >= 10
    finally:
        storage.faults.clear()
        clients.close()
    assert _added(table) == 50
    table.close()
