"""`lazulite` with the stream service of its tests beside the Table service, behind the same port."""

import sys
from unittest import mock

from tests.service.streams import StreamService

from lazulite.app.services import MAKES
from lazulite.cli import main
from lazulite.protocol.message import Request, Response
from lazulite.service.definition import ServiceDependencies
from lazulite.settings.addresses import TABLE
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


if __name__ == "__main__":
    with mock.patch.dict(MAKES, {TABLE: TablesAndStreams}):
        sys.exit(main())
