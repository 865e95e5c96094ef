"""The stored access policies of a table, a queue or a container: one page for the three, which replaces all of them.

A time is kept as it is written, with all of its digits. A row without a name is left out.

The services have no ETag for policies of tables and queues. So a form has the digest of the policies that it began
with: policies that another client has changed since are shown above, and replaced when the form is sent again. Forms
that the explorer gets at the same time are checked one after the other.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from lazulite.resources.policies import POLICIES_MAX
from lazulite.ui.backend import BackendError
from lazulite.ui.calls import Context, PageCall, PageError, PageView, Redirect, link

POLICIES: Mapping[str, str] = {
    "table": "/{account}/tables/{table}/policies",
    "queue": "/{account}/queues/{queue}/policies",
    "container": "/{account}/blobs/{container}/policies",
}
"""What has policies, and the parameter that names it -> the path of its page."""
_ACCESS = "x-ms-blob-public-access"
_HINT = "Write a time as 2026-11-28T09:30:00Z, and permissions as letters in their order."
_COLUMNS = ("name", "permission", "start", "expiry")
_CONFLICT = "Another client has changed these policies. Both versions are below. Saving again replaces theirs."


class PolicyRow(NamedTuple):
    """A policy as the form has it. An empty text: the SAS that names the policy states it."""

    name: str = ""
    permission: str = ""
    start: str = ""
    expiry: str = ""


class _Kind(NamedTuple):
    """How the policies of a kind of resource are asked for."""

    service: str
    parameters: Mapping[str, str]
    letters: str
    """The permissions, in the order in which the service takes them."""


_KINDS: Mapping[str, _Kind] = {
    "table": _Kind("table", {"comp": "acl"}, "raud: read, add, update, delete"),
    "queue": _Kind("queue", {"comp": "acl"}, "raup: read, add, update, process"),
    "container": _Kind(
        "blob",
        {"restype": "container", "comp": "acl"},
        "racwdl: read, add, create, write, delete, list; and x, y, t, f, as the page of a SAS names them",
    ),
}


async def show_policies(call: PageCall) -> Context:
    """Return the policies of the resource that the path names."""
    rows, _ = await _stored(call)
    return _context(call, rows, rows)


async def save_policies(call: PageCall) -> Redirect | PageView:
    """Replace the policies that the form began with; what is not saved is shown again, with the reason."""
    columns = [[text.strip() for text in call.fields.get(name, ())] for name in _COLUMNS]
    if len(set(map(len, columns))) != 1 or len(columns[0]) > POLICIES_MAX:
        raise PageError(400, "the form is malformed: load the page again")
    rows = [PolicyRow(*each) for each in zip(*columns, strict=True)]
    async with call.services.replacing:
        stored, access = await _stored(call)
        if call.form.get("version") != _version(stored):
            return PageView(_context(call, rows, stored, _CONFLICT, is_conflict=True), 412)
        if any(any(each) and not each.name for each in rows):
            text = "Each policy needs a name. Empty a whole row to remove a policy."
            return PageView(_context(call, rows, stored, text), 400)
        kept = [each for each in rows if each.name]
        problem = await _replace(call, kept, access)
    if problem:
        return PageView(_context(call, rows, stored, problem), 400)
    noun, name = _named(call)
    count = f"{len(kept)} {'policy' if len(kept) == 1 else 'policies'}"
    return Redirect(link(POLICIES[noun], account=call.account, **{noun: name}), f"{name} has {count} now.")


async def _replace(call: PageCall, rows: Sequence[PolicyRow], access: str) -> str:
    """Replace the policies; return why the service rejects them, or "". Raises `BackendError`: for another reason."""
    kind, path = _addressed(call)
    headers = {"Content-Type": "application/xml", **({_ACCESS: access} if access else {})}
    try:
        await call.service(kind.service).send("PUT", path, kind.parameters, headers, _document(rows))
    except BackendError as error:
        if error.status != 400:
            raise
        return f"{error} {_HINT}"
    return ""


def _named(call: PageCall) -> tuple[str, str]:
    """Return what the path names: `table`, `queue` or `container`, and its name."""
    noun = next(name for name in _KINDS if name in call.parameters)
    return noun, call.parameters[noun]


def _addressed(call: PageCall) -> tuple[_Kind, str]:
    noun, name = _named(call)
    return _KINDS[noun], quote(name, safe="$")


async def _stored(call: PageCall) -> tuple[Sequence[PolicyRow], str]:
    """Return the policies, and the public access of a container. Raises `BackendError`."""
    kind, path = _addressed(call)
    answer = await call.service(kind.service).send("GET", path, kind.parameters)
    return [_row(each) for each in answer.xml().iterfind("SignedIdentifier")], answer.headers.get(_ACCESS, "")


def _row(item: ET.Element) -> PolicyRow:
    texts = (item.findtext(f"AccessPolicy/{tag}") or "" for tag in ("Permission", "Start", "Expiry"))
    return PolicyRow(item.findtext("Id") or "", *texts)


def _document(rows: Sequence[PolicyRow]) -> bytes:
    parts = []
    for row in rows:
        fields = {"Start": row.start, "Expiry": row.expiry, "Permission": row.permission}
        inner = "".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in fields.items() if text)
        parts.append(
            f"<SignedIdentifier><Id>{escape(row.name)}</Id><AccessPolicy>{inner}</AccessPolicy></SignedIdentifier>"
        )
    return f'<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>{"".join(parts)}</SignedIdentifiers>'.encode()


def _version(rows: Sequence[PolicyRow]) -> str:
    """Return a digest of policies; another order gives another one."""
    return sha256(_document(rows)).hexdigest()


def _context(
    call: PageCall,
    rows: Sequence[PolicyRow],
    stored: Sequence[PolicyRow],
    problem: str = "",
    *,
    is_conflict: bool = False,
) -> Context:
    """Return a form of policies that begins with the stored ones."""
    noun, name = _named(call)
    return {
        "noun": noun,
        "name": name,
        "rows": [*rows, *(PolicyRow(),) * (POLICIES_MAX - len(rows))],
        "count": len(rows),
        "letters": _KINDS[noun].letters,
        "problem": problem,
        "version": _version(stored),
        "theirs": stored if is_conflict else (),
        "is_conflict": is_conflict,
    }
