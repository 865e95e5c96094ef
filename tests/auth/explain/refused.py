"""Refused requests for tests: a server with two accounts, and clients that sign what a test says."""

import hmac
from base64 import b64encode

from lazulite.auth.accounts.account import Account, AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.explain.explainer import AccountKeys, Explainer
from lazulite.auth.shared_key import parse_http_date
from lazulite.blob.auth.credentials import BLOB_CREDENTIALS
from lazulite.protocol.addressing import Addressing
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.refusal import Refusal
from lazulite.queue.credentials import QUEUE_CREDENTIALS
from lazulite.table.credentials import TABLE_CREDENTIALS

DATE = "Tue, 01 Jan 2030 00:00:00 GMT"
NOW = parse_http_date(DATE)
KEY, SECOND, OTHER = b"first key", b"second key", b"key of another account"
ACCOUNT = Account("acct", (KEY, SECOND))
FORMATS = tuple(each.canonicalize for each in (TABLE_CREDENTIALS, QUEUE_CREDENTIALS, BLOB_CREDENTIALS))


def signature(text: str, key: bytes = KEY, encoding: str = "latin-1") -> str:
    return b64encode(hmac.digest(key, text.encode(encoding), "sha256")).decode()


class Server:
    """One service; a test may rotate its keys."""

    def __init__(self, service: ServiceCredentials = BLOB_CREDENTIALS) -> None:
        self.accounts = AccountDirectory({})
        self.replace(KEY, SECOND)
        self.seconds = 0.0
        keys = AccountKeys(self.accounts)
        addressing = Addressing(["table.localhost", "blob.localhost", "queue.localhost"])
        self.explainer = Explainer(service, keys, self.accounts, addressing, lambda: NOW, lambda: self.seconds, FORMATS)

    def replace(self, *keys: bytes) -> None:
        self.accounts.replace({"acct": StoredAccount(keys), "other": StoredAccount((OTHER,))})

    def explain(self, request: Request, error: ServiceError | None = None) -> Refusal:
        found = self.explainer.explain(request, error or ServiceError("AuthenticationFailed"))
        assert found is not None
        return found
