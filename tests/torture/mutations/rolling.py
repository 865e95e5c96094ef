"""Mutations that replacing processes behind a balancer must bring to light."""

from collections.abc import Callable

from lazulite.server.server import Server


def hang_up() -> None:
    """End every connection as soon as the process is asked to stop, whatever is on its way."""
    leave = Server.leave

    def hang_up_and_leave(self: Server) -> None:
        leave(self)
        for connection in list(self._state.connections):
            connection.abandon()

    setattr(Server, "leave", hang_up_and_leave)  # noqa: B010 - mypy lets no method be assigned


MUTATIONS: dict[str, Callable[[], None]] = {"hang_up": hang_up}
