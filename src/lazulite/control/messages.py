"""The messages of the control channel, each a line of JSON; see docs/operations/control.md.

A connection carries one command. The client sends `{"protocol", "command", "arguments"}` at once, and the server
`{"protocol", "server"}`, its version. Then the server sends `{"item"}` for each item, and `{"end": true}` or `{"error":
{"code", "text"}}`. A connection that ends without either was cut.

Invariant: no line is longer than its bound, so that neither side holds more of a line than that.
"""

import json
from collections.abc import Mapping
from typing import NoReturn

from lazulite.control.command import ControlError, Json

PROTOCOL = 1
"""The version of the messages; it rises when an older client or server would misread them."""
REQUEST_BYTES_MAX = 64 << 10
RESPONSE_LINE_BYTES_MAX = 1 << 20

Message = Mapping[str, Json]


def encode(message: Message) -> bytes:
    """Return the line of a message.

    Raises:
        ControlError: it is longer than a line may be, or has a number that JSON lacks.
    """
    try:
        line = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    except ValueError as error:
        raise ControlError("failed", f"the response cannot be sent: {error}") from None
    if len(line) > RESPONSE_LINE_BYTES_MAX:
        raise ControlError("too-long", f"an item of the response has more than {RESPONSE_LINE_BYTES_MAX} bytes")
    return line


def decode(line: bytes) -> Message:
    """Return the message of a line.

    Raises:
        ControlError: the line is no JSON object.
    """
    try:
        message: Json = json.loads(line, parse_constant=_reject)
    except (ValueError, RecursionError):
        raise ControlError("bad-request", "the line is not JSON") from None
    if not isinstance(message, Mapping):
        raise ControlError("bad-request", "the line is no JSON object")
    return message


def _reject(constant: str) -> NoReturn:
    raise ValueError(constant)


END = encode({"end": True})


def hello(version: str) -> bytes:
    """Return the first line of a server."""
    return encode({"protocol": PROTOCOL, "server": version})


def request(command: str, arguments: Message) -> bytes:
    """Return the line of a request.

    Raises:
        ControlError: it is longer than the server takes.
    """
    line = encode({"protocol": PROTOCOL, "command": command, "arguments": arguments})
    if len(line) > REQUEST_BYTES_MAX:
        raise ControlError("too-long", f"the arguments of {command} have more than {REQUEST_BYTES_MAX} bytes")
    return line


def requested(line: bytes) -> tuple[str, Json]:
    """Return the command of a request, and its arguments, which `Command.parse` checks.

    Raises:
        ControlError: the line is no request of this protocol.
    """
    message = decode(line)
    if message.get("protocol") != PROTOCOL:
        raise ControlError("unknown-protocol", f"the server speaks protocol {PROTOCOL} alone")
    command = message.get("command")
    if not isinstance(command, str):
        raise ControlError("bad-request", "the request has no command")
    return command, message.get("arguments", {})


def failure(error: ControlError) -> bytes:
    """Return the line of an error."""
    return encode({"error": {"code": error.code, "text": str(error)}})


def check_hello(line: bytes) -> None:
    """Check the first line of a server.

    Raises:
        ControlError: the server speaks another protocol.
    """
    message = decode(line)
    if message.get("protocol") != PROTOCOL:
        version = message.get("server", "unknown")
        text = f"the server has version {version}, whose commands differ: use those of that version"
        raise ControlError("unknown-protocol", text)


def is_item(message: Message) -> bool:
    """Return whether a message of a server is an item, and not the end.

    Raises:
        ControlError: it is an error, which is raised, or no message of a server.
    """
    error = message.get("error")
    if isinstance(error, Mapping):
        raise ControlError(str(error.get("code")), str(error.get("text")))
    if "item" not in message and "end" not in message:
        raise ControlError("bad-response", "the server sent a line that is no response")
    return "item" in message
