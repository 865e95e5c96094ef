"""User delegation keys by the Python SDK of queues: a server with them, and the SAS that the keys sign."""

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import QueueClient, QueueServiceClient, UserDelegationKey, generate_queue_sas
from tests.server_process import Account, ServerProcess

from .bearers import Credential, Secured

CONTRIBUTOR = "Storage Queue Data Contributor"
READER = "Storage Queue Data Reader"
DELEGATOR = "Storage Queue Delegator"
USER = {"oid": "11111111-1111-4111-8111-111111111111", "tid": "22222222-2222-4222-8222-222222222222"}
START = datetime.now(UTC) - timedelta(minutes=5)


class Server(Secured):
    """A server of queues; its endpoint is theirs."""

    def service(self, *roles: str, **claims: Any) -> QueueServiceClient:
        """Return a client with a token of the roles."""
        token = self.issuer.token(self.key, time.time(), roles=list(roles), **(USER | claims))
        return QueueServiceClient(self.endpoint, credential=Credential(lambda _: token), **self.options())

    def delegation_key(self, *roles: str, **claims: Any) -> UserDelegationKey:
        """Return a key for an hour."""
        with self.service(*roles, **claims) as service:
            return service.get_user_delegation_key(start=START, expiry=START + timedelta(hours=2))

    def sas(self, name: str, key: UserDelegationKey, permission: str = "raup", **fields: Any) -> str:
        """Return a SAS of a queue that the key signs."""
        account = self.endpoint.rstrip("/").rsplit("/", 1)[-1]
        expiry = datetime.now(UTC) + timedelta(minutes=10)
        return generate_queue_sas(
            account, name, permission=permission, expiry=expiry, user_delegation_key=key, **fields
        )

    def queue(self, name: str, key: UserDelegationKey, permission: str = "raup", **fields: Any) -> QueueClient:
        """Return a client of a queue with a SAS that the key signs."""
        token = self.sas(name, key, permission, **fields)
        return QueueClient(self.endpoint, name, credential=token, **self.options())


def queue_endpoint(account: Account) -> str:
    """The endpoint of queues in a connection string."""
    return dict(part.split("=", 1) for part in account.connection_string.strip(";").split(";"))["QueueEndpoint"]


def status(call: Any, *arguments: Any, **options: Any) -> int:
    """The status of a rejected request."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    return caught.value.status_code or 0


def own_endpoint(process: ServerProcess) -> str:
    """The endpoint of queues of the account `orders`."""
    [url] = [line.removeprefix("queues: ") for line in process.lines if line.startswith("queues: ")]
    return f"{url.strip()}orders"


def run_command(*arguments: str) -> None:
    """Run a command of Lazulite."""
    subprocess.run([sys.executable, "-m", "lazulite", *arguments], check=True, capture_output=True, timeout=60)
