"""The rules of credentials of the Queue service (reference §13, §14)."""

from lazulite.auth.canonicalize import string_to_sign
from lazulite.auth.service_credentials import ServiceCredentials
from lazulite.queue.roles import QUEUE_BEARER
from lazulite.queue.sas import (
    MARKER,
    QUEUE_SAS_PARAMETERS,
    parse_queue_delegation_sas,
    parse_queue_sas,
    queue_field,
)
from lazulite.queue.versions import CHALLENGE_SINCE

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
