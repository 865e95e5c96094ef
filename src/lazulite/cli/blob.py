"""`lazulite blob`: the containers and the blobs of a running server."""

import json
import mimetypes
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from lazulite.blob.resource import is_addressable, normal_path
from lazulite.cli.blob_client import (
    ACCESS,
    ListItem,
    blobs,
    containers,
    create_container,
    delete,
    delete_container,
    get,
    move,
    put,
)
from lazulite.cli.errors import CommandError
from lazulite.cli.progress_line import BytesDone, ProgressLine
from lazulite.cli.service_client import RejectedError, ServiceClient

_STANDARD = "-"
"""In place of a file: standard input or output."""


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Run the action that the command line names."""
    with ServiceClient.from_args(args, environ, ACCESS) as client:
        _ACTIONS[args.action](args, client)
    return 0


def _ls(args: Namespace, client: ServiceClient) -> None:
    if args.container is None:
        for name in containers(client):
            print(json.dumps({"container": name}, ensure_ascii=False) if args.json else name)
        return
    for listed in blobs(client, args.container, args.prefix, args.delimiter):
        print(json.dumps(_fields(listed), ensure_ascii=False) if args.json else listed.name)


def _fields(listed: ListItem) -> dict[str, str | int]:
    if listed.properties is None:
        return {"prefix": listed.name}
    properties = listed.properties
    return {
        "name": listed.name,
        "bytes": int(properties["Content-Length"]),
        "type": properties["BlobType"],
        "content_type": properties.get("Content-Type", ""),
        "modified": parsedate_to_datetime(properties["Last-Modified"]).isoformat(),
        "etag": properties["Etag"],
    }


def _put(args: Namespace, client: ServiceClient) -> None:
    container = _new(args.blob)
    media = args.content_type or mimetypes.guess_type(args.blob)[0] or "application/octet-stream"
    headers = {"x-ms-blob-content-type": media}
    if args.no_overwrite:
        headers["If-None-Match"] = "*"
    if args.create_container:
        try:
            create_container(client, container)
        except RejectedError as error:
            if error.code != "ContainerAlreadyExists":
                raise
    if args.file == _STANDARD:
        _upload(client, args.blob, sys.stdin.buffer, headers, None)
        return
    with Path(args.file).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        _upload(client, args.blob, file, headers, size or None)  # A pipe has none.


def _upload(client: ServiceClient, path: str, file: IO[bytes], headers: Mapping[str, str], size: int | None) -> None:
    progress = BytesDone("stored", size)
    with ProgressLine.of_user() as line:

        def count(size_bytes: int) -> None:
            progress.done += size_bytes
            line.show(progress)

        put(client, path, file, headers, count)


def _get(args: Namespace, client: ServiceClient) -> None:
    _split(args.blob)
    is_seen = args.file == _STANDARD and sys.stdout.isatty()  # The progress would stand among the bytes.
    progress = BytesDone("received")
    with ProgressLine.of_user(silent=is_seen) as line:

        def count_of(done: int, total: int) -> None:
            progress.done, progress.total = done, total
            line.show(progress)

        if args.file == _STANDARD:
            get(client, args.blob, sys.stdout.buffer, count_of)
            sys.stdout.buffer.flush()
            return
        with replaced(Path(args.file)) as file:
            get(client, args.blob, file, count_of)


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of `path` at the end of the block, unless an exception ends it."""
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            yield file.file
            file.close()
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _create(args: Namespace, client: ServiceClient) -> None:
    create_container(client, args.container)


def _rm(args: Namespace, client: ServiceClient) -> None:
    if args.prefix is None and "/" not in args.blob:
        if not args.yes:
            raise CommandError(f"{args.blob} is a container; pass --yes to delete it with all its blobs", 2)
        delete_container(client, args.blob)
        return
    if args.prefix is None:
        _split(args.blob)
        delete(client, args.blob, snapshots=args.snapshots)
        return
    if "/" in args.blob:
        raise CommandError("with --prefix, the blobs are named by a container and the prefix", 2)
    if not args.yes:
        count = sum(1 for _ in blobs(client, args.blob, args.prefix))
        raise CommandError(f"{count:,} blobs of {args.blob} begin with {args.prefix!r}; pass --yes to delete them", 2)
    for listed in blobs(client, args.blob, args.prefix):
        delete(client, f"{args.blob}/{listed.name}", snapshots=args.snapshots)
        print(listed.name)


def _mv(args: Namespace, client: ServiceClient) -> None:
    _split(args.blob)
    _new(args.target)
    if args.blob == args.target:
        raise CommandError(f"{args.blob!r} is its own target", 2)
    move(client, args.blob, args.target, {"If-None-Match": "*"} if args.no_overwrite else {}, snapshots=args.snapshots)


def _new(path: str) -> str:
    """Return the container of a blob that is to be stored, given as `CONTAINER/BLOB`."""
    container, blob = _split(path)
    if not is_addressable(container, blob):
        read = f"; the server reads it as {normal_path(path)!r}" if normal_path(path) != path else ""
        raise CommandError(f"no URL names {path!r}{read}", 2)
    return container


def _split(path: str) -> tuple[str, str]:
    """Return the container and the blob of `CONTAINER/BLOB`."""
    container, _, blob = path.partition("/")
    if not (container and blob):
        raise CommandError(f"{path!r} is not CONTAINER/BLOB", 2)
    return container, blob


_ACTIONS = {"create": _create, "ls": _ls, "put": _put, "get": _get, "mv": _mv, "rm": _rm}
