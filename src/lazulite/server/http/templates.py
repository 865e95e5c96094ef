"""The templates of one server: found by the bytes of a head, learned from heads that came twice, counted.

Invariants:
- a template is kept only for a head whose plan is cached, so its like came before (`service.plans`);
- two generations, as in `protocol.lru_cache`: a hit in the old one moves to the young one, and a full young one becomes
  the old one. Both have a bound of number and of bytes. So do the layouts, which are small;
- a miss changes nothing: the bytes go the usual way.
"""

from collections.abc import Mapping
from typing import TypeAlias

from lazulite.protocol.lru_cache import LruCache
from lazulite.protocol.message import Request
from lazulite.protocol.template import (
    END_OF_HEAD,
    Constants,
    HeadValues,
    Layout,
    Miss,
    StartPattern,
    Template,
    cut,
)

TEMPLATES_MAX = 4096
BYTES_MAX = 16 * 1024 * 1024
"""The bytes of the constants of all templates, each counted with `_TEMPLATE_BYTES` more."""
LENGTHS_MAX = 512
"""The lengths of tails that are known."""
LAYOUTS_MAX = 8
"""The layouts of one length."""
_TEMPLATE_BYTES = 4096
_CONSTANT_BYTES = 40
"""What Python needs for a constant beside its bytes."""

_LEARNED = frozenset({Miss.UNKNOWN, Miss.BUSY, Miss.CREDENTIALS})
"""The misses after which a success may make a template."""

HIT = "hit"

Found: TypeAlias = tuple[Template, HeadValues, bytes]
"""A template, and what it answers: the values of a head, and the body."""
Key: TypeAlias = tuple[str, int, bytes, Constants]
"""Scheme, number of the pattern, start, constants of the tail. The start of a head with keys may be the whole path of
another head, and their tails may be alike."""


class TemplateCache:
    """The templates of one server, the recently used ones.

    Args:
        templates_max: the most templates.
        bytes_max: the most bytes of their constants.

    Attributes:
        hits: the requests that templates have answered.
        learned: the templates that were made.
    """

    def __init__(self, templates_max: int = TEMPLATES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._templates_max = templates_max // 2
        self._bytes_max = bytes_max // 2
        self._young: dict[Key, Template] = {}
        self._old: dict[Key, Template] = {}
        self._young_bytes = 0
        self._patterns: tuple[StartPattern, ...] = ()
        """Those by which templates were cut."""
        self._layouts: LruCache[int, tuple[Layout, ...]] = LruCache(LENGTHS_MAX)
        """By the length of the tail."""
        self._barred: LruCache[int, bool] = LruCache(LENGTHS_MAX)
        """The hashes of keys that can have no template."""
        self._misses = dict.fromkeys(Miss, 0)
        self.hits = self.learned = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many requests were answered, by `HIT`, and were not, by the value of their `Miss`."""
        return {HIT: self.hits, **{miss.value: count for miss, count in self._misses.items()}}

    def miss(self, why: Miss) -> None:
        """Count a request that no template has answered."""
        self._misses[why] += 1

    def find(self, scheme: str, data: bytes) -> Found | None:
        """Return the template of a request that came whole, with its values; None if there is none."""
        for number, pattern in enumerate(self._patterns):
            start = pattern.match(data)
            if start is None:
                continue
            at = start.end()
            end = data.find(END_OF_HEAD, at) + len(END_OF_HEAD)
            groups = start.groups()
            for layout in self._layouts.get(end - at) or ():
                parts = layout(data[at:end])
                key = (scheme, number, groups[0], parts[::2])
                template = self._young.get(key) or self._from_old(key)
                if template is not None:
                    return template, groups[1:] + parts[1::2], data[end:]
        return None

    def learn(self, head: bytes, request: Request, missed: Miss) -> None:
        """Make a template of a request that succeeded, unless there is one that is good, or can be none.

        Args:
            head: to the empty line at its end.
            request: as the service has left it.
            missed: why none has answered. One whose credentials were not good is replaced, as the request succeeded:
                its account was another object.
        """
        repeat = request.repeat if missed in _LEARNED else None
        parts = None if repeat is None else cut(head, repeat.patterns, repeat.varying)
        if repeat is None or parts is None:
            return
        if parts.pattern not in self._patterns:
            self._patterns += (parts.pattern,)
        key = (request.scheme, self._patterns.index(parts.pattern), parts.start, parts.constants)
        if missed is Miss.CREDENTIALS or (key not in self._young and key not in self._old):
            template = None if self._barred.get(hash(key)) else repeat.template(parts, request)
            if template is None:
                self._barred.put(hash(key), True)
                return
            self._put(key, template)
            self.learned += 1
        layouts = self._layouts.get(parts.length) or ()
        if parts.layout not in layouts:
            self._layouts.put(parts.length, (parts.layout, *layouts)[:LAYOUTS_MAX])

    def _from_old(self, key: Key) -> Template | None:
        template = self._old.pop(key, None)
        if template is not None:
            self._put(key, template)
        return template

    def _put(self, key: Key, template: Template) -> None:
        _, _, start, constants = key
        size = len(start) + sum(map(len, constants)) + _CONSTANT_BYTES * len(constants) + _TEMPLATE_BYTES
        if len(self._young) >= self._templates_max or self._young_bytes + size > self._bytes_max:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[key] = template
        self._young_bytes += size
