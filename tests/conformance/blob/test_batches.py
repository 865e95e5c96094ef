"""Blob Batch: parts succeed or fail alone, each by its own credentials. Source: reference §44."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from tests.conformance.answers import Answer
from tests.conformance.sas import account_sas

from .blobs import Container

_STATUS = re.compile(rb"Content-ID: (\d+)\r\n\r\nHTTP/1\.1 (\d+)")
_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {}\r\n\r\n"
NAMES = [f"b{number}" for number in range(4)]
COOL = "x-ms-access-tier: Cool\r\n"


class Part(NamedTuple):
    """A request of a batch, to a path below the account."""

    path: str
    permission: str = "dw"
    method: str = "DELETE"
    query: str = ""
    headers: str = ""


@pytest.fixture
def four(container: Container) -> Container:
    """A container with four blobs."""
    for name in NAMES:
        container.put(name).expect(201)
    return container


def send(container: Container, parts: Sequence[Part], of: str = "", query: str = "comp=batch") -> Answer:
    """Send a batch to the account, or to a container."""
    endpoint = container.blobs.client.endpoint
    body = ""
    for number, (path, permission, method, parameters, headers) in enumerate(parts):
        token = account_sas(endpoint, {"ss": "b", "srt": "o", "sp": permission})
        target = f"{method} {endpoint.prefix}/{path}?{parameters}{token} HTTP/1.1"
        body += f"--b\r\n{_HEAD.format(number)}{target}\r\n{headers}Content-Length: 0\r\n\r\n\r\n"
    headers_ = {"Content-Type": "multipart/mixed; boundary=b"}
    return container.blobs.send("POST", f"/{of}", query, headers=headers_, body=f"{body}--b--\r\n")


def left(container: Container) -> list[str]:
    """The blobs that are there."""
    return [name for name in NAMES if container.send("HEAD", name).status == 200]


def test_parts_fail_alone(four: Container) -> None:
    paths = [Part(f"{four.name}/{name}") for name in ("b0", "absent", "b1", "b2")]
    answer = send(four, [*paths[:2], paths[2]._replace(permission="r"), paths[3]]).expect(202)
    assert _STATUS.findall(answer.body) == [(b"0", b"202"), (b"1", b"404"), (b"2", b"403"), (b"3", b"202")]
    assert left(four) == ["b1", "b3"]


def test_tiers_are_set(four: Container) -> None:
    answer = send(four, [Part(f"{four.name}/{name}", "w", "PUT", "comp=tier&", COOL) for name in NAMES]).expect(202)
    assert {status for _, status in _STATUS.findall(answer.body)} == {b"200"}
    assert four.send("HEAD", "b3").header("x-ms-access-tier") == "Cool"


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [Part("b0"), Part("b1", "w", "PUT", "comp=tier&", COOL)],
        [Part("b0", method="GET")],
        [Part("b0")] * 257,
    ],
    ids=["none", "two operations", "another operation", "257"],
)
def test_a_batch_that_cannot_be_runs_no_part(four: Container, parts: Sequence[Part]) -> None:
    sent = [part._replace(path=f"{four.name}/{part.path}") for part in parts]
    assert send(four, sent).status == 400
    assert left(four) == NAMES


def test_an_account_that_is_taken_for_a_container(four: Container) -> None:
    send(four, [Part(f"{four.name}/b0")], query="restype=container&comp=batch").expect(202)
    assert left(four) == NAMES[1:]


def test_the_batch_of_a_container_stays_in_it(four: Container) -> None:
    name, query = four.name, "restype=container&comp=batch"
    for path in (f"{name}2/b1", f"{name}/../{name}2/b1", f"{name}%5C..%5C{name}2%5Cb1", name, f"{name}/.."):
        answer = send(four, [Part(f"{name}/b0"), Part(path)], name, query)
        assert answer.code == (400, "InvalidInput"), path
    assert left(four) == NAMES
    answer = send(four, [Part(f"{name}/b1", headers="Host: other.blob.localhost\r\n")], name, query)
    assert _STATUS.findall(answer.body) == [(b"0", b"202")], "a part goes to the host of the whole"
    four.put("b1").expect(201)
    send(four, [Part(f"{name}/b0")], name, query).expect(202)
    assert left(four) == NAMES[1:]
