"""The credentials of the Queue service, and the SAS of one queue: `raup`, for read, add, update, process.

The token does not name the queue, which the path of the request does. The name is therefore a field of the token, put
there by `ServiceCredentials.sas_fields`. Source: reference §13, §14, §29.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.canonicalize import string_to_sign
from lazulite.auth.delegation.sas import DelegationSas, read_delegation_values
from lazulite.auth.sas import MalformedSasError, ServiceSas, read_values, sign_service_sas
from lazulite.queue.resource import queue_of
from lazulite.queue.roles import QUEUE_BEARER
from lazulite.queue.versions import CHALLENGE_SINCE, DELEGATION_SINCE

MARKER = "Queue"
"""The field with the queue's name."""
_NAMES = {
    "sv": "version",
    "sp": "permission",
    "st": "start",
    "se": "expiry",
    "si": "policy_id",
    "sip": "ip",
    "spr": "protocol",
    "sig": "signature",
}
QUEUE_SAS_PARAMETERS = (*_NAMES, MARKER)
"""Every field that takes part in a queue SAS."""


def queue_field(path: str, _: Mapping[str, str]) -> dict[str, str]:
    """Return the field with the name of the queue that a path below the account addresses. Raises as `queue_of`."""
    return {MARKER: queue_of(path)}


@dataclass(frozen=True, slots=True)
class QueueScope:
    """The queue that a SAS reaches."""

    queue: str

    def covers(self, resource: str) -> bool:
        """Tell whether a queue is the one that the token grants access to."""
        return self.queue == resource


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSas(ServiceSas):
    """Hold the values of a queue SAS."""

    queue: str

    @property
    def policy_resource(self) -> str:
        """Return the name of the queue."""
        return self.queue

    def scope(self) -> QueueScope:
        """Return the queue that the token grants access to."""
        return QueueScope(self.queue)

    def string_to_sign(self, account: str) -> str:
        """Return the string that the key of an account signs, given the account's name."""
        return "\n".join(self.signed_lines("queue", account))


def parse_queue_sas(parameters: Mapping[str, str]) -> QueueSas:
    """Read a token from the fields of a request.

    Raises:
        MalformedSasError: the request addresses no queue, or a value would make the string-to-sign ambiguous.
    """
    if not parameters.get(MARKER):
        raise MalformedSasError("a queue SAS is for one queue")
    return QueueSas(**({"version": ""} | read_values(parameters, {**_NAMES, MARKER: "queue"})))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDelegationSas(DelegationSas):
    """Hold the values of a user delegation SAS of a queue."""

    queue: str

    @property
    def since(self) -> str:
        """Return the first version that has such tokens."""
        return DELEGATION_SINCE

    def scope(self) -> QueueScope:
        """Return the queue that the token grants access to."""
        return QueueScope(self.queue)

    def strings_to_sign(self, account: str) -> tuple[str]:
        """Return the string that the key signs, given the account's name (queue reference §12)."""
        key = self.key
        lines = [self.permission, self.start, self.expiry, f"/queue/{account}/{self.queue}"]
        lines += [key.oid, key.tid, key.start, key.expiry, key.service, key.version, key.delegated_tid]
        return ("\n".join((*lines, self.user_oid, self.ip, self.protocol, self.version)),)


def parse_queue_delegation_sas(parameters: Mapping[str, str], _: Mapping[str, str]) -> QueueDelegationSas:
    """Read a user delegation SAS from the fields of a request: a `ParseDelegationSas`.

    Raises:
        MalformedSasError: the request addresses no queue, or a value would make the string-to-sign ambiguous.
    """
    queue = parameters.get(MARKER, "")
    if not queue or "\n" in queue:
        raise MalformedSasError("a queue SAS is for one queue")
    key, values = read_delegation_values(parameters)
    return QueueDelegationSas(queue=queue, key=key, **values)


def sign_queue_sas(account: Account, sas: QueueSas, key: int = 1) -> str:
    """Return the query string of a signed token. Arguments and errors are those of `sign_service_sas`."""
    values = {name: getattr(sas, attribute) for name, attribute in _NAMES.items()}
    return sign_service_sas(account, key, sas, values, parse_queue_sas, **{MARKER: sas.queue})


QUEUE_CREDENTIALS = ServiceCredentials(
    "q",
    string_to_sign,
    MARKER,
    QUEUE_SAS_PARAMETERS,
    parse_queue_sas,
    QUEUE_BEARER,
    parse_delegation_sas=parse_queue_delegation_sas,
    challenged_since=CHALLENGE_SINCE,
    sas_resource=queue_field,
)
