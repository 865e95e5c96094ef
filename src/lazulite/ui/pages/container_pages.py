"""The containers of an account, the blobs of one as folders, and what is done to many."""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import quote

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.resources.policies import metadata_headers
from lazulite.server.limits import MIB
from lazulite.ui.blobs import changes, listing
from lazulite.ui.blobs.archive import archive_of, attachment
from lazulite.ui.blobs.listing import CONTAINER, address_of
from lazulite.ui.blobs.sharing import Shared, default_expiry, shared_url
from lazulite.ui.blobs.texts import pairs_of, text_of
from lazulite.ui.calls import Context, PageCall, PageError, PageView, Redirect, link

LIST = "/{account}/blobs"
BLOBS = "/{account}/blobs/{container}"
SETTINGS = "/{account}/blobs/{container}/settings"
ARCHIVE = "/{account}/blobs/{container}/zip"
BLOCK_BYTES = 4 * MIB
"""What the script sends at a time."""
BLOCKS_MAX = 50_000
ACCESS = {"": "nobody without a key or a SAS", "blob": "everybody, blobs only", "container": "everybody, lists too"}
"""Public access -> its readers."""
_ACCESS = "x-ms-blob-public-access"
_UPLOAD = re.compile("[0-9a-f]{16}")


async def list_containers(call: PageCall) -> Context:
    """Return a page of the containers of an account, or of the deleted ones that it keeps."""
    prefix, with_deleted = call.query.get("prefix", ""), call.query.get("show") == "deleted"
    page = await listing.list_containers(call.service("blob"), prefix, call.page_of(), with_deleted=with_deleted)
    containers = [each for each in page.containers if bool(each.deleted) is with_deleted]
    account = call.services.directory.get(call.account)
    return {
        "containers": containers,
        "with_deleted": with_deleted,
        "retention_days": 0 if account is None else account.switches.container_retention_days,
        "next": page.next,
        "seen": seen(call) + len(containers),
        "prefix": prefix,
        "access": ACCESS,
    }


async def restore_container(call: PageCall) -> Redirect:
    """Restore a deleted container, under its name or another one."""
    form = call.form
    headers = {
        "x-ms-deleted-container-name": form.get("deleted", ""),
        "x-ms-deleted-container-version": form.get("version", ""),
    }
    name = form.get("name", "").strip()
    await call.service("blob").send("PUT", quote(name, safe="$"), {**CONTAINER, "comp": "undelete"}, headers)
    return Redirect(link(BLOBS, account=call.account, container=name), f"{name} is restored, with its blobs.")


async def create_container(call: PageCall) -> Redirect:
    """Create a container."""
    name, access = call.form.get("name", "").strip(), call.form.get("access", "")
    headers = {_ACCESS: access} if access else {}
    await call.service("blob").send("PUT", quote(name, safe="$"), CONTAINER, headers)
    return Redirect(link(BLOBS, account=call.account, container=name), f"{name} was created.")


async def delete_containers(call: PageCall) -> Redirect:
    """Delete the selected containers; the number of them is typed."""
    names = call.fields.get("container", ())
    if not names or call.form.get("confirm") != str(len(names)):
        raise PageError(400, f"{len(names)} containers are selected: select containers, and type their number")
    for name in names:
        await call.service("blob").send("DELETE", quote(name, safe="$"), CONTAINER)
    return Redirect(link(LIST, account=call.account), f"{len(names)} containers were deleted.")


async def show_blobs(call: PageCall) -> Context:
    """Return a page of folders and blobs below a prefix."""
    container, prefix = call.parameters["container"], call.query.get("prefix", "")
    with_deleted = call.query.get("show") == "deleted"
    include = listing.WITH_DELETED if with_deleted else ""
    page = await listing.list_blobs(
        call.service("blob"), container, prefix, call.page_of(), delimiter="/", include=include
    )
    folder = prefix[: prefix.rfind("/") + 1]
    return {
        "container": container,
        "prefix": prefix,
        "folder": folder,
        "steps": breadcrumbs(prefix),
        "prefixes": page.prefixes,
        "rows": page.blobs,
        "with_deleted": with_deleted,
        "next": page.next,
        "seen": seen(call) + len(page.blobs) + len(page.prefixes),
    }


def breadcrumbs(prefix: str) -> Sequence[tuple[str, str]]:
    """Return the folders above the names that begin with a prefix: the text and the prefix of each."""
    parts = prefix.split("/")[:-1]
    return [(part, "/".join(parts[: number + 1]) + "/") for number, part in enumerate(parts)]


async def delete_selected(call: PageCall) -> Redirect:
    """Delete the selected blobs under the ETags that the page showed."""
    container, client = call.parameters["container"], call.service("blob")
    chosen = [_selected(text) for text in call.fields.get("blob", ())]
    if not chosen:
        raise PageError(400, "no blob is selected")
    with_snapshots = call.form.get("snapshots") == "include"
    problems = []
    for name, etag in chosen:
        problems.append(await changes.delete_blob(client, container, name, etag, with_snapshots=with_snapshots))
    failed = [each for each in problems if each]
    count = len(chosen) - len(failed)
    notice = f"{count} {'blob was' if count == 1 else 'blobs were'} deleted."
    return Redirect(_here(call), " ".join([notice, *(f"Not deleted: {each}" for each in failed[:5])]))


def _selected(text: str) -> tuple[str, str]:
    try:
        name, etag = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise PageError(400, "the selection is malformed: load the page again") from None
    return str(name), str(etag)


async def count(call: PageCall) -> Redirect:
    """Start a job that counts the blobs below the prefix."""
    container, prefix = call.parameters["container"], call.query.get("prefix", "")
    work = changes.count_blobs(call.service("blob"), container, prefix)
    job = call.jobs.start(f"Count blobs of {container}/{prefix}", work, account=call.account)
    job.result = _here(call)
    return Redirect.to_job(job)


async def empty(call: PageCall) -> Redirect:
    """Start a job that deletes all blobs below the prefix; the container and the prefix are typed."""
    container, prefix = call.parameters["container"], call.query.get("prefix", "")
    expected = f"{container}/{prefix}" if prefix else container
    if call.form.get("confirm") != expected:
        raise PageError(400, f"nothing was deleted: type {expected} to confirm")
    work = changes.delete_blobs(call.service("blob"), container, prefix)
    job = call.jobs.start(f"Delete blobs of {container}/{prefix}", work, account=call.account)
    job.result = _here(call)
    return Redirect.to_job(job)


async def put_block(call: PageCall) -> Response:
    """Stage a block, which is the body."""
    number = call.query.get("number", "")
    block = _block_id(call.query.get("upload", ""), int(number) if number.isdecimal() and len(number) < 6 else -1)
    path, parameters = address_of(call.parameters["container"], call.query.get("name", ""))
    try:
        await call.request.receive_body(BLOCK_BYTES)
    except ServiceError as error:
        raise PageError(error.status, f"the block is too long, or too slow: {error.code}") from None
    parameters = {**parameters, "comp": "block", "blockid": block}
    await call.service("blob").send("PUT", path, parameters, body=call.request.body)
    return Response(201)


async def commit(call: PageCall) -> Response:
    """Make a blob of its staged blocks. Unless the form says to replace it, a blob of its name stays."""
    form, given = call.form, call.form.get("count", "")
    if not given.isdecimal() or len(given) > 5 or int(given) > BLOCKS_MAX:
        raise PageError(400, f"a blob has at most {BLOCKS_MAX:,} blocks of {BLOCK_BYTES // MIB} MiB")
    path, parameters = address_of(call.parameters["container"], form.get("name", ""))
    blocks = "".join(f"<Latest>{_block_id(form.get('upload', ''), n)}</Latest>" for n in range(int(given)))
    headers = {
        "Content-Type": "application/xml",
        "x-ms-blob-content-type": form.get("type", "") or "application/octet-stream",
        **({} if form.get("replace") == "true" else {"If-None-Match": "*"}),
    }
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode()
    await call.service("blob").send("PUT", path, {**parameters, "comp": "blocklist"}, headers, body)
    return Response(201)


def _block_id(upload: str, number: int) -> str:
    if _UPLOAD.fullmatch(upload) is None or not 0 <= number < BLOCKS_MAX:
        raise PageError(400, "the block is not one of an upload")
    return b64encode(f"{upload}-{number:05}".encode()).decode()


async def download_archive(call: PageCall) -> Response:
    """Return the blobs below a prefix as a zip archive, which is made while it is sent."""
    container, prefix = call.parameters["container"], call.query.get("prefix", "")
    archive = await archive_of(call.service("blob"), container, prefix)
    name = prefix.rstrip("/").rpartition("/")[2] or container
    return Response(200, attachment(f"{name}.zip"), content=archive)


async def show_settings(call: PageCall) -> Context:
    """Return a container with its metadata, public access and policies."""
    name = call.parameters["container"]
    client = call.service("blob")
    found = await listing.find_container(client, name)
    if found is None:
        raise PageError(404, f"there is no container {name[:64]}")
    access = (await client.send("GET", quote(name, safe="$"), {**CONTAINER, "comp": "acl"})).xml()
    policies = [
        {"name": each.findtext("Id") or ""}
        | {field.lower(): each.findtext(f"AccessPolicy/{field}") or "" for field in ("Permission", "Start", "Expiry")}
        for each in access.iterfind("SignedIdentifier")
    ]
    return {
        "container": found.name,
        "found": found,
        "access": ACCESS,
        "metadata_text": text_of(found.metadata),
        "policies": policies,
        "shared": Shared(found.name),
        "expiry": default_expiry(),
        "sas_url": "",
        "problem": "",
    }


async def save_container_metadata(call: PageCall) -> Redirect:
    """Replace the metadata of a container."""
    metadata = pairs_of(call.form.get("metadata", ""))
    path = quote(call.parameters["container"], safe="$")
    await call.service("blob").send("PUT", path, {**CONTAINER, "comp": "metadata"}, metadata_headers(metadata))
    return Redirect(_settings(call), "The metadata are saved.")


async def set_access(call: PageCall) -> Redirect:
    """Set the public access of a container, and leave its policies."""
    path, parameters = quote(call.parameters["container"], safe="$"), {**CONTAINER, "comp": "acl"}
    client, access = call.service("blob"), call.form.get("access", "")
    stored = await client.send("GET", path, parameters)
    headers = {"Content-Type": "application/xml", **({_ACCESS: access} if access else {})}
    await client.send("PUT", path, parameters, headers, stored.body.removeprefix(b"\xef\xbb\xbf"))
    return Redirect(_settings(call), "The public access is set.")


async def break_container_lease(call: PageCall) -> Redirect:
    """Break the lease of a container at once."""
    headers = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
    path = quote(call.parameters["container"], safe="$")
    await call.service("blob").send("PUT", path, {**CONTAINER, "comp": "lease"}, headers)
    return Redirect(_settings(call), "The lease is broken.")


async def share_container(call: PageCall) -> PageView:
    """Show a URL of the container with a SAS, once."""
    context = await show_settings(call)
    return shared(call, context, Shared(call.parameters["container"]))


def shared(call: PageCall, context: Context, target: Shared) -> PageView:
    """Return a page with a URL that was signed, or with the reason why none was."""
    try:
        url = shared_url(call, target, call.form, call.fields.get("permission", ()))
    except PageError as error:
        return PageView({**context, "problem": str(error)}, error.status)
    return PageView({**context, "sas_url": url}, 200)


async def delete_container(call: PageCall) -> Redirect:
    """Delete a container; its name is typed."""
    name = call.parameters["container"]
    if call.form.get("confirm") != name:
        raise PageError(400, f"nothing was deleted: type {name} to confirm")
    await call.service("blob").send("DELETE", quote(name, safe="$"), CONTAINER)
    return Redirect(link(LIST, account=call.account), f"{name} was deleted.")


def seen(call: PageCall) -> int:
    """Return how many rows the pages before this one had."""
    given = call.query.get("seen", "")
    return int(given) if given.isdecimal() and len(given) < 15 else 0


def _settings(call: PageCall) -> str:
    return link(SETTINGS, account=call.account, container=call.parameters["container"])


def _here(call: PageCall) -> str:
    """Return the URL of the page with the present prefix, from its first row on."""
    query = {name: call.query[name] for name in ("prefix", "show") if name in call.query}
    return link(BLOBS, account=call.account, container=call.parameters["container"], **query)
