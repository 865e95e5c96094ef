"""The tokens of `lazulite sas container` and `lazulite sas blob`."""

from argparse import Namespace
from collections.abc import Mapping
from urllib.parse import quote

from lazulite.auth.sas import MalformedSasError, write_query
from lazulite.blob.auth.sas import BlobSas
from lazulite.blob.resource import check_blob_name, check_container_name, normal_path
from lazulite.blob.versions import DIRECTORY_SAS_SINCE
from lazulite.protocol.errors import ServiceError

SIGNED_VERSION = "2021-12-02"
"""The version that tokens are signed with, which requests without `x-ms-version` have. It has tags and long uploads."""
CONTAINER_PERMISSIONS = "racwdxyltf"
BLOB_PERMISSIONS = "racwdxyt"
"""The letters, in the documented order."""


def container_sas(args: Namespace, permission: str, common: Mapping[str, str]) -> BlobSas:
    """Return the token for a container that the flags describe, not signed yet.

    Args:
        args: the parsed flags.
        permission: the letters.
        common: the terms: expiry, start, address, protocol.

    Raises:
        MalformedSasError: no container can have the name.
    """
    _check(args.container)
    return BlobSas(
        kind="c",
        container=args.container,
        permission=permission,
        policy_id=args.policy,
        version=SIGNED_VERSION,
        overrides=_overrides(args),
        **common,
    )


def blob_sas(args: Namespace, permission: str, common: Mapping[str, str]) -> BlobSas:
    """Return the token for a blob that the flags describe. The arguments are those of `container_sas`.

    Raises:
        MalformedSasError: no blob can have the name.
    """
    container, _, blob = normal_path(args.blob).partition("/")
    if not blob:
        raise MalformedSasError("pass the container and the blob as CONTAINER/NAME")
    _check(container, blob)
    kind, version = _kind_of(args)
    return BlobSas(
        kind=kind,
        container=container,
        blob=blob.removesuffix("/") if args.directory else blob,
        time=args.snapshot or args.version_id,
        depth=str(blob.removesuffix("/").count("/") + 1) if args.directory else "",
        permission=permission,
        policy_id=args.policy,
        version=version,
        overrides=_overrides(args),
        **common,
    )


def _kind_of(args: Namespace) -> tuple[str, str]:
    """Return `sr`, and the version to sign with."""
    if args.directory:
        return "d", DIRECTORY_SAS_SINCE
    selected = "bv" if args.version_id else "bs"
    return selected if args.version_id or args.snapshot else "b", SIGNED_VERSION


def _overrides(args: Namespace) -> tuple[str, str, str, str, str]:
    return (
        args.cache_control,
        args.content_disposition,
        args.content_encoding,
        args.content_language,
        args.content_type,
    )


def url_of(args: Namespace, endpoint: str, token: str) -> str:
    """Return the URL of the container or blob, with the token."""
    if args.kind == "container":
        return f"{endpoint}/{args.container}?{token}"
    selected = write_query({"snapshot": args.snapshot, "versionid": args.version_id})
    return f"{endpoint}/{quote(args.blob)}?" + "&".join(filter(None, (selected, token)))


def _check(container: str, blob: str = "") -> None:
    try:
        check_container_name(container)
        check_blob_name(container, blob)
    except ServiceError:
        raise MalformedSasError(f"{container!r} is not a container name, or the blob name is too long") from None
