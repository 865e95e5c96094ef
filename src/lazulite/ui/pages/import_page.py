"""The import of a file into a table: a look at its first rows, then a job that stores them."""

import asyncio
import json
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.settings.extras import require_extra
from lazulite.transfer.formats import FORMATS
from lazulite.transfer.importing import RowKeys
from lazulite.transfer.table_client import Mode
from lazulite.ui.calls import Context, PageCall, PageError, PageView, Redirect, link
from lazulite.ui.files import received
from lazulite.ui.pages.table_pages import TABLE, checked
from lazulite.ui.tables.import_preview import PARQUET, PREVIEW_BYTES_MAX, FilePreview, preview_of
from lazulite.ui.tables.reader import ACCEPT
from lazulite.ui.tables.transfers import import_rows

IMPORT = "/{account}/tables/{table}/import"
_KINDS = ("", "number", "uuid")


class _Choices(NamedTuple):
    """What the form says."""

    format: str
    mode: Mode
    row_keys: RowKeys


async def show_import(call: PageCall) -> Context:
    """Return the form."""
    return await _context(call, None)


async def preview(call: PageCall) -> PageView:
    """Return the form with the first rows of a file, whose first bytes are the body of the request."""
    choices, size = _choices(call), call.query.get("size", "")
    try:
        await call.request.receive_body(PREVIEW_BYTES_MAX)
    except ServiceError as error:
        raise PageError(error.status, f"the beginning of the file did not come: {error.code}") from None
    length = int(size) if size.isdecimal() and len(size) < 20 else len(call.request.body)
    found = await asyncio.to_thread(preview_of, call.request.body, length, choices.format, choices.row_keys)
    return PageView(await _context(call, found), 200)


async def import_file(call: PageCall) -> Response:
    """Start a job that stores the rows of a file, the body of the request; return where its page is."""
    table, choices = checked(call.parameters["table"]), _choices(call)
    if choices.format == PARQUET:
        try:
            require_extra(PARQUET, "Parquet")
        except ValueError as error:
            raise PageError(400, str(error)) from None
    file = await received(call.request)
    work = import_rows(call.service("table"), table, file, *choices)
    job = call.jobs.start(f"Import into {table}", work, account=call.account)
    job.result = link(TABLE, account=call.account, table=table)
    body = json.dumps({"location": Redirect.to_job(job).where}).encode()
    return Response(200, [("Content-Type", "application/json")], body)


def _choices(call: PageCall) -> _Choices:
    query = call.query
    format_name, mode, row_keys = query.get("format", "csv"), query.get("mode", "insert"), query.get("row-keys", "")
    if format_name not in FORMATS or mode not in list(Mode) or row_keys not in _KINDS:
        raise PageError(400, "there is no such format, mode or kind of RowKeys")
    return _Choices(format_name, Mode(mode), RowKeys(row_keys))


async def _context(call: PageCall, found: FilePreview | None) -> Context:
    table, choices = checked(call.parameters["table"]), _choices(call)
    answer = await call.service("table").send("GET", f"{table}()", {"$top": "1"}, ACCEPT, accepted=(404,))
    return {
        "table": table,
        "is_there": answer.status == 200,
        "formats": {name: [*each.endings] for name, each in FORMATS.items()},
        "bytes_max": PREVIEW_BYTES_MAX,
        "format": choices.format,
        "mode": choices.mode.value,
        "row_keys": choices.row_keys.kind,
        "preview": found,
    }
