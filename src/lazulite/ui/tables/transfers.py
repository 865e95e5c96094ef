"""Jobs that write found rows to a file, and rows of a file to a table, by the requests of a page."""

import asyncio
import time
from collections.abc import Mapping
from typing import IO
from urllib.parse import parse_qsl

from lazulite.transfer.exporting import TransferProgress, export
from lazulite.transfer.formats import FORMATS, ReadOptions, WriteOptions
from lazulite.transfer.http_client import Response, TransferError, UnavailableError
from lazulite.transfer.importing import Checkpoint, FailedRow, Importer, RowKeys
from lazulite.transfer.inputs import InputError
from lazulite.transfer.table_client import Mode, Query, TableClient
from lazulite.ui.backend import ServiceClient
from lazulite.ui.files import FILE_BYTES_MAX, new_file
from lazulite.ui.jobs import Job, JobError, Work
from lazulite.ui.tables.reader import Search

FAILED_BYTES_MAX = 64 << 20
"""The longest file of rows that are not stored."""
_ANY_STATUS = range(400, 600)
_BUSY = frozenset({429, 500, 502, 503, 504})
_RETRY_SECONDS = (0.1, 0.5, 2.0, 5.0)


class _PageSender:
    """Sends the requests of a transfer as those of a page, and lets others pass. Implements `Sender`."""

    def __init__(self, client: ServiceClient, job: Job) -> None:
        self._client = client
        self._job = job

    @property
    def endpoint(self) -> str:
        return self._client.url

    async def send(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        for attempt, pause in enumerate((*_RETRY_SECONDS, None)):
            answer = await self._client.send(method, path, parameters, headers, body, accepted=_ANY_STATUS)
            await self._job.step(0)
            if answer.status not in _BUSY:
                return Response(answer.status, answer.headers, answer.body, attempt > 0)
            if pause is not None:
                await asyncio.sleep(pause)
        raise UnavailableError(f"the service responds with {answer.status}")


def export_rows(
    client: ServiceClient, search: Search, file: IO[bytes], format_name: str, options: WriteOptions
) -> Work:
    """Return a job that writes the rows of a search to a file.

    Args:
        client: of the table service.
        search: finds the rows; its condition of the page has no part in it.
        file: that is written.
        format_name: of `transfer.formats.FORMATS`.
        options: of the format.
    """

    async def work(job: Job) -> None:
        def report(progress: TransferProgress) -> None:
            job.done = progress.done
            if progress.size_bytes > FILE_BYTES_MAX:
                raise JobError(f"the file would be longer than {FILE_BYTES_MAX:,} bytes; use lazulite export")

        writer = FORMATS[format_name].write(file, options)
        select = [name for name in options.select or () if name not in ("PartitionKey", "RowKey")]
        query = Query(search.filter, select)
        try:
            await export(TableClient(_PageSender(client, job)), search.table, query, writer, report)
        except TransferError as error:
            raise JobError(str(error)) from None
        file.flush()

    return work


def import_rows(
    client: ServiceClient, table: str, file: IO[bytes], format_name: str, mode: Mode, row_keys: RowKeys
) -> Work:
    """Return a job that stores the rows of a file. Its file has the rows that are not stored, and why.

    Args:
        client: of the table service.
        table: is created if it is missing.
        file: at its start; it is closed at the end.
        format_name: of `transfer.formats.FORMATS`.
        mode: what is done to entities that exist.
        row_keys: what rows without a RowKey get.
    """

    async def work(job: Job) -> None:
        failed = FailedRows(job, f"{table}.errors.jsonl")

        def report(progress: TransferProgress) -> None:
            job.done = progress.done

        tables = TableClient(_PageSender(client, job))
        importer = Importer(
            tables,
            table,
            mode,
            row_keys=row_keys,
            checkpoint=Checkpoint(None, {}),
            fail=failed.add,
            report=report,
            timer=time.monotonic,
        )
        try:
            with file:
                await tables.create(table)
                progress = await importer.run(FORMATS[format_name].read(file, ReadOptions()))
        except (TransferError, InputError) as error:
            raise JobError(str(error)) from None
        finally:
            failed.flush()
        job.done = progress.done
        job.say(f"Stored: {progress.done:,} rows. Not stored: {progress.failed:,}")

    return work


class FailedRows:
    """The file of a job that has each row that is not stored, and why, as that of `lazulite import`.

    Args:
        job: gets the file with the first row.
        name: of the file.
    """

    def __init__(self, job: Job, name: str) -> None:
        self._job = job
        self._name = name
        self._left = FAILED_BYTES_MAX
        self._written = 0

    def add(self, row: FailedRow) -> None:
        """Count a row, and write it to the file while there is room."""
        job, line = self._job, row.line().encode("utf-8", "surrogatepass")
        job.failed += 1
        job.say(f"row {row.number}: {row.reason}"[:400])
        if job.file is None:
            job.file, job.file_name = new_file(), self._name
        if len(line) > self._left:
            self._left = 0
            return
        job.file.write(line)
        self._written += 1
        self._left -= len(line)

    def flush(self) -> None:
        """Make the file ready for a download, and say what it has."""
        if self._job.file is not None:
            self._job.file.flush()
            which = "all" if self._written == self._job.failed else f"the first {self._written:,}"
            self._job.say(f"{self._name} has the rows that were not stored: {which}")
