"""Tries: what a client may have signed by mistake, and the comparison of its signature with each.

Invariants: at most `TRIES_MAX` strings are signed, each by the few keys of its try. All of them are, whichever matches,
and each comparison takes constant time. Nothing that was computed leaves this module but which try matched.
"""

import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from lazulite.auth.accounts.account import Signer

C = TypeVar("C")

TRIES_MAX = 16
_SIGNATURE = re.compile(r"[A-Za-z0-9+/]{43}=")
_HEX = re.compile(r"[0-9A-Fa-f]{64}")
_UNKNOWN = (
    "The signature is not made by a key of this account, and none of the usual mistakes explains it. "
    "Most likely the client has a wrong key: of another server, or not copied whole. "
    "If its key is right, it signs another string: compare its string to sign with that of the server."
)
_URL_SAFE = str.maketrans("-_", "+/")


class Mistake(NamedTuple, Generic[C]):
    """A usual mistake in what a client signs."""

    name: str
    """For programs, in words with hyphens."""
    text: str
    """Sentences for people; `{}` is what the mistake is about, such as the name of a header."""
    strings: Callable[[C], Iterable[tuple[str, str]]]
    """Yields the strings that it makes of a case, and what each is about. The string of the server does not count."""


class SignatureEncoding(NamedTuple):
    """A usual mistake in how a signature is written."""

    name: str
    text: str
    applies: Callable[[str], bool]
    right: Callable[[str], str]
    """Returns the signature as it should have been sent."""


SPELLINGS = (
    SignatureEncoding(
        "plus-decoded",
        "The signature came with blanks: each + in it must be sent as %2B.",
        lambda given: " " in given,
        lambda given: given.replace(" ", "+"),
    ),
    SignatureEncoding(
        "encoded-twice",
        "The signature is percent-encoded once too often.",
        lambda given: "%" in given,
        unquote,
    ),
    SignatureEncoding(
        "url-safe-base64",
        "The signature is URL-safe base64: it must have + and / in place of - and _.",
        lambda given: "-" in given or "_" in given,
        lambda given: given.translate(_URL_SAFE),
    ),
    SignatureEncoding(
        "hexadecimal",
        "The signature is hexadecimal: it must be base64.",
        lambda given: _HEX.fullmatch(given) is not None,
        lambda given: b64encode(bytes.fromhex(given)).decode(),
    ),
    SignatureEncoding(
        "padding",
        "The signature lacks the = at its end.",
        lambda given: not given.endswith("="),
        lambda given: f"{given}=",
    ),
)


class KeyGroup(NamedTuple):
    """Keys that do not sign for the account."""

    name: str
    text: str
    signers: Sequence[Signer]


class RefusedSignature(NamedTuple):
    """A signature that was refused."""

    signature: str
    """As the client sent it."""
    string_to_sign: str
    """What the server signed."""
    encoding: str
    """How its characters become bytes."""
    signers: Sequence[Signer]
    """The signers of the account."""
    others: Sequence[KeyGroup] = ()


class Outcome(NamedTuple):
    """What the tries have found."""

    mistake: str
    """The name of the mistake that yields the signature; "" if none does."""
    text: str
    tries: int


class _Candidate(NamedTuple):
    name: str
    text: str
    string: str
    signers: Sequence[Signer]
    claimed: str


def find_mistake(signed: RefusedSignature, mistakes: Sequence[Mistake[C]], case: C) -> Outcome:
    """Return which usual mistake yields a signature that was refused.

    Args:
        signed: the signature.
        mistakes: what the client may have signed.
        case: the request, for the mistakes.
    """
    tries = list(islice(_tries(signed, mistakes, case), TRIES_MAX))
    matches = [each for each in tries if _matches(each, signed.encoding)]
    if matches:
        return Outcome(matches[0].name, matches[0].text, len(tries))
    if _SIGNATURE.fullmatch(signed.signature) is None:
        return Outcome("not-a-signature", "The signature is not the base64 of 32 bytes.", len(tries))
    return Outcome("", _UNKNOWN, len(tries))


def _tries(signed: RefusedSignature, mistakes: Sequence[Mistake[C]], case: C) -> Iterator[_Candidate]:
    """Yield what is tried: other spellings of the signature, other keys, then other strings."""
    given, string = signed.signature, signed.string_to_sign
    for spelling in SPELLINGS:
        if spelling.applies(given):
            yield _Candidate(spelling.name, spelling.text, string, signed.signers, spelling.right(given))
    for keys in signed.others:
        if keys.signers:
            yield _Candidate(keys.name, keys.text, string, keys.signers, given)
    seen = {string}
    for mistake in mistakes:
        for other, about in mistake.strings(case):
            if other not in seen:
                seen.add(other)
                yield _Candidate(mistake.name, mistake.text.replace("{}", about), other, signed.signers, given)


def _matches(one: _Candidate, encoding: str) -> bool:
    """Return whether a signer of a try has made its signature. Takes the same time for any wrong one."""
    message, claimed = one.string.encode(encoding, "replace"), one.claimed.encode("latin-1", "replace")
    matches = [hmac.compare_digest(signer.sign(message), claimed) for signer in one.signers]
    return any(matches)
