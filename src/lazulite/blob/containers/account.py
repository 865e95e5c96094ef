"""The account as a place of blobs: its information, its service properties, and the container of its website.

`BLOB_PARTS` reads and writes the parts of `StorageServiceProperties` that only the Blob service has.

Source: reference §33.3, §47, §48; REST reference, Set Blob Service Properties. The order of the parts and the
rejections are recorded.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date

from lazulite.blob.requests.call import Call
from lazulite.blob.resource import WEB
from lazulite.blob.storage.catalog import Container
from lazulite.blob.versions import PERMANENT_DELETE_SINCE, SOFT_DELETE_SINCE, WEBSITE_SINCE
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.xml import document as xml
from lazulite.service.properties import (
    BlobProperties,
    BlobPropertiesUpdate,
    DeleteRetention,
    PropertiesUpdate,
    StaticWebsite,
)
from lazulite.service.properties_xml import ServiceElements, boolean_leaf, read_boolean, read_period

_INFORMATION = (
    ("x-ms-sku-name", "Standard_LRS"),
    ("x-ms-account-kind", "StorageV2"),
    ("x-ms-is-hns-enabled", "false"),
)
MAX_PATH_CHARACTERS = 1024
"""The greatest length of the name of a website's document, which is a blob's name."""
_RETENTION, _WEBSITE, _DEFAULT_VERSION = "DeleteRetentionPolicy", "StaticWebsite", "DefaultServiceVersion"
_SINCE = ((SOFT_DELETE_SINCE, _RETENTION), (WEBSITE_SINCE, _WEBSITE), ("", _DEFAULT_VERSION))
"""The first version of each part, in the order of a response."""
_DOCUMENTS = ("IndexDocument", "DefaultIndexDocumentPath", "ErrorDocument404Path")
"""As the fields of `StaticWebsite` are ordered."""
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


async def get_account_information(call: Call) -> Response:  # noqa: ARG001 - it is the same for all accounts
    """Return the kind of the account. The addressed container or blob need not exist."""
    return Response(200, list(_INFORMATION))


async def create_website(call: Call, update: PropertiesUpdate) -> None:
    """Create the container `$web` if an update of the service properties enables the website and there is none."""
    website, catalog = update.blob.website, call.context.catalog
    if website is not None and website.enabled and await catalog.get(call.account, WEB) is None:
        with suppress(ServiceError):  # Another request has just created it.
            await catalog.create(call.account, Container(WEB, 0, call.context.clock()))


async def reject_unbuilt(call: Call) -> Response:  # noqa: ARG001 - as the other operations
    """Reject an operation that Azure has and Lazulite has not; see docs/blobs.md.

    Raises:
        ServiceError: `NotImplemented`.
    """
    raise ServiceError("NotImplemented")


def _names(version: str) -> tuple[str, ...]:
    return tuple(name for since, name in _SINCE if version >= since)


def _read(parts: Mapping[str, xml.Node]) -> BlobPropertiesUpdate:
    return BlobPropertiesUpdate(
        _read_retention(parts[_RETENTION]) if _RETENTION in parts else None,
        _read_website(parts[_WEBSITE]) if _WEBSITE in parts else None,
        _read_version(parts[_DEFAULT_VERSION]) if _DEFAULT_VERSION in parts else None,
    )


def _read_retention(node: xml.Node) -> DeleteRetention:
    parts = xml.fields(node, ("Enabled",), ("Days", "AllowPermanentDelete"))
    permanent = "AllowPermanentDelete" in parts and read_boolean(parts["AllowPermanentDelete"])
    return DeleteRetention(*read_period(node.name, parts), permanent)


def _read_website(node: xml.Node) -> StaticWebsite:
    parts = xml.fields(node, ("Enabled",), _DOCUMENTS)
    enabled = read_boolean(parts["Enabled"])
    documents = [_read_path(parts[name], enabled) if name in parts else "" for name in _DOCUMENTS]
    if "/" in documents[0]:
        raise xml.invalid_document(f"{_DOCUMENTS[0]} is a name without a slash.", parts[_DOCUMENTS[0]].position)
    if documents[0] and documents[1]:
        place = parts[_DOCUMENTS[1]].position
        raise xml.invalid_document(f"{_DOCUMENTS[0]} and {_DOCUMENTS[1]} exclude each other.", place)
    return StaticWebsite(enabled, *documents)


def _read_path(node: xml.Node, enabled: bool) -> str:
    path = xml.text_of(node)
    if path and not enabled:
        # Recorded.
        reason = f"Element {node.name} is only expected when StaticWebsite/Enabled is enabled."
        raise xml.invalid_document(reason, node.position)
    if len(path) > MAX_PATH_CHARACTERS:
        raise xml.invalid_value(node, f"A path has at most {MAX_PATH_CHARACTERS} characters.")
    return path


def _read_version(node: xml.Node) -> str:
    text = xml.text_of(node)
    try:
        if not text or (_VERSION.fullmatch(text) and date.fromisoformat(text)):
            return text
    except ValueError:
        pass  # There is no such day.
    raise xml.invalid_value(node, "The version must be a date, such as 2021-04-10.")


def _write(properties: BlobProperties, version: str) -> str:
    parts = {
        _RETENTION: _retention(properties.delete_retention, version),
        _WEBSITE: _website(properties.website),
        _DEFAULT_VERSION: xml.leaf(_DEFAULT_VERSION, properties.default_version) if properties.default_version else "",
    }
    return "".join(parts[name] for name in _names(version))


def _retention(retention: DeleteRetention, version: str) -> str:
    days = "" if retention.days is None else xml.leaf("Days", str(retention.days))
    permanent = ""
    if version >= PERMANENT_DELETE_SINCE:
        permanent = boolean_leaf("AllowPermanentDelete", retention.allow_permanent_delete)
    return xml.element(_RETENTION, boolean_leaf("Enabled", retention.enabled), days, permanent)


def _website(website: StaticWebsite) -> str:
    documents = (website.index_document, website.default_index_document_path, website.error_document_404_path)
    leaves = (xml.leaf(name, path) for name, path in zip(_DOCUMENTS, documents, strict=True) if path)
    return xml.element(_WEBSITE, boolean_leaf("Enabled", website.enabled), *leaves)


BLOB_PARTS = ServiceElements(_names, _read, _write)
