"""The service in process: requests and responses without a socket."""

import json
from collections.abc import Mapping
from typing import Any

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.engine.contract import Clock, Engine
from lazulite.partitions.live import LivePartitions
from lazulite.protocol.clock import system_clock
from lazulite.protocol.message import Request, Response, response_of
from lazulite.service.definition import ServiceDependencies
from lazulite.service.routing import QueryLimits
from lazulite.table.service import TableService

ACCOUNT = DEVELOPMENT_ACCOUNT.name
BASE = f"http://host/{ACCOUNT}/"
FOREVER = "2100-01-01T00:00:00Z"
JSON = "application/json"
ALL_PERMISSIONS = AccountSas(services="t", resource_types="sco", permission="rwdlacu", expiry=FOREVER)


class Client:
    """Sends requests to a service, signed by an account SAS that permits everything."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock = system_clock,
        limits: QueryLimits | None = None,
        sas: str | None = None,
        gate: LivePartitions | None = None,
    ) -> None:
        dependencies = ServiceDependencies(
            engine=engine, accounts=AccountDirectory({}, None), clock=clock, limits=limits or QueryLimits(), live=gate
        )
        self.service = TableService(dependencies)
        self.sas = sign_account_sas(DEVELOPMENT_ACCOUNT, ALL_PERMISSIONS) if sas is None else sas

    async def __call__(
        self,
        method: str,
        path: str,
        query: str = "",
        body: Any = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request; `body` is bytes, or an object to be sent as JSON; `path` is below the account."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        known = {"host": "host", "content-type": JSON, "accept": "application/json;odata=nometadata"}
        query = "&".join(filter(None, (query, self.sas)))
        request = Request(method, f"/{ACCOUNT}/{path}", query, {**known, **(headers or {})}, payload, id="id")
        return await response_of(self.service, request)


def values(response: Response) -> list[dict[str, Any]]:
    """Return the entities of a feed."""
    found = json.loads(response.body)["value"]
    assert isinstance(found, list)
    return found


def header(response: Response, name: str) -> str | None:
    return {key.lower(): value for key, value in response.fields()}.get(name.lower())
