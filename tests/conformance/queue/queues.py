"""A queue under test: signed requests to it, and the messages of responses. Expectations are those of the reference."""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote
from uuid import uuid4
from xml.etree import ElementTree as ET

from tests.conformance.answers import Answer, xml_text
from tests.conformance.sas import WITH_IP_AND_PROTOCOL, WITH_SERVICE_PREFIX, moment, query_text
from tests.conformance.signing import Endpoint, signature
from tests.conformance.xml_service import XmlService


def queue_sas(endpoint: Endpoint, queue: str, **fields: str) -> str:
    """A service SAS of one queue as query text; permissions, expiry and version have defaults."""
    values = {"sv": "2019-02-02", "se": moment(60), "sp": "raup"} | fields
    values = {name: value for name, value in values.items() if value}
    prefix = "/queue" if values["sv"] >= WITH_SERVICE_PREFIX else ""
    last = ("si", "sip", "spr", "sv") if values["sv"] >= WITH_IP_AND_PROTOCOL else ("si", "sv")
    lines = [values.get(name, "") for name in ("sp", "st", "se")]
    lines += [f"{prefix}/{endpoint.account}/{queue}", *(values.get(name, "") for name in last)]
    return query_text(values | {"sig": signature(endpoint.key, "\n".join(lines))})


def message_body(text: str) -> str:
    """A `QueueMessage` document; the text is markup."""
    return f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>"


class Message(NamedTuple):
    """A message of a response, by the elements that it has."""

    fields: dict[str, str]

    @property
    def id(self) -> str:
        """The message's id."""
        return self.fields["MessageId"]

    @property
    def receipt(self) -> str:
        """The pop receipt as a query parameter."""
        return f"popreceipt={quote(self.fields['PopReceipt'], safe='')}"

    @property
    def text(self) -> str:
        """The text."""
        return self.fields["MessageText"]


def messages_of(answer: Answer) -> list[Message]:
    """The messages of a response."""
    root = ET.fromstring(xml_text(answer.body))
    assert root.tag == "QueueMessagesList"
    return [Message({child.tag: child.text or "" for child in node}) for node in root]


class Queues(XmlService):
    """The queues of an account."""

    VERSION = "2021-02-12"
    CONTENT_TYPE = "application/xml"


@dataclass(frozen=True)
class Queue:
    """A queue that exists, or not."""

    queues: Queues
    name: str

    @property
    def path(self) -> str:
        """The address of the queue."""
        return f"/{self.name}"

    def send(self, method: str, below: str = "", query: str = "", **options: object) -> Answer:
        """Send a request to the queue, or to a resource below it."""
        return self.queues.send(method, self.path + below, query, **options)  # type: ignore[arg-type]  # the same ones

    def put(self, text: str = "text", query: str = "", **options: object) -> Answer:
        """Put a message; the text is markup."""
        return self.send("POST", "/messages", query, body=message_body(text), **options)

    def get(self, query: str = "", **options: object) -> list[Message]:
        """Get messages."""
        return messages_of(self.send("GET", "/messages", query, **options).expect(200))

    def peek(self, query: str = "") -> list[Message]:
        """Peek messages."""
        return messages_of(self.send("GET", "/messages", f"peekonly=true&{query}").expect(200))

    def delete(self, message: Message) -> Answer:
        """Delete a message."""
        return self.send("DELETE", f"/messages/{message.id}", message.receipt)

    def update(self, message: Message, seconds: int, text: str | None = None) -> Answer:
        """Update a message."""
        body = None if text is None else message_body(text)
        return self.send("PUT", f"/messages/{message.id}", f"{message.receipt}&visibilitytimeout={seconds}", body=body)

    @property
    def count(self) -> int:
        """The approximate number of messages."""
        return int(self.send("GET", query="comp=metadata").expect(200).required("x-ms-approximate-messages-count"))


def new_name() -> str:
    """The name of a queue that no test has used."""
    return f"q-{uuid4().hex}"
