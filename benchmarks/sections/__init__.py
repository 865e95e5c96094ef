"""The sections, in the order in which they are measured and reported: a title, and a function that takes a `Bench`."""

from benchmarks.sections import (
    big,
    blob,
    blob_growth,
    citus,
    postgres,
    queue,
    queue_growth,
    startup,
    streams,
    table,
    workers,
)

SECTIONS = {
    "startup": ("Commands and idle servers", startup.run),
    "table": ("The workloads of the targets", table.targets),
    "connections": ("By connections, closed loop and fixed rate", table.connections),
    "streams": ("Large bodies", streams.run),
    "workers": ("By workers", workers.run),
    "big": ("The big table", big.run),
    "postgres": ("On PostgreSQL", postgres.run),
    "citus": ("On a Citus cluster", citus.run),
    "blob": ("Blobs", blob.run),
    "blob_growth": ("Blobs, by their number", blob_growth.run),
    "queue": ("Queues", queue.run),
    "queue_growth": ("Queues, by what is in front", queue_growth.run),
}
