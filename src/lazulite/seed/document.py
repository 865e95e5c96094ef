"""A seed: the desired data of an account, read from TOML or from a mapping of the same form.

Invariant: a seed holds no key of an account. It names a file or a variable, which is read only when it is used.

docs/operations/seed.md has the schema for people.
"""

import base64
import binascii
import mimetypes
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from lazulite.auth.accounts.switches import REHYDRATE_SECONDS_MAX, RETENTION_DAYS_MAX
from lazulite.resources.blobs import APPEND, BLOCK, DEFAULT_TYPE, FIELDS, PAGE, PAGE_BYTES, BlobAddress, BlobState
from lazulite.resources.policies import POLICIES_MAX, Policy
from lazulite.resources.queues import Message
from lazulite.resources.settings import Parts
from lazulite.resources.tables import Entity
from lazulite.seed import positions
from lazulite.seed.service_settings import SERVICES, service_parts
from lazulite.seed.value import SeedError, Value

BYTES_MAX = 8 << 20
"""The most bytes of a seed file."""
KEY_BYTES_MAX = 4096
"""The most bytes of a file that holds a key."""
FILES_MAX = 100_000
"""The most files of a folder."""

SeedSource: TypeAlias = Path | str | Mapping[str, Any]
"""A seed file, or a mapping of its form."""

_KINDS = {"block": BLOCK, "append": APPEND, "page": PAGE}
_TTL_MAX = 2**31 - 1
_HIDDEN_MAX = 7 * 86400
_ACCESS = ("none", "blob", "container")
_TIERS = ("Hot", "Cool", "Cold", "Archive")
_FIELD_KEYS = {name.lower().replace("-", "_"): name for name in FIELDS}
"""Key of a blob -> the field that it sets."""


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where a key of an account is."""

    at: positions.Path
    file: Path | None = None
    variable: str = ""

    def read(self, environ: Mapping[str, str]) -> bytes:
        """Return the key.

        Raises:
            SeedError: it cannot be read, or is not base64. Nothing of it is shown.
        """
        if self.file is not None:
            try:
                with self.file.open("rb") as opened:
                    text = opened.read(KEY_BYTES_MAX + 1)[:KEY_BYTES_MAX].decode("ascii", "replace")
            except OSError as error:
                raise SeedError(self.at, f"cannot read {self.file}: {error.strerror}") from None
            name = str(self.file)
        else:
            text, name = environ.get(self.variable, ""), f"the variable {self.variable}"
        try:
            key = base64.b64decode(text.strip(), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not key:
            raise SeedError(self.at, f"{name} does not hold a key in base64")
        return key


@dataclass(frozen=True, slots=True)
class TableSeed:
    """A table."""

    name: str
    at: positions.Path
    rows: tuple[tuple[positions.Path, Entity], ...]
    """The entities, each with its place in the seed."""
    policies: Mapping[str, Policy]


@dataclass(frozen=True, slots=True)
class QueueSeed:
    """A queue."""

    name: str
    at: positions.Path
    metadata: Mapping[str, str] | None
    """None: the seed does not say."""
    policies: Mapping[str, Policy]
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class BlobSeed:
    """A blob."""

    place: BlobAddress
    at: positions.Path
    state: BlobState
    """Its length is that of `data`; that of a file is seen when it is applied."""
    tags: Mapping[str, str] | None
    """None: the seed does not say."""
    data: bytes | None
    """The content; None: it is in `file`."""
    file: Path | None


@dataclass(frozen=True, slots=True)
class ContainerSeed:
    """A container."""

    name: str
    at: positions.Path
    metadata: Mapping[str, str] | None
    """None: the seed does not say."""
    public: str | None
    """`container`, `blob`, or "" for none. None: the seed does not say."""
    policies: Mapping[str, Policy]
    blobs: tuple[BlobSeed, ...]


@dataclass(frozen=True, slots=True)
class AccountSeed:
    """The desired data of one account."""

    name: str = ""
    """Empty: the account that the command names."""
    at: positions.Path = ()
    keys: tuple[KeySource, ...] = ()
    """Empty: the seed does not say."""
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    """Those of `Switches` that the seed sets."""
    tables: tuple[TableSeed, ...] = ()
    queues: tuple[QueueSeed, ...] = ()
    containers: tuple[ContainerSeed, ...] = ()
    services: Mapping[str, Parts] = field(default_factory=dict)

    @property
    def has_data(self) -> bool:
        """Whether it has more than keys and switches."""
        return bool(self.tables or self.queues or self.containers or self.services)


@dataclass(frozen=True, slots=True)
class Seed:
    """The desired data of a server."""

    own: AccountSeed
    """For the account that the command names."""
    accounts: tuple[AccountSeed, ...]
    source: str = "seed"
    """The name of the file in messages."""
    text: str = ""
    """The text of the file."""

    def described(self, error: SeedError) -> str:
        """Return an error with its place, in one line."""
        return describe(error, self.source, self.text)


def describe(error: SeedError, source: str, text: str) -> str:
    """Return an error with its place, in one line."""
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.at).removeprefix(".")
    line = f", line {positions.line_of(text, error.at)}" if text else ""
    return f"{source}{line}: {place}: {error.reason}" if place else f"{source}{line}: {error.reason}"


class SeedFileError(ValueError):
    """A seed file cannot be read, or is wrong. The text names the file, the line and the reason."""


def read_seed(source: SeedSource) -> Seed:
    """Read a seed.

    Args:
        source: a file, or a mapping of its form.

    Raises:
        SeedFileError: it cannot be read, or is wrong.
    """
    if isinstance(source, Mapping):
        return _seed(source, Path(), "seed", "")
    path = Path(source)
    try:
        with path.open("rb") as opened:
            data = opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise SeedFileError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > BYTES_MAX:
        raise SeedFileError(f"{path} is longer than {BYTES_MAX >> 20} MiB")
    try:
        text = data.decode()
        document = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SeedFileError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise SeedFileError(f"{path} is nested too deeply") from None
    line = positions.long_fraction(text)
    if line is not None:
        raise SeedFileError(f'{path}, line {line}: a time has at most six digits here; write {{datetime = "…"}}')
    return _seed(document, path.parent, str(path), text)


def _seed(document: Mapping[str, Any], folder: Path, source: str, text: str) -> Seed:
    reader = _Reader(folder)
    root = Value(document, ())
    try:
        given = root.fields(("accounts", *_DATA))
        accounts = given.pop("accounts", Value({}, ()))
        named = [reader.account(name, value) for name, value in accounts.named()]
        return Seed(reader.data(AccountSeed(), given), tuple(named), source, text)
    except SeedError as error:
        raise SeedFileError(describe(error, source, text)) from None


_DATA = ("tables", "queues", "containers", "services")
_ACCOUNT_KEYS = ("key", "key2")
_ACCOUNT_NAME = re.compile(r"[a-z0-9]{3,24}")
_SWITCHES = ("versioning", "container_retention_days", "public_access", "rehydrate_after")


class _Reader:
    """Reads the values of one seed.

    Args:
        folder: what paths are relative to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def account(self, name: str, value: Value) -> AccountSeed:
        """Return an account with its keys and switches."""
        if not _ACCOUNT_NAME.fullmatch(name):
            value.fail("the name of an account has 3 to 24 characters of a-z and 0-9")
        given = value.fields((*_ACCOUNT_KEYS, *_SWITCHES, *_DATA))
        keys = tuple(self._key(given.pop(key)) for key in _ACCOUNT_KEYS if key in given)
        switches = {switch: _switch(switch, given.pop(switch)) for switch in _SWITCHES if switch in given}
        return self.data(AccountSeed(name, value.at, keys, switches), given)

    def _key(self, value: Value) -> KeySource:
        if isinstance(value.raw, str):
            value.fail('a seed holds no key: write {file = "…"} or {variable = "…"}')
        given = value.fields(("file", "variable"))
        if len(given) != 1:
            value.fail('must be {file = "…"} or {variable = "…"}')
        if "file" in given:
            return KeySource(value.at, self._folder / given["file"].text())
        return KeySource(value.at, None, given["variable"].text())

    def data(self, account: AccountSeed, given: Mapping[str, Value]) -> AccountSeed:
        """Return an account with what it has."""
        none = Value({}, ())
        return replace(
            account,
            tables=tuple(_table(*each) for each in given.get("tables", none).named()),
            queues=tuple(_queue(*each) for each in given.get("queues", none).named()),
            containers=tuple(self._container(*each) for each in given.get("containers", none).named()),
            services={
                name: service_parts(name, value) for name, value in given.get("services", none).fields(SERVICES).items()
            },
        )

    def _container(self, name: str, value: Value) -> ContainerSeed:
        given = value.fields(("public", "metadata", "policies", "folder", "blobs"))
        blobs = {each.place.name: each for each in self._folder_blobs(name, given.get("folder"))}
        for each in given["blobs"].items() if "blobs" in given else ():
            blob = self._blob(name, each)
            blobs[blob.place.name] = blob
        public = given["public"].one_of(_ACCESS) if "public" in given else None
        return ContainerSeed(
            name,
            value.at,
            given["metadata"].texts() if "metadata" in given else None,
            "" if public == "none" else public,
            _policies(given.get("policies")),
            tuple(blobs.values()),
        )

    def _folder_blobs(self, container: str, value: Value | None) -> Iterator[BlobSeed]:
        """Yield a blob for each file of a folder, in the order of their names. Links to folders are not followed."""
        if value is None:
            return
        root = self._folder / value.text()
        if not root.is_dir():
            value.fail(f"there is no folder {root}")
        paths = sorted(Path(folder) / name for folder, _, names in os.walk(root) for name in names)
        if len(paths) > FILES_MAX:
            value.fail(f"{root} has more than {FILES_MAX:,} files")
        for path in paths:
            state = BlobState(BLOCK, 0, {"Content-Type": _type_of(path.name)}, {})
            yield BlobSeed(BlobAddress(container, path.relative_to(root).as_posix()), value.at, state, None, None, path)

    def _blob(self, container: str, value: Value) -> BlobSeed:
        contents = ("text", "base64", "file")
        given = value.fields(("name", *contents, "type", "metadata", "tags", "tier", *_FIELD_KEYS))
        if "name" not in given or sum(each in given for each in contents) != 1:
            value.fail("a blob needs a name, and one of text, base64 and file")
        data, file = self._content(given)
        kind = _KINDS[given["type"].one_of(_KINDS)] if "type" in given else BLOCK
        if kind == PAGE and data is not None and len(data) % PAGE_BYTES:
            value.fail(f"the content of a page blob has a multiple of {PAGE_BYTES} bytes")
        name = given["name"].text()
        fields = {field: given[key].text() for key, field in _FIELD_KEYS.items() if key in given}
        default = "text/plain; charset=utf-8" if "text" in given else _type_of(name if file is None else file.name)
        state = BlobState(
            kind,
            0 if data is None else len(data),
            {"Content-Type": default, **fields},
            given["metadata"].texts() if "metadata" in given else {},
            tier=given["tier"].one_of(_TIERS) if "tier" in given else "",
        )
        tags = given["tags"].texts() if "tags" in given else None
        return BlobSeed(BlobAddress(container, name), value.at, state, tags, data, file)

    def _content(self, given: Mapping[str, Value]) -> tuple[bytes | None, Path | None]:
        if "text" in given:
            return given["text"].text().encode(), None
        if "base64" in given:
            try:
                return base64.b64decode(given["base64"].text(), validate=True), None
            except binascii.Error:
                given["base64"].fail("is not base64")
        path = self._folder / given["file"].text()
        if not path.is_file():
            given["file"].fail(f"there is no file {path}")
        return None, path


def _type_of(name: str) -> str:
    return mimetypes.guess_type(name)[0] or DEFAULT_TYPE


def _switch(name: str, value: Value) -> bool | int:
    most = {"container_retention_days": RETENTION_DAYS_MAX, "rehydrate_after": REHYDRATE_SECONDS_MAX}.get(name)
    return value.flag() if most is None else value.integer(0, most)


def _table(name: str, value: Value) -> TableSeed:
    given = value.fields(("rows", "policies"))
    rows: list[tuple[positions.Path, Entity]] = []
    keys = set[tuple[str, str]]()
    for each in given["rows"].items() if "rows" in given else ():
        entity = _entity(each)
        if entity[:2] in keys:
            each.fail(f"another row has these keys: {entity.partition!r}, {entity.row!r}")
        keys.add(entity[:2])
        rows.append((each.at, entity))
    return TableSeed(name, value.at, tuple(rows), _policies(given.get("policies")))


def _entity(value: Value) -> Entity:
    given = dict(value.named())
    keys = []
    for name in ("PartitionKey", "RowKey"):
        if name not in given:
            value.fail(f"a row needs {name}")
        keys.append(given.pop(name).text())
    if "Timestamp" in given:
        given["Timestamp"].fail("the service sets the Timestamp")
    return Entity(keys[0], keys[1], {name: each.literal() for name, each in given.items()})


def _queue(name: str, value: Value) -> QueueSeed:
    given = value.fields(("metadata", "policies", "messages"))
    return QueueSeed(
        name,
        value.at,
        given["metadata"].texts() if "metadata" in given else None,
        _policies(given.get("policies")),
        tuple(map(_message, given["messages"].items())) if "messages" in given else (),
    )


def _message(value: Value) -> Message:
    if isinstance(value.raw, str):
        return Message(value.raw)
    given = value.fields(("text", "hidden_seconds", "lives_seconds"))
    if "text" not in given:
        value.fail("a message is a string, or a table with text")
    hidden, lives = given.get("hidden_seconds"), given.get("lives_seconds")
    return Message(
        given["text"].text(),
        0 if hidden is None else hidden.integer(0, _HIDDEN_MAX),
        None if lives is None else lives.integer(-1, _TTL_MAX),
    )


def _policies(value: Value | None) -> dict[str, Policy]:
    if value is None:
        return {}
    policies = {}
    for name, each in value.named():
        given = each.fields(("start", "expiry", "permission"))
        policies[name] = Policy(
            given["start"].instant() if "start" in given else None,
            given["expiry"].instant() if "expiry" in given else None,
            given["permission"].text() if "permission" in given else None,
        )
    if len(policies) > POLICIES_MAX:
        value.fail(f"there are at most {POLICIES_MAX} policies")
    return policies
