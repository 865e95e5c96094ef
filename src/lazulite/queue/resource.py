"""The resources that URLs of the Queue service address."""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import percent_decode
from lazulite.protocol.resource_names import check_resource_name

_MESSAGES = "messages"
_USUAL = r"(?:/[A-Za-z0-9-]++){1,3}/messages)/([0-9A-Fa-f-]{36})"
USUAL_PATH = re.compile(f"({_USUAL}")
"""The whole path of a message, as every SDK writes it: a `ServiceDefinition.keyed_path`."""
USUAL_START = re.compile(rf"([A-Z]{{3,6}} {_USUAL}\?popreceipt=([A-Za-z0-9%]{{28,60}}+)(?=[& ])".encode())
"""The start of a head with that path, and with a pop receipt: one of `ServiceDefinition.keyed_starts`."""


class Kind(StrEnum):
    """The kinds of resources."""

    SERVICE = "the account's root"
    QUEUE = "one queue"
    MESSAGES = "the messages of a queue"
    MESSAGE = "one message"


class Resource(NamedTuple):
    """An addressed resource; the queue's name is well formed, and the message's id is any text."""

    kind: Kind
    queue: str = ""
    message: str = ""

    @property
    def name(self) -> str:
        """Return the name that a service SAS is compared with: the queue's."""
        return self.queue

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the id of a message; any other resource has none."""
        return (self.message,) if self.kind is Kind.MESSAGE else ()


@lru_cache(maxsize=1024)
def parse_resource(path: str) -> Resource:
    """Read the path below the account, percent-encoded.

    Raises:
        ServiceError: `InvalidUri`, `InvalidResourceName`, `OutOfRangeInput`, `RequestUrlFailedToParse`.
    """
    queue, *below = map(percent_decode, path.split("/"))
    while below and not below[-1]:
        below.pop()
    if not queue and not below:
        return Resource(Kind.SERVICE)
    check_resource_name(queue)
    if not below:
        return Resource(Kind.QUEUE, queue)
    if below[0] != _MESSAGES or len(below) > 2:
        raise ServiceError("InvalidUri")
    return Resource(Kind.MESSAGE, queue, below[1]) if len(below) == 2 else Resource(Kind.MESSAGES, queue)


def resource_of(path: str, _: Mapping[str, str]) -> Resource:
    """See `ServiceDefinition.parse_resource`. Raises as `parse_resource`."""
    return parse_resource(path)


def queue_of(path: str) -> str:
    """Return the name of the queue that a path below the account addresses, well formed or not; "" for none.

    Raises:
        ServiceError: `RequestUrlFailedToParse`.
    """
    return percent_decode(path.partition("/")[0])
