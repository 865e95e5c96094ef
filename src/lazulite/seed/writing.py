"""The state of an account, written as a seed file, with the contents of blobs in a folder beside it.

Invariants: what is written, read and applied to an empty account makes the same rows, types, blobs and settings. No
name of a blob becomes a path: the files are numbered. Memory holds a page of a list and a piece of a blob.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from lazulite.resources import blobs, containers, queues, tables
from lazulite.resources.blobs import BlobAddress, ListedBlob
from lazulite.resources.policies import Policies
from lazulite.resources.queues import Message
from lazulite.resources.sender import Sender
from lazulite.resources.settings import service_parts
from lazulite.seed.document import BYTES_MAX
from lazulite.seed.service_settings import SERVICES, settings_of
from lazulite.seed.value import TYPES, SeedError
from lazulite.table.model.edm import BOOLEAN, DOUBLE, INT32, INT64, STRING, format_datetime

FILE = "state.toml"
_CONTENT = "content"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NO_NAME = re.compile(r"[^A-Za-z0-9$_-]")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_TAIL_CHARACTERS = 40
_TYPE_NAMES = {edm.name: name for name, edm in TYPES.items()}
_KIND_NAMES = {blobs.BLOCK: "block", blobs.APPEND: "append", blobs.PAGE: "page"}

Messages = Callable[[str], Iterable[Message]]
"""Returns the messages of a queue, given its name."""


def write_state(sender: Sender, folder: Path, messages: Messages | None, show: Callable[[str], None]) -> list[str]:
    """Write the state of an account.

    Args:
        sender: of the account.
        folder: where `state.toml` and the contents go; made if it is missing. It must not have a `state.toml`.
        messages: returns the messages of a queue; None: the first 32 visible ones are written.
        show: called with the name of each resource.

    Returns:
        What is left out, a line each.

    Raises:
        RequestError: a request was rejected.
        SeedError: the state is longer than a seed file may be.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _new_file(folder / FILE, "w", encoding="utf-8") as output:
        writing = _Writing(sender, folder, output, messages)
        writing.run(show)
    return writing.left_out


def _new_file(path: Path, mode: str, encoding: str | None = None) -> IO[Any]:
    """Return a new file that only its owner may read. Raises `OSError`."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), mode, encoding=encoding)


def _folder_of(container: str) -> str:
    """Return the folder of a container, whatever name a server states: it leads nowhere else."""
    return _NO_NAME.sub("-", container)


class _Writing:
    def __init__(self, sender: Sender, folder: Path, output: IO[str], messages: Messages | None) -> None:
        self._sender = sender
        self._folder = folder
        self._output = output
        self._messages = messages
        self._bytes = 0
        self._files = 0
        self.left_out: list[str] = []

    def run(self, show: Callable[[str], None]) -> None:
        """Write all."""
        for service in SERVICES:
            self._settings(service)
        for name in tables.table_names(self._sender):
            show(f"table {name}")
            self._table(name)
        for name in queues.queue_names(self._sender):
            show(f"queue {name}")
            self._queue(name)
        for name in containers.container_names(self._sender):
            show(f"container {name}")
            self._container(name)

    def _write(self, text: str) -> None:
        self._bytes += len(text.encode())
        if self._bytes > BYTES_MAX:
            raise SeedError(
                (), f"the state is longer than {BYTES_MAX >> 20} MiB; lazulite backup and pull have no limit"
            )
        self._output.write(text)

    def _settings(self, service: str) -> None:
        settings = settings_of(service_parts(self._sender, service))
        if settings:
            self._write(f"[services.{service}]\n{_pairs(settings)}\n")

    def _table(self, name: str) -> None:
        policies = tables.table_policies(self._sender, name)
        self._write(f"[tables.{_key(name)}]\n{_policies(policies)}rows = [\n")
        for entity in tables.entities(self._sender, name):
            self._write(f"  {entity_text(entity)},\n")
        self._write("]\n\n")

    def _queue(self, name: str) -> None:
        state = queues.find_queue(self._sender, name)
        if state is None:
            return
        policies = queues.queue_policies(self._sender, name)
        metadata = {"metadata": dict(state.metadata)} if state.metadata else {}
        self._write(f"[queues.{_key(name)}]\n{_pairs(metadata)}{_policies(policies)}messages = [\n")
        for message in self._messages_of(name, state.messages):
            self._write(f"  {_inline(_message(message))},\n")
        self._write("]\n\n")

    def _messages_of(self, name: str, count: int) -> Iterator[Message]:
        if self._messages is not None:
            yield from self._messages(name)
            return
        peeked = queues.peek_messages(self._sender, name)
        if len(peeked) < count:
            self.left_out.append(f"queue {name}: {count - len(peeked):,} messages that cannot be seen without a Get")
        for received in peeked:
            yield Message(received.text)

    def _container(self, name: str) -> None:
        state = containers.find_container(self._sender, name)
        if state is None:
            return
        access = containers.container_access(self._sender, name)
        own: dict[str, Any] = {"public": access.public} if access.public else {}
        if state.metadata:
            own["metadata"] = dict(state.metadata)
        self._write(f"[containers.{_key(name)}]\n{_pairs(own)}{_policies(access.policies)}blobs = [\n")
        for listed in blobs.blobs(self._sender, name):
            self._write(f"  {_inline(self._blob(name, listed))},\n")
        self._write("]\n\n")

    def _blob(self, container: str, listed: ListedBlob) -> dict[str, Any]:
        address, state = BlobAddress(container, listed.name), listed.state
        self._files += 1
        tail = _UNSAFE.sub("-", listed.name)[-_TAIL_CHARACTERS:]
        path = Path(_CONTENT) / _folder_of(container) / f"{self._files:06}-{tail}"
        (self._folder / path.parent).mkdir(parents=True, exist_ok=True)
        with _new_file(self._folder / path, "wb") as content:
            for start in range(0, state.length, blobs.PIECE_BYTES):
                stop = min(start + blobs.PIECE_BYTES, state.length)
                content.write(blobs.read_range(self._sender, address, start, stop, state.etag))
        fields = {name.lower().replace("-", "_"): text for name, text in state.fields.items()}
        tags = blobs.blob_tags(self._sender, address, state)
        optional = {
            "type": "" if state.kind == blobs.BLOCK else _KIND_NAMES[state.kind],
            "metadata": dict(state.metadata),
            "tags": tags,
            "tier": state.tier if state.kind == blobs.BLOCK else "",
        }
        present = {name: value for name, value in optional.items() if value}
        return {"name": listed.name, "file": path.as_posix(), "content_type": blobs.DEFAULT_TYPE, **fields, **present}


def entity_text(entity: tables.Entity) -> str:
    """Return an entity as an inline table."""
    fields = [f"PartitionKey = {_string(entity.partition)}", f"RowKey = {_string(entity.row)}"]
    fields += [f"{_key(name)} = {_literal_text(value)}" for name, value in entity.properties.items()]
    return f"{{ {', '.join(fields)} }}"


def _literal_text(value: tables.Literal) -> str:
    edm, literal = value
    if edm in (BOOLEAN, INT32):
        return literal
    text = literal.strip('"')
    if edm is STRING:
        return _string(str(edm.decode(literal)))
    if edm is DOUBLE:
        return _float(float(text))
    return f"{{ {_TYPE_NAMES[edm.name]} = {text if edm is INT64 else _string(text)} }}"


def _float(number: float) -> str:
    return repr(number) if math.isfinite(number) else str(number)


def _message(message: Message) -> Any:
    hidden = {"hidden_seconds": message.hidden_seconds} if message.hidden_seconds else {}
    lives = {} if message.lives_seconds is None else {"lives_seconds": message.lives_seconds}
    return {"text": message.text, **hidden, **lives} if hidden or lives else message.text


def _policies(policies: Policies) -> str:
    lines = []
    for name, policy in policies.items():
        instants = {"start": policy.start, "expiry": policy.expiry}
        fields: dict[str, Any] = {key: format_datetime(at) for key, at in instants.items() if at is not None}
        if policy.permission:
            fields["permission"] = policy.permission
        lines.append(f"policies.{_key(name)} = {_inline(fields)}\n")
    return "".join(lines)


def _pairs(fields: Mapping[str, Any]) -> str:
    return "".join(f"{_key(name)} = {_inline(value)}\n" for name, value in fields.items())


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {_inline(each)}' for name, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    """Return a basic string. JSON writes the same one, but for U+007F."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
