"""One entity: all its properties with their types, changed, duplicated, deleted.

An entity is saved whole, under the ETag with which it was shown. If another client has changed it, the page shows both
versions, and the next save is under the ETag of theirs.
"""

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lazulite.protocol.message import Response
from lazulite.ui.backend import BackendError
from lazulite.ui.calls import Context, PageCall, PageError, PageView, Redirect, link
from lazulite.ui.pages.table_pages import TABLE, checked
from lazulite.ui.tables.reader import get_entity
from lazulite.ui.tables.values import (
    ENTERED_TYPES,
    EXAMPLES,
    PROPERTIES_MAX,
    Entity,
    Value,
    ValueFormatError,
    as_entered,
    document_of,
    entity_of,
    path_of,
    value_of,
    with_line_ends,
)

ENTITY = "/{account}/tables/{table}/entity"
NEW = "/{account}/tables/{table}/new"
EMPTY_FIELDS = 3
_JSON = {"Content-Type": "application/json", "Accept": "application/json;odata=nometadata"}
_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]")


class Field(NamedTuple):
    """A property in the form."""

    name: str
    type: str
    """One of `ENTERED_TYPES`."""
    text: str
    size: int
    """Characters of a text, bytes of a Binary."""
    theirs: str | None = None
    """The value of the other version: None, it is the same; "" with `is_theirs_missing`, there is none."""
    is_theirs_missing: bool = False
    problem: str = ""


class _Form(NamedTuple):
    """What was entered."""

    partition: str
    row: str
    etag: str
    """"" for an entity that is new."""
    entered: Mapping[str, tuple[str, str]]
    """Name -> type and text."""


async def show_entity(call: PageCall) -> Context:
    """Return an entity with all its properties."""
    entity = await _get(call, call.query.get("pk", ""), call.query.get("rk", ""))
    if entity is None:
        raise PageError(404, "there is no such entity, or none any more")
    return _context(
        call, entity.partition, entity.row, entity.etag, [_field(*each) for each in entity.values.items()]
    ) | {"timestamp": entity.timestamp}


async def show_new(call: PageCall) -> Context:
    """Return the form of a new entity; with keys in the query, one that begins as a copy."""
    partition, row = call.query.get("pk", ""), call.query.get("rk", "")
    copied = await _get(call, partition, row) if "rk" in call.query else None
    return _context(call, partition, row, "", [_field(*each) for each in copied.values.items()] if copied else [])


async def save(call: PageCall) -> Redirect | PageView:
    """Write the entity of the form."""
    form = _form(call)
    stored = await _get(call, form.partition, form.row) if form.etag else None
    values, problems = _values(form, stored.values if stored is not None else {})
    if problems:
        return _again(call, form, 400, "Nothing was saved: some values do not fit their types.", problems=problems)
    if form.etag and stored is None:
        text = "Another client has deleted this entity. Save again to insert it."
        return _again(call, form._replace(etag=""), 409, text)
    if form.etag and stored is not None and stored.etag != form.etag:
        return _conflict(call, form, stored)
    try:
        await _write(call, form, values)
    except BackendError as error:
        if error.status == 412:
            theirs = await _get(call, form.partition, form.row)
            if theirs is not None:
                return _conflict(call, form, theirs)
        if error.status not in (400, 404, 409, 412, 413):
            raise
        return _again(call, form, error.status, f"Nothing was saved. The server says: {error} ({error.code})")
    where = link(ENTITY, account=call.account, table=call.parameters["table"], pk=form.partition, rk=form.row)
    return Redirect(where, "Saved.")


async def delete(call: PageCall) -> Redirect:
    """Delete the entity as it was shown."""
    form, table = _form(call), checked(call.parameters["table"])
    await call.service("table").send(
        "DELETE", path_of(table, form.partition, form.row), {}, {**_JSON, "If-Match": form.etag}
    )
    return Redirect(link(TABLE, account=call.account, table=table), "The entity was deleted.")


async def download(call: PageCall) -> Response:
    """Return the bytes of a Binary, or the text of another value, as a file."""
    name = call.form.get("property", "")
    entity = await _get(call, call.query.get("pk", ""), call.query.get("rk", ""))
    value = entity.values.get(name) if entity is not None else None
    if value is None:
        raise PageError(404, "there is no such property, or none any more")
    content = b64decode(value.text) if value.type == "Binary" else value.text.encode("utf-8", "surrogatepass")
    file = _FILE_NAME.sub("_", name)[:100] + (".bin" if value.type == "Binary" else ".txt")
    headers = [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", f'attachment; filename="{file}"'),
        ("Content-Security-Policy", "sandbox"),
    ]
    return Response(200, headers, content)


async def _get(call: PageCall, partition: str, row: str) -> Entity | None:
    found = await get_entity(call.service("table"), path_of(checked(call.parameters["table"]), partition, row))
    if found is None:
        return None
    entity = entity_of(found[0])
    return Entity(partition, row, entity.timestamp, found[1], entity.values)


async def _write(call: PageCall, form: _Form, values: Mapping[str, Value]) -> None:
    client, table = call.service("table"), checked(call.parameters["table"])
    body = document_of(form.partition, form.row, values)
    if form.etag:
        await client.send("PUT", path_of(table, form.partition, form.row), {}, {**_JSON, "If-Match": form.etag}, body)
    else:
        await client.send("POST", table, {}, {**_JSON, "Prefer": "return-no-content"}, body)


def _form(call: PageCall) -> _Form:
    columns = [call.fields.get(name, ()) for name in ("name", "type", "text")]
    if len({len(each) for each in columns}) != 1:
        raise PageError(400, "the form is malformed: load the page again")
    removed = set(call.fields.get("remove", ()))
    entered: dict[str, tuple[str, str]] = {}
    for name, type_name, text in zip(*columns, strict=True):
        stripped = name.strip()
        if stripped and name not in removed:
            if stripped in entered:
                raise PageError(400, f"there are two properties of the name {stripped}")
            entered[stripped] = type_name, text
    if len(entered) > PROPERTIES_MAX:
        raise PageError(400, f"an entity has at most {PROPERTIES_MAX} properties besides its keys")
    given = call.form
    return _Form(given.get("partition", ""), given.get("row", ""), given.get("etag", ""), entered)


def _values(form: _Form, stored: Mapping[str, Value]) -> tuple[Mapping[str, Value], Mapping[str, str]]:
    """Return the values of a form, and the problems of its texts, by name."""
    values: dict[str, Value] = {}
    problems: dict[str, str] = {}
    for name, (type_name, text) in form.entered.items():
        try:
            values[name] = with_line_ends(value_of(type_name, text), stored.get(name))
        except ValueFormatError as error:
            problems[name] = str(error)
    return values, problems


def _conflict(call: PageCall, form: _Form, theirs: Entity) -> PageView:
    """Return both versions, in a form under the ETag of the one of the server."""
    text = f"Another client has changed this entity, last at {theirs.timestamp}. Both versions are below."
    return _again(call, form._replace(etag=theirs.etag), 412, text, theirs=theirs)


def _again(
    call: PageCall,
    form: _Form,
    status: int,
    text: str,
    *,
    theirs: Entity | None = None,
    problems: Mapping[str, str] | None = None,
) -> PageView:
    """Return the form as it was entered."""
    fields = [
        Field(name, type_name, entered, len(entered), problem=(problems or {}).get(name, ""))
        for name, (type_name, entered) in form.entered.items()
    ]
    if theirs is not None:
        values, _ = _values(form, theirs.values)
        fields = [_beside(each, values.get(each.name), theirs.values.get(each.name)) for each in fields]
        fields += [_only_theirs(name, value) for name, value in theirs.values.items() if name not in form.entered]
    context = dict(_context(call, form.partition, form.row, form.etag, fields))
    context |= {"problem": text, "is_conflict": theirs is not None}
    return PageView(context, status)


def _beside(field: Field, mine: Value | None, theirs: Value | None) -> Field:
    if mine == theirs:
        return field
    return field._replace(theirs=_told(theirs) if theirs else "", is_theirs_missing=theirs is None)


def _only_theirs(name: str, value: Value) -> Field:
    return _field(name, value)._replace(theirs=_told(value), problem="yours lacks it: remove it, or keep theirs")


def _told(value: Value) -> str:
    return f"{value.text[:400]}{'…' if len(value.text) > 400 else ''} ({value.type})"


def _field(name: str, value: Value) -> Field:
    type_name, text = as_entered(value)
    return Field(name, type_name, text, value.bytes if value.type == "Binary" else len(value.text))


def _context(call: PageCall, partition: str, row: str, etag: str, fields: Sequence[Field]) -> dict[str, object]:
    return {
        "table": call.parameters["table"],
        "partition": partition,
        "row": row,
        "etag": etag,
        "timestamp": "",
        "fields": fields,
        "empty_fields": [Field("", "String", "", 0)] * EMPTY_FIELDS,
        "types": ENTERED_TYPES,
        "examples": EXAMPLES,
        "problem": "",
        "is_conflict": False,
    }
