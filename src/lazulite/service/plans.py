"""Plans: what a request settles before its operation runs, and the cache of plans.

The kernel compiles each request into a plan, and runs the plan. Clients repeat themselves: method, path up to the
keys, query string, scheme and most header fields are the same from request to request. These are the cache key of a
plan. Requests differ in the keys, in the fields of `protocol.fields.CHANGING`, and in the field and the query
parameter that a route lets vary: a plan leaves them to each request.

Invariants:
- a plan is a value, and does not know how it was found;
- only the plan of a request that succeeded is cached, once its key comes a second time: keys that never come again cost
  no memory, and evict no plan;
- a cached plan rejects nothing for its key. What is stored can be a reason for a rejection, and credentials that are
  not valid now: then the request is compiled, which finds the reason;
- a cached plan holds nothing that another request changes, nor its first request's body or changing fields. Checked
  for each request are the account object, the time or signature of the credentials, the CORS rules, the keys, the
  fields that a route lets vary, and everything that is stored;
- the cached plans of a service are bounded in number and in bytes.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, Never, TypeAlias, cast

from lazulite.auth.accounts.account import Account
from lazulite.auth.authenticator import VerifiedCredentials
from lazulite.protocol.fields import CHANGING, Fields
from lazulite.protocol.lru_cache import LruCache
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import REQUEST_SECONDS_MAX, parse_query_string, percent_decode
from lazulite.protocol.version import RequestVersion
from lazulite.service.routing import AnyCall, Keys, PreparedOperation, Route

PLANS_MAX = 4096
BYTES_MAX = 16 * 1024 * 1024
"""The bytes of the keys of all plans, each plan counted with `_PLAN_BYTES` more."""
KEY_BYTES_MAX = 8 * 1024
"""Bytes of one cache key; a request with a longer one is compiled each time."""
_PLAN_BYTES = 4096
_LINE_BYTES = 80
"""What Python needs for a line beside its characters: in the cache key, and in the plan's own request."""
_USUAL_VALUE = r"([\w.~:@+/=-]*+(?>(?:%[2-7][0-9A-Fa-f][\w.~:@+/=-]*+)*))"
"""A value that can be decoded. A request with another one is compiled."""


class Plan(NamedTuple):
    """What a request settles before its operation runs."""

    account: Account
    credentials: VerifiedCredentials
    parameters: Mapping[str, str]
    version: RequestVersion
    route: Route[Never]
    seconds: int
    """The most that the operation may take."""
    operation: PreparedOperation
    in_host: bool = False
    """Whether the host names the account, not the path."""


CacheKey: TypeAlias = tuple[str, str, bool, str, str, tuple[bytes, ...]]
"""Method, path up to the keys, whether keys follow, query string, scheme, and the steady fields. The query string lacks
the value of the parameter that varies."""


class CutRequest(NamedTuple):
    """A request, cut into the cache key of its plan and what the plan leaves to each request."""

    key: CacheKey
    keys: Keys
    """Those in its path, decoded, and behind them the value of the parameter that varies, if it is there."""
    keys_in_path: int


class PlanCache:
    """The plans of one service by their cache keys, the recently used ones.

    Two generations, as in `protocol.lru_cache`: a hit in the old one moves to the young one, and a full young one
    becomes the old one.

    Args:
        varying: for each method of a route whose plans are cached, the fields that such a route lets vary, in lower
            case.
        keyed_path: the paths that end in keys: the first group is the path up to them, the others are the keys, which
            can be decoded.
        plans_max: the most plans.
        bytes_max: the most bytes of their keys.
        parameters: the query parameter that routes of a method let vary, in lower case.
        keyed_host_path: `keyed_path` where the host names the account; None: it is the same.
        names_account: whether a host does.

    Attributes:
        hits: how many requests ran by a cached plan.
    """

    def __init__(
        self,
        varying: Mapping[str, tuple[str, ...]],
        keyed_path: re.Pattern[str] | None,
        plans_max: int = PLANS_MAX,
        bytes_max: int = BYTES_MAX,
        parameters: Mapping[str, str] | None = None,
        keyed_host_path: re.Pattern[str] | None = None,
        names_account: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._varying = varying
        self._parameters = {method: _pattern_of(name) for method, name in (parameters or {}).items()}
        self._keyed_path = keyed_path
        self._keyed_host_path = keyed_host_path
        self._names_account = names_account
        self._plans_max = plans_max // 2
        self._bytes_max = bytes_max // 2
        self._young: dict[CacheKey, Plan] = {}
        self._old: dict[CacheKey, Plan] = {}
        self._young_bytes = 0
        self._seen: LruCache[int, bool] = LruCache(plans_max)
        """The hashes of keys that came once."""
        self.hits = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def cut(self, request: Request) -> CutRequest | None:
        """Return a request, cut; None if it can have no cached plan."""
        headers, query = request.headers, request.query
        varying = self._varying.get(request.method)
        if varying is None or type(headers) is not Fields:
            return None
        steady = headers.steady
        for name in varying:
            if name in headers:
                steady = _without_value(steady, name.encode() + b":")
        value = None
        parameter = self._parameters.get(request.method)
        pair = None if parameter is None else parameter.pair.search(query)
        if pair is not None:
            value = percent_decode(pair[1].replace("+", " "))
            query = query[: pair.start(1)] + query[pair.end(1) :]
        pattern = self._keyed_path
        if self._keyed_host_path is not None and self._names_account(headers.get("host", "")):
            pattern = self._keyed_host_path
        keyed = None if pattern is None else pattern.fullmatch(request.path)
        path, keys = request.path, cast("Keys", ())
        if keyed is not None:
            groups: Keys = keyed.groups()
            path, keys = groups[0], groups[1:]
            if "%" in request.path:
                keys = tuple([percent_decode(key) for key in keys])
        key = (request.method, path, keyed is not None, query, request.scheme, steady)
        return CutRequest(key, keys if value is None else (*keys, value), len(keys))

    def find(self, key: CacheKey) -> Plan | None:
        """Return the plan of a key; None if there is none."""
        plan = self._young.get(key)
        if plan is None:
            plan = self._old.pop(key, None)
            if plan is None:
                return None
            self.put(key, plan)
        return plan

    def offer(self, cut: CutRequest, plan: Plan, call: AnyCall) -> bool:
        """Cache the plan of a request that succeeded, if it holds for further requests, and if its key came before.

        Args:
            cut: the request.
            plan: its plan.
            call: the call that the plan's operation was prepared from, which must hold nothing of this request alone.

        Returns:
            Whether it is cached.
        """
        if not (_is_cacheable(plan, call.request) and self._wants(cut, call)):
            return False
        call.request = settled_request(call.request)
        self.put(cut.key, plan)
        return True

    def put(self, key: CacheKey, plan: Plan) -> None:
        """Cache a plan."""
        size = _size(key) + _PLAN_BYTES
        if len(self._young) >= self._plans_max or self._young_bytes + size > self._bytes_max:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[key] = plan
        self._young_bytes += size

    def _wants(self, cut: CutRequest, call: AnyCall) -> bool:
        """Return whether a key is to have a plan: not too long, telling the keys of its resource, and not new."""
        key = cut.key
        if cut.keys[: cut.keys_in_path] != call.resource.keys or _size(key) > KEY_BYTES_MAX:
            return False
        parameter = self._parameters.get(call.request.method)
        if parameter is not None and parameter.name in parse_query_string(
            parameter.pair.sub("", call.request.query, 1)
        ):
            return False  # It comes twice, or is spelled in another way.
        number = hash(key)
        if self._seen.get(number):
            return True
        self._seen.put(number, True)
        return False


def _is_cacheable(plan: Plan, request: Request) -> bool:
    """Return whether a plan holds for further requests with its key."""
    route = plan.route
    if route.varies is None or plan.seconds != REQUEST_SECONDS_MAX:
        return False
    if "content-md5" in request.headers and not route.compares_checksums:
        return False
    return plan.credentials.lasts and plan.operation.lasts


def settled_request(request: Request) -> Request:
    """Return what the cache key of a request holds of it: neither its body nor a field that changes."""
    headers = {name: value for name, value in request.headers.items() if name not in CHANGING}
    return Request(request.method, request.path, request.query, headers, scheme=request.scheme)


class _Parameter(NamedTuple):
    """A query parameter that varies."""

    name: str
    pair: re.Pattern[str]
    """Finds it in a query string, with its value as the group."""


def _pattern_of(name: str) -> _Parameter:
    return _Parameter(name, re.compile(rf"(?:^|(?<=&)){name}={_USUAL_VALUE}(?=&|$)", re.ASCII))


def _size(key: CacheKey) -> int:
    method, path, _, query, scheme, steady = key
    count = len(method) + len(path) + len(query) + len(scheme) + sum(map(len, steady))
    return 2 * count + _LINE_BYTES * len(steady)  # Twice: the plan keeps a request of these words.


def _without_value(lines: tuple[bytes, ...], start: bytes) -> tuple[bytes, ...]:
    """Return the lines; of a field, given by its name and colon, only that it is there."""
    return tuple(start if line[: len(start)].lower() == start else line for line in lines)
