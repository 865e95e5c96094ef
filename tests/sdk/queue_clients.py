"""What the tests of queue clients share: clients that never retry, and times."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from azure.storage.queue import QueueClient, QueueServiceClient

import lazulite.testing

Account = lazulite.testing.Account


def connect(account: Account, credential: Any = None) -> QueueServiceClient:
    """Return a client with its secondary; without a credential, with the account's key."""
    given = {"account_name": account.name, "account_key": account.key} if credential is None else credential
    secondary = f"{account.queue_endpoint.removeprefix('http://')}-secondary"
    return QueueServiceClient(account.queue_endpoint, given, secondary_hostname=secondary, retry_total=0)


def queue_client(account: Account, name: str, credential: Any = None, **options: Any) -> QueueClient:
    """Return a client of one queue; without a credential, with the account's key."""
    given = {"account_name": account.name, "account_key": account.key} if credential is None else credential
    return QueueClient(account.queue_endpoint, name, credential=given, retry_total=0, **options)


def new_name() -> str:
    """Return the name of a queue that no test has used."""
    return f"q{uuid4().hex}"


def later(hours: float = 1) -> datetime:
    """Return a time in whole seconds, by default in an hour."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)
