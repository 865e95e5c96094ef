"""Effects on blobs: the simulation answers as the service does; texts in names."""

import io

import pytest
from azure.core.exceptions import AzureError, ServiceResponseError, ServiceResponseTimeoutError
from azure.core.pipeline.transport import HttpRequest, HttpResponse, HttpTransport
from azure.storage.blob import ContainerClient, LinearRetry
from hypothesis import given
from hypothesis import strategies as st

from lazulite_patterns.effects.blobs import (
    Append,
    AppendCreate,
    BlobDelete,
    BlobEffect,
    BlobGet,
    BlobHead,
    BlobPut,
    BlobSetMetadata,
    segment,
    text_of,
)
from lazulite_patterns.effects.driver import Driver
from lazulite_patterns.effects.effect import perform
from lazulite_patterns.effects.errors import Rejected, ResultUnknown
from lazulite_patterns_simulation import Simulation

APPENDS: list[BlobEffect] = [
    Append("c", "b", b"x", 0),
    BlobSetMetadata("c", "b", {"a": "1"}),
    AppendCreate("c", "b", {"a": "1"}),
    AppendCreate("c", "b"),
    Append("c", "b", b"one", 0),
    Append("c", "b", b"two", 0),
    Append("c", "b", b"two", 3),
    BlobSetMetadata("c", "b", {"z": "2"}),
    BlobGet("c", "b"),
]
OLD = '"0x1"'
WRITES: list[BlobEffect] = [
    BlobGet("c", "b", etag=OLD),
    BlobPut("c", "b", b"one", etag=OLD),
    BlobPut("c", "b", b"one"),
    BlobPut("c", "b", b"two"),
    BlobPut("c", "b", b"two", etag=OLD),
    BlobGet("c", "b", etag=OLD),
    BlobGet("c", "b", 3),
    BlobDelete("c", "b", OLD),
    BlobGet("c", "b"),
]


def answer(run: object, effect: BlobEffect) -> object:
    try:
        found = run(perform(effect))  # type: ignore[operator] # the driver or the simulation
    except Rejected as rejected:
        return rejected.status, rejected.code
    return "an ETag" if isinstance(effect, BlobPut) else found


@pytest.mark.parametrize("effects", [APPENDS, WRITES])
def test_the_simulation_answers_as_the_service(container_client: ContainerClient, effects: list[BlobEffect]) -> None:
    driver, simulation = Driver({}, containers={"c": container_client}), Simulation()
    for effect in effects:
        assert answer(driver.run, effect) == answer(simulation.run, effect), effect
    facts = [run(perform(BlobHead("c", "b"))) for run in (driver.run, simulation.run)]
    assert facts[0] is not None
    assert facts[1] is not None
    assert (facts[0].length, facts[0].metadata) == (facts[1].length, facts[1].metadata)


def test_a_blob_that_has_the_etag_is_replaced_and_read(container_client: ContainerClient) -> None:
    driver, simulation = Driver({}, containers={"c": container_client}), Simulation()
    for run in (driver.run, simulation.run):
        etag = run(perform(BlobPut("c", "b", b"one")))
        after = run(perform(BlobPut("c", "b", b"two", etag=etag)))
        assert run(perform(BlobGet("c", "b", etag=after))) == b"two"


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=8)


@given(TEXTS, TEXTS)
def test_a_segment_is_a_text_without_special_characters(one: str, other: str) -> None:
    assert text_of(segment(one)) == one
    assert segment(one + other) == segment(one) + segment(other)
    assert not set(segment(one)) & set("./%\\?# ")


@pytest.mark.parametrize("name", ["=XX", "=41", "a b", "=FF", "é"])
def test_what_is_no_segment_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        text_of(name)


class Unanswered(HttpTransport[HttpRequest, HttpResponse]):
    """Lets each request end with an error."""

    def __init__(self, error: AzureError) -> None:
        self.error, self.sent = error, 0

    def send(self, request: HttpRequest, **options: object) -> HttpResponse:
        self.sent += 1
        raise self.error

    def open(self) -> None: ...

    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


ABORTED = ConnectionError("the body was not read")
ABORTED.__cause__ = TimeoutError()
ERRORS = [
    (ServiceResponseTimeoutError("no answer"), 1),
    (ServiceResponseError("no answer", error=ABORTED), 1),
    (ServiceResponseError("no answer", error=ConnectionError("the connection was lost")), 4),
]


@pytest.mark.parametrize(("error", "sent"), ERRORS)
def test_a_block_of_a_stream_is_not_sent_again_after_the_time_that_was_left(error: AzureError, sent: int) -> None:
    transport = Unanswered(error)
    at_once = LinearRetry(backoff=0, random_jitter_range=0)
    container = ContainerClient("http://127.0.0.1:9/a", "c", transport=transport, retry_policy=at_once)
    put = BlobPut("c", "b", io.BytesIO(bytes(10)))
    with pytest.raises(ResultUnknown):
        Driver({}, containers={"c": container}).run(perform(put))
    assert transport.sent == sent
