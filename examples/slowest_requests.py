"""Print the slowest requests of the last hour, as Storage Analytics has logged them.

The logs are blobs of the container `$logs`, which the service properties switch on (docs/operations/analytics.md). Any
account that has such logs will do, also one in Azure. The program uses the public SDK of blobs only.

    python examples/slowest_requests.py
    python examples/slowest_requests.py --count 20 --service table
"""

import argparse
import heapq
import html
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient

DEVELOPMENT = (
    "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1;"
)
SERVICES = ("blob", "queue", "table")
FIELD = re.compile(r'"[^"]*"|[^;"]*')
"""A field of a line: in quotes, with anything but quotes inside, or without."""


class LoggedRequest(NamedTuple):
    """One line of a log, as far as this program needs it."""

    milliseconds: int
    """From the request's arrival to the last byte of the response."""
    server_milliseconds: int
    start: datetime
    operation: str
    status: str
    key: str


def fields_of(line: str) -> list[str]:
    """Return the fields of a line, without their quotes."""
    fields, at = [], 0
    while at <= len(line):
        field = FIELD.match(line, at)
        assert field is not None, "it matches nothing, too"
        fields.append(html.unescape(field[0].strip('"')))
        at = field.end() + 1
    return fields


def requests_since(container: ContainerClient, since: datetime, services: tuple[str, ...]) -> Iterator[LoggedRequest]:
    """Yield the requests that began since a time, one for each request id."""
    hours = {f"{since:%Y/%m/%d/%H}00/", f"{datetime.now(UTC):%Y/%m/%d/%H}00/"}
    for prefix in sorted(f"{service}/{hour}" for service in services for hour in hours):
        for blob in container.list_blobs(name_starts_with=prefix):
            for line in container.download_blob(blob.name).readall().decode().splitlines():
                fields = fields_of(line)
                start = datetime.fromisoformat(f"{fields[1][:26]}+00:00")
                if start >= since and fields[14] == "0":  # Further lines are parts of the same request.
                    yield LoggedRequest(int(fields[5]), int(fields[6]), start, fields[2], fields[3], fields[12])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="print the slowest requests of the last hour")
    connection_string = os.environ.get("LAZULITE_CONNECTION_STRING", DEVELOPMENT)
    parser.add_argument("--connection-string", default=connection_string, help="the account")
    parser.add_argument("--count", type=int, default=10, help="how many requests (%(default)s)")
    parser.add_argument("--service", choices=SERVICES, help="of this service only")
    given = parser.parse_args()
    services = (given.service,) if given.service else SERVICES
    with BlobServiceClient.from_connection_string(given.connection_string) as blobs:
        since = datetime.now(UTC) - timedelta(hours=1)
        try:
            found = heapq.nlargest(given.count, requests_since(blobs.get_container_client("$logs"), since, services))
        except ResourceNotFoundError:
            raise SystemExit("there are no logs: switch them on first (docs/operations/analytics.md)") from None
    print(f"{'ms':>6} {'server':>6}  {'time':12}  {'operation':24} {'status':20} key")
    for request in found:
        start = f"{request.start:%H:%M:%S.%f}"[:12]
        times = f"{request.milliseconds:6} {request.server_milliseconds:6}  {start}"
        print(f"{times}  {request.operation:24} {request.status:20} {request.key}")


if __name__ == "__main__":
    main()
