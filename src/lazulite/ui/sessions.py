"""Sign-in tokens and sessions.

Invariants: a token has 256 random bits, is exchanged for a session once, and only its hash is kept. Tokens and ids of
sessions are compared in constant time. Tokens, sessions, and wrong tokens that wait are bounded. A wrong one is
answered after `DELAY_SECONDS`. A session ends after `IDLE_SECONDS` without a request.
"""

import asyncio
import hmac
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

TOKEN_BYTES = 32
TOKENS_MAX = 16
"""Tokens that were not used. One more: the oldest ends."""
SESSIONS_MAX = 32
"""One more: the session that was idle for the longest time ends."""
IDLE_SECONDS = 12 * 3600.0
DELAY_SECONDS = 1.0
WAITING_MAX = 4
"""Wrong tokens whose responses are delayed at a time. One more is refused at once."""
NOTICES_MAX = 8
_AGENT_CHARACTERS_MAX = 120


class TooManyAttemptsError(Exception):
    """So many wrong tokens wait that one more is refused at once."""


@dataclass(slots=True)
class Session:
    """One browser that has signed in."""

    number: int
    """For people and URLs; it opens nothing."""
    digest: bytes = field(repr=False)
    csrf: str = field(repr=False)
    agent: str
    """What the browser calls itself."""
    client: str
    began: float
    """In seconds of the clock of the sessions, as `seen` is."""
    seen: float
    notices: deque[str] = field(default_factory=lambda: deque(maxlen=NOTICES_MAX))


class Sessions:
    """The tokens and the sessions of a listener.

    Args:
        random: returns so many random bytes.
        clock: returns seconds.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._random = random
        self._clock = clock
        self._sleep = sleep
        self._tokens: deque[bytes] = deque(maxlen=TOKENS_MAX)
        self._sessions: dict[int, Session] = {}
        self._count = 0
        self._waiting = 0
        self.wrong_tokens = 0
        """How many wrong tokens came."""
        self.on_used: Callable[[], None] = lambda: None
        """Called when a token was exchanged."""

    def new_token(self) -> str:
        """Return a token that can be exchanged once."""
        token = self._random(TOKEN_BYTES).hex()
        self._tokens.append(_digest(token))
        return token

    async def exchange(self, token: str, *, agent: str, client: str) -> str | None:
        """Return the id of a new session; None, after a delay, if the token is wrong or was used.

        Args:
            token: as it came.
            agent: what the browser calls itself.
            client: its address.

        Raises:
            TooManyAttemptsError: the token is wrong, and other wrong ones wait. A right one always signs in.
        """
        found = _find(self._tokens, _digest(token))
        if found is None:
            self.wrong_tokens += 1
            if self._waiting >= WAITING_MAX:
                raise TooManyAttemptsError
            self._waiting += 1
            try:
                await self._sleep(DELAY_SECONDS)
            finally:
                self._waiting -= 1
            return None
        self._tokens.remove(found)
        self.on_used()
        return self._begin(agent, client)

    def find(self, session_id: str) -> Session | None:
        """Return the session of an id, and note that it is used; None if there is none, or none any more."""
        self._end_idle()
        digest = _digest(session_id)
        found = None
        for each in self._sessions.values():  # All of them, so that the time says nothing.
            if hmac.compare_digest(each.digest, digest):
                found = each
        if found is not None:
            found.seen = self._clock()
        return found

    def all(self) -> Sequence[Session]:
        """Return the sessions, the oldest first."""
        self._end_idle()
        return tuple(self._sessions.values())

    def end(self, number: int) -> bool:
        """End a session; return whether there was one."""
        return self._sessions.pop(number, None) is not None

    def idle_seconds(self, session: Session) -> float:
        """Return how long a session has not been used."""
        return self._clock() - session.seen

    def _begin(self, agent: str, client: str) -> str:
        self._end_idle()
        if len(self._sessions) >= SESSIONS_MAX:
            self.end(min(self._sessions.values(), key=lambda each: each.seen).number)
        session_id, now = self._random(TOKEN_BYTES).hex(), self._clock()
        self._count += 1
        csrf = self._random(TOKEN_BYTES).hex()
        agent = agent[:_AGENT_CHARACTERS_MAX]
        self._sessions[self._count] = Session(self._count, _digest(session_id), csrf, agent, client, now, now)
        return session_id

    def _end_idle(self) -> None:
        limit = self._clock() - IDLE_SECONDS
        for number in [each.number for each in self._sessions.values() if each.seen < limit]:
            self.end(number)


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _find(digests: Sequence[bytes], wanted: bytes) -> bytes | None:
    """Return the digest that equals another one, after a look at all of them."""
    found = None
    for each in digests:
        if hmac.compare_digest(each, wanted):
            found = each
    return found
