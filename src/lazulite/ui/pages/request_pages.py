"""The recorded requests: a list, and one of them in full, with the explanation of refused credentials."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from lazulite.app.commands import REQUESTS, RecordedArguments
from lazulite.control.command import ControlError
from lazulite.ui.backend import AGENT
from lazulite.ui.calls import Context, PageCall, PageError

SERVICES = ("table", "queue", "blob", "web")
STATUSES = ("2xx", "3xx", "4xx", "5xx", "failed", "refused", "404", "409", "412", "503")
"""What the field of the status proposes; `failed` is 400 and above, `refused` 401 and 403."""
SHOWN = 100
MOST = 1000
"""The requests of a list, and of one that is asked to be long."""


async def list_requests(call: PageCall) -> Context:
    """Return the newest requests that fit the query of the page.

    Raises:
        PageError: a parameter has no such value.
    """
    query = call.query
    limit = MOST if query.get("limit") == str(MOST) else SHOWN
    others = "own" not in query
    try:
        asked = RecordedArguments(
            service=query.get("service", ""),
            account=query.get("of", ""),
            status=query.get("status", ""),
            text=query.get("text", ""),
            since=float(query.get("since") or 0),
            limit=limit,
            without_agent=AGENT.partition("/")[0] if others else "",
        )
        items: Sequence[Any] = await call.command(REQUESTS, asked)
    except ValueError:
        raise PageError(HTTPStatus.BAD_REQUEST, "since is a number of seconds since 1970") from None
    except ControlError as error:
        if error.code == "bad-request":
            raise PageError(HTTPStatus.BAD_REQUEST, str(error)) from None
        raise
    requests = [each for each in items[1:] if "id" in each]
    return {
        "since": items[0]["since"],
        "requests": requests,
        "silent": [each for each in items[1:] if "id" not in each],
        "newest": max((each["ended"] for each in requests), default=0.0),
        "limit": limit,
        "most": MOST,
        "is_filtered": any(query.get(name) for name in ("service", "of", "status", "text")),
        "services": SERVICES,
        "statuses": STATUSES,
    }


async def show_request(call: PageCall) -> Context:
    """Return one request in full.

    Raises:
        PageError: it is not recorded.
    """
    items: Sequence[Any] = await call.command(REQUESTS, RecordedArguments(id=call.parameters["id"], limit=1))
    found: Mapping[str, Any] | None = next((each for each in items[1:] if "id" in each), None)
    if found is None:
        text = "this request is not recorded: it is too old, or came before the server recorded any"
        raise PageError(HTTPStatus.NOT_FOUND, text)
    refusal = found["refusal"]
    return {"found": found, "lines": [] if refusal is None else refusal["string_to_sign"].split("\n")}
