"""A response, whole, and what an error says in either of its spellings (reference §3, §6)."""

import json
import re
from dataclasses import dataclass
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

ERROR_TAIL = re.compile(r"\nRequestId:(?P<id>[0-9a-fA-F-]{36})\nTime:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z\Z")
"""What ends every error message (reference §6): the request id and a time of exactly seven fraction digits."""


class Rejection(NamedTuple):
    """What an error says: status, code and message without its RequestId and Time lines."""

    status: int
    code: str
    message: str


@dataclass(frozen=True)
class Answer:
    """A response, whole."""

    request: str
    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header, or None; a header that came twice fails."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    def required(self, name: str) -> str:
        """The value of a header that must be there."""
        value = self.header(name)
        assert value is not None, f"{name} is missing in {self.headers}"
        return value

    @property
    def etag(self) -> str:
        """The ETag header."""
        return self.required("ETag")

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def expect(self, status: int) -> "Answer":
        """Itself, if the status is the one named."""
        assert self.status == status, f"{self.request} gave {self.status} {self.body[:2000]!r}"
        return self

    @property
    def rejection(self) -> Rejection:
        """The error; its shape is checked on the way. A success has an empty code."""
        if self.status < 400:
            return Rejection(self.status, "", self.body[:300].decode("utf-8", "replace"))
        content_type = self.header("Content-Type") or ""
        code, text = _xml_error(self.body) if "xml" in content_type else _json_error(self.body)
        tail = ERROR_TAIL.search(text)
        assert tail, f"the message of {code} does not end in RequestId and Time: {text!r}"
        assert tail["id"] == self.required("x-ms-request-id")
        return Rejection(self.status, code, text[: tail.start()])

    @property
    def code(self) -> tuple[int, str]:
        """Status and error code, for the many texts that the reference leaves open."""
        return self.rejection[:2]


def _json_error(body: bytes) -> tuple[str, str]:
    document = json.loads(body)
    assert list(document) == ["odata.error"], document
    error = document["odata.error"]
    assert list(error) == ["code", "message"], error
    assert list(error["message"]) == ["lang", "value"], error
    assert error["message"]["lang"] == "en-US"
    return error["code"], error["message"]["value"]


def _xml_error(body: bytes) -> tuple[str, str]:
    texts = {node.tag.rpartition("}")[2].lower(): node.text or "" for node in ET.fromstring(xml_text(body))}
    return texts["code"], texts["message"]


def xml_text(body: bytes) -> str:
    """The text of an XML answer, with or without its byte order mark."""
    return body.decode("utf-8-sig")
