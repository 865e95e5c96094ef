"""Explains why a service refused the credentials of a request, while requests are recorded.

Invariants:
- it changes nothing: neither the response nor what it costs to guess a key, as each refusal is explained to the reader
  of the recorded requests alone;
- clients without good credentials cost little: so many refusals a second are explained, and of the others only the
  reason that the server gives is told;
- of a key that was replaced, it keeps what signs by it, for as long as it lives.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from lazulite.auth.accounts.account import Account, AccountDirectory, Signer
from lazulite.auth.accounts.document import PUBLIC_KEY
from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.delegation.sas import MARKER as DELEGATION_MARKER
from lazulite.auth.explain import sas, shared_key
from lazulite.auth.explain.sas import RefusedToken, explained_fields, failed_fields
from lazulite.auth.explain.shared_key import RefusedRequest
from lazulite.auth.explain.tries import KeyGroup, RefusedSignature, find_mistake
from lazulite.auth.sas import ACCOUNT_SAS_PARAMETERS, MalformedSasError, parse_account_sas
from lazulite.auth.shared_key import (
    REQUEST_AGE_SECONDS_MAX,
    Canonicalize,
    parse_authorization,
    parse_http_date,
    request_date,
    shown_string,
)
from lazulite.protocol.addressing import Address, Addressing
from lazulite.protocol.clock import TICKS_PER_SECOND, Clock, format_http_date
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string, repeated_names
from lazulite.protocol.refusal import Refusal

REFUSALS_PER_SECOND = 20
"""How many refusals are explained in a second."""
OTHERS_MAX = 8
"""How many other accounts' keys are tried."""
_CODES = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation", *sas.CODES})
_PUBLIC_SIGNER = Signer(PUBLIC_KEY)


class _Subject(NamedTuple):
    """A request whose credentials were refused."""

    request: Request
    address: Address
    account: Account
    parameters: Mapping[str, str]
    error: ServiceError


class AccountKeys:
    """The keys of the accounts, and what signs by keys that were replaced.

    Args:
        accounts: the accounts of the store.
    """

    def __init__(self, accounts: AccountDirectory) -> None:
        self._accounts = accounts
        self._known: dict[str, Account] = {}
        self._replaced: dict[str, Sequence[Signer]] = {}
        for name in accounts.names()[:OTHERS_MAX]:
            self._note(name)

    def of(self, account: Account) -> Sequence[KeyGroup]:
        """Return the keys that do not sign for an account, as they are tried."""
        self._note(account.name)
        names = [name for name in self._accounts.names() if name != account.name][:OTHERS_MAX]
        others = [found for found in map(self._accounts.get, names) if found is not None]
        public = () if PUBLIC_KEY in account.keys else (_PUBLIC_SIGNER,)
        texts = [Signer(b64encode(key)) for key in account.keys]
        return (
            KeyGroup(
                "replaced-key",
                "The client signed with a key of this account that was replaced.",
                self._replaced.get(account.name, ()),
            ),
            KeyGroup(
                "public-key",
                "The client signed with the public key of emulators, which this account does not have.",
                public,
            ),
            KeyGroup(
                "other-account",
                "The client signed with the key of another account of this server.",
                [signer for other in others for signer in other.signers],
            ),
            KeyGroup(
                "key-as-text",
                "The client signed with the text of the key: the key must be decoded from base64 first.",
                texts,
            ),
        )

    def _note(self, name: str) -> None:
        """Note what became of the keys of an account."""
        now = self._accounts.get(name)
        before = self._known.get(name)
        if now is None or now is before:
            return
        if before is not None:
            gone = [signer for key, signer in zip(before.keys, before.signers, strict=True) if key not in now.keys]
            self._replaced[name] = gone or self._replaced.get(name, ())
        self._known[name] = now


class Explainer:
    """Explains the refusals of one service.

    Args:
        service: the rules of its credentials.
        keys: the keys of the accounts.
        accounts: the accounts of the store.
        addressing: how the accounts are addressed.
        clock: the time of the service, in ticks.
        monotonic: seconds, for the bound of refusals.
        formats: the strings to sign of other services.
    """

    def __init__(
        self,
        service: ServiceCredentials,
        keys: AccountKeys,
        accounts: AccountDirectory,
        addressing: Addressing,
        clock: Clock,
        monotonic: Callable[[], float],
        formats: Sequence[Canonicalize] = (),
    ) -> None:
        self._service = service
        self._keys = keys
        self._accounts = accounts
        self._addressing = addressing
        self._clock = clock
        self._monotonic = monotonic
        self._formats = [each for each in formats if each is not service.canonicalize]
        self._second, self._count = 0, 0

    def explain(self, request: Request, error: ServiceError) -> Refusal | None:
        """Return why a request was refused; None if it was not for its credentials."""
        if error.code == "ResourceNotFound" and not request.record.account:
            return self._unknown_account(request)
        if error.code not in _CODES or not self._may_explain():
            return None
        subject = self._subject(request, error)
        return None if subject is None else self._of(subject)

    def _subject(self, request: Request, error: ServiceError) -> _Subject | None:
        """Return what was refused; None if it cannot be read, or has no account."""
        try:
            address = self._addressing.locate(request)
            parameters = parse_query_string(request.query)
        except ServiceError:
            return None
        account = self._accounts.get(address.account)
        return None if account is None else _Subject(request, address, account, parameters, error)

    def _of(self, subject: _Subject) -> Refusal:
        header, parameters = subject.request.headers.get("authorization"), subject.parameters
        if header is not None:
            is_bearer = header[:7].lower() == "bearer "
            return Refusal("bearer token", subject.error.message) if is_bearer else self._shared_key(subject, header)
        if "sig" in parameters or "sv" in parameters:
            return self._sas(subject)
        return Refusal("none", "The request has neither an Authorization header nor a SAS in its query.")

    def _may_explain(self) -> bool:
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        return self._count <= REFUSALS_PER_SECOND

    def _unknown_account(self, request: Request) -> Refusal | None:
        try:
            address = self._addressing.locate(request)
        except ServiceError:
            return None
        if self._accounts.get(address.account) is not None:
            return None
        place = "host" if address.root == "/" else "path"
        return Refusal("none", f"There is no account {address.account[:64]!r}, which the {place} names.")

    def _shared_key(self, subject: _Subject, header: str) -> Refusal:
        request, account = subject.request, subject.account
        try:
            given = parse_authorization(header)
        except ServiceError:
            text = "The header is none of the form “SharedKey ACCOUNT:SIGNATURE”, or SharedKeyLite."
            return Refusal("Shared Key", text, "header-form")
        kind = "Shared Key Lite" if given.scheme == "SharedKeyLite" else "Shared Key"
        if given.account != account.name:
            text = f"The header names the account {given.account[:64]!r}, and the address {account.name!r}."
            return Refusal(kind, text, "account-name")
        if subject.error.code in sas.CODES:
            return Refusal(kind, subject.error.message)
        late = _date_problem(request, self._clock())
        if late:
            return Refusal(kind, late, "date-window")
        comp = subject.parameters.get("comp")
        in_path = subject.address.root != "/"
        case = RefusedRequest(
            _without_body(request), given.scheme, account.name, comp, in_path, self._service.canonicalize, self._formats
        )
        signed = RefusedSignature(given.signature, case.string(), "latin-1", account.signers, self._keys.of(account))
        outcome = find_mistake(signed, shared_key.MISTAKES, case)
        return Refusal(kind, outcome.text, outcome.mistake, shown_string(signed.string_to_sign), outcome.tries)

    def _sas(self, subject: _Subject) -> Refusal:
        """Explain the refusal of a SAS."""
        request, error, parameters = subject.request, subject.error, subject.parameters
        if DELEGATION_MARKER in parameters:
            return self._of_fields("user delegation SAS", subject, "")
        is_account = "ss" in parameters
        kind = "account SAS" if is_account else "service SAS"
        names = ACCOUNT_SAS_PARAMETERS if is_account else self._service.sas_parameters
        twice = sorted(frozenset(names) & repeated_names(request.query))
        if twice:
            return self._of_fields(kind, subject, f"{twice[0]} comes twice")
        try:
            fields = self._service.sas_fields(subject.address.resource, parameters)
            token = parse_account_sas(fields) if is_account else self._service.parse_sas(fields)
            token.terms()
        except MalformedSasError as failure:
            return self._of_fields(kind, subject, str(failure))
        except ServiceError:
            return self._of_fields(kind, subject, "")
        text = token.string_to_sign(subject.account.name)
        if error.code in sas.CODES or token.is_signed_by(subject.account):
            return self._of_fields(kind, subject, "")._replace(string_to_sign=shown_string(text))
        case = RefusedToken(text, parameters, subject.account.name, unquote(subject.address.resource))
        signed = RefusedSignature(
            token.signature, text, "utf-8", subject.account.signers, self._keys.of(subject.account)
        )
        outcome = find_mistake(signed, sas.MISTAKES, case)
        now = self._clock()
        failed = {
            "sig": "it is not made for these fields by a key of this account",
            **failed_fields(error, parameters, "", now),
        }
        shown = explained_fields(parameters, now, failed)
        return Refusal(kind, outcome.text, outcome.mistake, shown_string(text), outcome.tries, shown)

    def _of_fields(self, kind: str, subject: _Subject, finding: str) -> Refusal:
        """Explain the refusal of a SAS for its fields."""
        now, parameters = self._clock(), subject.parameters
        failed = failed_fields(subject.error, parameters, finding, now)
        detail = next((text for _, text in subject.error.details), "")
        if not failed and "si" in parameters and detail:
            failed = {"si": detail}
        elif not failed and "tn" in parameters and not detail:
            failed = {"tn": "the request is for another table, or for keys outside of the range of the token"}
        reasons = " ".join(dict.fromkeys(f"{name}: {why.removesuffix('.')}." for name, why in failed.items()))
        text = reasons or f"The token is good, and not for this request. {subject.error.message}"
        return Refusal(kind, text, fields=explained_fields(parameters, now, failed))


def _without_body(request: Request) -> Request:
    return Request(request.method, request.path, request.query, request.headers)


def _date_problem(request: Request, now: int) -> str:
    """Return what is wrong with the date of a request; "" if nothing is."""
    text = request_date(request)
    if not text:
        return "The request has neither x-ms-date nor Date."
    try:
        seconds = (now - parse_http_date(text)) / TICKS_PER_SECOND
    except ValueError:
        return f"The date {text[:64]!r} is not of the form “Mon, 27 Jun 2016 15:25:14 GMT”."
    if abs(seconds) <= REQUEST_AGE_SECONDS_MAX:
        return ""
    way = "behind" if seconds > 0 else "ahead of"
    minutes = abs(seconds) / 60
    return f"The date of the request is {minutes:,.0f} minutes {way} that of the server, {format_http_date(now)}."
