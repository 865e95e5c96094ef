"""Raw requests for one endpoint, authorized once and for all when they are built, with the standard library alone."""

import base64
import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode

from benchmarks.workload import Workload

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The well-known development account, for a server that this harness started on the loopback address."""
_SAS_VERSION = "2019-02-02"
TABLE = "bench"
MINIMAL = "application/json;odata=minimalmetadata"


def _sign(text: str) -> str:
    return base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)).decode()


def account_sas(expiry: str, service: str = "t", permissions: str = "rwdlacu") -> str:
    """Return the query string of an account SAS for every operation of a service, valid until `expiry` (ISO 8601)."""
    fields = {"sv": _SAS_VERSION, "ss": service, "srt": "soc", "sp": permissions, "se": expiry}
    # account, sp, ss, srt, st, se, sip, spr, sv, each ended by a line feed; three of them are empty here.
    text = f"{ACCOUNT}\n{fields['sp']}\n{fields['ss']}\n{fields['srt']}\n\n{expiry}\n\n\n{_SAS_VERSION}\n"
    return urlencode(fields | {"sig": _sign(text)})


@lru_cache(maxsize=1024)
def is_account_sas(query: bytes) -> bool:
    """Return whether a query string is an account SAS of the development account, whatever it permits."""
    fields = dict(parse_qsl(query.decode()))
    if not fields.keys() >= {"se", "ss", "sp"}:
        return False
    return dict(parse_qsl(account_sas(fields["se"], fields["ss"], fields["sp"]))) == fields


def shared_key(method: str, path: str, date: str, content_type: str = "") -> str:
    """Return the value of an Authorization header.

    `path` is the request's as sent, with `comp` and no more of its query; `date` is the `x-ms-date` header.
    """
    return f"SharedKey {ACCOUNT}:" + _sign(f"{method}\n\n{content_type}\n{date}\n/{ACCOUNT}{path}")


class Requests:
    """Builds requests for the endpoint at `host` (with its port); Shared Key requests live 15 minutes from `now`.

    `sas` are the service and the permissions of the SAS, other than those for tables; `fields` come in each request.
    """

    def __init__(self, host: str, now: datetime, *sas: str) -> None:
        self.host, self.fields = host, dict[str, str]()
        self._date = format_datetime(now.astimezone(UTC), usegmt=True)
        self._sas = account_sas(f"{now.astimezone(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}", *sas)

    def raw(
        self, method: str, resource: str, query: str = "", body: bytes = b"", accept: str = MINIMAL, **headers: str
    ) -> bytes:
        """Return a request authorized by the SAS in its URL. `headers` are written with underscores."""
        target = f"/{ACCOUNT}/{resource}?{query + '&' if query else ''}{self._sas}"
        return self._assemble(method, target, body, {"Accept": accept} | headers)

    def signed(
        self, method: str, resource: str, query: str = "", body: bytes = b"", content_type: str = "", **more: str
    ) -> bytes:
        """Return a request authorized by Shared Key. Of a query, its `comp` is signed and must come first."""
        path = f"/{ACCOUNT}/{resource}"
        component = query.partition("&")[0]
        authorization = shared_key(method, f"{path}?{component}" if component else path, self._date, content_type)
        headers = {"Accept": MINIMAL, "Authorization": authorization}
        headers |= {"Content-Type": content_type} if content_type else {}
        return self._assemble(method, f"{path}?{query}" if query else path, body, headers | more)

    def _assemble(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> bytes:
        lines = {"Host": self.host, "x-ms-version": _SAS_VERSION, "x-ms-date": self._date}
        lines |= {name.replace("_", "-"): value for name, value in (self.fields | headers).items()}
        lines |= {"Content-Length": str(len(body))} if body else {}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body

    def create_table(self) -> bytes:
        """Return the request that creates the table."""
        return self.raw("POST", "Tables", body=b'{"TableName":"%b"}' % TABLE.encode(), Content_Type="application/json")

    def insert(self, entity: bytes) -> bytes:
        """Return the request that inserts one entity and wants no echo."""
        return self.raw("POST", TABLE, body=entity, Content_Type="application/json", Prefer="return-no-content")

    def merge(self, partition_key: str, row_key: str, entity: bytes) -> bytes:
        """Return the request that merges one entity, or inserts it."""
        path = f"{TABLE}(PartitionKey='{partition_key}',RowKey='{row_key}')"
        return self.raw("MERGE", path, body=entity, Content_Type="application/json")

    def transaction(
        self, entities: Sequence[bytes], method: str = "POST", keys: Sequence[tuple[str, str]] = (), **headers: str
    ) -> bytes:
        """Return the entity group transaction that writes these entities of one partition.

        By `POST` it inserts them; by other methods it needs their `keys`, too.
        """
        lines = {"Content_Type": "application/json", "Accept": MINIMAL, "Prefer": "return-no-content"}
        lines |= {"DataServiceVersion": "3.0"} | headers
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        parts = []
        for number, entity in enumerate(entities):
            target = "" if method == "POST" else "(PartitionKey='{}',RowKey='{}')".format(*keys[number])
            head = (
                "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
                f"{method} http://{self.host}/{ACCOUNT}/{TABLE}{target} HTTP/1.1\r\n{fields}\r\n"
            )
            parts.append(head.encode() + entity + b"\r\n")
        opening = b"--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"
        body = opening + b"".join(parts) + b"--changeset_c--\r\n\r\n--batch_b--\r\n"
        return self.raw("POST", "$batch", body=body, Content_Type="multipart/mixed; boundary=batch_b")


class Builder(ABC):
    """Builds the workloads of a service for a server at `host` that holds so many entities."""

    service: ClassVar[str]
    sas: ClassVar[Sequence[str]] = ()

    def __init__(self, host: str, entities: int = 0) -> None:
        self.requests = Requests(host, datetime.now(UTC), *self.sas)
        self.entities = entities

    @abstractmethod
    def create(self) -> bytes:
        """Return the request that creates what holds the entities."""

    def preload(self) -> Workload | None:
        """Return the requests that store entities, each of which is sent once; None if they are stored otherwise."""
        return None
