"""Requests and keys of workloads."""

import re

import pytest

from lazulite.stress.plan import KEY_SCHEMES, WORKLOADS, plan_of
from lazulite.stress.requests import Answer, Keys, Sample, fill, payload, workload

SAMPLE = Sample("127.0.0.1:10002", "/acct", "http://127.0.0.1:10002/acct", "stressed", "sig=secret")


@pytest.mark.parametrize("name", WORKLOADS)
def test_each_request_is_whole_and_authorized(name: str) -> None:
    requests = workload(plan_of({"workload": name, "batch": 3, "size": 500}), SAMPLE, 4)
    received = b"<M><MessageId>a</MessageId><PopReceipt>b/c</PopReceipt></M>"
    for request in (next(requests), *(requests.send(Answer(200, received)) for _ in range(4))):
        head, _, body = request.partition(b"\r\n\r\n")
        assert head.split(b"\r\n")[0].endswith(b"sig=secret HTTP/1.1")
        assert b"\r\nHost: 127.0.0.1:10002\r\n" in head
        length = re.search(rb"^Content-Length: (\d+)$", head, re.MULTILINE)
        assert (0 if length is None else int(length[1])) == len(body)


def test_a_message_that_was_received_is_deleted() -> None:
    requests = workload(plan_of({"workload": "queue"}), SAMPLE, 0)
    next(requests)
    requests.send(Answer(201, b""))
    deletion = requests.send(Answer(200, b"<M><MessageId>a</MessageId><PopReceipt>b/c</PopReceipt></M>"))
    assert deletion.startswith(b"DELETE /acct/stressed/messages/a?popreceipt=b%2Fc&")
    requests.send(Answer(204, b""))
    requests.send(Answer(201, b""))
    assert requests.send(Answer(200, b"<M/>")).startswith(b"POST "), "there was none to delete"


@pytest.mark.parametrize("scheme", KEY_SCHEMES)
def test_no_two_writes_have_the_same_keys(scheme: str) -> None:
    keys = Keys(plan_of({"keys": scheme, "partitions": 4}), SAMPLE, lambda: 7.0)
    written = {keys.written(client, number) for client in range(5) for number in range(20)}
    assert len(written) == 100
    assert len({partition for partition, _ in written}) == (1 if scheme == "append" else 4)


def test_rising_keys_rise_with_the_time() -> None:
    now = 99.5
    keys = Keys(plan_of({"keys": "append"}), SAMPLE, lambda: now)
    first, _ = keys.written(0, 0)
    now = 100.5
    assert first < keys.written(0, 1)[0]


@pytest.mark.parametrize("scheme", KEY_SCHEMES)
def test_what_is_read_was_stored(scheme: str) -> None:
    plan = plan_of({"workload": "get", "keys": scheme, "partitions": 3, "entities": 250})
    keys = Keys(plan, SAMPLE)
    stored = b"".join(fill(plan, SAMPLE)).decode()
    names = set(re.findall(r"PartitionKey='([^']+)',RowKey='([^']+)'", stored))
    assert len(names) == 3 * keys.rows >= 250
    assert {keys.stored(client, number) for client in range(3) for number in range(400)} <= names
    assert not list(fill(plan_of({"workload": "insert"}), SAMPLE))


def test_a_payload_has_its_size_and_comes_again() -> None:
    assert len(payload(999, "a")) == 999
    assert payload(9, "a") == payload(9, "a") != payload(9, "b")
