"""The place of the explorer in a server: opened from the start, or by a command while the server runs.

Nothing of the explorer is imported before it is opened.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from lazulite.app.commands import OPEN_UI, OpenUiArguments
from lazulite.app.stores import Store
from lazulite.control.command import ControlError, Json
from lazulite.engine.contract import Clock
from lazulite.protocol.clock import system_clock
from lazulite.server.admission.scheduler import FairScheduler
from lazulite.server.net.certificate import Certificate
from lazulite.server.server import BindError, Ports
from lazulite.settings.config import Settings

if TYPE_CHECKING:
    # It is imported when the explorer is opened.
    from lazulite.ui.listener import Listener


_SIGN_SECONDS = 60.0
"""How often a client that keeps the explorer open hears of the server."""


class UiHost:
    """Opens and closes the explorer of this process.

    Args:
        settings: of the process.
        store: of the process.
        certificate: of the process; None without TLS.
        scheduler: of the process; None if it serves nothing else.
        clock: dates requests to the services.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        certificate: Certificate | None,
        scheduler: FairScheduler | None,
        clock: Clock = system_clock,
    ) -> None:
        self._scheduler = scheduler
        self._settings = settings
        self._store = store
        self._certificate = certificate
        self._clock = clock
        self._listener: Listener | None = None
        self.ports: Mapping[str, Ports] = {}
        """The ports of the services, once they accept requests."""

    async def start(self, port: int) -> "Listener":
        """Open the explorer.

        Args:
            port: to listen on; 0: any free one.

        Raises:
            BindError: the address cannot be listened on.
        """
        from lazulite.ui.listener import Listener  # noqa: PLC0415 - see above

        listener = Listener(
            self._settings,
            self._store,
            lambda: self.ports,
            port,
            certificate=self._certificate,
            scheduler=self._scheduler,
            clock=self._clock,
        )
        await listener.start()
        self._listener = listener
        return listener

    async def stop(self) -> None:
        """Close the explorer, if it is open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.stop()

    async def open(self, asked: OpenUiArguments) -> AsyncGenerator[Json, None]:
        """See `OPEN_UI`."""
        if self._listener is not None:
            yield {"url": self._listener.new_link(), "started": False}
            return
        try:
            listener = await self.start(asked.port)
        except BindError as error:
            raise ControlError("no-port", f"the explorer cannot listen: {error}") from None
        try:
            yield {"url": listener.new_link(), "started": True}
            while True:  # Until the client closes the connection, which closes this generator.
                await listener.keep_recording()
                await asyncio.sleep(_SIGN_SECONDS)
                yield {}
        finally:
            if self._listener is listener:
                await self.stop()

    def announcement(self) -> str | None:
        """Return the line about the explorer; None if it is not open.

        A person reads it on a terminal. A log gets no token while there is another way to one.
        """
        listener = self._listener
        if listener is None:
            return None
        url, to_terminal = listener.new_link(), sys.stdout.isatty()
        is_written = listener.write_link(url)
        if not to_terminal and is_written:
            return f"explorer: {listener.url} (sign in by the link in {listener.link_file})"
        if not to_terminal and self._settings.control_socket is not None:
            return f"explorer: {listener.url} (sign in by lazulite ui)"
        return f"explorer: {url}"


@asynccontextmanager
async def ui_host(
    settings: Settings,
    store: Store,
    certificate: Certificate | None,
    scheduler: FairScheduler | None = None,
    clock: Clock = system_clock,
) -> AsyncIterator[UiHost]:
    """Yield the place of the explorer, which is open if the settings say so, and closed behind the block.

    Args:
        settings: of the process.
        store: of the process, whose channel takes `OPEN_UI` from now on.
        certificate: of the process; None without TLS.
        scheduler: of the process; None if it serves nothing else.
        clock: dates requests to the services.

    Raises:
        BindError: the address cannot be listened on; the text names the flag.
    """
    host = UiHost(settings, store, certificate, scheduler, clock)
    store.channel.register(OPEN_UI, host.open)
    try:
        if settings.ui_port is not None:
            try:
                await host.start(settings.ui_port)
            except BindError as error:
                raise BindError(f"{error}: choose another --ui-port") from error
        yield host
    finally:
        await host.stop()


def announce_ui(host: UiHost, ports: Mapping[str, Ports]) -> None:
    """Note that the services accept requests, and print the line about the explorer."""
    host.ports = ports
    line = host.announcement()
    if line is not None:
        print(line)
