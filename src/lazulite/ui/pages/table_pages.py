"""The tables of an account, the grid of one table, and what is done to many rows."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

from lazulite.app.commands import EXPIRY_LIST, INDEX_LIST, TableArguments
from lazulite.control.command import AccountArguments, Command, ControlError, Json
from lazulite.transfer.formats import FORMATS, WriteOptions
from lazulite.ui.backend import BackendError, ServiceClient
from lazulite.ui.calls import Context, PageCall, PageError, Redirect, link
from lazulite.ui.files import new_file
from lazulite.ui.tables.changes import (
    Change,
    Changes,
    change_rows,
    copy_of,
    count_rows,
    deletion,
    empty_table,
    removal,
    send_batch,
    send_change,
    setting,
)
from lazulite.ui.tables.filters import (
    BUILDER_OPERATORS,
    LOCAL_OPERATORS,
    ROWS_MAX,
    Condition,
    LocalCondition,
    built,
    error_position,
    read,
    without_comments,
)
from lazulite.ui.tables.grid import chosen, columns_of, rows_of
from lazulite.ui.tables.reader import Search, find
from lazulite.ui.tables.transfers import export_rows
from lazulite.ui.tables.values import TYPE_NAMES, ValueFormatError, value_of

A = TypeVar("A")

LIST = "/{account}/tables"
TABLE = "/{account}/tables/{table}"
TABLES_SHOWN = 100
SIZES = (100, 250, 1000)
_NEXT_TABLE = "x-ms-continuation-nexttablename"


async def list_tables(call: PageCall) -> Context:
    """Return a page of the tables of an account, from a prefix on if one is given."""
    prefix = call.query.get("prefix", "")
    bounds = f"TableName ge '{prefix}' and TableName lt '{prefix}~'" if prefix.isalnum() else ""
    parameters = {"$top": str(TABLES_SHOWN), "$filter": bounds, "NextTableName": call.page_of()}
    headers = {"Accept": "application/json;odata=nometadata"}
    answer = await call.service("table").send("GET", "Tables", parameters, headers)
    names = [str(each["TableName"]) for each in answer.json()["value"]]
    following = answer.headers.get(_NEXT_TABLE, "")
    return {"names": names, "next": following, "seen": _seen(call) + len(names), "prefix": prefix}


async def create_table(call: PageCall) -> Redirect:
    """Create a table."""
    name = call.form.get("name", "").strip()
    await _create(call.service("table"), name)
    return Redirect(link(TABLE, account=call.account, table=name), f"{name} was created.")


async def delete_tables(call: PageCall) -> Redirect:
    """Delete the selected tables; the number of them is typed."""
    names = call.fields.get("table", ())
    if not names or call.form.get("confirm") != str(len(names)):
        raise PageError(400, f"{len(names)} tables are selected: select tables, and type their number")
    for name in names:
        await call.service("table").send("DELETE", f"Tables('{checked(name)}')")
    return Redirect(link(LIST, account=call.account), f"{len(names)} tables were deleted.")


async def show_table(call: PageCall) -> Context:
    """Return a page of rows: columns, cells, what they cost, and the forms with what was entered."""
    search, limit = _search(call), _limit(call)
    problem = ""
    try:
        found = await find(call.service("table"), search, call.page_of(), limit)
    except BackendError as error:
        if error.status != 400:
            raise
        problem, found = str(error), None
    entities = found.entities if found else []
    columns = columns_of(entities)
    shown = chosen(columns, call.query.get("columns", ""))
    builder = read(search.filter)
    return {
        "table": search.table,
        "filter": call.query.get("filter", ""),
        "local": search.local,
        "problem": problem,
        "error_position": error_position(problem, search.filter) if problem else None,
        "found": {"plan": found.plan_line, "advice": found.advice if search.filter else ""} if found else None,
        "is_scan": bool(found and found.is_scan and search.filter),
        "read": found.read if found else 0,
        "columns": columns,
        "shown": shown,
        "is_chosen": bool(call.query.get("columns")),
        "rows": rows_of(entities, shown),
        "next": found.next if found else "",
        "seen": _seen(call) + len(entities),
        "is_searched": bool(search.filter or search.local.is_set),
        "builder": builder,
        "builder_rows": [*builder.conditions, *(Condition("", "=", "String", ""),) * (3 - len(builder.conditions) % 2)],
        "builder_operators": BUILDER_OPERATORS,
        "local_operators": LOCAL_OPERATORS,
        "types": list(TYPE_NAMES),
        "limit": limit,
        "sizes": SIZES,
        "formats": list(FORMATS),
        "indexes": await _indexes(call, search.table),
    }


async def build_filter(call: PageCall) -> Redirect:
    """Write the `$filter` of the rows of the builder."""
    names = ("property", "operator", "type", "text")
    columns = [call.fields.get(name, ()) for name in names]
    if len(set(map(len, columns))) != 1:
        raise PageError(400, "the form is malformed: load the page again")
    conditions = [Condition(*each) for each in zip(*columns, strict=True)][:ROWS_MAX]
    try:
        text = built(conditions, call.form.get("joined_by", "and"))
    except ValueFormatError as error:
        raise PageError(400, str(error)) from None
    return Redirect(_here(call, filter=text, next="", seen=""))


async def delete_rows(call: PageCall) -> Redirect:
    """Delete the selected rows under the ETags that the page showed."""
    table, client = checked(call.parameters["table"]), call.service("table")
    changes = sorted(Change("DELETE", *_selected(text)) for text in call.fields.get("row", ()))
    if not changes:
        raise PageError(400, "no row is selected")
    if len({each.partition for each in changes}) == 1 < len(changes) <= 100:
        await send_batch(client, table, changes)
    else:
        for each in changes:
            await send_change(client, table, each)
    return Redirect(_here(call), f"{len(changes)} {'row was' if len(changes) == 1 else 'rows were'} deleted.")


def _selected(text: str) -> tuple[str, str, bytes, str]:
    try:
        partition, row, etag = map(str, json.loads(text))
        (partition + row + etag).encode()  # No key has half of a surrogate pair.
    except (ValueError, TypeError, RecursionError):
        raise PageError(400, "the selection is malformed: load the page again") from None
    return partition, row, b"", etag


async def count(call: PageCall) -> Redirect:
    """Start a job that counts the found rows."""
    search = _search(call)
    work = count_rows(call.service("table"), search)
    return Redirect.to_job(call.jobs.start(f"Count rows of {search.table}", work, account=call.account))


async def delete_found(call: PageCall) -> Redirect:
    """Start a job that deletes all rows that the filter finds; the name of the table is typed."""
    _confirm(call)
    return _change(call, "Delete rows of {}", deletion)


async def set_property(call: PageCall) -> Redirect:
    """Start a job that sets a property of all rows that the filter finds."""
    _confirm(call)
    name = call.form.get("property", "").strip()
    try:
        value = value_of(call.form.get("type", "String"), call.form.get("text", ""))
    except ValueFormatError as error:
        raise PageError(400, f"{name}: {error}") from None
    if not name:
        raise PageError(400, "enter the name of the property")
    return _change(call, f"Set {name} in {{}}", setting(name, value))


async def remove_property(call: PageCall) -> Redirect:
    """Start a job that removes a property of all rows that the filter finds."""
    _confirm(call)
    name = call.form.get("property", "").strip()
    if not name:
        raise PageError(400, "enter the name of the property")
    return _change(call, f"Remove {name} in {{}}", removal(name))


def _change(call: PageCall, title: str, change: Changes) -> Redirect:
    search, client = _search(call), call.service("table")
    work = change_rows(client, search, change, client, search.table)
    job = call.jobs.start(title.format(search.table), work, account=call.account)
    job.result = _here(call, next="", seen="")
    return Redirect.to_job(job)


async def copy_rows(call: PageCall) -> Redirect:
    """Start a job that copies the found rows into a table of any account, which is created if it is missing."""
    search, account, name = _search(call), call.form.get("account", call.account), call.form.get("name", "").strip()
    if call.services.directory.get(account) is None:
        raise PageError(404, f"there is no account {account[:64]}")
    if (account, name.lower()) == (call.account, search.table.lower()):
        raise PageError(400, "a table is not copied to itself: enter another name")
    target = call.backend.service(account, "table")
    try:
        await _create(target, name)
    except BackendError as error:
        if error.code != "TableAlreadyExists":
            raise
    work = change_rows(call.service("table"), search, copy_of, target, name)
    job = call.jobs.start(f"Copy {search.table} to {name}", work, account=call.account)
    job.result = link(TABLE, account=account, table=name)
    return Redirect.to_job(job)


async def export_found(call: PageCall) -> Redirect:
    """Start a job that writes the found rows to a file, which its page offers."""
    search, format_name = _search(call), call.form.get("format", "csv")
    if format_name not in FORMATS:
        raise PageError(400, f"there is no format {format_name[:40]!r}")
    if search.local.is_set:
        raise PageError(400, "a condition that is tested here has no part in an export: take it out of the search")
    columns = [name for name in call.query.get("columns", "").split(",") if name]
    select = columns if call.form.get("columns") == "shown" and columns else None
    file, options = new_file(), WriteOptions(select, guard=call.form.get("guard") == "yes")
    work = export_rows(call.service("table"), search, file, format_name, options)
    job = call.jobs.start(f"Export {search.table}", work, account=call.account)
    ending = "csv" if format_name == "plain-csv" else format_name
    job.file, job.file_name = file, f"{search.table.lstrip('$')}.{ending}"
    return Redirect.to_job(job)


async def empty(call: PageCall) -> Redirect:
    """Empty a table at once; its name is typed. A job empties one with indexes or an expiry, and keeps these."""
    _confirm(call)
    table, client = checked(call.parameters["table"]), call.service("table")
    if await _indexes(call, table) or await _expires(call, table):
        work = change_rows(client, Search(table=table), deletion, client, table)
        return Redirect.to_job(call.jobs.start(f"Empty {table}", work, account=call.account))
    await empty_table(client, table, lambda: _create(client, table))
    return Redirect(link(TABLE, account=call.account, table=table), f"{table} is empty.")


async def delete_table(call: PageCall) -> Redirect:
    """Delete a table; its name is typed."""
    _confirm(call)
    table = checked(call.parameters["table"])
    await call.service("table").send("DELETE", f"Tables('{table}')")
    return Redirect(link(LIST, account=call.account), f"{table} was deleted.")


def _search(call: PageCall) -> Search:
    """Return what the query of a page searches for."""
    local = LocalCondition(*(call.query.get(name, "") for name in ("in", "where", "text")))
    text = without_comments(call.query.get("filter", ""))
    return Search(table=checked(call.parameters["table"]), filter=text, local=local)


def checked(table: str) -> str:
    """Return the name of a table. Raises `PageError`: there can be none of that name."""
    if not table.isascii() or not table.lstrip("$").isalnum() or len(table) > 63:
        raise PageError(404, f"there is no table {table[:64]}")
    return table


def _confirm(call: PageCall) -> None:
    table = call.parameters["table"]
    if call.form.get("confirm") != table:
        raise PageError(400, f"nothing was changed: type {table} to confirm")


def _limit(call: PageCall) -> int:
    given = call.query.get("size", "")
    return int(given) if given in map(str, SIZES) else SIZES[0]


def _seen(call: PageCall) -> int:
    given = call.query.get("seen", "")
    return int(given) if given.isdecimal() and len(given) < 15 else 0


def _here(call: PageCall, **others: str) -> str:
    """Return the URL of the table with the present search."""
    query = {**call.query, "do": "", **others, "account": call.account, "table": call.parameters["table"]}
    return link(TABLE, **query)


async def _create(client: ServiceClient, name: str) -> None:
    """Create a table. Raises `BackendError`."""
    headers = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}
    await client.send("POST", "Tables", {}, headers, json.dumps({"TableName": name}).encode())


async def _indexes(call: PageCall, table: str) -> Sequence[Json]:
    """Return the declared indexes of a table."""
    return await _declared(call, INDEX_LIST, TableArguments(table, call.account))


async def _expires(call: PageCall, table: str) -> bool:
    """Return whether the entities of a table expire."""
    found = await _declared(call, EXPIRY_LIST, AccountArguments(call.account))
    return any(isinstance(each, Mapping) and str(each["table"]).lower() == table.lower() for each in found)


async def _declared(call: PageCall, command: Command[A], arguments: A) -> Sequence[Json]:
    """Return what a server has declared; nothing where it has no such command, or there is no table."""
    try:
        return await call.command(command, arguments)
    except ControlError as error:
        if error.code in ("unknown-command", "unknown-table"):
            return ()
        raise
