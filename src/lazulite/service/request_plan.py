"""Request plans: what the words of a request settle, cached for the requests that repeat them.

A client repeats itself. Method, path up to the keys, query string, scheme and the fields of the head are the same from
request to request, but for the keys, for the fields of `protocol.fields.CHANGING`, and for the fields and the query
parameter that a route lets vary. These words settle the account,
the terms of the credentials, the version, the route, and what the route's operation makes of the head. A plan holds
all that. A request that has a plan skips the steps that would find the same once more.

Invariants:
- a plan rejects no words: where anything differs, the request goes the long way (`service.planner`). Only what is
  stored, or is not, can be the reason for a rejection;
- a plan holds what no other request changes. Looked at for each request are the account object, the time or signature
  of the credentials, the CORS rules, the keys, the fields that a route lets vary, and everything that is stored;
- the plans of a service are bounded in number and in bytes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from lazulite.auth.accounts.account import Account
from lazulite.auth.cached_credentials import CachedCredentials
from lazulite.protocol.fields import CHANGING, Fields
from lazulite.protocol.lru_cache import Recent
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string, percent_decode
from lazulite.protocol.version import RequestVersion
from lazulite.service.routing import Keys, PlannedOperation

PLANS_MAX = 4096
BYTES_MAX = 16 * 1024 * 1024
"""Of the words of all plans, each plan counted with `_PLAN_BYTES` more."""
WORDS_BYTES_MAX = 8 * 1024
"""Bytes of the words of one plan; a request with more has none."""
_PLAN_BYTES = 4096
_LINE_BYTES = 80
"""What Python needs for a line beside its characters: in the words, and in the plan's own request."""
_USUAL_VALUE = r"([\w.~:@+/=-]*+(?>(?:%[2-7][0-9A-Fa-f][\w.~:@+/=-]*+)*))"
"""A value that can be decoded. A request with another one goes the long way."""

Words: TypeAlias = tuple[str, str, bool, str, str, tuple[bytes, ...]]
"""Method, path up to the keys, whether keys follow, query string, scheme, and the steady fields. The query string lacks
the value of the parameter that varies."""


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """What the words of a request settle."""

    account: Account
    credentials: CachedCredentials
    parameters: Mapping[str, str]
    version: RequestVersion
    operation_name: str
    body_bytes_max: int
    operation: PlannedOperation


class MatchedPlan(NamedTuple):
    """The plan of a request's words, with its keys."""

    plan: RequestPlan
    keys: Keys
    """Those in its path, and behind them the value of the parameter that varies."""


class RequestPlans:
    """The plans of one service by the words of their requests, the recently used ones.

    Two generations, as in `protocol.lru_cache`: a hit in the old one moves to the young one, and a full young one
    becomes the old one.

    Args:
        varying: for each method of a route with a plan, the fields that such a route lets vary, in lower case.
        keyed_path: the paths that end in keys: the first group is the path up to them, the others are the keys.
        plans_max: the most plans.
        bytes_max: the most bytes of their words.
        parameters: the query parameter that routes of a method let vary, in lower case.
    """

    def __init__(
        self,
        varying: Mapping[str, tuple[str, ...]],
        keyed_path: re.Pattern[str] | None,
        plans_max: int = PLANS_MAX,
        bytes_max: int = BYTES_MAX,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        self._varying = varying
        self._parameters = {method: _pattern_of(name) for method, name in (parameters or {}).items()}
        self._keyed_path = keyed_path
        self._plans_max = plans_max // 2
        self._bytes_max = bytes_max // 2
        self._young: dict[Words, RequestPlan] = {}
        self._old: dict[Words, RequestPlan] = {}
        self._young_bytes = 0
        self._seen: Recent[int, bool] = Recent(plans_max)
        """The hashes of words that came once."""

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def find(self, request: Request) -> MatchedPlan | None:
        """Return the plan of a request's words, with its keys; None if there is none."""
        found = self._words(request)
        if found is None:
            return None
        words, keys, value = found
        plan = self._young.get(words)
        if plan is None:
            plan = self._old.pop(words, None)
            if plan is None:
                return None
            self._put(words, plan)
        return MatchedPlan(plan, keys + value)

    def takes(self, request: Request, keys: Keys) -> bool:
        """Return whether the words of a request are to have a plan: not too long, telling its keys, and not new.

        Args:
            request: the request.
            keys: the keys of its resource, however its path spells them.
        """
        found = self._words(request)
        if found is None:
            return False
        words, keys_in_path, _ = found
        if keys_in_path != keys or _size(words) > WORDS_BYTES_MAX:
            return False
        parameter = self._parameters.get(request.method)
        if parameter is not None and parameter.name in parse_query_string(parameter.pair.sub("", request.query, 1)):
            return False  # It comes twice, or is spelled in another way.
        number = hash(words)
        if self._seen.get(number):
            return True
        self._seen.put(number, True)
        return False

    def put(self, request: Request, plan: RequestPlan) -> None:
        """Cache the plan of the words of a request that `takes` accepts."""
        found = self._words(request)
        if found is not None:
            self._put(found[0], plan)

    def _words(self, request: Request) -> tuple[Words, Keys, Keys] | None:
        """Return the words of a request, the keys in its path, and the value of the parameter that varies."""
        headers, query = request.headers, request.query
        varying = self._varying.get(request.method)
        if varying is None or type(headers) is not Fields:
            return None
        steady = headers.steady
        for name in varying:
            if name in headers:
                steady = _without_value(steady, name.encode() + b":")
        value: Keys = ()
        parameter = self._parameters.get(request.method)
        pair = None if parameter is None else parameter.pair.search(query)
        if pair is not None:
            value = (percent_decode(pair[1].replace("+", " ")),)
            query = query[: pair.start(1)] + query[pair.end(1) :]
        keyed = None if self._keyed_path is None else self._keyed_path.fullmatch(request.path)
        if keyed is None:
            return (request.method, request.path, False, query, request.scheme, steady), (), value
        groups = keyed.groups()
        return (request.method, groups[0], True, query, request.scheme, steady), groups[1:], value

    def _put(self, words: Words, plan: RequestPlan) -> None:
        size = _size(words) + _PLAN_BYTES
        if len(self._young) >= self._plans_max or self._young_bytes + size > self._bytes_max:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[words] = plan
        self._young_bytes += size


def settled_request(request: Request) -> Request:
    """Return what the words of a request hold of it: neither its body nor a field that changes."""
    headers = {name: value for name, value in request.headers.items() if name not in CHANGING}
    return Request(request.method, request.path, request.query, headers, scheme=request.scheme)


class _Parameter(NamedTuple):
    """A query parameter that varies."""

    name: str
    pair: re.Pattern[str]
    """Finds it in a query string, with its value as the group."""


def _pattern_of(name: str) -> _Parameter:
    return _Parameter(name, re.compile(rf"(?:^|(?<=&)){name}={_USUAL_VALUE}(?=&|$)", re.ASCII))


def _size(words: Words) -> int:
    method, path, _, query, scheme, steady = words
    count = len(method) + len(path) + len(query) + len(scheme) + sum(map(len, steady))
    return 2 * count + _LINE_BYTES * len(steady)  # Twice: the plan keeps a request of these words.


def _without_value(lines: tuple[bytes, ...], start: bytes) -> tuple[bytes, ...]:
    """Return the lines; of a field, given by its name and colon, only that it is there."""
    return tuple(start if line[: len(start)].lower() == start else line for line in lines)
