"""The Queue and the Blob service: signed requests to them, with bodies that are no JSON."""

from dataclasses import dataclass
from typing import ClassVar

from .answers import Answer
from .client import Client, HeaderChanges
from .signing import Signer, full_shared_key


@dataclass(frozen=True)
class XmlService:
    """A service of an account. Its class tells the version and the type of bodies that requests have by default."""

    client: Client

    VERSION: ClassVar[str]
    CONTENT_TYPE: ClassVar[str]

    def send(
        self,
        method: str,
        path: str,
        query: str = "",
        *,
        headers: HeaderChanges | None = None,
        body: str | bytes | None = None,
        signer: Signer = full_shared_key,
        version: str | None = None,
    ) -> Answer:
        """Send a request."""
        changes: dict[str, str | tuple[str, ...] | None] = {
            "x-ms-version": version or self.VERSION,
            "DataServiceVersion": None,
            "MaxDataServiceVersion": None,
            "Accept": "application/xml",
        }
        if body is not None:
            changes["Content-Type"] = self.CONTENT_TYPE
        return self.client.send(method, path, query, headers=changes | dict(headers or {}), body=body, signer=signer)
