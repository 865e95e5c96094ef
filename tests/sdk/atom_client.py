"""A client as people wrote them in 2010: HTTP, Shared Key by hand, entries by templates, answers by an XML parser.

It follows the samples of WCF Data Services for Windows Azure tables: a context sends `DataServiceVersion: 1.0;NetFx`
and `MaxDataServiceVersion: 2.0;NetFx` with everything, Content-Type application/atom+xml with what has a body, and a
change set for several changes saved together.
"""

import base64
import hashlib
import hmac
import http.client
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from typing import NamedTuple
from urllib.parse import urlencode
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from tests.server_process import Account

DATA = "http://schemas.microsoft.com/ado/2007/08/dataservices"
METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
ATOM = "http://www.w3.org/2005/Atom"
ENTRY = """<?xml version="1.0" encoding="utf-8" standalone="yes"?>
<entry xmlns:d="{data}" xmlns:m="{metadata}" xmlns="{atom}">
  <title />
  <updated>2010-02-01T10:00:00.0000000Z</updated>
  <author>
    <name />
  </author>
  <id>{id}</id>
  <content type="application/xml">
    <m:properties>
{properties}
    </m:properties>
  </content>
</entry>"""
BATCH = "batch_36522ad7-fc75-4b56-8c71-56071383e77b"
CHANGES = "changeset_77162fcd-b8da-41ac-a9f8-9357efbbd621"

Properties = Mapping[str, str | int | float | bool | None]


class Answer(NamedTuple):
    """What came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        """The code of an error document."""
        root = ET.fromstring(self.body)
        assert root.tag == f"{{{METADATA}}}error"
        return root.findtext(f"{{{METADATA}}}code") or ""

    @property
    def entries(self) -> list[dict[str, str | None]]:
        """The properties of each entry, as texts."""
        root = ET.fromstring(self.body)
        return [
            {node.tag.rpartition("}")[2]: node.text for node in properties}
            for properties in root.iter(f"{{{METADATA}}}properties")
        ]

    @property
    def etags(self) -> list[str]:
        """The ETag of each entry."""
        found = [node.get(f"{{{METADATA}}}etag") for node in ET.fromstring(self.body).iter(f"{{{ATOM}}}entry")]
        return [tag for tag in found if tag is not None]


class Change(NamedTuple):
    """One change to be saved."""

    method: str
    path: str
    properties: Properties | None = None
    if_match: str | None = None


class AtomClient:
    """Talks to one account.

    Args:
        account: the account.
        version: the `x-ms-version` sent.
        lite: signs by Shared Key Lite, as the samples do; else by Shared Key.
        sas: the query of a shared access signature, which then takes the place of signing.
    """

    def __init__(self, account: Account, version: str, *, lite: bool = True, sas: str = "") -> None:
        self._account = account
        self._version = version
        self._lite = lite
        self._sas = sas
        self._connection = http.client.HTTPConnection(account.host, timeout=60)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def get(self, path: str, query: str = "") -> Answer:
        """Read."""
        return self._send("GET", path, query)

    def save(self, change: Change) -> Answer:
        """Save one change by itself."""
        headers = {} if change.properties is None else {"Content-Type": "application/atom+xml"}
        if change.if_match is not None:
            headers["If-Match"] = change.if_match
        return self._send(change.method, change.path, "", headers, self._entry(change))

    def save_together(self, changes: Sequence[Change]) -> Answer:
        """Save several changes in one change set."""
        lines = [f"--{BATCH}", f"Content-Type: multipart/mixed; boundary={CHANGES}", ""]
        for change in changes:
            content = self._entry(change)
            lines += [f"--{CHANGES}", "Content-Type: application/http", "Content-Transfer-Encoding: binary", ""]
            lines += [f"{change.method} {self._account.endpoint}/{change.path} HTTP/1.1"]
            if content:
                lines += ["Content-Type: application/atom+xml;type=entry", f"Content-Length: {len(content)}"]
            if change.if_match is not None:
                lines.append(f"If-Match: {change.if_match}")
            lines += ["", content.decode()]
        body = "\r\n".join([*lines, f"--{CHANGES}--", f"--{BATCH}--", ""])
        return self._send("POST", "$batch", "", {"Content-Type": f"multipart/mixed; boundary={BATCH}"}, body.encode())

    def _entry(self, change: Change) -> bytes:
        if change.properties is None:
            return b""
        lines = [_element(name, value) for name, value in change.properties.items()]
        address = "" if change.method == "POST" else f"{self._account.endpoint}/{change.path}"
        text = ENTRY.format(data=DATA, metadata=METADATA, atom=ATOM, id=escape(address), properties="\n".join(lines))
        return text.encode()

    def _send(
        self, method: str, path: str, query: str, extra: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        target = f"/{self._account.name}/{path}"
        headers = {
            "User-Agent": "Microsoft ADO.NET Data Services",
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": self._version,
            "Accept": "application/atom+xml,application/xml",
            "Accept-Charset": "UTF-8",
            "DataServiceVersion": "1.0;NetFx",
            "MaxDataServiceVersion": "2.0;NetFx",
            **(extra or {}),
        }
        if self._sas:
            query = f"{query}&{self._sas}" if query else self._sas
        else:
            headers["Authorization"] = self._signature(method, target, headers)
        self._connection.request(method, f"{target}?{query}" if query else target, body, headers)
        response = self._connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())

    def _signature(self, method: str, target: str, headers: Mapping[str, str]) -> str:
        date, resource = headers["x-ms-date"], f"/{self._account.name}{target}"
        if self._lite:
            scheme, text = "SharedKeyLite", f"{date}\n{resource}"
        else:
            scheme, text = "SharedKey", f"{method}\n\n{headers.get('Content-Type', '')}\n{date}\n{resource}"
        digest = hmac.new(base64.b64decode(self._account.key), text.encode(), hashlib.sha256).digest()
        return f"{scheme} {self._account.name}:{base64.b64encode(digest).decode()}"


def table_sas(account: Account, table: str, permissions: str, partition: str) -> str:
    """Return the query of a SAS as it was made in 2012, for one partition of a table, by the recipe of that version."""
    version, expiry = "2012-02-12", "2099-01-01T00:00:00Z"
    resource = f"/{account.name}/{table.lower()}"
    lines = [permissions, "", expiry, resource, "", version, partition, "", partition, ""]
    digest = hmac.new(base64.b64decode(account.key), "\n".join(lines).encode(), hashlib.sha256).digest()
    terms = {"sv": version, "tn": table, "sp": permissions, "se": expiry, "spk": partition, "epk": partition}
    return urlencode({**terms, "sig": base64.b64encode(digest).decode()})


_TYPES = {str: "", bool: "Edm.Boolean", int: "Edm.Int32", float: "Edm.Double"}


def _element(name: str, value: str | int | float | bool | None) -> str:
    if value is None:
        return f'      <d:{name} m:null="true" />'
    text = str(value).lower() if isinstance(value, bool) else escape(str(value))
    type_name = _TYPES[type(value)]
    attribute = f' m:type="{type_name}"' if type_name else ""
    return f"      <d:{name}{attribute}>{text}</d:{name}>"
