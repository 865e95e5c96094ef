"""The roles of the Queue service: Azure's built-in ones, and the actions that each permits.

Source: queue reference §13. The delegator's role is that of the page "Create a user delegation SAS"; the data roles
have its action, too, as those of blobs do (*unverified* for queues).
"""

from lazulite.auth.bearer.rules import BearerConventions, Role
from lazulite.auth.delegation.key import DELEGATE
from lazulite.queue.versions import BEARER_SINCE, CHALLENGE_SINCE

_READER = frozenset({"queues/read", "messages/read", DELEGATE})
_CONTRIBUTOR = _READER | {"queues/write", "queues/delete", "messages/write", "messages/delete", "messages/process"}
_PROCESSOR = frozenset({"messages/read", "messages/process", DELEGATE})
_SENDER = frozenset({"messages/add", DELEGATE})

QUEUE_ROLES = (
    Role("queue-reader", "Storage Queue Data Reader", "19e7f393-937e-4f77-808e-94535e297925", _READER),
    Role("queue-contributor", "Storage Queue Data Contributor", "974c5e8b-45b9-4653-ba55-5f855dd0fb88", _CONTRIBUTOR),
    Role(
        "queue-processor",
        "Storage Queue Data Message Processor",
        "8a0f0c08-91a1-4084-bc3d-661d67233fed",
        _PROCESSOR,
    ),
    Role("queue-sender", "Storage Queue Data Message Sender", "c6a89b2d-59bc-44d0-9896-0f6e12d7b80a", _SENDER),
    Role("queue-delegator", "Storage Queue Delegator", "7ee386e9-84f0-448e-80a6-f185f6533131", frozenset({DELEGATE})),
)
QUEUE_BEARER = BearerConventions(
    roles=QUEUE_ROLES,
    since=BEARER_SINCE,
    challenge_since=CHALLENGE_SINCE,
    rejection="NoAuthenticationInformation",
    audience="https://{account}.queue.core.windows.net",
)
