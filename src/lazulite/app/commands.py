"""The commands that a server takes whatever it serves, for both sides; see `lazulite.control`."""

from dataclasses import dataclass

from lazulite.control.command import AccountArguments, Command, NoArguments

CHECKPOINT = Command("checkpoint", NoArguments, seconds_max=None)
"""Makes a checkpoint of a location, and has one item, the name of its directory there. The checkpoint is there until
the client closes the connection. Checkpoints are made one after the other."""

COUNT_RESOURCES = Command("account-resources", AccountArguments)
"""Has one item: how many tables, queues and containers an account has, by their nouns, without zeros."""

REMOVE_DATA = Command("account-remove-data", AccountArguments, seconds_max=None)
"""Removes all that an account has; its item is empty."""


@dataclass(frozen=True, slots=True)
class QueueArguments:
    """The arguments of a command about a queue."""

    account: str
    queue: str
    start: str = ""
    """The position of the first message; "" for the first of all."""
    count: int = 0
    """How many messages there are at most; 0: all."""


QUEUE_MESSAGES = Command("queue-messages", QueueArguments, seconds_max=None)
"""Has an item for each message of a queue, hidden ones included, in the order of their visibility: `text`,
`hidden_seconds`, `lives_seconds` (-1: forever), `dequeues`, `id`, `position`, `receipt`, and in Unix seconds
`inserted` and `visible`. The messages stay as they are."""

KEEP_STATE = Command("state-keep", NoArguments)
"""Keeps the data of all accounts as they are. Only the server of a test has it; its item is empty."""

RESET_STATE = Command("state-reset", NoArguments)
"""Returns to what `KEEP_STATE` kept. Only the server of a test has it; its item is empty."""

STATUS = Command("status", NoArguments)
"""Has an item for each process of the server: see `app.status`."""

ADDRESSES = Command("addresses", NoArguments)
"""Has an item for each service that accepts requests: `service`, `host` as it is listened on, and the ports `http` and
`https`, of which one may be null."""


@dataclass(frozen=True, slots=True)
class TrafficArguments:
    """What `TRAFFIC` is asked about."""

    name: str
    """The name of the table."""
    account: str = ""
    """Empty: the only one."""
    service: str = "table"


TRAFFIC = Command("traffic", TrafficArguments)
"""Has the items of `traffic.codec` for one resource."""


RECORD_SECONDS_MAX = 6 * 3600.0
"""The longest recording."""


@dataclass(frozen=True, slots=True)
class RecordArguments:
    """What `RECORD` is asked for."""

    seconds: float
    """How long it takes at most."""
    requests: int = 0
    """After how many requests of a process it ends before that; 0: it does not."""
    name: str = ""
    """The name of the table; empty: all tables."""
    account: str = ""
    """Empty: the only one."""
    secret: str = ""
    """The key of hashes; empty: a new one. A primary gives one to its workers, so that their hashes are equal."""

    def __post_init__(self) -> None:
        """Check what types cannot say."""
        if not 0 < self.seconds <= RECORD_SECONDS_MAX:
            raise ValueError(f"seconds is above 0, and at most {RECORD_SECONDS_MAX:,.0f}")


RECORD = Command("record", RecordArguments, seconds_max=None)
"""Has an item with the `requests` recorded so far, now and then, and at last one for each table: see
`traffic.recording`. The recording is forgotten when the client closes the connection."""


@dataclass(frozen=True, slots=True)
class EndRecordingArguments:
    """Which recording `END_RECORDING` ends."""

    secret: str
    """That the recording was asked for with."""


END_RECORDING = Command("record-end", EndRecordingArguments)
"""Ends a recording before its time: its client gets what was recorded until then. Its item tells whether there is one
with that secret."""


@dataclass(frozen=True, slots=True)
class KeySampleArguments:
    """What `KEY_SAMPLE` is asked about."""

    name: str
    """The name of the table."""
    account: str = ""
    """Empty: the only one."""
    partition: str = ""
    """The partition whose first row is asked about."""


KEY_SAMPLE = Command("key-sample", KeySampleArguments)
"""Has one item: the `KeySample` of a table."""


@dataclass(frozen=True, slots=True)
class RecordedArguments:
    """Which recorded requests are asked for. A text that is empty stands for all."""

    service: str = ""
    account: str = ""
    status: str = ""
    """Such as `404`, `4xx`, `failed` or `refused`."""
    text: str = ""
    """Is in the path, the operation, the code of an error or an id."""
    since: float = 0.0
    """The Unix time from which on they ended."""
    limit: int = 100
    """The most requests."""
    without_agent: str = ""
    """The beginning of the User-Agent of requests that are left out; "": none are."""
    id: str = ""
    """The id of the one request that is asked for. Its item also has its heads, and why it was refused."""


REQUESTS = Command("requests", RecordedArguments)
"""Has an item with `since`, when recording began; one with `process` and `error` for each process that does not answer;
then one for each request, the newest first (`app.inspector`). Asking begins to record, and keeps that up for a while.
"""


@dataclass(frozen=True, slots=True)
class SetTargetsArguments:
    """Which targets a server has from now on."""

    name: str
    """The name of a preset, or `off`; with a file, the name to show for it."""
    document: str | None = None
    """The text of a file."""


@dataclass(frozen=True, slots=True)
class PartitionsArguments:
    """What `PARTITIONS` is asked about."""

    name: str
    """The name of the table."""
    account: str = ""
    """Empty: the only one."""


TARGETS = Command("targets", NoArguments)
"""Has one item: the targets, by the names of their fields, and the time scale. The name of no targets is `off`."""

SET_TARGETS = Command("targets-set", SetTargetsArguments)
"""Has the item of `TARGETS` afterwards."""

PARTITIONS = Command("partitions", PartitionsArguments)
"""Has the items of `app.partitions` for one table: a head, and one for each range."""


@dataclass(frozen=True, slots=True)
class TableArguments:
    """The arguments of a command about a table."""

    table: str
    account: str = ""
    """Empty: the only one."""


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """The arguments of `INDEX_CREATE`."""

    table: str
    name: str
    on: str
    """The first property."""
    and_on: str = ""
    """The second one, if any."""
    scope: str = "partition"
    account: str = ""

    def __post_init__(self) -> None:
        """Check what types cannot say."""
        if self.scope not in ("partition", "table"):
            raise ValueError("scope is partition or table")


@dataclass(frozen=True, slots=True)
class IndexArguments:
    """The arguments of a command about an index."""

    table: str
    name: str
    account: str = ""
    again: bool = False
    """Whether a build begins again, with a new index of that name."""


@dataclass(frozen=True, slots=True)
class ExplainArguments:
    """The arguments of `INDEX_EXPLAIN`."""

    table: str
    filter: str
    account: str = ""


INDEX_LIST = Command("index-list", TableArguments)
"""Has an object for each index of a table."""

INDEX_CREATE = Command("index-create", IndexDeclaration, seconds_max=None)
"""Declares an index, and has an item with the rows gone through as they grow, until it is built. A build goes on when
the client closes the connection."""

INDEX_BUILD = Command("index-build", IndexArguments, seconds_max=None)
"""Continues a build, or begins it again, and has items as `INDEX_CREATE`."""

INDEX_DROP = Command("index-drop", IndexArguments, seconds_max=None)
"""Drops an index."""

INDEX_EXPLAIN = Command("index-explain", ExplainArguments)
"""Has how a filter is served: its class and the indexes used, then for each index why, or why not."""

INDEX_EXPORT = Command("index-export", TableArguments)
"""Has an object for each index of a table, with the types of its properties in some entities."""


@dataclass(frozen=True, slots=True)
class ExpiryDeclaration:
    """The arguments of `EXPIRY_SET`: one of `after_seconds` and `on` is set."""

    table: str
    after_seconds: int = 0
    """How long after their last write entities expire."""
    on: str = ""
    """The property that has the time at which an entity expires."""
    account: str = ""


EXPIRY_LIST = Command("expiry-list", AccountArguments)
"""Has an object for each table whose entities expire. The account may be empty: the only one."""

EXPIRY_SET = Command("expiry-set", ExpiryDeclaration)
"""Declares when the entities of a table expire. Its item names the table."""

EXPIRY_DROP = Command("expiry-drop", TableArguments)
"""Declares that the entities of a table do not expire. Its item names the table."""


@dataclass(frozen=True, slots=True)
class OpenUiArguments:
    """How the explorer is opened."""

    port: int = 0
    """To listen on, unless the explorer is open; 0: any free one."""


OPEN_UI = Command("ui-open", OpenUiArguments, seconds_max=None)
"""Has an item with `url`, by which a browser signs in once, and `started`: whether this command has opened the
explorer. If so, empty items follow, and the explorer is closed when the client closes the connection."""
