"""Lazulite with the stream service of its tests beside the Table service, behind the same port."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from tests.service.streams import StreamService

from lazulite.app.servers import open_servers
from lazulite.app.services import calm_collector
from lazulite.app.stores import open_store
from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT
from lazulite.protocol.message import Request, Response
from lazulite.server import lifecycle
from lazulite.server.server import Ports
from lazulite.service.definition import ServiceDependencies
from lazulite.settings.config import TABLE, Settings
from lazulite.table.service import TableService


class TablesAndStreams(TableService):
    """Both services. A resource that is a number is a stream: no table has such a name."""

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(dependencies)
        self._streams = StreamService(dependencies)

    async def handle(self, request: Request) -> Response:
        """See `Service`."""
        return await (self._streams.handle(request) if _is_stream(request) else super().handle(request))

    def at_once(self, request: Request) -> Response | None:
        """See `Service`."""
        return None if _is_stream(request) else super().at_once(request)


def _is_stream(request: Request) -> bool:
    return request.path.rpartition("/")[2].isdigit()


def _announce(ports: Mapping[str, Ports]) -> None:
    print(f"It listens on http://127.0.0.1:{ports[TABLE].http}/", flush=True)


async def _serve(settings: Settings) -> None:
    async with open_store(settings) as store, open_servers(settings, store, makes={TABLE: TablesAndStreams}) as server:
        calm_collector()
        await lifecycle.serve(server, on_ready=_announce)


def main() -> None:
    """Serve with the data in `--location`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--location", type=Path, required=True)
    accounts = {DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT}
    lifecycle.run(_serve(Settings(**vars(parser.parse_args()), services=(TABLE,), accounts=accounts)))


if __name__ == "__main__":
    main()
