"""One blob: its content, properties, metadata and tags, and the snapshots and versions that are kept of it."""

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import quote

from lazulite.protocol.message import Response
from lazulite.resources.policies import metadata_headers
from lazulite.ui.backend import BackendError, ServiceClient
from lazulite.ui.blobs.archive import SANDBOX, attachment, open_blob
from lazulite.ui.blobs.changes import DELETE_SNAPSHOTS
from lazulite.ui.blobs.listing import BlobRow, History, address_of, history_of
from lazulite.ui.blobs.preview import (
    IMAGE_BYTES_MAX,
    PARQUET_BYTES_MAX,
    TEXT_BYTES,
    Preview,
    PreviewKind,
    image_type,
    is_parquet,
    parquet_preview,
    preview,
)
from lazulite.ui.blobs.sharing import Shared, default_expiry
from lazulite.ui.blobs.texts import pairs_of, tags_condition, tags_document, text_of
from lazulite.ui.calls import Context, PageCall, PageError, PageView, Redirect, link
from lazulite.ui.pages.container_pages import BLOBS, breadcrumbs, shared

BLOB = "/{account}/blobs/{container}/blob"
CONTENT = "/{account}/blobs/{container}/content"
TIERS = ("Hot", "Cool", "Cold", "Archive")
FIELDS = {
    "Content-Type": "content-type",
    "Content-Encoding": "content-encoding",
    "Content-Language": "content-language",
    "Content-Disposition": "content-disposition",
    "Cache-Control": "cache-control",
}
"""The fields that a client sets -> their names in a form."""
_SHOWN = {
    "Content-MD5": "MD5",
    "AccessTier": "Tier",
    "AccessTierChangeTime": "Tier since",
    "ArchiveStatus": "Rehydration",
    "x-ms-blob-sequence-number": "Sequence number",
    "CopyStatus": "Copy",
    "CopySource": "Copied from",
    "DeletedTime": "Deleted",
    "RemainingRetentionDays": "Days until it is gone",
}
"""Further properties -> their names for people."""


async def show_blob(call: PageCall) -> Context:
    """Return a blob, a snapshot or a version of it, or what is kept of a deleted one."""
    client, container, name = call.service("blob"), call.parameters["container"], _name(call)
    snapshot, version = call.query.get("snapshot", ""), call.query.get("versionid", "")
    history = await history_of(client, container, name)
    found = history.find(snapshot, version)
    if not history.rows or (found is None and (snapshot or version)):
        raise PageError(404, f"there is no blob {name[:200]} in {container}, or no such snapshot or version")
    is_past = found is not None and not found.is_blob
    return {
        "container": container,
        "name": name,
        "steps": breadcrumbs(name),
        "snapshot": snapshot,
        "version": version,
        "is_past": is_past,
        "blob": found,
        "etag": found.etag if found else "",
        "shown": {text: found.properties[each] for each, text in _SHOWN.items() if each in found.properties}
        if found
        else {},
        "lease": found.properties.get("LeaseState", "") if found else "",
        "fields": {field: found.properties.get(field, "") if found else "" for field in FIELDS},
        "field_names": FIELDS,
        "metadata_text": text_of(found.metadata) if found else "",
        "tags_text": text_of(found.tags) if found else "",
        "tags_before": text_of(found.tags) if found else "",
        "tiers": TIERS,
        "preview": await _preview(client, container, found) if found and not found.is_deleted else None,
        "snapshots": history.snapshots,
        "versions": history.versions,
        "deleted": history.deleted,
        "is_cut": history.is_cut,
        "fate": await _fate(call, history) if found and not is_past else "",
        "shared": Shared(container, name, snapshot, version),
        "policies": await _policies(client, container),
        "expiry": default_expiry(),
        "sas_url": "",
        "problem": "",
        "is_conflict": False,
    }


async def _preview(client: ServiceClient, container: str, blob: BlobRow) -> Preview:
    """Return what is shown of a content. Only its beginning is read, and a small Parquet file."""
    past_version = "" if blob.is_current else blob.version
    path, parameters = address_of(container, blob.name, blob.snapshot, past_version)
    data = b""
    if blob.length:
        try:
            data = await _beginning(client, path, parameters, TEXT_BYTES)
            if is_parquet(data) and blob.length <= PARQUET_BYTES_MAX:
                whole = await _beginning(client, path, parameters, PARQUET_BYTES_MAX)
                table = await asyncio.to_thread(parquet_preview, whole)
                if table is not None:
                    return table
        except BackendError as error:
            return Preview(kind=PreviewKind.NONE, note=str(error))
    return await asyncio.to_thread(preview, data, blob.length, blob.name, blob.media_type)


async def _beginning(client: ServiceClient, path: str, parameters: Mapping[str, str], bytes_max: int) -> bytes:
    return (await client.send("GET", path, parameters, {"x-ms-range": f"bytes=0-{bytes_max - 1}"})).body


async def _fate(call: PageCall, history: History) -> str:
    """Return what a deletion of the blob does to it and to its snapshots."""
    root = (await call.service("blob").send("GET", "", {"restype": "service", "comp": "properties"})).xml()
    days = root.findtext("DeleteRetentionPolicy/Days") or ""
    account = call.services.directory.get(call.account)
    snapshots = len(history.snapshots)
    parts = {
        0: ["The blob has no snapshots."],
        1: ["The blob has 1 snapshot, which is deleted with it."],
    }.get(snapshots, [f"The blob has {snapshots:,} snapshots, which are deleted with it."])
    if account is not None and account.switches.versioning:
        parts.append("The account keeps versions: what the blob is now stays as one.")
    if days:
        parts.append(f"For {days} days, “Undelete” brings back what is deleted.")
    elif len(parts) == 1:
        parts.append("Nothing brings it back: the account has no soft delete.")
    return " ".join(parts)


async def _policies(client: ServiceClient, container: str) -> list[Mapping[str, str]]:
    parameters = {"restype": "container", "comp": "acl"}
    root = (await client.send("GET", quote(container, safe="$"), parameters)).xml()
    return [{"name": each.findtext("Id") or ""} for each in root.iterfind("SignedIdentifier")]


async def download(call: PageCall) -> Response:
    """Return the content as a file, or as an image if it is one that a browser only draws."""
    client, container, name = call.service("blob"), call.parameters["container"], _name(call)
    snapshot, version = call.query.get("snapshot", ""), call.query.get("versionid", "")
    if call.query.get("as") != "image":
        content = await open_blob(client, container, name, snapshot, version)
        return Response(200, attachment(name), content=content)
    path, parameters = address_of(container, name, snapshot, version)
    async with client.stream("GET", path, parameters) as answer:
        if int(answer.headers.get("content-length", "0")) > IMAGE_BYTES_MAX:
            raise PageError(415, "the image is too large to be shown")
        data = await answer.read(IMAGE_BYTES_MAX)
    media_type = image_type(data)
    if not media_type:
        raise PageError(415, "the content is no image of a kind that is shown")
    return Response(200, [("Content-Type", media_type), SANDBOX], data)


async def save_properties(call: PageCall) -> Redirect | PageView:
    """Set the fields of HTTP that the blob is sent with."""
    entered = {field: call.form.get(name, "").strip() for field, name in FIELDS.items()}
    headers = {f"x-ms-blob-{name}": entered[field] for field, name in FIELDS.items() if entered[field]}
    if call.form.get("md5"):
        headers["x-ms-blob-content-md5"] = call.form["md5"]
    return await _saved(call, "properties", lambda: headers, {"fields": entered}, "The properties are saved.")


async def save_metadata(call: PageCall) -> Redirect | PageView:
    """Replace the metadata of the blob."""
    text = call.form.get("metadata", "")
    return await _saved(
        call,
        "metadata",
        lambda: metadata_headers(pairs_of(text)),
        {"metadata_text": text},
        "The metadata are saved.",
    )


async def save_tags(call: PageCall) -> Redirect | PageView:
    """Replace the tags of the blob, if they still are what the page showed."""
    text, before = call.form.get("tags", ""), pairs_of(call.form.get("before", ""))

    def headers() -> dict[str, str]:
        condition = tags_condition(before)
        return {"Content-Type": "application/xml", **({"x-ms-if-tags": condition} if condition else {})}

    entered: Context = {"tags_text": text}
    return await _saved(call, "tags", headers, entered, "The tags are saved.", lambda: tags_document(pairs_of(text)))


async def _saved(
    call: PageCall,
    component: str,
    headers: Callable[[], Mapping[str, str]],
    entered: Context,
    notice: str,
    body: Callable[[], bytes] = bytes,
) -> Redirect | PageView:
    """Change a part of the blob under the ETag of the form; if it does not fit, show the page with what was entered."""
    path, parameters = _address(call)
    try:
        sent = {**headers(), "If-Match": call.form.get("etag", "")}
        await call.service("blob").send("PUT", path, {**parameters, "comp": component}, sent, body())
    except (BackendError, PageError) as error:
        if error.status not in (400, 412):
            raise
        is_conflict = isinstance(error, BackendError) and error.code == "ConditionNotMet"
        text = "The blob has changed since this page was loaded." if is_conflict else str(error)
        return PageView({**await show_blob(call), **entered, "problem": text, "is_conflict": is_conflict}, error.status)
    return Redirect(here(call), notice)


async def create_snapshot(call: PageCall) -> Redirect:
    """Keep the blob as a snapshot."""
    return await _sent(call, "snapshot", {}, "A snapshot was taken.")


async def promote(call: PageCall) -> Redirect:
    """Make the blob what a snapshot or a version of it is."""
    container, name = call.parameters["container"], _name(call)
    snapshot, version = call.form.get("snapshot", ""), call.form.get("version", "")
    path, _ = address_of(container, name)
    selected = f"snapshot={quote(snapshot)}" if snapshot else f"versionid={quote(version)}"
    client = call.service("blob")
    await client.send("PUT", path, {}, {"x-ms-copy-source": f"{client.url}/{path}?{selected}"})
    text = f"The blob is now as it was at {snapshot or version}."
    return Redirect(link(BLOB, account=call.account, container=container, name=name), text)


async def undelete(call: PageCall) -> Redirect:
    """Restore what was deleted of the blob and is still kept."""
    return await _sent(call, "undelete", {}, "What was kept is restored.")


async def break_lease(call: PageCall) -> Redirect:
    """Break the lease at once."""
    headers = {"x-ms-lease-action": "break", "x-ms-lease-break-period": "0"}
    return await _sent(call, "lease", headers, "The lease is broken.")


async def set_tier(call: PageCall) -> Redirect:
    """Move the blob into another access tier."""
    tier = call.form.get("tier", "")
    return await _sent(call, "tier", {"x-ms-access-tier": tier}, f"The blob is in tier {tier}.")


async def delete(call: PageCall) -> Redirect:
    """Delete the blob with its snapshots, or its snapshots only."""
    path, parameters = _address(call)
    mode = "only" if call.form.get("mode") == "only" else "include"
    headers = {"If-Match": call.form.get("etag", ""), DELETE_SNAPSHOTS: mode}
    await call.service("blob").send("DELETE", path, parameters, headers)
    if mode == "only":
        return Redirect(here(call), "The snapshots were deleted.")
    return Redirect(_folder(call), f"{_name(call)} was deleted.")


async def delete_past(call: PageCall) -> Redirect:
    """Delete one snapshot or version."""
    container, name = call.parameters["container"], _name(call)
    snapshot, version = call.form.get("snapshot", ""), call.form.get("version", "")
    if not (snapshot or version):
        raise PageError(400, "a snapshot or a version is selected")
    path, parameters = address_of(container, name, snapshot, version)
    await call.service("blob").send("DELETE", path, parameters)
    return Redirect(link(BLOB, account=call.account, container=container, name=name), "It was deleted.")


async def share(call: PageCall) -> PageView:
    """Show a URL of the blob with a SAS, once."""
    selected = call.query.get("snapshot", ""), call.query.get("versionid", "")
    return shared(call, await show_blob(call), Shared(call.parameters["container"], _name(call), *selected))


async def _sent(call: PageCall, component: str, headers: Mapping[str, str], notice: str) -> Redirect:
    path, parameters = _address(call)
    await call.service("blob").send("PUT", path, {**parameters, "comp": component}, headers)
    return Redirect(here(call), notice)


def _name(call: PageCall) -> str:
    name = call.query.get("name", "")
    if not name:
        raise PageError(404, "the URL names no blob")
    return name


def _address(call: PageCall) -> tuple[str, Mapping[str, str]]:
    """Return how a request addresses the blob itself."""
    return address_of(call.parameters["container"], _name(call))


def here(call: PageCall) -> str:
    """Return the URL of the blob."""
    return link(BLOB, account=call.account, container=call.parameters["container"], name=_name(call))


def _folder(call: PageCall) -> str:
    folder = _name(call)[: _name(call).rfind("/") + 1]
    return link(BLOBS, account=call.account, container=call.parameters["container"], prefix=folder)
