"""Requests to the services of one account, and what comes back.

A `Sender` signs and sends. It returns each response, also a rejection; `send` and `find` raise those as `RequestError`.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol
from xml.etree import ElementTree as ET

TABLE_SAFE = "%()=',$"
"""The characters of a path of the Table service that stand for themselves. Keys in it are encoded already."""
_NOT_FOUND = 404


class Reply(NamedTuple):
    """A response, whole."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes
    code: str = ""
    """The error code of a rejection."""
    reason: str = ""
    """The message of a rejection, one line."""

    @property
    def root(self) -> ET.Element:
        """The XML document of the body. Raises `RequestError` if it is not XML."""
        return xml_of(self.body)


class RequestError(Exception):
    """A request was rejected, or got no usable response. The text is one line for people, without secrets.

    Args:
        text: for people.
        code: the error code; "" if there is none.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class Sender(Protocol):
    """Sends requests to the services of one account, one after the other. Not for several threads."""

    @property
    def account(self) -> str:
        """The name of the account."""
        ...

    def request(
        self,
        service: str,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        """Send a signed request, and read the whole response.

        Args:
            service: `table`, `queue` or `blob`.
            method: of HTTP.
            path: behind the account. Of the Table service its keys are encoded; of the others nothing is.
            parameters: of the query; empty ones are left out.
            headers: besides those of every request.
            body: of the request.

        Raises:
            RequestError: there is no response.
        """
        ...


class Call(NamedTuple):
    """One request, but for where it goes."""

    service: str
    method: str
    path: str
    parameters: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes = b""


def send(sender: Sender, call: Call) -> Reply:
    """Send a request, and return its response.

    Raises:
        RequestError: it was rejected, or there is no response.
    """
    reply = sender.request(*call)
    if reply.code:
        raise rejection(reply, call)
    return reply


def find(sender: Sender, call: Call) -> Reply | None:
    """Send a request, and return its response; None if there is no such resource. Raises as `send`."""
    reply = sender.request(*call)
    if reply.status == _NOT_FOUND:
        return None
    if reply.code:
        raise rejection(reply, call)
    return reply


def rejection(reply: Reply, call: Call) -> RequestError:
    """Return the error for a rejected request."""
    reason = f": {reply.reason}" if reply.reason else ""
    return RequestError(
        f"the {call.service} service rejects {call.method} {call.path}: {reply.code}{reason}", reply.code
    )


def pages(sender: Sender, call: Call) -> Iterator[ET.Element]:
    """Yield the documents of a list of queues, containers or blobs, page after page. Raises as `send`."""
    marker = ""
    while True:
        root = send(sender, call._replace(parameters={**call.parameters, "marker": marker})).root
        yield root
        marker = root.findtext("NextMarker") or ""
        if not marker:
            return


def xml_of(body: bytes) -> ET.Element:
    """Return the root of a document.

    Raises:
        RequestError: it is not XML, or has a document type, which could define entities.
    """
    if b"<!DOCTYPE" in body:
        raise RequestError("the response has a document type, which no response of the service has")
    try:
        return ET.fromstring(body)  # noqa: S314 - see above: there are no entities
    except ET.ParseError as error:
        raise RequestError(f"the response is not XML: {error}") from error
