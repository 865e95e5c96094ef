"""`python -m benchmarks.simulated_study`: figures of the study of 2010, against a server with its targets, over HTTP.

The study is *How to get most out of Windows Azure Tables*. Its client has threads that each send one request after the
other, never repeat one, and pause for 3 s after a rejection. Here the threads live in the time of a clock, which is the
server's, too. So a run takes as long as its requests, and no number depends on the speed of this machine. A response
takes `answer_seconds` of that time, or longer if the gate says so in `Server-Timing`.

Invariant: a run has the same numbers each time. Its clock begins at `START`, not at the present: requests are due when
rounds of the balancer are, and how a time is rounded would decide which of them comes first.
"""

import argparse
import heapq
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import HTTPResponse
from itertools import count
from pathlib import Path
from socket import create_connection, socket
from typing import NamedTuple
from zlib import crc32

import lazulite.testing
from benchmarks.requests import Requests

START = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the server when a run begins, a whole second."""
PAUSE_SECONDS = 3
"""After a rejection, as in the study."""
BATCH_ANSWER_SECONDS, SINGLE_ANSWER_SECONDS = 0.87, 0.05
"""What the study's figures 15 and 3 say about a batch of 100 and an insert."""
THREADS_PER_MACHINE = 15
SERVERS = """
base = "current"
partition = 500
server_cap = 500
[balancing]
servers = 4
"""
"""Four virtual servers that each take 500 operations a second."""
_DELAY = re.compile(r'gate;desc="\w+";dur=([0-9.]+)')


class Rates(NamedTuple):
    """Entities per second that were written and refused, without the warm-up."""

    passed: float
    refused: float

    @property
    def share(self) -> float:
        """The share that was refused."""
        return self.refused / (self.passed + self.refused)


class Study:
    """The study's client, and the clock of its server.

    Attributes:
        requests: builds requests.
    """

    def __init__(self) -> None:
        self.now = START
        self._connection: socket | None = None
        self.requests = Requests("127.0.0.1", self.now)

    @contextmanager
    def serve(self, targets: str, time_scale: float = 1) -> "Iterator[Study]":
        """Have a server inside the block, with targets and a table."""
        with (
            lazulite.testing.server(targets=targets, time_scale=time_scale, clock=lambda: self.now) as storage,
            create_connection(("127.0.0.1", storage.port)) as connection,
        ):
            self._connection = connection
            self._send(self.requests.create_table())
            yield self

    def run(
        self,
        threads: int,
        request: Callable[[int, int], bytes],
        *,
        entities: int,
        answer_seconds: float,
        seconds: float,
        warm_share: float = 0.1,
    ) -> Rates:
        """Return the rates of a run.

        Args:
            threads: their number.
            request: makes a request, given the number of a thread and of its request.
            entities: of a request.
            answer_seconds: how long a response takes, a rejection, too.
            seconds: the length of the run.
            warm_share: the part of it, at its start, that does not count.
        """
        counts, sent = [0, 0], [0] * threads
        begin = (self.now - START).total_seconds()
        due = [(begin + answer_seconds * number / threads, number) for number in range(threads)]
        while due[0][0] < begin + seconds:
            at, number = due[0]
            self.now = START + timedelta(seconds=at)
            status, delay_seconds = self._send(request(number, sent[number]))
            sent[number] += 1
            is_refused = status >= 500
            if at >= begin + seconds * warm_share:
                counts[is_refused] += entities
            pause = answer_seconds + PAUSE_SECONDS if is_refused else max(answer_seconds, delay_seconds)
            heapq.heapreplace(due, (at + pause, number))
        measured = seconds * (1 - warm_share)
        return Rates(counts[0] / measured, counts[1] / measured)

    def _send(self, request: bytes) -> tuple[int, float]:
        """Return the status of a response, and the seconds that the gate delayed it."""
        assert self._connection is not None, "there is a server"
        self._connection.sendall(request)
        response = HTTPResponse(self._connection)
        response.begin()
        response.read()
        delay = _DELAY.search(response.headers.get("Server-Timing", ""))
        return response.status, float(delay[1]) / 1000 if delay is not None else 0


def upserts(requests: Requests, partition: str, rows: Sequence[str]) -> bytes:
    """Return a batch that inserts or replaces these rows of a partition."""
    keys = [(partition, row) for row in rows]
    return requests.transaction([b'{"V":1}'] * len(rows), "PUT", keys)


def figure_15(threads: int, seconds: float = 60, warm_share: float = 0.1) -> Rates:
    """Return the rates of threads that write batches of 100 into one partition."""
    with Study().serve("study-2010") as study:
        batch = upserts(study.requests, "p", [str(number) for number in range(100)])
        return study.run(
            threads,
            lambda _, __: batch,
            entities=100,
            answer_seconds=BATCH_ANSWER_SECONDS,
            seconds=seconds,
            warm_share=warm_share,
        )


def figure_8(machines: int, *, single: bool, seconds: float = 4) -> Rates:
    """Return the rates of machines of 15 threads, which write entities into one partition, or each into its own."""
    with Study().serve("study-2010") as study:
        threads = machines * THREADS_PER_MACHINE
        writes = [
            study.requests.merge("p" if single else f"p{number}", f"r{number}", b'{"V":1}') for number in range(threads)
        ]
        return study.run(
            threads, lambda number, _: writes[number], entities=1, answer_seconds=SINGLE_ANSWER_SECONDS, seconds=seconds
        )


def append_only(*, hashed: bool, seconds: float = 40, time_scale: float = 60) -> Rates:
    """Return the rates of threads that write partitions whose keys rise, with a hash before the key or without.

    There are four virtual servers that take 500 operations a second each. Half of the run is for the balancer to split
    the table's ranges, so its times are divided. Each batch has a partition of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "servers.toml"
        file.write_text(SERVERS, encoding="utf-8")
        with Study().serve(str(file), time_scale) as study:
            keys = count()

            def request(_: int, __: int) -> bytes:
                key = f"{next(keys):08}"
                prefix = f"{crc32(key.encode()) % 64:02}-" if hashed else ""
                return upserts(study.requests, prefix + key, [str(row) for row in range(20)])

            return study.run(200, request, entities=20, answer_seconds=1, seconds=seconds, warm_share=0.5)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulated_study", description=__doc__)
    parser.parse_args()
    print("| figure 15: threads | entities/s written | entities/s refused | share |\n|---|---|---|---|")
    for threads in (10, 20, 30, 40, 50):
        found = figure_15(threads)
        print(f"| {threads} | {found.passed:,.0f} | {found.refused:,.0f} | {found.share:.1%} |")
    print("\n| figure 8: machines | one partition, inserts/s | many partitions, inserts/s |\n|---|---|---|")
    for machines in (1, 2, 5, 10, 16):
        single, several = figure_8(machines, single=True), figure_8(machines, single=False)
        print(f"| {machines} | {single.passed:,.0f} ({single.share:.2%} refused) | {several.passed:,.0f} |")
    print("\n| keys that rise | entities/s written |\n|---|---|")
    for hashed in (False, True):
        found = append_only(hashed=hashed)
        print(f"| {'with a hash before them' if hashed else 'as they are'} | {found.passed:,.0f} |")


if __name__ == "__main__":
    main()
