"""What the tests of blob clients share: clients that never retry and that divide small uploads, and times."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from azure.storage.blob import BlobServiceClient

import lazulite.testing

Account = lazulite.testing.Account
PART = 64 * 1024
PARTS: dict[str, Any] = {
    "max_single_put_size": PART,
    "max_block_size": PART,
    "max_page_size": PART,
    "min_large_block_upload_threshold": 1,
    "max_single_get_size": PART,
    "max_chunk_get_size": PART,
}
"""Options by which content longer than `PART` bytes goes in several requests."""


def connect(account: Account, credential: Any = None, **options: Any) -> BlobServiceClient:
    """Return a client with its secondary; without a credential, with the account's key."""
    given = {"account_name": account.name, "account_key": account.key} if credential is None else credential
    secondary = f"{account.blob_endpoint.removeprefix('http://')}-secondary"
    options = {"secondary_hostname": secondary, "retry_total": 0, **PARTS, **options}
    return BlobServiceClient(account.blob_endpoint, given, **options)


def new_name() -> str:
    """Return the name of a container that no test has used."""
    return f"c{uuid4().hex}"


def content(length: int, seed: int = 0) -> bytes:
    """Return bytes without a pattern, the same for the same arguments."""
    return random.Random(seed).randbytes(length)


def later(hours: float = 1) -> datetime:
    """Return a time in whole seconds, by default in an hour."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)
