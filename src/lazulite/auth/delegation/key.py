"""A user delegation key: a key for shared access signatures that a user gets by a bearer token.

The key is not stored. It is derived from a secret of the account and from all fields of the key, each of which comes
back in a SAS. So a SAS proves that its fields are those of a key that the server gave out.

Source: "Get User Delegation Key" of the REST reference.
"""

import hmac
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import sha256

from lazulite.protocol.clock import TICKS_PER_SECOND

DELEGATE = "delegation/generate"
"""The action that a role needs to get a key."""
KEY_SECONDS_MAX = 7 * 24 * 3600
"""How long a key is valid at most."""
KEY_SKEW_SECONDS = 15 * 60
"""How far the clock of a client may be ahead (*unverified*)."""
SECRET_SECONDS = 7 * 24 * 3600
"""How long a secret makes new keys."""
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of an account that keys are derived from."""

    created: int
    """In ticks."""
    content: bytes = field(repr=False)

    @property
    def expiry(self) -> int:
        """The time in ticks after which no key of the secret is valid."""
        return self.created + (SECRET_SECONDS + KEY_SECONDS_MAX + KEY_SKEW_SECONDS) * TICKS_PER_SECOND

    def makes_keys(self, now: int) -> bool:
        """Return whether the secret is young enough for new keys."""
        return now - self.created < SECRET_SECONDS * TICKS_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationKey:
    """The fields of a key, as they stand in a SAS; "" is absent."""

    oid: str
    """The object id of the user (`skoid`)."""
    tid: str
    """The id of the user's tenant (`sktid`)."""
    start: str
    """`skt`"""
    expiry: str
    """`ske`"""
    service: str
    """The letter of the service that the key is for (`sks`)."""
    version: str
    """`skv`"""
    delegated_tid: str = ""
    """The id of the tenant of the user that may use a SAS (`skdutid`)."""

    def value(self, secret: Secret, account: str) -> bytes:
        """Return the key itself.

        Args:
            secret: of the account.
            account: the account's name.
        """
        fields = (account, self.oid, self.tid, self.start, self.expiry, self.service, self.version, self.delegated_tid)
        return hmac.digest(secret.content, "\n".join(fields).encode(), sha256)

    def text(self, secret: Secret, account: str) -> str:
        """Return the key as clients have it."""
        return b64encode(self.value(secret, account)).decode()
