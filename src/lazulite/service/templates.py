"""What a template of a plan does: it checks what a plan leaves to each request, and answers from the values of a head.

`protocol.template` tells how heads are cut. The plan is one that is cached (`service.plans`): the same plan, found by
bytes. Looked at for each request are the account object, the token's time, or the date and the signature; the CORS
rules, of which there must be none; the values; and all that the operation looks at.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.authenticator import RepeatedCredentials
from lazulite.engine.contract import Clock
from lazulite.protocol.errors import REASONS
from lazulite.protocol.message import Request, RequestRecord
from lazulite.protocol.template import (
    KEY,
    PLAIN_START,
    Answer,
    CutHead,
    HeadValues,
    Miss,
    PendingAnswer,
    StartPattern,
    Watcher,
    marked_request,
    match_plain,
)
from lazulite.service.common_fields import CommonFields
from lazulite.service.plans import Plan
from lazulite.service.properties import PropertiesStore
from lazulite.service.routing import RepeatedOperation

_STATUS_LINES: Mapping[int, str] = {
    status: f"HTTP/1.1 {status} {REASONS[status]}\r\n" for status in (200, 201, 204, 206)
}
_LENGTH = re.compile(rb"[0-9]{1,9}")
_CLIENT_ID = "x-ms-client-request-id"
_CHECKED_ELSEWHERE = frozenset({KEY, "authorization", "content-length"})
"""HeadValues that are compared with what has no line end: keys by their pattern, a signature, a length."""


class WatcherGroup(NamedTuple):
    """Several watchers, as one."""

    each: Sequence[Watcher]

    def admits(self, values: HeadValues) -> bool:
        """See `Watcher`: all of them must admit it."""
        return all(watcher.admits(values) for watcher in self.each)

    def answered(self, values: HeadValues, answer: Answer) -> None:
        """See `Watcher`."""
        for watcher in self.each:
            watcher.answered(values, answer)


def _joined(watchers: Sequence[Watcher]) -> Watcher | None:
    """Return the watchers as one; None if there are none."""
    return WatcherGroup(watchers) if len(watchers) > 1 else next(iter(watchers), None)


class TemplateContext(NamedTuple):
    """What the templates of one service share."""

    accounts: AccountDirectory
    properties: PropertiesStore
    clock: Clock
    common: CommonFields
    patterns: Sequence[StartPattern]
    """The starts of its heads that have keys."""
    host_patterns: Sequence[StartPattern]
    """Those of heads whose host names the account."""


class RepeatedPlan(NamedTuple):
    """A plan that is cached. Implements `TemplateSource`."""

    context: TemplateContext
    plan: Plan

    @property
    def patterns(self) -> Sequence[StartPattern]:
        """See `TemplateSource`."""
        context = self.context
        return (*(context.host_patterns if self.plan.in_host else context.patterns), PLAIN_START)

    @property
    def varying(self) -> frozenset[str]:
        """See `TemplateSource`."""
        return frozenset(self.plan.route.varies or ())

    def template(self, head: CutHead, request: Request) -> "PlanTemplate | None":
        """See `TemplateSource`."""
        plan = self.plan
        operation = plan.operation.repeated(head.names)
        if operation is None:
            return None
        marked = marked_request(head, request)
        credentials = plan.credentials.repeated(marked, head.names)
        if credentials is None:
            return None
        return PlanTemplate(self.context, plan, head, credentials, operation, request, marked)


class PlanTemplate:
    """A template of a plan. Implements `Template`.

    Args:
        context: of its service.
        plan: the plan.
        head: the head that it is made of.
        credentials: of the plan.
        operation: of the plan.
        request: the request with that head, which succeeded.
        marked: it, with a mark in place of each value.

    Attributes:
        watcher: the one slot for what observes, or gates, the requests of the template; None: nothing does.
    """

    __slots__ = (
        "_account",
        "_accounts",
        "_client_id_at",
        "_clock",
        "_common",
        "_credentials",
        "_length_at",
        "_operation",
        "_plain_at",
        "_properties",
        "_version",
        "marked",
        "method",
        "names",
        "record",
        "waits",
        "watcher",
    )

    def __init__(
        self,
        context: TemplateContext,
        plan: Plan,
        head: CutHead,
        credentials: RepeatedCredentials,
        operation: RepeatedOperation,
        request: Request,
        marked: Request,
    ) -> None:
        self._accounts, self._properties, self._clock, self._common, *_ = context
        self._account = plan.account
        self._version = plan.version.governing
        self._credentials = credentials
        self._operation = operation
        self.marked, self.names = marked, head.names
        names = head.names
        self._plain_at = tuple(
            index
            for index, name in enumerate(names)
            if name not in _CHECKED_ELSEWHERE and index not in credentials.checked
        )
        self._length_at = names.index("content-length") if "content-length" in names else None
        self._client_id_at = names.index(_CLIENT_ID) if _CLIENT_ID in names else None
        self.method = request.method
        self.record: RequestRecord = request.record
        self.waits = operation.waits
        watchers = request.watchers
        self.watcher: Watcher | None = (
            WatcherGroup(watchers) if len(watchers) > 1 else watchers[0] if watchers else None
        )

    def begin(self, values: HeadValues, body: bytes, later: PendingAnswer | None) -> Answer | Miss | None:
        """See `Template`."""
        account = self._account
        if not self._are_usual(values, body):
            return Miss.VALUES
        if self._accounts.get(account.name) is not account or not self._credentials.accept(values, self._clock()):
            return Miss.CREDENTIALS
        properties = self._properties.cached(account.name)
        if properties is None or properties.cors:
            return Miss.RULES
        if self.watcher is not None and not self.watcher.admits(values):
            return Miss.WATCHED
        return self._operation.answer(values, body, later)

    def missing_bytes(self, values: HeadValues, body: bytes) -> int:
        """See `Template`."""
        at = self._length_at
        return int(values[at]) - len(body) if at is not None and _LENGTH.fullmatch(values[at]) else 0

    def _are_usual(self, values: HeadValues, body: bytes) -> bool:
        """Return whether the values are read as they are, and the body has the length that they tell."""
        at = self._length_at
        if body if at is None else values[at] != b"%d" % len(body):
            return False
        for index in self._plain_at:  # noqa: SIM110 - a generator would cost each request one frame more
            if match_plain(values[index]) is None:
                return False
        return True

    def head_of(self, answer: Answer, values: HeadValues, request_id: str) -> bytes:
        """See `Template`."""
        at = self._client_id_at
        client_id = None if at is None else values[at].decode("ascii")
        lines = self._common.lines(request_id, client_id, self._version, self._clock())
        if self.watcher is not None:
            self.watcher.answered(values, answer)
        status, opening, body, _ = answer
        return f"{_STATUS_LINES[status]}{opening}{lines}Content-Length: {len(body)}\r\n\r\n".encode("latin-1")
