"""Batches as a client writes them, and answers as a strict client reads them."""

import json
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

from lazulite.protocol.message import Response
from tests.table.client import BASE

CONTENT_TYPE = {"content-type": "multipart/mixed; boundary=batch_b"}


@dataclass
class Operation:
    method: str
    url: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encode(self) -> str:
        head = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        headers = {"Accept": "application/json;odata=nometadata", **self.headers}
        if self.body is not None:
            headers = {"Content-Type": "application/json", **headers}
        lines = [f"{self.method} {BASE}{self.url} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items())]
        text = "" if self.body is None else json.dumps(self.body)
        return head + "\r\n".join(lines) + f"\r\n\r\n{text}\r\n"


def change_set(*operations: Operation) -> bytes:
    inner = "".join(f"--changeset_c\r\n{operation.encode()}" for operation in operations)
    head = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
    return f"{head}{inner}--changeset_c--\r\n--batch_b--\r\n".encode()


def query(operation: Operation) -> bytes:
    return f"--batch_b\r\n{operation.encode()}--batch_b--\r\n".encode()


@dataclass
class Part:
    status: int
    headers: dict[str, str]
    body: str

    @property
    def code(self) -> str:
        if self.body.startswith("<"):
            return ET.fromstring(self.body.encode())[0].text or ""
        return str(json.loads(self.body)["odata.error"]["code"])

    @property
    def message(self) -> str:
        return str(json.loads(self.body)["odata.error"]["message"]["value"]).partition("\n")[0]


def parts(response: Response) -> list[Part]:
    assert response.status == 202, response
    boundary = dict(response.fields())["Content-Type"].partition("boundary=")[2]
    text = response.body.decode()
    assert text.endswith(f"--{boundary}--\r\n")
    text = text.removesuffix(f"--{boundary}--\r\n")
    head, _, rest = text.partition("\r\n\r\n")
    if "multipart/mixed" in head:
        boundary = head.rpartition("boundary=")[2]
        assert rest.endswith(f"--{boundary}--\r\n")
        text = rest.removesuffix(f"--{boundary}--\r\n")
    found = []
    for piece in text.split(f"--{boundary}\r\n")[1:]:
        mime, line, *more = piece.split("\r\n\r\n", 2)
        assert mime == "Content-Type: application/http\r\nContent-Transfer-Encoding: binary"
        status, *headers = line.split("\r\n")
        body = more[0]
        assert body.endswith("\r\n")
        found.append(Part(int(status.split(" ")[1]), dict(header.split(": ", 1) for header in headers), body[:-2]))
    return found
