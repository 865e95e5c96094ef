"""What a page or an action gets, and what it returns."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from socket import socket
from typing import NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.accounts.document import AccountStore
from lazulite.control.client import ask
from lazulite.control.command import Command, Json
from lazulite.protocol.message import Request, Response
from lazulite.settings.config import Settings
from lazulite.ui.backend import Backend, ServiceClient
from lazulite.ui.jobs import Job, Jobs
from lazulite.ui.sessions import Session, Sessions

A = TypeVar("A")

Context: TypeAlias = Mapping[str, object]
"""What a template shows, and a page's JSON."""


class PageError(Exception):
    """The page cannot be shown, or the action cannot be done.

    Args:
        status: of the response.
        text: one line for people.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class PageServices:
    """What all pages of a server share."""

    settings: Settings
    directory: AccountDirectory
    store_name: str
    backend: Backend
    sessions: Sessions
    jobs: Jobs
    connect: Callable[[], socket]
    """Connects to the control channel of this process."""
    statistics: Callable[[], Mapping[str, float]]
    """Returns the gauges of the store; empty for a database."""
    accounts: AccountStore | None
    """Where accounts are kept; None in memory. Its methods block, so they run in a thread."""
    poll_accounts: Callable[[], Awaitable[None]] | None = None
    """Has the directory follow a change in a database at once; None: it follows its file."""
    replacing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held from a look at what has no ETag until it is replaced."""

    @property
    def read_only(self) -> bool:
        """Whether no page may change anything that is stored."""
        return self.settings.ui_read_only


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCall:
    """One request for a page or an action, by a session."""

    services: PageServices
    request: Request
    session: Session
    parameters: Mapping[str, str]
    """The parameters of the path, decoded."""
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    """The fields of a form; of several of one name the last."""
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """All values of each field of a form."""

    @property
    def backend(self) -> Backend:
        """Sends signed requests to the services."""
        return self.services.backend

    @property
    def jobs(self) -> Jobs:
        """The jobs of the server."""
        return self.services.jobs

    @property
    def account(self) -> str:
        """The account that the path names; it exists."""
        return self.parameters["account"]

    def service(self, name: str) -> ServiceClient:
        """Return a client of `table`, `queue` or `blob` of the account of the path."""
        return self.backend.service(self.account, name)

    def page_of(self, name: str = "next") -> str:
        """Return the continuation token of the URL; "" on the first page."""
        return self.query.get(name, "")

    async def command(self, command: Command[A], arguments: A) -> Sequence[Json]:
        """Return the items of a command of the control channel.

        Raises:
            ControlError: it was rejected, or failed.
        """
        return await ask(self.services.connect(), command, arguments)


class Redirect(NamedTuple):
    """The response to an action: the page that shows its outcome."""

    where: str
    """A path with its query, as `link` makes it."""
    notice: str = ""
    """A line that the page shows once."""

    @classmethod
    def to_job(cls, job: Job) -> "Redirect":
        """Return a redirect to the page of a job."""
        return cls(f"/jobs/{job.id}")


class PageView(NamedTuple):
    """The response to an action that was not done, or that shows a result: the page again, with what was entered."""

    context: Context
    status: int


Page: TypeAlias = Callable[[PageCall], Awaitable["Context | Response"]]
Act: TypeAlias = Callable[[PageCall], Awaitable["Redirect | Response | PageView"]]


class Action(NamedTuple):
    """What a page does on POST."""

    act: Act
    reads_body: bool = False
    """Whether it reads the body itself; else the body is a form."""
    changes: bool = True
    """Whether it changes what is stored, so that `--ui-read-only` refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A page: its path, what makes its context, the template that shows it, and its actions."""

    path: str
    """Literal parts, and names of parameters in braces, such as `/{account}/tables/{table}`."""
    title: str
    """With the parameters in braces."""
    show: Page
    template: str
    actions: Mapping[str, Action] = field(default_factory=dict)
    navigation: str = ""
    """The text of its link in the rail; "": none. Its only parameter may be the account."""


def link(path: str, /, **parameters: object) -> str:
    """Return a URL of this origin.

    Args:
        path: of a route, with the names of parameters in braces.
        parameters: their values; those that the path does not name become the query. None and "" are left out.
    """
    query = {}
    for name, value in parameters.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(value), safe="$"))
        elif value not in (None, ""):
            query[name] = str(value)
    return f"{path}?{urlencode(query, quote_via=quote)}" if query else path
