"""The types of ASGI 3. Source: the ASGI specification, version 3.0."""

from collections.abc import Awaitable, Callable, MutableMapping

Message = MutableMapping[str, object]
"""A scope, or an event."""
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
