"""What is a note's own about credentials: its resource, its SAS, and the string that Shared Key signs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.bearer.rules import BearerConventions
from lazulite.auth.sas import ServiceSas
from lazulite.protocol.message import Request


class Note(NamedTuple):
    kind: str
    name: str = ""
    keys: tuple[str, ...] = ()

    def covers(self, resource: str) -> bool:
        return self.name == resource


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteSas(ServiceSas):
    note: str
    policy_resource = ""

    def scope(self) -> Note:
        return Note("note", self.note)

    def string_to_sign(self, account: str) -> str:
        return "\n".join((self.permission, self.expiry, account, self.note, self.version))


def read_sas(query: Mapping[str, str]) -> NoteSas:
    return NoteSas(note=query["nn"], permission=query["sp"], expiry=query["se"], signature=query["sig"])


def string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    return "\n".join((scheme, request.method, request.headers["x-ms-date"], f"/{account}{path}", comp or ""))


CREDENTIALS = ServiceCredentials(
    "n",
    string_to_sign,
    "nn",
    ("nn", "sp", "se", "sv", "sig"),
    read_sas,
    BearerConventions(roles=(), challenge_since="2020-01-01"),
)
