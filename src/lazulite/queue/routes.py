"""The operations of the Queue service as a table, read like the reference's own."""

from lazulite.auth.grant import Requirement, either
from lazulite.protocol.version import ACL_SINCE
from lazulite.queue.call import Call
from lazulite.queue.limits import BODY_BYTES_MAX, BODY_BYTES_STATED
from lazulite.queue.operations.messages import (
    DeleteMessage,
    GetMessages,
    PeekMessages,
    PutMessage,
    UpdateMessage,
    clear_messages,
)
from lazulite.queue.operations.queues import (
    create_queue,
    delete_queue,
    get_acl,
    get_metadata,
    list_queues,
    set_acl,
    set_metadata,
)
from lazulite.queue.resource import Kind
from lazulite.queue.versions import CROSS_TENANT_SINCE, DELEGATION_SINCE, UPDATE_MESSAGE_SINCE
from lazulite.service.account_operations import AccountOperations
from lazulite.service.responses import NO_CACHE, XML_TYPE
from lazulite.service.routing import PAGE, XML_BODY, Route, Routes, component_of
from lazulite.service.user_delegation import UserDelegation

_LIST = Requirement("s", ("l",), actions=either("queues/read"))
_CREATE = Requirement("c", ("c", "w"), actions=either("queues/write"))
_DELETE_QUEUE = Requirement("c", ("d",), actions=either("queues/delete"))
_METADATA = Requirement("c", ("r",), ("r",), either("queues/read"))
_SET_METADATA = Requirement("c", ("w",), actions=either("queues/write"))
_OWNER = Requirement("c", shared_key_only=True)
_PUT = Requirement("o", ("a",), ("a",), either("messages/add", "messages/write"))
_GET = Requirement("o", ("p",), ("p",), either("messages/process", "messages/read messages/delete"))
_PEEK = Requirement("o", ("r",), ("r",), either("messages/read"))
_DELETE = Requirement("o", ("p",), ("p",), either("messages/process", "messages/delete"))
_UPDATE = Requirement("o", ("u",), ("u",), either("messages/write"))
_CLEAR = Requirement("o", ("d",), actions=either("messages/delete"))

_QUEUE, _MESSAGES, _MESSAGE = Kind.QUEUE, Kind.MESSAGES, Kind.MESSAGE
_PEEKONLY = "peekonly"

_ACCOUNT: AccountOperations[Call] = AccountOperations(
    service="Queue", logging_versions=("1.0", "2.0"), read_headers=(XML_TYPE, NO_CACHE)
)

ROUTES: Routes[Call] = Routes(
    *_ACCOUNT.routes(Kind.SERVICE),
    UserDelegation("q", DELEGATION_SINCE, CROSS_TENANT_SINCE).route(Kind.SERVICE),
    Route(Kind.SERVICE, "GET", "list", "ListQueues", list_queues, requires=_LIST, deadline=PAGE),
    Route(_QUEUE, "PUT", "", "CreateQueue", create_queue, requires=_CREATE),
    Route(_QUEUE, "DELETE", "", "DeleteQueue", delete_queue, requires=_DELETE_QUEUE),
    Route(_QUEUE, "GET", "metadata", "GetQueueMetadata", get_metadata, requires=_METADATA),
    Route(_QUEUE, "HEAD", "metadata", "GetQueueMetadata", get_metadata, requires=_METADATA),
    Route(_QUEUE, "PUT", "metadata", "SetQueueMetadata", set_metadata, requires=_SET_METADATA),
    Route(_QUEUE, "GET", "acl", "GetQueueAcl", get_acl, requires=_OWNER, since=ACL_SINCE),
    Route(_QUEUE, "HEAD", "acl", "GetQueueAcl", get_acl, requires=_OWNER, since=ACL_SINCE),
    Route(_QUEUE, "PUT", "acl", "SetQueueAcl", set_acl, requires=_OWNER, body=XML_BODY, since=ACL_SINCE),
    Route(
        _MESSAGES,
        "POST",
        "",
        "PutMessage",
        PutMessage,
        requires=_PUT,
        body=BODY_BYTES_MAX,
        body_stated=BODY_BYTES_STATED,
        varies=(),
    ),
    Route(_MESSAGES, "GET", "", "GetMessages", GetMessages, requires=_GET, changes=True, varies=()),
    Route(_MESSAGES, "GET", _PEEKONLY, "PeekMessages", PeekMessages, requires=_PEEK, large=True, varies=()),
    Route(_MESSAGES, "DELETE", "", "ClearMessages", clear_messages, requires=_CLEAR),
    Route(
        _MESSAGE,
        "DELETE",
        "",
        "DeleteMessage",
        DeleteMessage,
        requires=_DELETE,
        varies=(),
        varies_parameter="popreceipt",
    ),
    Route(
        _MESSAGE,
        "PUT",
        "",
        "UpdateMessage",
        UpdateMessage,
        requires=_UPDATE,
        body=BODY_BYTES_MAX,
        body_stated=BODY_BYTES_STATED,
        since=UPDATE_MESSAGE_SINCE,
        varies=(),
        varies_parameter="popreceipt",
    ),
)


def component(call: Call) -> str:
    """Return the component that a call addresses: `restype` names none but those of the account, on a queue, too."""
    parameters, kind = call.parameters, call.resource.kind
    if kind is Kind.SERVICE or parameters.get("restype", "").lower() == "service":
        return component_of(parameters)
    if kind is _MESSAGES and call.method == "GET" and parameters.get("peekonly", "").lower() == "true":
        return _PEEKONLY
    return parameters.get("comp", "").lower()
